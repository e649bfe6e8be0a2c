//! One step of a module: its items, its attempts, and what the journal says of them.
//!
//! The journal has an entry on the disk before every effect and one before its report, and nothing else: a look that finds
//! nothing to do writes nothing. After a crash an attempt that was begun is looked at by its effect: what only reads or
//! converges is done again, and what must not be done twice is unknown, unless the step says how to find out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_modules::{
    Action, Applied, Decision as Planned, Effect, Host, ModuleError, ParameterType, Parameters,
    Plan, View,
};
use serde_json::{Map, Value, json};

use super::deadline::Deadline;
use super::environment::WithEnvironment;
use super::scope::{Frame, Item};
use super::{Flow, Halt, NodeRun, RunMode, report_of};
use crate::book::{ModuleCall, OnUnknown, RunOn, Step};
use crate::journal::{JournalEntry, Progress, StepKey};
use crate::outcome::{PlannedChange, StepError, StepState};
use crate::text::scope_of;

/// The longest pause between attempts, however it grows.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// The last lines of a program's output that are kept with a failure.
const OUTPUT_LINES: usize = 20;

/// An action with the variables of its programs.
type Prepared = (Box<dyn Action>, BTreeMap<String, String>);

/// How an attempt ended.
struct Attempt {
    state: StepState,
    /// What later steps see; `None` if there is nothing to see.
    result: Option<Map<String, Value>>,
    diff: Option<String>,
    changes: Vec<PlannedChange>,
    error: Option<StepError>,
    notes: Vec<String>,
    /// Whether the journal has its end already.
    is_recorded: bool,
    /// Whether an effect was begun, so that its end belongs into the journal.
    has_effect: bool,
    /// Why the run ends here: the journal could not be written.
    halt: Option<String>,
}

impl Attempt {
    fn ended(state: StepState) -> Self {
        Self {
            state,
            result: None,
            diff: None,
            changes: Vec::new(),
            error: None,
            notes: Vec::new(),
            is_recorded: false,
            has_effect: false,
            halt: None,
        }
    }

    fn halted(reason: String) -> Self {
        Self {
            halt: Some(reason),
            ..Self::ended(StepState::Failed)
        }
    }

    fn failed(message: impl Into<String>) -> Self {
        let error = StepError {
            message: message.into(),
            hint: None,
            output: None,
        };
        Self {
            error: Some(error),
            ..Self::ended(StepState::Failed)
        }
    }
}

