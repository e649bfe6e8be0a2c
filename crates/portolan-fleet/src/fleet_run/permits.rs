//! Steps that few nodes may take at the same time: who takes them now, and who is next.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Which nodes take such steps, by the step. A node keeps its permit until it gives it back or has its end, whatever happens
/// to its agent and to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permits(BTreeMap<String, StepPermits>);

/// The permits of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StepPermits {
    held: BTreeSet<String>,
    /// In the order in which they asked.
    waiting: Vec<String>,
}

impl Permits {
    /// The nodes that take a step now.
    pub fn holders(&self, step: &str) -> impl Iterator<Item = &String> {
        self.0.get(step).into_iter().flat_map(|one| &one.held)
    }

    /// The steps that a node may take.
    pub fn of<'p>(&'p self, node: &'p str) -> impl Iterator<Item = &'p String> {
        let has = move |one: &StepPermits| one.held.contains(node);
        self.0
            .iter()
            .filter(move |(_, one)| has(one))
            .map(|(step, _)| step)
    }

    /// A node asks for a step. Says whether it has its permit already.
    pub(super) fn ask(&mut self, step: &str, node: &str) -> bool {
        let one = self.0.entry(step.to_owned()).or_default();
        if one.held.contains(node) {
            return true;
        }
        if !one.waiting.iter().any(|waiting| waiting == node) {
            one.waiting.push(node.to_owned());
        }
        false
    }

    /// A node gives a step back, or stops asking for it.
    pub(super) fn give_back(&mut self, step: &str, node: &str) {
        if let Some(one) = self.0.get_mut(step) {
            one.held.remove(node);
            one.waiting.retain(|waiting| waiting != node);
        }
        self.0
            .retain(|_, one| !one.held.is_empty() || !one.waiting.is_empty());
    }

    /// A node takes no further step.
    pub(super) fn release(&mut self, node: &str) {
        let steps: Vec<String> = self.0.keys().cloned().collect();
        for step in steps {
            self.give_back(&step, node);
        }
    }

    /// Gives free permits to those that wait, the first first: node and step.
    pub(super) fn give(&mut self, throttles: &BTreeMap<String, u32>) -> Vec<(String, String)> {
        let mut given = Vec::new();
        for (step, one) in &mut self.0 {
            let limit = throttles
                .get(step)
                .map_or(usize::MAX, |limit| *limit as usize);
            while one.held.len() < limit && !one.waiting.is_empty() {
                let node = one.waiting.remove(0);
                one.held.insert(node.clone());
                given.push((node, step.clone()));
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_kept_until_it_is_given_back() {
        let mut permits = Permits::default();
        let throttles = BTreeMap::from([("drain".to_owned(), 1)]);
        assert!(!permits.ask("drain", "a") && !permits.ask("drain", "b"));
        let given = [("a".to_owned(), "drain".to_owned())];
        assert_eq!(permits.give(&throttles), given);
        // An agent that was started again asks again, and has it.
        assert!(permits.ask("drain", "a"));
        assert!(!permits.ask("drain", "b"));
        assert!(permits.give(&throttles).is_empty());
        permits.give_back("drain", "a");
        let given = [("b".to_owned(), "drain".to_owned())];
        assert_eq!(permits.give(&throttles), given);
        assert_eq!(permits.of("b").collect::<Vec<_>>(), ["drain"]);
        permits.release("b");
        assert_eq!(permits, Permits::default());
    }
}
