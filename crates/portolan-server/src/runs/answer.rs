//! What became of a run, read from the store.

use std::collections::BTreeMap;

use portolan_fleet::{
    NodeEnd, NodePart, NodeProgress, NodeState, RunEnd, RunReport, RunState, Stage, StepReport,
};
use portolan_kinds::KindObject;
use portolan_store::Span;
use serde_json::Value;

use super::keys;
use super::record::{NodeRecord, RunRecords, StoredNode, StoredState, read_nodes, read_progress};
use crate::error::ApiError;
use crate::node_access::NodeIdentity;
use crate::server::{ApiServer, Target};

impl ApiServer {
    /// The parts that nodes took in a run. A node gets its own part and nothing about the others.
    pub(crate) async fn run_report(
        &self,
        target: &Target,
        only: Option<&NodeIdentity>,
    ) -> Result<Value, ApiError> {
        let found = self.objects.get(&target.key()?).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        let uuid = found.object.metadata.uuid().to_owned();
        let store = &self.objects.store;
        let mut records = RunRecords::default();
        let state: Option<StoredState> = records.read(store, keys::state(&uuid)).await?;
        let Some(state) = state else {
            return Err(ApiError::not_found(&target.shown()));
        };
        let nodes = read_nodes(store, &uuid).await?;
        let own = only.map(|node| nodes.iter().position(|one| one.uuid == node.uid));
        if own == Some(None) {
            // Whether the run exists is nobody's business who has no part in it.
            return Err(ApiError::not_found(&target.shown()));
        }
        let progress = read_progress(store, &uuid).await?;
        let mut logs = self.read_logs(&uuid, own.flatten()).await?;
        let mut parts = Vec::new();
        for (position, (node, record)) in nodes.iter().zip(&progress).enumerate() {
            if own.is_none_or(|own| own == Some(position)) {
                let log = logs.remove(&position).unwrap_or_default();
                parts.push(part(node, record, &log));
            }
        }
        let report = RunReport {
            run: target.name.clone().unwrap_or_default(),
            state: run_state(&found.object, &state.run.stage, &progress),
            reason: reason(&state.run),
            nodes: parts,
        };
        Ok(report.to_record())
    }

    pub(super) async fn read_logs(
        &self,
        uuid: &str,
        node: Option<usize>,
    ) -> Result<BTreeMap<usize, Vec<Value>>, ApiError> {
        let mut logs: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        let span = Span::prefix(keys::logs(uuid, node));
        self.objects
            .store
            .scan(&span, None, |record| {
                if let Some(node) = keys::node_of_log(&record.key) {
                    let entries: Vec<Value> =
                        serde_json::from_slice(&record.value).unwrap_or_default();
                    logs.entry(node).or_default().extend(entries);
                }
                Ok(())
            })
            .await?;
        Ok(logs)
    }
}

/// The part of one node: its steps as they were last reported, each with the first diff that was told.
fn part(node: &StoredNode, record: &NodeRecord, log: &[Value]) -> NodePart {
    let mut steps: Vec<StepReport> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let (mut owed, mut stopped) = (Vec::new(), None);
    for entry in log {
        if let Some(ended) = entry.get("ended") {
            let list = ended["owed"].as_array().into_iter().flatten();
            owed = list.filter_map(Value::as_str).map(str::to_owned).collect();
            let reason = ended["stopped"].as_str().unwrap_or_default();
            stopped = (!reason.is_empty()).then(|| reason.to_owned());
            continue;
        }
        let Some(mut step) = entry.get("step").and_then(StepReport::read) else {
            continue;
        };
        let key = format!("{}\0{}", step.name, step.item.clone().unwrap_or_default());
        match known.get(&key).and_then(|at| steps.get_mut(*at)) {
            Some(before) => {
                step.diff = step.diff.or_else(|| before.diff.take());
                *before = step;
            }
            None => {
                known.insert(key, steps.len());
                steps.push(step);
            }
        }
    }
    NodePart {
        name: node.name.clone(),
        state: node_word(&record.progress).to_owned(),
        steps,
        owed,
        stopped,
    }
}

fn node_word(progress: &NodeProgress) -> &'static str {
    match progress {
        NodeProgress::Queued => "queued",
        NodeProgress::Working { .. } => "running",
        NodeProgress::Waiting { .. } => "waiting",
        NodeProgress::Done(NodeEnd::State(state)) => state.word(),
        NodeProgress::Done(NodeEnd::NotBegun) => "skipped",
    }
}

/// The worst of the nodes of a run that has ended; otherwise how far it is.
fn run_state(run: &KindObject, stage: &Stage, nodes: &[NodeRecord]) -> String {
    let Stage::Ended(end) = stage else {
        return run.status["phase"].as_str().unwrap_or("pending").to_owned();
    };
    if *end == RunEnd::Cancelled {
        return "cancelled".to_owned();
    }
    let states = nodes.iter().filter_map(|record| match record.progress {
        NodeProgress::Done(NodeEnd::State(state)) => Some(state),
        _ => None,
    });
    states.max().unwrap_or(NodeState::Skipped).word().to_owned()
}

/// What a run waits for, or why it was stopped.
pub(super) fn reason(run: &RunState) -> Option<String> {
    match &run.stage {
        Stage::Stopping { reason } | Stage::Stalled { reason } => Some(reason.clone()),
        Stage::Gate if run.gate.is_open => {
            let after = run.batch + 1;
            Some(format!(
                "the batch after batch {after} waits for somebody to approve it"
            ))
        }
        Stage::Gate => run.gate.why.clone(),
        _ => None,
    }
}
