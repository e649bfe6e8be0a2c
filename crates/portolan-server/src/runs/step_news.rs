//! Steps that changed something or failed, told as events once they are in the store.
//!
//! They are told when they are reported, and again by a server that takes over: the one before may have been killed before
//! their events were written. Their names follow from the run, the node and the step, so each is one event.

use portolan_fleet::{StepReport, StepState};
use portolan_kinds::KindObject;
use serde_json::json;

use super::active::ActiveRun;
use super::record::read_nodes;
use crate::error::ApiError;
use crate::events::{EventSink, NewEvent};
use crate::server::ApiServer;

/// The most nodes of a run whose steps are told again.
const MAX_NODES: usize = 1_000;

/// A step that changed something or failed.
#[derive(Debug)]
pub(super) struct StepNews {
    node: String,
    step: String,
    item: Option<String>,
    state: StepState,
    error: Option<String>,
}

impl StepNews {
    /// What is told of a step; `None` if nothing came of it.
    fn of(node: &str, step: &StepReport) -> Option<Self> {
        let is_news = matches!(step.state, StepState::Changed | StepState::Failed);
        is_news.then(|| Self {
            node: node.to_owned(),
            step: step.name.clone(),
            item: step.item.as_ref().map(ToString::to_string),
            state: step.state,
            error: step.error.as_ref().map(|error| error.message.clone()),
        })
    }

    fn event(&self, run: &KindObject) -> NewEvent {
        let (node, step, name) = (&self.node, &self.step, run.name());
        let event = match self.state {
            StepState::Failed => {
                let why = self.error.as_deref().unwrap_or_default();
                let summary = format!("step {step} of run {name} failed on {node}: {why}");
                NewEvent::new("run.step.failed", summary).warning()
            }
            _ => {
                let summary = format!("step {step} of run {name} changed {node}");
                NewEvent::new("run.step.changed", summary)
            }
        };
        let id = format!("{}\0{node}\0{step}\0{:?}", run.metadata.uuid(), self.item);
        event
            .about(run)
            .on(node)
            .named("step", &id)
            .caused_as(&run.spec)
            .data(json!({
                "run": name, "book": run.spec["book"], "step": step, "item": self.item, "state": self.state.word(),
            }))
    }
}

impl ActiveRun {
    /// Takes note of a step. A run that only checks changes nothing.
    pub(super) fn note_step(&mut self, position: usize, step: &StepReport) {
        let node = self.nodes.get(position).filter(|_| !self.plan.is_check);
        let news = node.and_then(|node| StepNews::of(&node.name, step));
        self.step_news.extend(news);
    }

    /// Tells the steps that were noted; they are in the store.
    pub(super) fn tell_steps(&mut self, sink: &EventSink, run: &KindObject) {
        for news in std::mem::take(&mut self.step_news) {
            sink.tell(news.event(run));
        }
    }
}

impl ApiServer {
    /// Tells the steps of a run that are in the store. Events that exist are not made again.
    pub(crate) async fn tell_steps_again(&self, run: &KindObject) -> Result<(), ApiError> {
        let uuid = run.metadata.uuid();
        let nodes = read_nodes(&self.objects.store, uuid).await?;
        if run.spec["mode"] == "check" || nodes.len() > MAX_NODES {
            return Ok(());
        }
        for (position, entries) in self.read_logs(uuid, None).await? {
            let Some(node) = nodes.get(position) else {
                continue;
            };
            let steps = entries.iter().filter_map(|entry| entry.get("step"));
            let news = steps
                .filter_map(StepReport::read)
                .filter_map(|step| StepNews::of(&node.name, &step));
            for news in news {
                self.event_sink.tell(news.event(run));
            }
        }
        Ok(())
    }
}
