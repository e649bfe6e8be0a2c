//! Steps that nodes take by themselves: for another node of the run, and for the gate between two batches.
//!
//! ```text
//! SideRequest of a node, AskGate ──▶ SideRecord in the store ──then──▶ SideOrder to the node that takes it
//! SideAnswer to the node, reply of the gate ◀──then── SideRecord with its end ◀── SideReport
//! ```
//!
//! A step has an id, and the node that takes it answers a repeated order from its journal: it is taken once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{RunOrder, SideAnswer, SideOrder, SideReport, SideRequest};
use portolan_fleet::{GateReply, NodeState, StepError, StepReport, StepState, UnreachablePolicy};
use serde_json::{Map, Value, json};

use super::active::{ActiveRun, Outgoing, Surroundings};
use super::plan::GATE_STEP;
use super::record::{SideEnd, SideRecord, StoredNode};

/// The most steps that nodes take for others in a run at the same time.
const MAX_SIDE: usize = 20_000;

/// How many of them are with one node at the same time: it takes one after the other.
const MAX_WITH_NODE: usize = 8;

/// Who waits for a step: the node, the step and its item.
type Asker = (String, String, String);

/// The steps of a run that nodes take by themselves.
#[derive(Default)]
pub(super) struct SideTable {
    steps: BTreeMap<String, SideStep>,
    /// The ids that each asker waits for.
    askers: BTreeMap<Asker, BTreeSet<String>>,
    /// The question of the gate, and the ids whose ends answer it.
    gate: Option<(u32, BTreeSet<String>)>,
}

struct SideStep {
    record: SideRecord,
    /// What it sees; of a step for a gate, or after another server began it, nothing.
    frame: Option<Vec<u8>>,
    /// Whether it was sent over the stream that its node has now.
    is_sent: bool,
    /// Whether it may have been begun.
    may_be_begun: bool,
    /// Since when its node cannot be reached.
    away_since: Option<Duration>,
}

impl SideTable {
    pub(super) fn of(records: impl IntoIterator<Item = SideRecord>) -> Self {
        let steps = records.into_iter().map(|record| {
            let step = SideStep {
                record,
                frame: None,
                is_sent: false,
                may_be_begun: true,
                away_since: None,
            };
            (step.record.id.clone(), step)
        });
        Self {
            steps: steps.collect(),
            ..Self::default()
        }
    }

    /// Whether a node has something to do here.
    pub(super) fn is_at_work(&self, node: &str) -> bool {
        let mut steps = self.steps.values();
        steps.any(|step| step.record.on == node && step.record.done.is_none())
    }

    /// The nodes that take steps here.
    pub(super) fn nodes(&self) -> BTreeSet<String> {
        let steps = self.steps.values();
        steps.map(|step| step.record.on.clone()).collect()
    }

    /// The stream of a node is another one, or gone: what was sent over it is sent again.
    pub(super) fn forget_stream(&mut self, node: &str) {
        for step in self.steps.values_mut() {
            if step.record.on == node {
                step.is_sent = false;
            }
        }
    }
}

impl ActiveRun {
    /// A node wants others to take a step for it.
    pub(super) fn side_asked(&mut self, node: &str, request: SideRequest) {
        let Some(delegation) = self.plan.delegated.get(&request.step).cloned() else {
            return;
        };
        if !self.is_at_work(node) || self.side.steps.len() > MAX_SIDE {
            return;
        }
        let whose = if delegation.once_per_run { "run" } else { node };
        let mut ids = BTreeSet::new();
        for on in delegation.nodes {
            let id = format!("{whose}/{}/{}/{on}", request.step, request.item);
            self.add_side(&id, &request.step, &on, Some(request.values.to_vec()));
            ids.insert(id);
        }
        let asker = (node.to_owned(), request.step, request.item);
        self.side.askers.insert(asker, ids);
    }

    /// The gate between two batches is asked.
    pub(super) fn ask_gate(&mut self, question: u32) {
        if self
            .side
            .gate
            .as_ref()
            .is_some_and(|(known, _)| *known == question)
        {
            return;
        }
        let nodes = match self.plan.delegated.get(GATE_STEP) {
            Some(delegation) => delegation.nodes.clone(),
            None => self.state.first.iter().cloned().collect(),
        };
        let mut ids = BTreeSet::new();
        for on in nodes {
            let id = format!("gate/{question}/{on}");
            self.add_side(&id, GATE_STEP, &on, None);
            ids.insert(id);
        }
        self.side.gate = Some((question, ids));
    }