impl NodeRun<'_> {
    /// Takes a step that calls a module, for each of its items.
    pub(super) fn take_module(&mut self, step: &Step, call: &ModuleCall, frame: &Frame) -> Flow {
        let mut at_step = frame.clone();
        at_step.step_id.clone_from(&step.id);
        if step.options.run_on == RunOn::First && !self.host.is_first() {
            self.take_over_result(step);
            return Ok(());
        }
        let items = match self.items(step, &at_step) {
            Ok(items) => items,
            Err(message) => return self.fail_or_unknown(step, None, &message, frame),
        };
        let is_loop = step.options.for_each.is_some();
        let mut results = Vec::new();
        let mut failure = None;
        for item in items {
            let (state, result, message) = self.take_item(step, call, item.as_ref(), &at_step)?;
            results.extend(result);
            if matches!(state, StepState::Failed | StepState::Unknown)
                && self.mode == RunMode::Apply
                || state == StepState::Failed
            {
                failure = Some(message);
                break;
            }
        }
        if let Some(message) = failure {
            self.results.remove(&step.id);
            return Err(Halt::Failed {
                step: step.id.clone(),
                message,
            });
        }
        let result = if is_loop {
            let changed = results
                .iter()
                .any(|result| result["changed"] == json!(true));
            Some(json!({"changed": changed, "items": results}))
        } else {
            results.pop()
        };
        if let Some(result) = result {
            if step.options.run_on == RunOn::First && !step.options.is_sensitive {
                self.host.share_result(step, &result);
            }
            self.keep_result(step, result);
        }
        Ok(())
    }

    fn keep_result(&mut self, step: &Step, result: Value) {
        for alias in &step.options.register {
            self.results.add(alias, result.clone());
        }
        self.results.add(&step.id, result);
    }

    /// A step that runs on the first node alone: its result is known here as far as the first node has given it.
    fn take_over_result(&mut self, step: &Step) {
        let mut report = report_of(step, None, StepState::Skipped);
        report.notes.push("it runs on the first node".to_owned());
        self.push(report);
        if let Some(result) = self.host.shared_result(step) {
            self.keep_result(step, result);
        }
    }

    /// Takes a step for one item. Gives its state, its result, and why it failed.
    fn take_item(
        &mut self,
        step: &Step,
        call: &ModuleCall,
        item: Option<&Item>,
        frame: &Frame,
    ) -> Result<(StepState, Option<Value>, String), Halt> {
        let began = self.host.clock();
        let shown = item.map(|item| item.value.clone());
        let frame = match self.item_frame(step, item, frame) {
            Ok(frame) => frame,
            Err(message) => return self.undecided(step, shown, &message, frame),
        };
        match self.is_taken(step, &frame) {
            Ok(true) => {}
            Ok(false) => {
                self.push(report_of(step, shown, StepState::Skipped));
                return Ok((StepState::Skipped, None, String::new()));
            }
            Err(message) => return self.undecided(step, shown, &message, &frame),
        }
        let mut attempt = self.attempts(step, call, &frame)?;
        if attempt.state == StepState::Failed && step.options.ignores_errors {
            attempt.state = StepState::Ignored;
        }
        let changed = attempt.state == StepState::Changed;
        if changed {
            self.notified.extend(step.options.notify.iter().copied());
        }
        let mask = self.secrets.mask();
        let clean = |text: String| mask.text(&text).into_owned();
        let mut report = report_of(step, shown, attempt.state);
        report.took = self.host.clock().saturating_sub(began);
        report.notes = attempt.notes.into_iter().map(clean).collect();
        if step.options.is_sensitive {
            report.item = report.item.map(|_| Value::from("<hidden>"));
        } else {
            report.diff = attempt.diff.map(clean);
            report.changes = attempt.changes;
        }
        report.error = attempt.error.map(|error| StepError {
            message: clean(error.message),
            hint: error.hint.map(clean),
            output: error
                .output
                .filter(|_| !step.options.is_sensitive)
                .map(clean),
        });
        let message = report.error.as_ref().map(|error| error.message.clone());
        let state = report.state;
        self.push(report);
        if self.mode == RunMode::Check && matches!(state, StepState::Changed | StepState::Unknown) {
            self.pending.insert(step.id.clone());
        }
        Ok((
            state,
            attempt.result.map(Value::Object),
            message.unwrap_or_default(),
        ))
    }

    fn undecided(
        &mut self,
        step: &Step,
        item: Option<Value>,
        message: &str,
        frame: &Frame,
    ) -> Result<(StepState, Option<Value>, String), Halt> {
        self.fail_or_unknown(step, item, message, frame)?;
        Ok((StepState::Skipped, None, String::new()))
    }

    /// Attempts until one succeeds, or there are no more.
    fn attempts(&mut self, step: &Step, call: &ModuleCall, frame: &Frame) -> Result<Attempt, Halt> {
        let retries = &step.options.retries;
        let mut pause = retries.interval;
        let mut number = 0;
        loop {
            let key = StepKey {
                step: step.id.clone(),
                item: frame.loop_key.clone(),
                attempt: number,
            };
            let mut attempt = self.attempt(step, call, frame, &key);
            if let Some(reason) = attempt.halt.take() {
                return Err(Halt::Stopped(reason));
            }
            let is_done = match &retries.until {
                _ if attempt.state == StepState::Unknown || self.mode == RunMode::Check => true,
                None => attempt.state != StepState::Failed,
                Some(until) => match self.decide_over(until, attempt.result.as_ref(), frame) {
                    Ok(holds) => holds,
                    Err(message) => {
                        attempt = Attempt::failed(message);
                        false
                    }
                },
            };
            if !is_done && number >= retries.limit && attempt.state != StepState::Failed {
                let has_effect = attempt.has_effect;
                attempt = Attempt::failed(format!(
                    "`until` does not hold after {} attempts",
                    u64::from(number) + 1
                ));
                attempt.has_effect = has_effect;
            }
            self.record_end(step, &key, &attempt)?;
            if is_done || number >= retries.limit {
                return Ok(attempt);
            }
            let was_taken_before = attempt.is_recorded;
            if !was_taken_before && !self.host.pause(pause) {
                return Err(Halt::Stopped("cancelled between two attempts".to_owned()));
            }
            pause = pause
                .saturating_mul(retries.backoff)
                .checked_div(1_000)
                .unwrap_or(MAX_PAUSE);
            pause = pause.min(MAX_PAUSE);
            number += 1;
        }
    }

    /// Puts the end of an effect into the journal, before anybody is told of it.
    fn record_end(&mut self, step: &Step, key: &StepKey, attempt: &Attempt) -> Result<(), Halt> {
        if !attempt.has_effect || attempt.is_recorded || self.mode == RunMode::Check {
            return Ok(());
        }
        let result = match &attempt.result {
            Some(result) if !step.options.is_sensitive => {
                let text = Value::Object(result.clone()).to_string();
                let mask = self.secrets.mask();
                serde_json::from_str(&mask.text(&text)).unwrap_or(Value::Null)
            }
            _ => Value::Null,
        };
        let notified = if attempt.state == StepState::Changed {
            self.handler_names(&step.options.notify.iter().copied().collect())
        } else {
            Vec::new()
        };
        let entry = JournalEntry::Finished {
            key: key.clone(),
            state: attempt.state,
            result,
            notified,
        };
        self.host.record(&entry).map_err(Halt::Stopped)
    }

    /// One attempt: as the journal says it ended, or a new one.
    fn attempt(&mut self, step: &Step, call: &ModuleCall, frame: &Frame, key: &StepKey) -> Attempt {
        if self.mode == RunMode::Check {
            return self.work(step, call, frame, key, false);
        }
        let effect = step.effect();
        match self.past.steps.get(key).cloned() {
            None => self.work(step, call, frame, key, false),
            Some(Progress::Finished { state, result, .. }) => {
                let mut attempt = Attempt::ended(state);
                attempt.is_recorded = true;
                attempt.has_effect = true;
                attempt
                    .notes
                    .push("done before the run was interrupted".to_owned());
                if state == StepState::Failed {
                    attempt.error = Some(StepError {
                        message: "failed before the run was interrupted".to_owned(),
                        hint: None,
                        output: None,
                    });
                }
                attempt.result = match result {
                    Value::Object(result) => Some(result),
                    _ => None,
                };
                attempt
            }
            Some(Progress::Started | Progress::Unknown) if effect != Effect::Once => {
                let attempt = self.work(step, call, frame, key, false);
                done_before(step, attempt)
            }
            Some(Progress::Started) if self.host.can_take_up(step, key) => {
                let attempt = self.work(step, call, frame, key, false);
                done_before(step, attempt)
            }
            Some(progress) => self.after_crash(step, call, frame, key, &progress),
        }
    }

    /// Work that must not be done twice was begun, and nobody knows whether it ended.
    fn after_crash(
        &mut self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
        key: &StepKey,
        progress: &Progress,
    ) -> Attempt {
        let unknown = || StepError {
            message:
                "it was begun before the run was interrupted, and nobody knows whether it was done"
                    .to_owned(),
            hint: Some(
                "look at the node; `onUnknown: verify` or `rerun` lets the step decide".to_owned(),
            ),
            output: None,
        };
        match step.options.on_unknown {
            OnUnknown::Rerun => self.work(step, call, frame, key, false),
            OnUnknown::Verify => done_before(step, self.work(step, call, frame, key, true)),
            OnUnknown::Fail => {
                if *progress == Progress::Started {
                    let entry = JournalEntry::Unknown { key: key.clone() };
                    if let Err(reason) = self.host.record(&entry) {
                        return Attempt::halted(reason);
                    }
                }
                Attempt {
                    error: Some(unknown()),
                    ..Attempt::ended(StepState::Unknown)
                }
            }
        }
    }

    /// Renders, looks, and does what is missing. With `only_verify`, a look that finds something to do is unknown.
    fn work(
        &mut self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
        key: &StepKey,
        only_verify: bool,
    ) -> Attempt {
        let (action, environment) = match self.prepare(step, call, frame) {
            Ok(prepared) => prepared,
            Err(message) if self.mode == RunMode::Check && self.needs_pending(step, frame) => {
                let mut attempt = Attempt::failed(message);
                attempt.state = StepState::Unknown;
                attempt.error = Some(StepError {
                    message: "it depends on a step that a check does not run".to_owned(),
                    hint: None,
                    output: None,
                });
                return attempt;
            }
            Err(message) => return Attempt::failed(message),
        };
        if let Err(attempt) = self.hold_asserted(step, call, frame) {
            return *attempt;
        }
        let mut host = self.host.attempt_host(key);
        let parent = host.stop.clone();
        let deadline = Deadline::after(step.options.timeout, &parent);
        host.stop = deadline.token();
        host.timeout = step.options.timeout;
        if step.options.account.is_some() {
            host.account.clone_from(&step.options.account);
        }
        if !environment.is_empty() {
            host.processes = Arc::new(WithEnvironment {
                inner: Arc::clone(&host.processes),
                environment,
            });
        }
        let mut attempt = self.look_and_act(step, action.as_ref(), &host, key, only_verify, frame);
        if deadline.has_passed(&parent)
            && attempt.halt.is_none()
            && attempt.state == StepState::Failed
        {
            let has_effect = attempt.has_effect;
            attempt = Attempt::failed(format!(
                "it took longer than its time-out of {}",
                shown_span(step.options.timeout)
            ));
            attempt.has_effect = has_effect;
        }
        attempt
    }

    /// Whether everything holds that a step asserts.
    fn hold_asserted(
        &self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
    ) -> Result<(), Box<Attempt>> {
        for asserted in &call.asserted {
            let attempt = match self.decide_over(asserted, None, frame) {
                Ok(true) => continue,
                Ok(false) => Attempt::failed(match self.said_by(call, frame) {
                    Some(message) => format!("{message} (`{}` does not hold)", asserted.text()),
                    None => format!("`{}` does not hold", asserted.text()),
                }),
                Err(_) if self.mode == RunMode::Check && self.needs_pending(step, frame) => {
                    let mut attempt =
                        Attempt::failed("it depends on a step that a check does not run");
                    attempt.state = StepState::Unknown;
                    attempt
                }
                Err(message) => Attempt::failed(message),
            };
            return Err(Box::new(attempt));
        }
        Ok(())
    }

    /// The `message` of a call, rendered.
    fn said_by(&self, call: &ModuleCall, frame: &Frame) -> Option<String> {
        let scope = scope_of(&frame.values(&self.results));
        let parameters = self.renderer.map(&call.parameters, &scope).ok()?;
        Some(parameters.get("message")?.as_str()?.to_owned())
    }

    fn look_and_act(
        &mut self,
        step: &Step,
        action: &dyn Action,
        host: &Host,
        key: &StepKey,
        only_verify: bool,
        frame: &Frame,
    ) -> Attempt {
        let is_check = self.mode == RunMode::Check;
        let view = View {
            host,
            ahead: self.ahead.clone(),
        };
        let plan = match action.plan(&view) {
            Ok(plan) => plan,
            Err(error) => return failed_by(&error),
        };
        let is_read = step.effect() == Effect::Read;
        let mut attempt = match &plan.decision {
            Planned::Unchanged => {
                let applied = Applied::default();
                return self.concluded(step, &plan, &applied, Ok(()), frame, false);
            }
            Planned::Skipped { reason } => {
                let mut attempt = Attempt::ended(StepState::Skipped);
                attempt.notes.push(reason.clone());
                return attempt;
            }
            Planned::Change(_) if is_check => planned(StepState::Changed, &plan),
            Planned::Unknown { reason } if is_check && !is_read => {
                let mut attempt = planned(StepState::Unknown, &plan);
                attempt.error = Some(StepError {
                    message: reason.clone(),
                    hint: None,
                    output: None,
                });
                attempt
            }
            _ if only_verify => {
                let mut attempt = Attempt::failed(
                    "it was begun before the run was interrupted, and a look finds that it is not done",
                );
                attempt.state = StepState::Unknown;
                return attempt;
            }
            _ => return self.act(step, action, host, &plan, key, frame),
        };
        self.ahead.add(&plan.predictions);
        attempt.notes.extend(plan.notes);
        let mut result = Map::new();
        result.insert(
            "changed".to_owned(),
            json!(attempt.state == StepState::Changed),
        );
        result.insert("before".to_owned(), Value::Object(plan.before));
        attempt.result = Some(result);
        attempt
    }

    /// Does what a plan says.
    fn act(
        &mut self,
        step: &Step,
        action: &dyn Action,
        host: &Host,
        plan: &Plan,
        key: &StepKey,
        frame: &Frame,
    ) -> Attempt {
        let has_effect = step.effect() != Effect::Read;
        if has_effect && self.mode == RunMode::Apply {
            let entry = JournalEntry::Started { key: key.clone() };
            if let Err(reason) = self.host.record(&entry) {
                return Attempt::halted(reason);
            }
        }
        let applied = action.apply(host, plan);
        let (applied, done) = match applied {
            Ok(applied) => {
                let verified = match step.effect() {
                    Effect::Converge => action.verify(host),
                    _ => Ok(()),
                };
                (applied, verified)
            }
            Err(error) => (partial(&error), Err(error)),
        };
        self.concluded(step, plan, &applied, done, frame, has_effect)
    }

    /// What became of an attempt, after `success` and `changed` had their say.
    fn concluded(
        &mut self,
        step: &Step,
        plan: &Plan,
        applied: &Applied,
        done: Result<(), ModuleError>,
        frame: &Frame,
        has_effect: bool,
    ) -> Attempt {
        let mut result = plan.result.clone();
        result.extend(applied.result.clone());
        result.insert("changed".to_owned(), json!(applied.is_changed));
        result.insert("failed".to_owned(), json!(done.is_err()));
        result.insert("before".to_owned(), Value::Object(plan.before.clone()));
        if let Err(error) = &done {
            result.insert("message".to_owned(), json!(error.to_string()));
        }
        let decide = |run: &Self, decision: &Option<crate::decision::Decision>, otherwise: bool| {
            let Some(decision) = decision else {
                return Ok(otherwise);
            };
            run.decide_over(decision, Some(&result), frame)
        };
        let is_success = decide(self, &step.options.success, done.is_ok());
        let is_changed = decide(self, &step.options.changed, applied.is_changed);
        let mut attempt = match (is_success, is_changed, done) {
            (Err(message), _, _) | (_, Err(message), _) => Attempt::failed(message),
            (Ok(false), _, Err(error)) => failed_by(&error),
            (Ok(false), _, Ok(())) => Attempt::failed("`success` does not hold"),
            (Ok(true), Ok(true), _) => planned(StepState::Changed, plan),
            (Ok(true), Ok(false), _) => Attempt::ended(StepState::Ok),
        };
        let is_failed = attempt.state == StepState::Failed;
        result.insert(
            "changed".to_owned(),
            json!(attempt.state == StepState::Changed),
        );
        result.insert("failed".to_owned(), json!(is_failed));
        attempt
            .notes
            .extend(plan.notes.iter().chain(&applied.notes).cloned());
        attempt.notes.dedup();
        if is_failed
            && attempt
                .error
                .as_ref()
                .is_some_and(|error| error.output.is_none())
        {
            let output = last_lines(&result);
            if let Some(error) = &mut attempt.error {
                error.output = output;
            }
        }
        attempt.result = Some(result);
        attempt.has_effect = has_effect;
        attempt
    }

    fn decide_over(
        &self,
        decision: &crate::decision::Decision,
        result: Option<&Map<String, Value>>,
        frame: &Frame,
    ) -> Result<bool, String> {
        let result = Value::Object(result.cloned().unwrap_or_default());
        let values = frame.with("result", result).values(&self.results);
        let holds = decision.holds(&values, self.host.fleet());
        holds.map_err(|error| error.to_string())
    }

    /// The action of a step with its parameters rendered, and the variables of its programs.
    fn prepare(&self, step: &Step, call: &ModuleCall, frame: &Frame) -> Result<Prepared, String> {
        let scope = scope_of(&frame.values(&self.results));
        let text = |error: crate::text::TextError| match (&error.file, error.line) {
            (Some(file), line) if line > 0 => format!("{file}:{line}: {}", error.message),
            _ => error.message,
        };
        let mut parameters = self.renderer.map(&call.parameters, &scope).map_err(text)?;
        let has_template = call
            .module
            .parameters
            .iter()
            .any(|known| known.name == "template");
        if has_template && let Some(Value::String(path)) = parameters.remove("template") {
            let content = self.renderer.file(&path, &scope).map_err(text)?;
            parameters.insert("content".to_owned(), Value::from(content));
        }
        for known in call.module.parameters {
            if let Some(value) = parameters.get_mut(known.name) {
                spell_out(known.kind, value);
            }
        }
        let environment = self.renderer.map(&step.options.env, &scope).map_err(text)?;
        let environment = environment.into_iter().map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (name, value)
        });
        let mut read = Parameters::new(call.module, &parameters);
        let action = (call.module.parse)(&mut read);
        let faults = read.into_faults();
        match action {
            Some(action) if faults.is_empty() => Ok((action, environment.collect())),
            _ => {
                let problems = faults
                    .iter()
                    .map(|fault| format!("`{}` {}", fault.name, fault.message));
                let problems: Vec<String> = problems.collect();
                Err(format!("`{}`: {}", call.module.name, problems.join("; ")))
            }
        }
    }
}

