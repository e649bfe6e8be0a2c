//! Takes the steps of a book on one node. A local run and an agent use the same code; what differs is their [`NodeHost`].
//!
//! ```text
//! NodeRun::run ──▶ steps, blocks, handlers (this file) ──▶ items and attempts (module_step.rs) ──▶ a module's plan and apply (work.rs)
//!                       │                                        │
//!                       └── StepReport for each, at once         └── NodeHost::record before and after every effect
//! ```

mod attempt;
mod deadline;
mod environment;
mod module_step;
mod prepare;
mod reasons;
mod restart;
mod scope;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_modules::{Ahead, Change, Host};
use portolan_secret::KnownSecrets;
use serde_json::{Map, Value, json};

use crate::book::{Barrier, Block, Book, HandlerPolicy, MAX_ITEMS, Step, Work};
use crate::decision::Fleet;
use crate::input::bind_inputs;
use crate::journal::{JournalEntry, JournalError, JournalState, StepKey};
use crate::outcome::{NodeState, StepError, StepReport, StepState};
use crate::text::{TextRenderer, scope_of};

pub(crate) use scope::Frame;

/// What a run needs from the place where it runs.
pub trait NodeHost {
    /// The machine that steps work on.
    fn host(&self) -> Host;

    /// The machine as one attempt of a step works on it: its commands belong to the attempt.
    fn attempt_host(&self, _key: &StepKey) -> Host {
        self.host()
    }

    /// Whether work that must not be done twice, and that was begun before a crash, can be taken up again: its commands are
    /// found where they are, or were never started.
    fn can_take_up(&self, _step: &Step, _key: &StepKey) -> bool {
        false
    }

    /// Whether a step that runs once in the whole run runs on this node.
    fn is_first(&self) -> bool {
        true
    }

    /// Waits until the first node has taken a step that runs once in the whole run: its result, if it gave one.
    ///
    /// # Errors
    /// Why the run ends here, or why the result cannot be had.
    fn wait_for_first(&mut self, _step: &Step) -> Result<Option<Value>, ResultError> {
        Ok(None)
    }

    /// Gives the result of a step to the other nodes; null if it has none.
    ///
    /// # Errors
    /// Why the run ends here, or why nobody can be given the result.
    fn share_result(&mut self, _step: &Step, _result: &Value) -> Result<(), ResultError> {
        Ok(())
    }

    /// Encrypts the result of a sensitive step for the journal, so that this node alone can read it again. `None` if it
    /// cannot: the result is forgotten when the run is interrupted then.
    fn seal(&self, _result: &str) -> Option<String> {
        None
    }

    /// Decrypts what [`NodeHost::seal`] gave.
    fn unseal(&self, _sealed: &str) -> Option<String> {
        None
    }

    /// Waits until this node may take a step that few nodes may take at the same time.
    ///
    /// # Errors
    /// Why the run ends here.
    fn enter(&mut self, _step: &Step) -> Result<(), NodeStop> {
        Ok(())
    }

    /// The node has taken such a step.
    fn leave(&mut self, _step: &Step) {}

    /// Lets other nodes take a step for this one, with the values that it sees here.
    ///
    /// # Errors
    /// Why the run ends here.
    fn delegate(
        &mut self,
        step: &Step,
        _key: &StepKey,
        _values: Map<String, Value>,
    ) -> Result<SideOutcome, NodeStop> {
        let mut report = report_of(step, None, StepState::Failed);
        report.error = Some(StepError {
            message: "there are no other nodes here".to_owned(),
            hint: None,
            output: None,
        });
        Ok(SideOutcome {
            report,
            result: None,
        })
    }

    /// Other nodes.
    fn fleet(&self) -> &dyn Fleet;

    /// Whether the next step may be taken: nobody cancelled the run, and the lease is valid.
    ///
    /// # Errors
    /// Why the run ends here.
    fn may_start(&mut self, step: &Step) -> Result<(), NodeStop>;

    /// Waits until other nodes have come as far.
    ///
    /// # Errors
    /// Why the run ends here.
    fn wait_at(&mut self, step: &Step, barrier: Barrier) -> Result<(), NodeStop>;

    /// Writes an entry to the journal; it is on the disk when this returns.
    ///
    /// # Errors
    /// Why it could not be written. The work that it announces is not begun then.
    fn record(&mut self, entry: &JournalEntry) -> Result<(), NodeStop>;

