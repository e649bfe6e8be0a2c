//! `service`: a unit of systemd runs or does not, and starts with the machine or does not. Both are independent.
//!
//! `systemctl` does the work. Below another root there is no manager: a unit is enabled and masked there, its state is
//! unknown, and a restart is skipped.

use std::time::{Duration, Instant};

use crate::account_tool::refuse_links;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::Prediction;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::Follow;
use crate::state::State;
use crate::tool::{Tool, how_it_ended};
use crate::unit::{ActiveState, EnabledState, SystemdUnit, parse_unit};
use crate::view::View;

/// The module `service`.
pub(super) static SERVICE: ModuleDefinition = ModuleDefinition {
    name: "service",
    summary: "Starts, stops, restarts, enables or masks a unit of systemd.",
    parameters: &[
        ParameterDefinition::required(
            "name",
            ParameterType::Text,
            "The unit; `.service` is added where it has no type.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["running", "stopped", "restarted", "reloaded"]),
            "Whether it runs; it stays as it is by default. `restarted` and `reloaded` act each time.",
        ),
        ParameterDefinition::optional(
            "enabled",
            ParameterType::Boolean,
            "Whether it starts with the machine; it stays as it is by default.",
        ),
        ParameterDefinition::optional(
            "masked",
            ParameterType::Boolean,
            "Whether it cannot be started at all; it stays as it is by default.",
        ),
        ParameterDefinition::optional(
            "settle",
            ParameterType::Duration,
            "How long it must run after a start before the step succeeds; one second by default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::FilesOnly,
    parse,
};

/// How long a unit must run after a start: one that ends at once has failed, although its start succeeded.
const DEFAULT_SETTLE: Duration = Duration::from_secs(1);

/// How often a unit that settles is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// The directory that exists while systemd manages the machine.
const MANAGER: &str = "/run/systemd/system";

struct Service {
    name: String,
    wanted: Option<Wanted>,
    enabled: Option<bool>,
    masked: Option<bool>,
    settle: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Running,
    Stopped,
    Restarted,
    Reloaded,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let wanted = match parameters.word("state") {
        Some("running") => Some(Wanted::Running),
        Some("stopped") => Some(Wanted::Stopped),
        Some("restarted") => Some(Wanted::Restarted),
        Some("reloaded") => Some(Wanted::Reloaded),
        _ => None,
    };
    let (enabled, masked) = (
        parameters.optional_boolean("enabled"),
        parameters.optional_boolean("masked"),
    );
    if masked == Some(true)
        && (enabled == Some(true) || wanted.is_some_and(|wanted| wanted != Wanted::Stopped))
    {
        parameters.fault("masked", "excludes that it runs or is enabled");
    }
    if wanted.is_none() && enabled.is_none() && masked.is_none() {
        parameters.fault("", "needs `state`, `enabled` or `masked`");
    }
    let settle = parameters.duration("settle").unwrap_or(DEFAULT_SETTLE);
    let name = unit_name(parameters)?;
    Some(Box::new(Service {
        name,
        wanted,
        enabled,
        masked,
        settle,
    }))
}

fn unit_name(parameters: &mut Parameters<'_>) -> Option<String> {
    const TYPES: &[&str] = &[
        "service",
        "socket",
        "timer",
        "path",
        "target",
        "mount",
        "automount",
        "slice",
        "swap",
    ];
    let name = parameters.line("name")?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    if name.starts_with(['-', '.']) || !name.bytes().all(is_letter) || name.len() > 250 {
        parameters.fault("name", "is not the name of a unit");
        return None;
    }
    let has_type = name
        .rsplit_once('.')
        .is_some_and(|(_, kind)| TYPES.contains(&kind));
    let whole = if has_type {
        name.to_owned()
    } else {
        format!("{name}.service")
    };
    if whole.contains("@.") {
        let hint = Some("name an instance, such as `getty@tty1`".to_owned());
        parameters.fault_with("name", "is a template and not a unit", hint);
        return None;
    }
    Some(whole)
}

impl Action for Service {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let host = view.host;
        if !host.is_rooted() && !has_manager(host) {
            let reason = "systemd does not run on this machine";
            return Err(ModuleError::failed("change", &*self.name, reason));
        }
        let unit = self.find(host)?;
        if unit.is_missing() && self.masked != Some(true) {
            if !view.ahead.is_empty() {
                return Ok(Plan::unknown("an earlier step may bring the unit"));
            }
            let needs_unit = self.wanted.is_some_and(|wanted| wanted != Wanted::Stopped);
            if !needs_unit && self.enabled != Some(true) {
                return Ok(Plan::unchanged());
            }
            return Err(
                ModuleError::failed("change", &*self.name, "there is no such unit")
                    .with_hint("install what brings it in an earlier step"),
            );
        }
        self.refuse_masked(&unit)?;
        let changes = self.changes(&unit, host);
        let mut plan = if host.is_rooted() {
            self.plan_without_manager(changes)
        } else {
            Plan::of_changes(changes)
        };
        plan.notes.extend(self.notes(&unit));
        plan.predictions
            .push(Prediction::Service(self.name.clone()));
        plan.before
            .insert("active".to_owned(), unit.active_text.clone().into());
        plan.before
            .insert("enabled".to_owned(), unit.enabled_text.clone().into());
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        let now = self.plan(&view)?;
        plan.confirm(&now)?;
        let mut applied = Applied {
            is_changed: !now.changes().is_empty(),
            notes: now.notes,
            ..Applied::default()
        };
        let unit = self.find(host)?;
        if let Some(masked) = self.masked.filter(|masked| *masked != unit.is_masked()) {
            self.systemctl(host, if masked { "mask" } else { "unmask" })?;
        }
        if !host.is_rooted() && (unit.needs_reload || self.masked == Some(false)) {
            Tool::new("systemctl")
                .arg("daemon-reload")
                .run_for(host, "reload", "systemd")?;
        }
        if let Some(enabled) = self
            .enabled
            .filter(|enabled| self.find(host).is_ok_and(|unit| unit.differs(*enabled)))
        {
            self.systemctl(host, if enabled { "enable" } else { "disable" })?;
        }
        if host.is_rooted() {
            return Ok(applied);
        }
        let unit = self.find(host)?;
        if let Some(verb) = self.verb(&unit) {
            self.systemctl(host, verb)?;
            if self.wanted != Some(Wanted::Stopped) {
                self.wait_until_settled(host)?;
            }
        }
        applied
            .result
            .insert("active".to_owned(), self.find(host)?.active_text.into());
        Ok(applied)
    }

    /// A restart leaves nothing that a second look could find missing.
    fn verify(&self, host: &Host) -> Result<(), ModuleError> {
        let plan = self.plan(&View::of(host))?;
        let left = plan
            .changes()
            .iter()
            .find(|change| change.kind != ChangeKind::Act);
        match left {
            Some(change) => Err(ModuleError::NotConverged {
                subject: change.subject.to_string(),
            }),
            None => Ok(()),
        }
    }
}

impl Service {
    fn find(&self, host: &Host) -> Result<SystemdUnit, ModuleError> {
        if host.is_rooted() {
            for directory in [
                "/etc/systemd/system",
                "/usr/lib/systemd/system",
                "/run/systemd/system",
            ] {
                refuse_links(&host.root, directory.into())?;
            }
            let root = format!("--root={}", host.root.path());
            let exit = Tool::new("systemctl")
                .args([&root, "is-enabled", "--", &self.name])
                .run(host)?;
            return Ok(SystemdUnit::without_manager(&String::from_utf8_lossy(
                &exit.stdout,
            )));
        }
        let shown = Tool::new("systemctl")
            .args(["show", "--property=LoadState,ActiveState,UnitFileState,NeedDaemonReload,TriggeredBy,Type,Result"])
            .args(["--", &self.name])
            .run_for(host, "look at", &self.name)?;
        Ok(parse_unit(&shown))
    }

    fn refuse_masked(&self, unit: &SystemdUnit) -> Result<(), ModuleError> {
        let starts = self.wanted.is_some_and(|wanted| wanted != Wanted::Stopped);
        if unit.is_masked() && self.masked.is_none() && (starts || self.enabled == Some(true)) {
            return Err(ModuleError::failed("start", &*self.name, "it is masked")
                .with_hint("use `masked: false` if it may run"));
        }
        Ok(())
    }

    fn subject(&self) -> Subject {
        Subject::Service(self.name.clone())
    }

    /// What changes of the unit's files and, where a manager runs it, of its state; a restart comes after that.
    fn changes(&self, unit: &SystemdUnit, host: &Host) -> Vec<Change> {
        let word = |yes: bool| if yes { "yes" } else { "no" };
        let before = State::default()
            .with("masked", word(unit.is_masked()))
            .with("enabled", &*unit.enabled_text)
            .with("active", &*unit.active_text);
        let mut after = before.clone();
        if let Some(masked) = self.masked {
            after = after.with("masked", word(masked));
        }
        if let Some(enabled) = self.enabled.filter(|enabled| unit.differs(*enabled)) {
            after = after.with("enabled", if enabled { "enabled" } else { "disabled" });
        }
        let verb = self.verb(unit).filter(|_| !host.is_rooted());
        let acts = matches!(verb, Some("restart" | "reload-or-restart"));
        match verb {
            Some("start") => after = after.with("active", "active"),
            Some("stop") => after = after.with("active", "inactive"),
            _ => {}
        }
        let act = verb
            .filter(|_| acts)
            .map(|verb| before.act(self.subject(), format!("{verb}\n")));
        let change = before.change_to(&after, self.subject());
        change.into_iter().chain(act).collect()
    }

    /// What `systemctl` is asked for; `None` if the unit is in the wanted state.
    fn verb(&self, unit: &SystemdUnit) -> Option<&'static str> {
        match self.wanted? {
            Wanted::Running if unit.active != ActiveState::Active => Some("start"),
            Wanted::Stopped if unit.active != ActiveState::Inactive => Some("stop"),
            Wanted::Running | Wanted::Stopped => None,
            Wanted::Restarted => Some("restart"),
            // A unit that does not run is started; one that cannot reload is restarted.
            Wanted::Reloaded => Some("reload-or-restart"),
        }
    }

    /// Files change below another root; nothing runs there.
    fn plan_without_manager(&self, changes: Vec<Change>) -> Plan {
        if !changes.is_empty() {
            let mut plan = Plan::of_changes(changes);
            if self.wanted.is_some() {
                plan.notes.push(
                    "whether it runs is unknown: there is no manager below another root".to_owned(),
                );
            }
            return plan;
        }
        match self.wanted {
            Some(Wanted::Restarted | Wanted::Reloaded) => Plan::skipped("no manager"),
            Some(_) => Plan::unknown("no manager says whether it runs"),
            None => Plan::unchanged(),
        }
    }

    fn notes(&self, unit: &SystemdUnit) -> Vec<String> {
        let mut notes = Vec::new();
        if self.wanted == Some(Wanted::Stopped) && !unit.triggered_by.is_empty() {
            notes.push(format!(
                "{} may start it again",
                unit.triggered_by.join(", ")
            ));
        }
        if self.enabled.is_some() && unit.enabled == EnabledState::Fixed {
            notes.push(format!(
                "it is {} and cannot be enabled or disabled",
                unit.enabled_text
            ));
        }
        notes
    }

    fn systemctl(&self, host: &Host, verb: &'static str) -> Result<(), ModuleError> {
        let root = host
            .is_rooted()
            .then(|| format!("--root={}", host.root.path()));
        let exit = Tool::new("systemctl")
            .args(["--quiet", "--no-ask-password"])
            .args(root)
            .args([verb, "--", &self.name])
            .run(host)?;
        if exit.code == 0 {
            return Ok(());
        }
        Err(ModuleError::failed(verb, &*self.name, how_it_ended(&exit))
            .with_hint(format!("see `journalctl -u {}`", self.name)))
    }

    /// Waits until the unit has run for a while: one that ends at once has failed.
    fn wait_until_settled(&self, host: &Host) -> Result<(), ModuleError> {
        let end = Instant::now() + self.settle;
        loop {
            let unit = self.find(host)?;
            let is_settled = unit.active == ActiveState::Active && Instant::now() >= end;
            // A unit that does one thing and ends is done.
            let is_done = unit.active == ActiveState::Inactive
                && unit.result == "success"
                && unit.kind == "oneshot";
            if is_settled || is_done {
                return Ok(());
            }
            if matches!(unit.active, ActiveState::Failed | ActiveState::Inactive) {
                let reason = format!(
                    "it ended soon after its start ({}, {})",
                    unit.active_text, unit.result
                );
                return Err(ModuleError::failed("start", &*self.name, reason)
                    .with_hint(format!("see `journalctl -u {}`", self.name)));
            }
            if host.stop.is_cancelled() {
                return Err(ModuleError::Stopped);
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

fn has_manager(host: &Host) -> bool {
    host.root
        .status(MANAGER.into(), Follow::Yes)
        .is_ok_and(|found| found.is_some())
}