/// Work that was begun before a crash and that a look finds done: it was this run that changed something, so its handlers
/// are notified.
fn done_before(step: &Step, mut attempt: Attempt) -> Attempt {
    if attempt.state == StepState::Ok && step.options.changed.is_none() {
        attempt.state = StepState::Changed;
        attempt.has_effect = true;
        attempt
            .notes
            .push("done before the run was interrupted".to_owned());
        if let Some(result) = &mut attempt.result {
            result.insert("changed".to_owned(), json!(true));
        }
    }
    attempt
}

/// Numbers and booleans that a template gave become texts where the module wants texts.
fn spell_out(kind: ParameterType, value: &mut Value) {
    let is_scalar = value.is_number() || value.is_boolean();
    match (kind, &mut *value) {
        (ParameterType::Text | ParameterType::Path, _) if is_scalar => {
            *value = Value::from(value.to_string());
        }
        (ParameterType::TextList, Value::Array(items)) => {
            for item in items {
                spell_out(ParameterType::Text, item);
            }
        }
        (ParameterType::TextMap, Value::Object(map)) => {
            for item in map.values_mut() {
                spell_out(ParameterType::Text, item);
            }
        }
        _ => {}
    }
}

/// What a plan says will happen.
fn planned(state: StepState, plan: &Plan) -> Attempt {
    let diffs: Vec<&str> = plan
        .changes()
        .iter()
        .map(|change| change.diff.as_str())
        .collect();
    let diff = diffs.join("\n");
    let changes = plan.changes().iter().map(|change| PlannedChange {
        subject: change.subject.to_string(),
        before: change.before.to_string(),
        after: change.after.to_string(),
    });
    Attempt {
        diff: (!diff.is_empty()).then_some(diff),
        changes: changes.collect(),
        ..Attempt::ended(state)
    }
}

fn failed_by(error: &ModuleError) -> Attempt {
    let mut attempt = Attempt::failed(error.to_string());
    if let Some(told) = &mut attempt.error {
        told.hint = error.hint().map(str::to_owned);
    }
    attempt
}

/// What was done before a module failed.
fn partial(error: &ModuleError) -> Applied {
    match error {
        ModuleError::Unsuccessful { applied, .. } => (**applied).clone(),
        _ => Applied::default(),
    }
}

/// The last lines that a program printed.
fn last_lines(result: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
    let output = [text("stdout"), text("stderr")].join("\n");
    let lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(OUTPUT_LINES);
    let last = lines.get(first..).unwrap_or_default().join("\n");
    (!last.is_empty()).then_some(last)
}

fn shown_span(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}