    /// Hears what a step is about to change, before it does.
    ///
    /// # Errors
    /// Why the run ends here.
    fn touches(&mut self, _changes: &[Change]) -> Result<(), NodeStop> {
        Ok(())
    }

    /// Tells what became of a step; called again if that changes later.
    fn report(&mut self, report: &StepReport);

    /// Waits, and says whether nobody cancelled the run meanwhile.
    fn pause(&mut self, time: Duration) -> bool;

    /// Time since some moment, to say how long steps take.
    fn clock(&self) -> Duration;
}

/// Why a node takes no further step of its book.
#[derive(Debug, thiserror::Error)]
pub enum NodeStop {
    /// Somebody interrupted the command that runs the book on this machine.
    #[error("interrupted")]
    Interrupted,
    /// The server wants the node to end.
    #[error("cancelled")]
    Cancelled,
    /// The run was stopped while it waited for the next attempt of a step.
    #[error("cancelled between two attempts")]
    CancelledInPause,
    /// The agent ends; the run goes on when it is back.
    #[error("the agent ends")]
    AgentEnds,
    /// The journal cannot be written, so nothing may be done.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What the run changes cannot be written down for the beacons that watch it.
    #[error("cannot tell beacons what the run changes")]
    Touched(#[source] std::io::Error),
}

/// Why a result does not come to another node.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The run ends here.
    #[error(transparent)]
    Stopped(#[from] NodeStop),
    /// It is too large, or may not be read.
    #[error("{0}")]
    Refused(String),
}

impl NodeStop {
    /// The reason for people, with its cause.
    fn with_cause(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }
}

/// Whether a run changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// It brings the node to the state of the book.
    Apply,
    /// It says what would change.
    Check,
}

/// What a run on one node is made from.
pub struct NodeRequest {
    /// The run.
    pub run: String,
    /// Whether it changes something.
    pub mode: RunMode,
    /// Values of the book's inputs, checked.
    pub inputs: Map<String, Value>,
    /// Static variables of the node, which stand above those of the book.
    pub variables: Map<String, Value>,
    /// What is known about the node.
    pub facts: Value,
    /// The node: name, address and labels.
    pub node: Value,
    /// The nodes of the run.
    pub peers: Value,
}

/// How a run ended on one node.
#[derive(Debug)]
pub struct NodeOutcome {
    /// The worst of its steps.
    pub state: NodeState,
    /// Every step.
    pub steps: Vec<StepReport>,
    /// Handlers that were notified and not run.
    pub owed: Vec<String>,
    /// Why the run ended before its last step, if it was stopped.
    pub stopped: Option<String>,
}

/// How a step ended that was taken by itself: for another node, or to ask something.
#[derive(Debug, Clone, PartialEq)]
pub struct SideOutcome {
    /// What became of it.
    pub report: StepReport,
    /// What later steps see of it.
    pub result: Option<Value>,
}

/// A run on one node.
pub struct NodeRun<'a> {
    book: &'a Book,
    host: &'a mut dyn NodeHost,
    mode: RunMode,
    renderer: TextRenderer,
    secrets: Arc<KnownSecrets>,
    past: JournalState,
    results: scope::Results,
    /// Positions of handlers that are to run.
    notified: BTreeSet<usize>,
    /// Those that this run notified before it was interrupted: they are notified again when it comes there.
    notified_before: BTreeSet<usize>,
    /// Who notified them.
    notifiers: BTreeMap<usize, BTreeSet<String>>,
    /// The names of variables that stand above those of the book.
    node_variables: BTreeSet<String>,
    /// How often handlers were run; a part of their keys in the journal.
    flushes: u32,
    /// What earlier steps of a check will have changed.
    ahead: Ahead,
    /// Steps of a check whose results nobody knows yet.
    pending: BTreeSet<String>,
    reports: Vec<StepReport>,
}

/// Why no further step is taken.
enum Halt {
    /// A step failed.
    Failed { step: String, message: String },
    /// The run was stopped.
    Stopped(NodeStop),
}

type Flow = Result<(), Halt>;

