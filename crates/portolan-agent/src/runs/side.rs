//! Steps that this node takes by themselves: for another node of a run, or for the gate between two batches.
//!
//! They are taken one after the other by a thread of their own. A step that was taken is answered from the journal when the
//! server asks again.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc as queue};
use std::thread;

use portolan_fleet::{Book, JournalState, NodeRun, RunMode, Step, StepReport, StepState};
use portolan_secret::KnownSecrets;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::control::RunControl;
use super::node::AgentNode;
use super::order::{OrderValues, mode_of};
use super::worker::{Worker, cannot_open};
use super::{NodeEvent, RunSettings, SharedLease};
use crate::wire::{SideOrder, SideReport};

/// Steps that wait, with the runs that they belong to.
#[derive(Default)]
pub(super) struct SideSteps {
    runs: BTreeMap<String, SideRun>,
    queue: Option<queue::Sender<SideWorker>>,
}

struct SideRun {
    control: Arc<RunControl>,
    /// Steps by their ids; what became of them, once they have ended.
    steps: BTreeMap<String, Option<SideReport>>,
}

/// One step.
struct SideWorker {
    worker: Worker,
    id: String,
    step: String,
    frame: Option<Map<String, Value>>,
}

impl SideSteps {
    /// The runs that have steps here.
    pub(super) fn runs(&self) -> impl Iterator<Item = &String> {
        self.runs.keys()
    }

    /// There is a new stream: no step is started until the server asks for it again.
    pub(super) fn doubt(&self) {
        for run in self.runs.values() {
            run.control.doubt();
        }
    }

    /// Digests of the files that they need are those of their orders, so nothing may be forgotten while there are some.
    pub(super) fn is_idle(&self) -> bool {
        let mut runs = self.runs.values();
        !runs.any(|run| run.steps.values().any(Option::is_none))
    }

    /// Ends the steps of a run.
    pub(super) fn stop(&mut self, run: &str, now: bool) -> bool {
        let found = self.runs.remove(run);
        if let Some(run) = &found {
            run.control.stop(super::control::StopReason::Cancelled, now);
        }
        found.is_some()
    }

    pub(super) fn suspend(&self) {
        for run in self.runs.values() {
            run.control
                .stop(super::control::StopReason::Suspended, false);
        }
    }

    pub(super) fn wake(&self) {
        for run in self.runs.values() {
            run.control.wake();
        }
    }

    /// Remembers what became of a step.
    pub(super) fn ended(&mut self, report: &SideReport) {
        if let Some(run) = self.runs.get_mut(&report.run) {
            run.steps.insert(report.id.clone(), Some(report.clone()));
        }
    }

    /// Begins a step, or says again what became of it.
    pub(super) fn order(
        &mut self,
        order: SideOrder,
        settings: &Arc<RunSettings>,
        lease: &SharedLease,
        events: &mpsc::UnboundedSender<NodeEvent>,
    ) -> Option<SideReport> {
        let book = order.book?;
        let run = self
            .runs
            .entry(book.run.clone())
            .or_insert_with(|| SideRun {
                control: Arc::new(RunControl::new(0, Arc::clone(lease))),
                steps: BTreeMap::new(),
            });
        run.control.open(0);
        if let Some(known) = run.steps.get(&order.id) {
            return known.clone();
        }
        let read = serde_json::from_slice(&order.frame).ok();
        let is_readable = order.frame.is_empty() || read.is_some();
        run.steps.insert(order.id.clone(), None);
        let side = SideWorker {
            worker: Worker {
                settings: Arc::clone(settings),
                control: Arc::clone(&run.control),
                events: events.clone(),
                order: book,
                journal: None,
            },
            id: order.id,
            step: order.step,
            frame: read,
        };
        if !is_readable {
            return Some(side.failed("the values of the step cannot be read"));
        }
        self.queue(side)
    }

