//! A step that calls a module: its items, its attempts, and what the journal says of them.
//!
//! ```text
//! step ──for each item──▶ attempts ──again after a failure──▶ work ──▶ Attempt ──▶ journal, report, result
//! ```
//!
//! The journal has an entry on the disk before every effect and one before its report, and nothing else: a look that finds
//! nothing to do writes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan_budget::RetryPolicy;
use serde_json::{Value, json};

use super::attempt::{Attempt, finished_before};
use super::scope::{Frame, Item};
use super::{Flow, Halt, NodeRun, NodeStop, ResultError, RunMode, SideOutcome, report_of};
use crate::book::{ModuleCall, RunOn, Step};
use crate::journal::{JournalEntry, Progress, StepKey};
use crate::outcome::{StepError, StepState};

/// The longest pause between attempts, however it grows.
const MAX_PAUSE: Duration = Duration::from_hours(1);

impl NodeRun<'_> {
    /// Takes a step that calls a module, for each of its items.
    pub(super) fn take_module(&mut self, step: &Step, call: &ModuleCall, frame: &Frame) -> Flow {
        let mut at_step = frame.clone();
        at_step.step_id.clone_from(&step.id);
        if step.options.run_on == RunOn::First && !self.host.is_first() {
            return self.take_over_result(step, frame);
        }
        let is_throttled = step.options.throttle > 0 && self.mode == RunMode::Apply;
        if is_throttled {
            self.host.enter(step).map_err(Halt::Stopped)?;
        }
        let flow = self.take_items(step, call, frame, &at_step);
        if is_throttled {
            self.host.leave(step);
        }
        if self.mode == RunMode::Apply && flow.is_ok() {
            return self.give_result(step, frame);
        }
        flow
    }

    /// A result that may be read in clear: none of a sensitive step, and nothing secret in it.
    pub(super) fn shown_result(&self, step: &Step, result: &Value) -> Option<Value> {
        if step.options.is_sensitive {
            return None;
        }
        let mask = self.secrets.mask();
        if mask.is_empty() {
            return Some(result.clone());
        }
        serde_json::from_str(&mask.text(&result.to_string())).ok()
    }

    /// A result as other nodes get it. The host encrypts that of a sensitive step.
    fn given_result(&self, step: &Step, result: Value) -> Value {
        if step.options.is_sensitive {
            return result;
        }
        self.shown_result(step, &result).unwrap_or_default()
    }

    /// Gives a result to nodes that ask for it: that of a step that runs once, or of one whose results all nodes can see.
    fn give_result(&mut self, step: &Step, frame: &Frame) -> Flow {
        let is_first = step.options.run_on == RunOn::First;
        if !is_first && !self.book.gathered.values().any(|id| *id == step.id) {
            return Ok(());
        }
        let result = self.results.get(&step.id).cloned();
        if !is_first && result.is_none() {
            return Ok(());
        }
        let result = result.map(|result| self.given_result(step, result));
        let given = self.host.share_result(step, &result.unwrap_or_default());
        self.come_to_result(step, given, frame)
    }

    /// A step whose result does not come to those that read it has failed.
    fn come_to_result(
        &mut self,
        step: &Step,
        done: Result<(), ResultError>,
        frame: &Frame,
    ) -> Flow {
        match done {
            Ok(()) => Ok(()),
            Err(ResultError::Stopped(stop)) => Err(Halt::Stopped(stop)),
            Err(ResultError::Refused(why)) => self.fail_or_unknown(step, None, &why, frame),
        }
    }

    fn take_items(
        &mut self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
        at_step: &Frame,
    ) -> Flow {
        let items = match self.items(step, at_step) {
            Ok(items) => items,
            Err(message) => return self.fail_or_unknown(step, None, &message, frame),
        };
        let is_loop = step.options.for_each.is_some();
        let mut results = Vec::new();
        let mut failure = None;
        for item in items {
            let (state, result, message) = self.take_item(step, call, item.as_ref(), at_step)?;
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
    fn take_over_result(&mut self, step: &Step, frame: &Frame) -> Flow {
        let mut report = report_of(step, None, StepState::Skipped);
        report.notes.push("it runs on the first node".to_owned());
        self.push(report);
        if self.mode == RunMode::Check {
            self.pending.insert(step.id.clone());
            return Ok(());
        }
        let result = match self.host.wait_for_first(step) {
            Ok(result) => result,
            Err(error) => return self.come_to_result(step, Err(error), frame),
        };
        if let Some(result) = result.filter(|result| !result.is_null()) {
            self.keep_result(step, result);
        }
        Ok(())
    }

    /// Takes a step without its items and its condition; gives its result.
    pub(super) fn take_alone(
        &mut self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
    ) -> Result<Option<Value>, Halt> {
        let began = self.host.clock();
        let attempt = self.attempts(step, call, frame)?;
        let shown = frame.own_values().get("item").cloned();
        let (_, result, _) = self.conclude(step, shown, attempt, began);
        Ok(result)
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
        let taken = self.is_taken(step, &frame);
        let reasons = self.reasons(step, &frame, &taken);
        match taken {
            Ok(true) => {}
            Ok(false) => {
                let mut report = report_of(step, shown, StepState::Skipped);
                report.reasons = reasons;
                self.push(report);
                return Ok((StepState::Skipped, None, String::new()));
            }
            Err(message) => return self.undecided(step, shown, &message, &frame),
        }
        let mut attempt = match step.options.run_on {
            RunOn::Others { .. } => self.delegated(step, &frame)?,
            RunOn::All | RunOn::First => self.attempts(step, call, &frame)?,
        };
        attempt.reasons = reasons;
        Ok(self.conclude(step, shown, attempt, began))
    }

    /// A step that other nodes take for this one. They answer a repeated question from their journals.
    fn delegated(&mut self, step: &Step, frame: &Frame) -> Result<Attempt, Halt> {
        let key = StepKey {
            step: step.id.clone(),
            item: frame.loop_key.clone(),
            attempt: 0,
        };
        if let Some(Progress::Finished { state, result, .. }) = self.past.steps.get(&key)
            && self.mode == RunMode::Apply
        {
            let result = self.past_result(step, result.clone());
            return Ok(finished_before(*state, result));
        }
        // The values pass through the server.
        let values = if step.options.is_sensitive {
            frame.values(&self.results)
        } else {
            let hidden = self.sensitive_results();
            frame.values(&self.results.without(&hidden))
        };
        let done = self.host.delegate(step, &key, values);
        let SideOutcome { report, result } = done.map_err(Halt::Stopped)?;
        let mut attempt = Attempt::ended(report.state);
        attempt.diff = report.diff;
        attempt.changes = report.changes;
        attempt.error = report.error;
        attempt.notes = report.notes;
        attempt.result = match result {
            Some(Value::Object(result)) => Some(result),
            _ => None,
        };
        // What nobody knows is asked again when the run goes on.
        attempt.has_effect = attempt.state != StepState::Unknown;
        self.record_end(step, &key, &attempt)?;
        Ok(attempt)
    }

    /// Tells what became of a step for one item, and keeps nothing secret of it.
    fn conclude(
        &mut self,
        step: &Step,
        shown: Option<Value>,
        mut attempt: Attempt,
        began: Duration,
    ) -> (StepState, Option<Value>, String) {
        if attempt.state == StepState::Failed && step.options.ignores_errors {
            attempt.state = StepState::Ignored;
        }
        let changed = attempt.state == StepState::Changed;
        if changed {
            self.notified.extend(step.options.notify.iter().copied());
            for handler in &step.options.notify {
                self.notified_before.remove(handler);
                let notifiers = self.notifiers.entry(*handler).or_default();
                notifiers.insert(step.id.clone());
            }
        }
        let mask = self.secrets.mask();
        let clean = |text: String| mask.text(&text).into_owned();
        let mut report = report_of(step, shown, attempt.state);
        report.took = self.host.clock().saturating_sub(began);
        report.notes = attempt.notes.into_iter().map(clean).collect();
        report.reasons = attempt.reasons.into_iter().map(clean).collect();
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
        (
            state,
            attempt.result.map(Value::Object),
            message.unwrap_or_default(),
        )
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
        // The first pause is the interval, however long the author of the book made it.
        let pauses = RetryPolicy::new(retries.interval, MAX_PAUSE.max(retries.interval));
        let mut pauses = pauses.factor(retries.backoff).backoff();
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
                return self.wait_for_restart(attempt);
            }
            let pause = pauses.next_wait();
            let was_taken_before = attempt.is_recorded;
            if !was_taken_before && !self.host.pause(pause) {
                return Err(Halt::Stopped(NodeStop::CancelledInPause));
            }
            number += 1;
        }
    }

    /// The names of results that are sensitive.
    fn sensitive_results(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for step in self.book.steps.iter().chain(&self.book.handlers) {
            step.visit(&mut |step| {
                if step.options.is_sensitive {
                    names.insert(step.id.as_str());
                    names.extend(step.options.register.iter().map(String::as_str));
                }
            });
        }
        names
    }

    /// A result as the journal has it: that of a sensitive step is encrypted.
    pub(super) fn past_result(&self, step: &Step, result: Value) -> Value {
        if !step.options.is_sensitive {
            return result;
        }
        let opened = result["sealed"].as_str();
        let opened = opened.and_then(|sealed| self.host.unseal(sealed));
        opened.map_or(Value::Null, |text| {
            serde_json::from_str(&text).unwrap_or_default()
        })
    }

    /// Puts the end of an effect into the journal, before anybody is told of it.
    fn record_end(&mut self, step: &Step, key: &StepKey, attempt: &Attempt) -> Result<(), Halt> {
        if !attempt.has_effect || attempt.is_recorded || self.mode == RunMode::Check {
            return Ok(());
        }
        let result = match attempt.result.clone().map(Value::Object) {
            Some(result) if step.options.is_sensitive => {
                let sealed = self.host.seal(&result.to_string());
                sealed.map_or(Value::Null, |sealed| json!({"sealed": sealed}))
            }
            Some(result) => self.shown_result(step, &result).unwrap_or_default(),
            None => Value::Null,
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
}