impl<'a> NodeRun<'a> {
    /// A run that goes on where its journal ends.
    pub fn new(
        book: &'a Book,
        host: &'a mut dyn NodeHost,
        past: JournalState,
        secrets: Arc<KnownSecrets>,
    ) -> Self {
        let renderer = TextRenderer::new(host.host().book_files);
        Self {
            book,
            host,
            mode: RunMode::Apply,
            renderer,
            secrets,
            past,
            results: scope::Results::default(),
            notified: BTreeSet::new(),
            notified_before: BTreeSet::new(),
            notifiers: BTreeMap::new(),
            node_variables: BTreeSet::new(),
            flushes: 0,
            ahead: Ahead::default(),
            pending: BTreeSet::new(),
            reports: Vec::new(),
        }
    }

    /// Takes all steps.
    pub fn run(mut self, request: &NodeRequest) -> NodeOutcome {
        self.mode = request.mode;
        self.node_variables = request.variables.keys().cloned().collect();
        for (name, input) in &self.book.inputs {
            if let (true, Some(value)) = (input.is_secret, request.inputs.get(name)) {
                add_secret(&self.secrets, name, value);
            }
        }
        self.owe_from_before();
        let flow = match self.first_frame(request) {
            Ok(frame) => self.take_all(&frame),
            Err(message) => {
                self.report_failure("compute", &message);
                Ok(())
            }
        };
        let stopped = match flow {
            Err(Halt::Stopped(stop)) => Some(stop.with_cause()),
            _ => None,
        };
        NodeOutcome {
            state: NodeState::of(self.reports.iter().map(|report| report.state)),
            owed: self.handler_names(&(&self.notified | &self.notified_before)),
            steps: self.reports,
            stopped,
        }
    }

    /// Takes one step by itself. With `values`, those are what the step sees: another node has rendered them, and has
    /// decided that the step is taken. `name` tells it apart from the same step for others, in the journal.
    pub fn take_side(
        mut self,
        request: &NodeRequest,
        step: &Step,
        values: Option<Map<String, Value>>,
        name: &str,
    ) -> Result<SideOutcome, NodeStop> {
        self.mode = request.mode;
        for (input, declared) in &self.book.inputs {
            let values = values.as_ref().and_then(|values| values.get("inputs"));
            let value = match values {
                Some(values) => values.get(input),
                None => request.inputs.get(input),
            };
            if let (true, Some(value)) = (declared.is_secret, value) {
                add_secret(&self.secrets, input, value);
            }
        }
        let seen = values.as_ref().and_then(|values| values.get("vars"));
        for name in &self.book.secret_vars {
            if let Some(value) = seen.and_then(|vars| vars.get(name)) {
                add_secret(&self.secrets, name, value);
            }
        }
        let frame = match values {
            Some(values) => Ok(Frame::new(values)),
            None => self.first_frame(request),
        };
        let taken = match (frame, &step.work) {
            (Ok(frame), Work::Module(call)) => self.take_alone(step, call, &frame.in_loop(name)),
            (Ok(_), _) => self
                .fail_or_unknown(step, None, "it calls no module", &Frame::default())
                .map(|()| None),
            (Err(message), _) => self
                .fail_or_unknown(step, None, &message, &Frame::default())
                .map(|()| None),
        };
        let result = match taken {
            Ok(result) => result,
            Err(Halt::Failed { .. }) => None,
            Err(Halt::Stopped(stop)) => return Err(stop),
        };
        let result = result.and_then(|result| self.shown_result(step, &result));
        let report = self.reports.pop();
        let report = report.unwrap_or_else(|| report_of(step, None, StepState::Unknown));
        Ok(SideOutcome { report, result })
    }

    /// Handlers that an earlier run, or this one before it was killed, notified and did not run.
    fn owe_from_before(&mut self) {
        if self.mode == RunMode::Check {
            return;
        }
        let positions = |owed: &[String]| -> BTreeSet<usize> {
            let handlers = self.book.handlers.iter().enumerate();
            let owed = handlers.filter(|(_, handler)| owed.contains(&handler.id));
            owed.map(|(position, _)| position).collect()
        };
        let from_earlier_runs = positions(&self.past.owed_before);
        self.notified_before = positions(&self.past.owed);
        self.notified_before
            .retain(|position| !from_earlier_runs.contains(position));
        self.notified = from_earlier_runs;
    }