    fn add_side(&mut self, id: &str, step: &str, on: &str, frame: Option<Vec<u8>>) {
        if let Some(known) = self.side.steps.get_mut(id) {
            if known.frame.is_none() {
                known.frame = frame;
            }
            return;
        }
        let record = SideRecord {
            id: id.to_owned(),
            step: step.to_owned(),
            on: on.to_owned(),
            done: None,
        };
        self.inbox.sides.insert(id.to_owned(), record.clone());
        let step = SideStep {
            record,
            frame,
            is_sent: false,
            may_be_begun: false,
            away_since: None,
        };
        self.side.steps.insert(id.to_owned(), step);
    }

    /// A node has taken a step by itself. What has its end keeps it.
    pub(super) fn side_done(&mut self, node: &str, report: &SideReport) {
        let known = self.side.steps.get(&report.id);
        if !known.is_some_and(|step| step.record.on == node && step.record.done.is_none()) {
            return;
        }
        let read = serde_json::from_slice::<Value>(&report.report).ok();
        let Some(read) = read.filter(|read| StepReport::read(read).is_some()) else {
            return;
        };
        let end = SideEnd {
            report: read,
            result: serde_json::from_slice(&report.result).ok(),
        };
        self.end_side(&report.id, end);
    }

    fn end_side(&mut self, id: &str, end: SideEnd) {
        if let Some(step) = self.side.steps.get_mut(id) {
            step.record.done = Some(end);
            self.inbox.sides.insert(id.to_owned(), step.record.clone());
        }
    }

    /// Ends steps whose nodes may not be used any more, or cannot be reached for too long.
    pub(super) fn judge_sides(&mut self, around: &Surroundings) {
        let now = self.now();
        let patience = match self.plan.run.unreachable {
            UnreachablePolicy::Wait(time) => time,
            _ => Duration::ZERO,
        };
        let mut ended = Vec::new();
        for (id, step) in &mut self.side.steps {
            if step.record.done.is_some() {
                continue;
            }
            let on = &step.record.on;
            if around.denied.contains(on) && !step.may_be_begun {
                let why = "the namespace of the run may not target the node any more";
                ended.push((id.clone(), StepState::Failed, why));
                continue;
            }
            if around.connected.contains(on) {
                step.away_since = None;
                continue;
            }
            let since = *step.away_since.get_or_insert(now);
            let away = now.saturating_sub(since);
            if step.may_be_begun && away > self.plan.run.silence_limit.max(patience) {
                let why = "the node that takes the step cannot be reached, and nobody knows how far it came";
                ended.push((id.clone(), StepState::Unknown, why));
            } else if !step.may_be_begun && away >= patience {
                let why = "the node that should take the step cannot be reached";
                ended.push((id.clone(), StepState::Failed, why));
            }
        }
        for (id, state, why) in ended {
            let Some(step) = self.side.steps.get(&id) else {
                continue;
            };
            let on = self.node_name(&step.record.on);
            let report = failure(
                &step.record.step,
                &self.book.file,
                state,
                &format!("{on}: {why}"),
            );
            let end = SideEnd {
                report: report.to_record(),
                result: None,
            };
            self.end_side(&id, end);
        }
    }

