//! One attempt of a module: it looks, acts and looks again, under a deadline.
//!
//! After a crash, work that was begun is looked at by its effect: what only reads or converges is done again, and what must
//! not be done twice is unknown, unless the step says how to find out.

use std::sync::Arc;
use std::time::Duration;

use portolan_modules::{Action, Applied, Effect, Host, ModuleError, Plan, PlannedOutcome, View};
use serde_json::{Map, Value, json};

use super::attempt::{
    Attempt, done_before, failed_by, finished_before, last_lines, partial, planned,
};
use super::deadline::Deadline;
use super::environment::WithEnvironment;
use super::restart::{asked_before, boot_before};
use super::scope::Frame;
use super::{NodeRun, RunMode};
use crate::book::{ModuleCall, OnUnknown, Step};
use crate::journal::{JournalEntry, Progress, StepKey};
use crate::outcome::{StepError, StepState};
use crate::text::scope_of;

impl NodeRun<'_> {
    /// One attempt: as the journal says it ended, or a new one.
    pub(super) fn attempt(
        &mut self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
        key: &StepKey,
    ) -> Attempt {
        if self.mode == RunMode::Check {
            return self.work(step, call, frame, key, false);
        }
        let effect = step.effect();
        match self.past.steps.get(key).cloned() {
            None => self.work(step, call, frame, key, false),
            Some(Progress::Finished { state, result, .. }) => {
                finished_before(state, self.past_result(step, result))
            }
            Some(Progress::Started | Progress::Unknown) if effect != Effect::Once => {
                let attempt = self.work(step, call, frame, key, false);
                done_before(step, attempt)
            }
            Some(Progress::Started) if self.past.boots.contains_key(key) => {
                let before = self.past.boots.get(key);
                asked_before(before.map(String::as_str).unwrap_or_default())
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
        let mut attempt = match &plan.outcome {
            PlannedOutcome::Unchanged => {
                let applied = Applied::default();
                return self.concluded(step, &plan, &applied, Ok(()), frame, false);
            }
            PlannedOutcome::Skipped { reason } => {
                let mut attempt = Attempt::ended(StepState::Skipped);
                attempt.notes.push(reason.clone());
                return attempt;
            }
            PlannedOutcome::Change(_) if is_check => planned(StepState::Changed, &plan),
            PlannedOutcome::Unknown { reason } if is_check && !is_read => {
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
            if let Err(reason) = self.host.touches(plan.changes()) {
                return Attempt::halted(reason);
            }
            let entry = JournalEntry::Started {
                key: key.clone(),
                boot: boot_before(plan),
            };
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
            (Ok(false), _, Ok(())) => {
                let success = step.options.success.as_ref();
                let text = success.map_or("success", crate::decision::Decision::text);
                Attempt::failed(format!("`{text}` does not hold"))
            }
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

    pub(super) fn decide_over(
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
}

fn shown_span(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}