    fn handler_names(&self, positions: &BTreeSet<usize>) -> Vec<String> {
        let named = positions
            .iter()
            .filter_map(|at| self.book.handlers.get(*at));
        named.map(|handler| handler.id.clone()).collect()
    }

    fn take_all(&mut self, frame: &Frame) -> Flow {
        let book = self.book;
        let flow = self
            .take_list(&book.steps, frame)
            .and_then(|()| self.run_handlers(frame));
        match (&flow, book.run.handlers_on_failure) {
            (Err(Halt::Failed { .. }), HandlerPolicy::Run) => {
                // What fails here is reported; the node has failed already.
                let _ = self.run_handlers(frame);
            }
            (Err(Halt::Failed { .. }), HandlerPolicy::Drop) => {
                self.notified.clear();
                self.notified_before.clear();
            }
            _ => {}
        }
        flow
    }

    fn take_list(&mut self, steps: &[Step], frame: &Frame) -> Flow {
        for step in steps {
            self.take(step, frame)?;
        }
        Ok(())
    }

    fn take(&mut self, step: &Step, frame: &Frame) -> Flow {
        self.host.may_start(step).map_err(Halt::Stopped)?;
        if step.options.barrier != Barrier::None {
            if step.options.barrier == Barrier::Run {
                // A phase ends here, and its handlers belong to it.
                self.run_handlers(frame)?;
            }
            if self.mode == RunMode::Apply {
                let barrier = step.options.barrier;
                self.host.wait_at(step, barrier).map_err(Halt::Stopped)?;
            }
        }
        match &step.work {
            Work::Flush => self.run_handlers(frame),
            Work::Barrier => Ok(()),
            Work::Module(call) => self.take_module(step, call, frame),
            Work::Block(block) => self.take_block(step, block, frame),
        }
    }

    fn take_block(&mut self, step: &Step, block: &Block, frame: &Frame) -> Flow {
        let items = match self.items(step, frame) {
            Ok(items) => items,
            Err(message) => return self.fail_or_unknown(step, None, &message, frame),
        };
        for item in items {
            let inner = match self.item_frame(step, item.as_ref(), frame) {
                Ok(inner) => inner,
                Err(message) => return self.fail_or_unknown(step, None, &message, frame),
            };
            match self.is_taken(step, &inner) {
                Ok(true) => {}
                Ok(false) => {
                    let shown = item.as_ref().map(|item| item.value.clone());
                    self.skip_inside(step, shown.as_ref(), &inner);
                    continue;
                }
                Err(message) => return self.fail_or_unknown(step, None, &message, frame),
            }
            let inner = match &block.included {
                None => inner,
                Some(included) => match self.included_frame(included, &inner) {
                    Ok(inner) => inner,
                    Err(message) => return self.fail_or_unknown(step, None, &message, frame),
                },
            };
            self.take_parts(step, block, &inner)?;
        }
        Ok(())
    }

    /// The steps of a block, then `rescue` if one failed, then `always`.
    fn take_parts(&mut self, step: &Step, block: &Block, frame: &Frame) -> Flow {
        let first = self.reports.len();
        let mut flow = self.take_list(&block.steps, frame);
        if let Err(Halt::Failed { step, message }) = &flow
            && !block.rescue.is_empty()
        {
            let error = json!({"step": step, "message": message});
            let rescued = frame.with("error", error);
            let failed = first..self.reports.len();
            flow = self.take_list(&block.rescue, &rescued);
            if flow.is_ok() {
                self.mark_rescued(failed);
            }
        }
        if block.always.is_empty() || matches!(flow, Err(Halt::Stopped(_))) {
            return flow;
        }
        let last = self.take_list(&block.always, frame);
        if step.options.ignores_errors && matches!(flow, Err(Halt::Failed { .. })) {
            return last;
        }
        flow.and(last)
    }

    fn mark_rescued(&mut self, failed: std::ops::Range<usize>) {
        for report in self.reports.get_mut(failed).into_iter().flatten() {
            if matches!(report.state, StepState::Failed | StepState::Unknown) {
                report.state = StepState::Rescued;
                self.host.report(report);
            }
        }
    }

