//! What nodes of a run have to know of others: results of steps, who may take which step, how far the first node is.
//!
//! It is told whole each time, so that nothing depends on what an agent heard before.

use portolan_agent::wire::RunNews;
use portolan_agent::wire::server_message::Message;
use portolan_fleet::{NodeProgress, RunState};
use serde_json::{Map, Value, json};

use super::active::{ActiveRun, GivenResult, Outgoing};

/// The most bytes of results that are sent to a node.
const MAX_RESULTS_BYTES: usize = 1 << 20;

impl ActiveRun {
    /// Tells nodes at work what changed for them.
    pub(super) fn tell_news(&mut self) -> Vec<Outgoing> {
        if !self.plan.has_news {
            return Vec::new();
        }
        let working: Vec<String> = self.state.working().cloned().collect();
        let mut outgoing = Vec::new();
        for node in working.iter().filter(|node| self.informed.contains(*node)) {
            let news = self.news_for(node);
            if self.told.get(node) != Some(&news) {
                outgoing.push(self.news_message(node, &news));
                self.told.insert(node.clone(), news);
            }
        }
        outgoing
    }

    fn news_for(&self, node: &str) -> Value {
        let permits: Vec<&String> = self.state.permits.of(node).collect();
        let (results, large) = self.results_shown(node);
        json!({
            "shared": self.stored.shared, "largeShared": self.stored.large, "results": results, "largeResults": large,
            "permits": permits, "firstPassed": first_passed(&self.state),
        })
    }

    /// Results of all nodes, for one behind the barrier that all of them have come to, and where those are that are stored
    /// apart. Null for a step whose results are too large together: who asks for them hears of it.
    fn results_shown(&self, node: &str) -> (Value, Value) {
        let phase = match self.state.nodes.get(node) {
            Some(NodeProgress::Working { phase, .. }) => *phase,
            _ => 0,
        };
        // Before the first barrier nobody can ask, and they would change all the time.
        if phase == 0 || self.plan.gathered.is_empty() {
            return (json!({}), json!({}));
        }
        let mut bytes = 0;
        let (mut shown, mut apart) = (Map::new(), Map::new());
        for (step, results) in &self.results {
            let (mut small, mut large) = (Map::new(), Map::new());
            let mut more = 0;
            for (position, result) in results {
                let Some(node) = self.nodes.get(*position) else {
                    continue;
                };
                let (place, value) = match result {
                    GivenResult::Value(value) => (&mut small, value.clone()),
                    GivenResult::Apart(stored) => (&mut large, json!(stored)),
                };
                more += value.to_string().len();
                place.insert(node.name.clone(), value);
            }
            if bytes + more > MAX_RESULTS_BYTES {
                tracing::warn!(run = self.name, step, "the results of a step are too large");
                shown.insert(step.clone(), Value::Null);
                continue;
            }
            bytes += more;
            shown.insert(step.clone(), Value::Object(small));
            if !large.is_empty() {
                apart.insert(step.clone(), Value::Object(large));
            }
        }
        (Value::Object(shown), Value::Object(apart))
    }

    fn news_message(&self, node: &str, news: &Value) -> Outgoing {
        Outgoing {
            node: node.to_owned(),
            message: Message::RunNews(RunNews {
                run: self.uuid.clone(),
                incarnation: self.epoch.incarnation,
                revision: self.epoch.create_revision,
                values: news.to_string().into(),
            }),
        }
    }
}

/// How many barriers the first node has come to. One that takes no further step is behind all of them.
fn first_passed(state: &RunState) -> u64 {
    let first = state
        .first
        .as_ref()
        .and_then(|first| state.nodes.get(first));
    let passed = match first {
        None | Some(NodeProgress::Queued) => return 0,
        Some(NodeProgress::Working { phase, .. }) => *phase,
        Some(NodeProgress::Waiting { barrier, .. }) => barrier + 1,
        Some(NodeProgress::Done(_)) => return u64::from(u32::MAX),
    };
    passed as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use portolan_fleet::{BarrierScope, NodeEnd, NodeState, RunPlan, UnreachablePolicy};

    use super::*;

    #[test]
    fn a_first_node_that_has_ended_is_behind_every_barrier() {
        let plan = RunPlan {
            nodes: vec!["a".to_owned()],
            batches: vec![1],
            barriers: vec![BarrierScope::Run],
            max_failures: 0,
            stops_on_failure: false,
            unreachable: UnreachablePolicy::Fail,
            gate: None,
            throttles: BTreeMap::new(),
            delegates: Vec::new(),
            queue_limit: Duration::ZERO,
            silence_limit: Duration::ZERO,
        };
        let mut state = RunState::new(&plan);
        assert_eq!(first_passed(&state), 0);
        state.first = Some("a".to_owned());
        let heard = Duration::ZERO;
        for (progress, expected) in [
            (NodeProgress::Working { phase: 1, heard }, 1),
            (
                NodeProgress::Waiting {
                    barrier: 1,
                    state: NodeState::Ok,
                },
                2,
            ),
            (
                NodeProgress::Done(NodeEnd::State(NodeState::Failed)),
                u64::from(u32::MAX),
            ),
        ] {
            state.nodes.insert("a".to_owned(), progress);
            assert_eq!(first_passed(&state), expected);
        }
    }
}
