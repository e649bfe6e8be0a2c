//! A step that restarts the machine: it is done when the machine has another boot id.
//!
//! The id before is in the journal before the restart is asked for, because the machine may go down at any moment then. Whoever
//! goes on with the run compares.

use std::time::Duration;

use portolan_modules::{MachineRestart, Plan, RestartState, boot_id};
use serde_json::json;

use super::attempt::Attempt;
use super::{Halt, NodeRun, NodeStop};
use crate::outcome::StepState;

/// How often the boot id is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a restart may take of which only the journal says that it was asked for.
const TIMEOUT: Duration = Duration::from_mins(10);

/// The boot id that a plan to restart the machine found; `None` for any other plan.
pub(super) fn boot_before(plan: &Plan) -> Option<String> {
    let id = plan.before.get("bootId")?.as_str()?;
    Some(id.to_owned())
}

/// A restart that was asked for when the process ended; nobody wrote down that the step ended.
pub(super) fn asked_before(boot_id: &str) -> Attempt {
    let mut attempt = Attempt::ended(StepState::Changed);
    attempt.has_effect = true;
    let mut result = serde_json::Map::new();
    result.insert("changed".to_owned(), json!(true));
    result.insert("bootId".to_owned(), json!(boot_id));
    result.insert("timeoutSeconds".to_owned(), json!(TIMEOUT.as_secs()));
    attempt.result = Some(result);
    attempt
}

impl NodeRun<'_> {
    /// Waits until the machine is back, if a step restarted it.
    pub(super) fn wait_for_restart(&mut self, attempt: Attempt) -> Result<Attempt, Halt> {
        let result = attempt.result.as_ref();
        let restart = result.filter(|_| attempt.state == StepState::Changed);
        let Some(restart) = restart.and_then(MachineRestart::of_result) else {
            return Ok(attempt);
        };
        let began = self.host.clock();
        loop {
            let now = match boot_id(&self.host.host()) {
                Ok(now) => now,
                Err(error) => return Ok(Attempt::failed(error.to_string())),
            };
            let waited = self.host.clock().saturating_sub(began);
            match restart.state(&now, waited) {
                RestartState::Done => return Ok(attempt),
                RestartState::Failed => {
                    let seconds = restart.timeout.as_secs();
                    let why = format!("the machine has not restarted within {seconds} seconds");
                    return Ok(Attempt::failed(why));
                }
                RestartState::Waiting => {}
            }
            if !self.host.pause(LOOK) {
                return Err(Halt::Stopped(NodeStop::CancelledInPause));
            }
        }
    }
}