    /// Puts a step behind the others. What cannot be begun has failed.
    fn queue(&mut self, side: SideWorker) -> Option<SideReport> {
        let mut side = side;
        for _ in 0..2 {
            if let Some(sender) = &self.queue {
                match sender.send(side) {
                    Ok(()) => return None,
                    // The thread is gone; another one begins.
                    Err(queue::SendError(back)) => side = back,
                }
            }
            let (sender, receiver) = queue::channel::<SideWorker>();
            let thread = thread::Builder::new().name("side".to_owned());
            let begun = thread.spawn(move || receiver.iter().for_each(|side| side.run()));
            if let Err(error) = begun {
                return Some(side.failed(&format!("no thread for the step: {error}")));
            }
            self.queue = Some(sender);
        }
        Some(side.failed("the step cannot be begun"))
    }
}

impl SideWorker {
    fn run(&self) {
        // Of a defect the others are told, so that they do not wait for ever.
        let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.take()));
        let taken = taken.unwrap_or_else(|_| Err("the agent failed; its log says why".to_owned()));
        let report = match taken {
            Ok(Some(report)) => report,
            // The run was stopped, or the agent ends: nobody waits, or the next agent is asked.
            Ok(None) => return,
            Err(reason) => self.failed(&reason),
        };
        // Nobody listens when the agent has ended; the journal has what counts.
        let _ = self.worker.events.send(NodeEvent::Side(report));
    }

    /// Takes the step. `None` if it was stopped.
    fn take(&self) -> Result<Option<SideReport>, String> {
        let order = &self.worker.order;
        let values = OrderValues::read(order).ok_or("the order of the server cannot be read")?;
        let Some(files) = self.worker.files()? else {
            return Ok(None);
        };
        let book = self.worker.compile(&values, &files)?;
        let step = self.step(&book);
        let step = step.ok_or_else(|| format!("the book has no step `{}`", self.step))?;
        if self.worker.control.wait_for_lease().is_err() {
            return Ok(None);
        }
        let is_check = mode_of(order) == RunMode::Check;
        let (_held, mut journal, past) = if is_check {
            (None, None, JournalState::default())
        } else {
            let Some(lock) = self.worker.lock_node()? else {
                return Ok(None);
            };
            let path = self.worker.journal_path(&book, "side.journal");
            let (journal, past) = self
                .worker
                .open_journal_at(&path, &book)
                .map_err(|error| cannot_open(&error))?;
            let at_work = self.worker.settings.activity.begin(&order.run);
            (Some((lock, at_work)), Some(journal), past)
        };
        let mut node = AgentNode::new(&self.worker, &book, &values, files, journal.as_mut());
        node.is_side = true;
        let request = node.request(values, &book);
        let secrets = Arc::new(KnownSecrets::default());
        let run = NodeRun::new(&book, &mut node, past, secrets);
        match run.take_side(&request, step, self.frame.clone(), &self.id) {
            Ok(outcome) => Ok(Some(SideReport {
                run: order.run.clone(),
                id: self.id.clone(),
                report: outcome.report.to_record().to_string().into(),
                result: outcome
                    .result
                    .map(|result| {
                        // The server keeps it.
                        if step.options.is_sensitive && self.frame.is_some() {
                            json!({"changed": result["changed"]})
                        } else {
                            result
                        }
                    })
                    .map(|result| result.to_string().into())
                    .unwrap_or_default(),
            })),
            Err(_) => Ok(None),
        }
    }

    fn step<'b>(&self, book: &'b Book) -> Option<&'b Step> {
        let gate = book
            .run
            .gate
            .as_ref()
            .and_then(|gate| gate.probe.as_deref());
        let gate = gate.filter(|probe| probe.id == self.step && self.frame.is_none());
        gate.or_else(|| book.step(&self.step))
    }

    fn failed(&self, reason: &str) -> SideReport {
        let report = StepReport {
            name: self.step.clone(),
            item: None,
            state: StepState::Failed,
            diff: None,
            error: Some(portolan_fleet::StepError {
                message: reason.to_owned(),
                hint: None,
                output: None,
            }),
            notes: Vec::new(),
            reasons: Vec::new(),
            changes: Vec::new(),
            took: std::time::Duration::ZERO,
            place: portolan_fleet::Place {
                file: self.worker.order.file.as_str().into(),
                line: 1,
                column: 1,
            },
        };
        SideReport {
            run: self.worker.order.run.clone(),
            id: self.id.clone(),
            report: report.to_record().to_string().into(),
            result: Vec::new().into(),
        }
    }
}