    /// Runs the notified handlers in the order of their list, each once.
    fn run_handlers(&mut self, frame: &Frame) -> Flow {
        let flush = self.flushes;
        self.flushes += 1;
        let book = self.book;
        let base = frame.outermost();
        for (position, handler) in book.handlers.iter().enumerate() {
            if !self.notified.contains(&position) {
                continue;
            }
            let inner = base.in_loop(&format!("flush {flush}"));
            self.take(handler, &inner)?;
            // Only now: a handler that fails is still owed.
            self.notified.remove(&position);
            self.notifiers.remove(&position);
        }
        Ok(())
    }

    fn skip_inside(&mut self, step: &Step, item: Option<&Value>, frame: &Frame) {
        let mut reasons = vec![format!("it is part of `{}`, which is not taken", step.id)];
        reasons.extend(self.reasons(step, frame, &Ok(false)));
        let mut inner = Vec::new();
        step.visit(&mut |step| {
            if !matches!(step.work, Work::Block(_)) {
                inner.push(step);
            }
        });
        for step in inner {
            let mut report = report_of(step, item.cloned(), StepState::Skipped);
            report.reasons.clone_from(&reasons);
            self.push(report);
        }
    }

    /// A step whose condition or values cannot be decided: it fails, or is unknown if a check has not run what it needs.
    fn fail_or_unknown(
        &mut self,
        step: &Step,
        item: Option<Value>,
        message: &str,
        frame: &Frame,
    ) -> Flow {
        if self.mode == RunMode::Check && self.needs_pending(step, frame) {
            let mut report = report_of(step, item, StepState::Unknown);
            report.error = Some(StepError {
                message: "it depends on a step that a check does not run".to_owned(),
                hint: None,
                output: None,
            });
            self.pending.insert(step.id.clone());
            self.push(report);
            return Ok(());
        }
        let mut report = report_of(step, item, StepState::Failed);
        if step.options.ignores_errors {
            report.state = StepState::Ignored;
        }
        let message = self.secrets.mask().text(message).into_owned();
        report.error = Some(StepError {
            message: message.clone(),
            hint: None,
            output: None,
        });
        self.push(report);
        if step.options.ignores_errors {
            return Ok(());
        }
        Err(Halt::Failed {
            step: step.id.clone(),
            message,
        })
    }

    /// Whether a step of a check may need what a check does not know: results of steps that it did not run, or of others.
    fn needs_pending(&self, step: &Step, _frame: &Frame) -> bool {
        let text = format!("{step:?}");
        !self.pending.is_empty() && text.contains("steps") || text.contains("results(")
    }

    fn push(&mut self, report: StepReport) {
        self.host.report(&report);
        self.reports.push(report);
    }

    fn report_failure(&mut self, name: &str, message: &str) {
        let place = crate::fault::Place::new(&"".into(), portolan_yaml::Position::default());
        self.push(StepReport {
            name: name.to_owned(),
            item: None,
            state: StepState::Failed,
            diff: None,
            error: Some(StepError {
                message: self.secrets.mask().text(message).into_owned(),
                hint: None,
                output: None,
            }),
            notes: Vec::new(),
            reasons: Vec::new(),
            changes: Vec::new(),
            took: Duration::ZERO,
            place,
        });
    }

    fn first_frame(&mut self, request: &NodeRequest) -> Result<Frame, String> {
        let mut values = Map::new();
        let run = json!({
            "id": request.run, "book": self.book.name, "check": request.mode == RunMode::Check,
        });
        for (name, value) in [
            ("facts", &request.facts),
            ("node", &request.node),
            ("peers", &request.peers),
            ("run", &run),
        ] {
            values.insert(name.to_owned(), value.clone());
        }
        values.insert("inputs".to_owned(), Value::Object(request.inputs.clone()));
        let mut vars = self.book.vars.clone();
        let mut secret_vars = Map::new();
        for (name, value) in &request.variables {
            if self.book.secret_vars.contains(name) {
                add_secret(&self.secrets, name, value);
                vars.remove(name);
                secret_vars.insert(name.clone(), value.clone());
            } else {
                vars.insert(name.clone(), value.clone());
            }
        }
        self.computed_frame(values, &vars, secret_vars, &self.book.compute)
    }