    /// What may be sent now that everything is written.
    pub(super) fn tell_sides(&mut self, around: &Surroundings) -> Vec<Outgoing> {
        let mut outgoing = Vec::new();
        let mut with_node: BTreeMap<String, usize> = BTreeMap::new();
        for step in self.side.steps.values() {
            if step.is_sent && step.record.done.is_none() {
                *with_node.entry(step.record.on.clone()).or_default() += 1;
            }
        }
        let waiting: Vec<String> = self
            .side
            .steps
            .iter()
            .filter(|(_, step)| {
                let has_values = step.frame.is_some() || step.record.step == GATE_STEP;
                step.record.done.is_none()
                    && !step.is_sent
                    && has_values
                    && around.connected.contains(&step.record.on)
                    && !around.denied.contains(&step.record.on)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in waiting {
            let Some(step) = self.side.steps.get_mut(&id) else {
                continue;
            };
            let with_node = with_node.entry(step.record.on.clone()).or_default();
            if *with_node >= MAX_WITH_NODE {
                continue;
            }
            *with_node += 1;
            step.is_sent = true;
            step.may_be_begun = true;
            let (on, name) = (step.record.on.clone(), step.record.step.clone());
            let frame = step.frame.clone().unwrap_or_default();
            let mut book = RunOrder {
                run: self.uuid.clone(),
                name: self.name.clone(),
                incarnation: self.epoch.incarnation,
                revision: self.epoch.create_revision,
                ..RunOrder::default()
            };
            self.add_book(&on, &mut book);
            let order = SideOrder {
                book: Some(book),
                id,
                step: name,
                frame: frame.into(),
            };
            outgoing.push(Outgoing {
                node: on,
                message: Message::SideOrder(order),
            });
        }
        outgoing.extend(self.answers());
        outgoing
    }

    /// Answers for nodes whose steps have ended on all nodes that take them.
    fn answers(&mut self) -> Vec<Outgoing> {
        let mut answered = Vec::new();
        for (asker, ids) in &self.side.askers {
            if let Some(end) = self.joined(ids) {
                answered.push((asker.clone(), end));
            }
        }
        let mut outgoing = Vec::new();
        for ((node, step, item), end) in answered {
            let asker = (node.clone(), step.clone(), item.clone());
            self.side.askers.remove(&asker);
            let result = end.result.map(|result| result.to_string().into());
            let answer = SideAnswer {
                run: self.uuid.clone(),
                step,
                item,
                report: end.report.to_string().into(),
                result: result.unwrap_or_default(),
            };
            outgoing.push(Outgoing {
                node,
                message: Message::SideAnswer(answer),
            });
        }
        outgoing
    }

    /// What the gate says, once every node that was asked has answered.
    pub(super) fn gate_reply(&self) -> Option<GateReply> {
        let (question, ids) = self.side.gate.as_ref()?;
        let question = *question;
        if ids.is_empty() {
            let refusal = Some("no node can be asked".to_owned());
            return Some(GateReply { question, refusal });
        }
        let end = self.joined(ids)?;
        let report = StepReport::read(&end.report)?;
        let is_bad = matches!(report.state, StepState::Failed | StepState::Unknown);
        let why = report.error.map(|error| error.message);
        let refusal = is_bad.then(|| why.unwrap_or_else(|| "the probe failed".to_owned()));
        Some(GateReply { question, refusal })
    }

    /// The end of a step on several nodes: the worst one, with the results of all. `None` while one is at work.
    fn joined(&self, ids: &BTreeSet<String>) -> Option<SideEnd> {
        let mut ends = Vec::new();
        for id in ids {
            let record = &self.side.steps.get(id)?.record;
            ends.push((record.on.clone(), record.done.clone()?));
        }
        if let [(_, end)] = ends.as_slice() {
            return Some(end.clone());
        }
        let rank = |end: &SideEnd| {
            let state = StepReport::read(&end.report).map(|report| report.state);
            state.map_or(NodeState::Unknown, |state| NodeState::of([state]))
        };
        let worst = ends
            .iter()
            .map(|(_, end)| end)
            .max_by_key(|end| rank(end))?;
        let mut nodes = Map::new();
        let mut changed = false;
        for (on, end) in &ends {
            let result = end.result.clone().unwrap_or_default();
            changed |= result["changed"] == true;
            nodes.insert(self.node_name(on), result);
        }
        Some(SideEnd {
            report: worst.report.clone(),
            result: Some(json!({"changed": changed, "nodes": nodes})),
        })
    }

    /// A node of the run, or one that takes steps for them.
    pub(super) fn stored_node(&self, uuid: &str) -> Option<&StoredNode> {
        let position = self.positions.get(uuid);
        let node = position.and_then(|position| self.nodes.get(*position));
        node.or_else(|| self.plan.delegates.iter().find(|node| node.uuid == uuid))
    }

    fn node_name(&self, uuid: &str) -> String {
        self.stored_node(uuid)
            .map_or_else(|| uuid.to_owned(), |node| node.name.clone())
    }
}

fn failure(step: &str, file: &str, state: StepState, message: &str) -> StepReport {
    StepReport {
        name: step.to_owned(),
        item: None,
        state,
        diff: None,
        error: Some(StepError {
            message: message.to_owned(),
            hint: None,
            output: None,
        }),
        notes: Vec::new(),
        reasons: Vec::new(),
        changes: Vec::new(),
        took: Duration::ZERO,
        place: portolan_fleet::Place {
            file: file.into(),
            line: 1,
            column: 1,
        },
    }
}
