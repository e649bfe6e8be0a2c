//! `reboot`: restarts the machine, always or if something asks for it.
//!
//! The step ends when the restart was asked for. The runner keeps [`MachineRestart`], which has the id of the start before,
//! and goes on when the machine has another one.

use std::time::Duration;

use camino::Utf8Path;
use serde_json::json;

use crate::action::{Action, Applied, ModuleError};
use crate::boot::{BootMode, MachineRestart, boot_id, change_fake_id};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Plan, Subject};
use crate::root::Follow;
use crate::state::State;
use crate::tool::Tool;
use crate::view::View;

/// The module `reboot`.
pub(super) static REBOOT: ModuleDefinition = ModuleDefinition {
    name: "reboot",
    summary: "Restarts the machine and goes on when it is back.",
    parameters: &[
        ParameterDefinition::optional(
            "if",
            ParameterType::Word(&["always", "required"]),
            "`always`, which is the default, or only if an update has asked for it.",
        ),
        ParameterDefinition::optional(
            "timeout",
            ParameterType::Duration,
            "How long it may take until the machine is back; ten minutes by default.",
        ),
        ParameterDefinition::optional(
            "force",
            ParameterType::Boolean,
            "Whether the machine that the control plane runs on is restarted too.",
        ),
    ],
    effect: Effect::Once,
    root: RootSupport::Refused,
    parse,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// Debian's mark of an update that needs a restart.
const REQUIRED: &str = "/run/reboot-required";

struct Reboot {
    only_if_required: bool,
    timeout: Duration,
    is_forced: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all modules are read by functions of one type"
)]
fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    Some(Box::new(Reboot {
        only_if_required: parameters.word("if") == Some("required"),
        timeout: parameters.duration("timeout").unwrap_or(DEFAULT_TIMEOUT),
        is_forced: parameters.boolean("force", false),
    }))
}

impl Action for Reboot {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let host = view.host;
        match host.boot {
            BootMode::Fake => {}
            _ if host.is_rooted() => return Err(ModuleError::NotBelowRoot { module: "reboot" }),
            BootMode::ServersOwn if !self.is_forced => {
                let reason = "the control plane runs on it";
                return Err(ModuleError::failed("restart", "this machine", reason)
                    .with_hint("restart it by hand, or use `force: true`"));
            }
            _ => {}
        }
        if self.only_if_required && !view.ahead.is_empty() {
            return Ok(Plan::unknown("earlier steps may ask for a restart"));
        }
        let boot_id = boot_id(host)?;
        let mut plan = if self.only_if_required && !is_required(host)? {
            Plan::unchanged()
        } else {
            let now = State::default().with("boot id", &*boot_id);
            let subject = Subject::Other("machine", host.root.path().to_string());
            Plan::of_changes(vec![now.act(subject, "restart\n")])
        };
        plan.before.insert("bootId".to_owned(), json!(boot_id));
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let now = self.plan(&View::of(host))?;
        plan.confirm(&now)?;
        if now.changes().is_empty() {
            return Ok(Applied::default());
        }
        let restart = MachineRestart {
            boot_id: boot_id(host)?,
            timeout: self.timeout,
        };
        if host.boot == BootMode::Fake {
            // The mark lies in a directory that is empty after a start.
            let _ = host.root.remove_file(Utf8Path::new(REQUIRED));
            change_fake_id(host)?;
        } else {
            restart_machine(host)?;
        }
        Ok(Applied {
            is_changed: true,
            result: restart.to_result(),
            ..Applied::default()
        })
    }

    /// Whether it worked shows only after the restart, by [`MachineRestart::state`].
    fn verify(&self, _host: &Host) -> Result<(), ModuleError> {
        Ok(())
    }
}

/// Whether an update has asked for a restart: by Debian's mark, or by the tool of Red Hat's family.
fn is_required(host: &Host) -> Result<bool, ModuleError> {
    let marked = host
        .root
        .status(Utf8Path::new(REQUIRED), Follow::Yes)
        .map_err(|error| ModuleError::failed("read", REQUIRED, error))?;
    if marked.is_some() || host.is_rooted() {
        return Ok(marked.is_some());
    }
    let has_tool = host
        .root
        .status("/usr/bin/needs-restarting".into(), Follow::Yes);
    if !has_tool.is_ok_and(|found| found.is_some()) {
        return Ok(false);
    }
    let exit = Tool::new("needs-restarting").arg("-r").run(host)?;
    Ok(exit.code == 1)
}

fn restart_machine(host: &Host) -> Result<(), ModuleError> {
    let has_systemd = host
        .root
        .status("/run/systemd/system".into(), Follow::Yes)
        .is_ok_and(|found| found.is_some());
    let tool = if has_systemd {
        // It returns at once, so that the step can be reported.
        Tool::new("systemctl").args(["--no-block", "reboot"])
    } else {
        Tool::new("shutdown").args(["-r", "now"])
    };
    tool.run_for(host, "restart", "this machine")?;
    Ok(())
}