    /// A frame with fixed values, rendered, values that are taken as they are, and computed ones.
    fn computed_frame(
        &self,
        mut values: Map<String, Value>,
        vars: &Map<String, Value>,
        literal: Map<String, Value>,
        compute: &[(String, crate::decision::Decision)],
    ) -> Result<Frame, String> {
        values.insert("vars".to_owned(), json!({}));
        let rendered = self.renderer.map(vars, &scope_of(&values));
        let mut vars = rendered.map_err(|error| error.to_string())?;
        vars.extend(literal);
        values.insert("vars".to_owned(), Value::Object(vars.clone()));
        for (name, decision) in compute {
            let value = decision.value(&values, self.host.fleet());
            let value = value.map_err(|error| format!("`{name}`: {error}"))?;
            vars.insert(name.clone(), value);
            values.insert("vars".to_owned(), Value::Object(vars.clone()));
        }
        Ok(Frame::new(values))
    }

    fn included_frame(
        &self,
        included: &crate::book::Included,
        outer: &Frame,
    ) -> Result<Frame, String> {
        let scope = scope_of(&outer.values(&self.results));
        let given = self.renderer.map(&included.given, &scope);
        let given = given.map_err(|error| error.to_string())?;
        let inputs = bind_inputs(&included.inputs, &given).map_err(|faults| {
            let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
            all.join("; ")
        })?;
        for (name, input) in &included.inputs {
            if let (true, Some(value)) = (input.is_secret, inputs.get(name)) {
                add_secret(&self.secrets, name, value);
            }
        }
        let mut values = outer.own_values().clone();
        values.insert("inputs".to_owned(), Value::Object(inputs));
        let frame = self.computed_frame(values, &included.vars, Map::new(), &included.compute)?;
        Ok(outer.replaced(frame))
    }

    /// What a step is taken for; one `None` if it has no `forEach`.
    fn items(&self, step: &Step, frame: &Frame) -> Result<Vec<Option<scope::Item>>, String> {
        let Some(items) = &step.options.for_each else {
            return Ok(vec![None]);
        };
        let values = frame.values(&self.results);
        let value = match items {
            crate::book::Items::Values(value) => {
                let rendered = self.renderer.value(value, &scope_of(&values));
                rendered.map_err(|error| error.to_string())?
            }
            crate::book::Items::Decided(decision) => {
                let value = decision.value(&values, self.host.fleet());
                value.map_err(|error| error.to_string())?
            }
        };
        let items = scope::Item::all_of(value)
            .ok_or_else(|| "`forEach` needs a list or a map".to_owned())?;
        if items.len() > MAX_ITEMS {
            return Err(format!("`forEach` has more than {MAX_ITEMS} items"));
        }
        Ok(items.into_iter().map(Some).collect())
    }

    /// The values that a step sees for one item, with its own `vars`.
    fn item_frame(
        &self,
        step: &Step,
        item: Option<&scope::Item>,
        frame: &Frame,
    ) -> Result<Frame, String> {
        let mut inner = match item {
            Some(item) => frame.for_item(item),
            None => frame.clone(),
        };
        inner.step_id.clone_from(&step.id);
        if step.options.vars.is_empty() {
            return Ok(inner);
        }
        let scope = scope_of(&inner.values(&self.results));
        let vars = self.renderer.map(&step.options.vars, &scope);
        let vars = vars.map_err(|error| error.to_string())?;
        Ok(inner.with_vars(&vars))
    }

    fn is_taken(&self, step: &Step, frame: &Frame) -> Result<bool, String> {
        let Some(when) = &step.options.when else {
            return Ok(true);
        };
        let values = frame.values(&self.results);
        when.holds(&values, self.host.fleet())
            .map_err(|error| error.to_string())
    }
}

fn report_of(step: &Step, item: Option<Value>, state: StepState) -> StepReport {
    StepReport {
        name: step.id.clone(),
        item,
        state,
        diff: None,
        error: None,
        notes: Vec::new(),
        reasons: Vec::new(),
        changes: Vec::new(),
        took: Duration::ZERO,
        place: step.place.clone(),
    }
}

/// Takes in every text of a secret value.
fn add_secret(secrets: &KnownSecrets, name: &str, value: &Value) {
    match value {
        Value::String(text) => secrets.add_text(name, text),
        Value::Array(items) => items
            .iter()
            .for_each(|item| add_secret(secrets, name, item)),
        Value::Object(map) => map
            .values()
            .for_each(|item| add_secret(secrets, name, item)),
        _ => {}
    }
}
