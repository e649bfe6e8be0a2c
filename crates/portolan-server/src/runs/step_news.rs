//! Steps that changed something or failed, told as events once they are in the store.

use portolan_fleet::{StepReport, StepState};
use portolan_kinds::KindObject;
use serde_json::json;

use super::active::ActiveRun;
use crate::events::{EventSink, NewEvent};

/// A step that changed something or failed.
#[derive(Debug)]
pub(super) struct StepNews {
    node: String,
    step: String,
    item: Option<String>,
    state: StepState,
    error: Option<String>,
}

impl ActiveRun {
    /// Takes note of a step. A run that only checks changes nothing.
    pub(super) fn note_step(&mut self, position: usize, step: &StepReport) {
        let is_news = matches!(step.state, StepState::Changed | StepState::Failed);
        let Some(node) = self.nodes.get(position).filter(|_| is_news) else {
            return;
        };
        if self.is_check() {
            return;
        }
        self.step_news.push(StepNews {
            node: node.name.clone(),
            step: step.name.clone(),
            item: step.item.as_ref().map(ToString::to_string),
            state: step.state,
            error: step.error.as_ref().map(|error| error.message.clone()),
        });
    }

    /// Tells the steps that were noted; they are in the store.
    pub(super) fn tell_steps(&mut self, sink: &EventSink, run: &KindObject) {
        for news in std::mem::take(&mut self.step_news) {
            let StepNews { node, step, .. } = &news;
            let event = match news.state {
                StepState::Failed => {
                    let why = news.error.as_deref().unwrap_or_default();
                    let summary =
                        format!("step {step} of run {} failed on {node}: {why}", self.name);
                    NewEvent::new("run.step.failed", summary).warning()
                }
                _ => {
                    let summary = format!("step {step} of run {} changed {node}", self.name);
                    NewEvent::new("run.step.changed", summary)
                }
            };
            let id = format!("{}\0{node}\0{step}\0{:?}", self.uuid, news.item);
            let event = event
                .about_run(&self.namespace, &self.name)
                .on(node)
                .named("step", &id)
                .caused_as(&run.spec)
                .data(json!({
                    "run": self.name, "book": run.spec["book"], "step": step, "item": news.item, "state": news.state.word(),
                }));
            sink.tell(event);
        }
    }
}
