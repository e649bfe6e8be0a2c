//! dnf and rpm, on the machine or below another root.

use std::time::{Duration, Instant};

use super::{Package, Wanted, is_satisfied_ahead, prediction, versions};
use crate::action::{Applied, ModuleError};
use crate::dnf_tool::{DnfTool, REPOSITORIES};
use crate::host::Host;
use crate::plan::{Change, Plan, Subject};
use crate::process::Exit;
use crate::rpm_transaction::{
    DnfStep, QUERY_FORMAT, RpmPackage, parse_installed, parse_transaction,
};
use crate::state::State;
use crate::tool::how_it_ended;
use crate::view::View;

/// The exit code of a dnf that does not wait for another one.
const LOCKED: i32 = 200;

/// How often a lock is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(500);

/// dnf of a host.
pub(super) struct Dnf {
    programs: DnfTool,
    packages: Vec<RpmPackage>,
}

impl Dnf {
    /// Reads the database.
    pub(super) fn find(host: &Host, database: &'static str) -> Result<Self, ModuleError> {
        let programs = DnfTool::new(host, database)?;
        let printed = programs
            .rpm(host)
            .args(["--query", "--all", "--queryformat", QUERY_FORMAT])
            .run_for(host, "read", "the database of rpm")?;
        Ok(Self {
            programs,
            packages: parse_installed(&printed),
        })
    }

    pub(super) fn plan(&self, step: &Package, view: &View<'_>) -> Result<Plan, ModuleError> {
        refuse_misfit(step)?;
        let names = self.missing(step, view.host)?;
        let names: Vec<&str> = names
            .into_iter()
            .filter(|name| !is_satisfied_ahead(step, view, name))
            .collect();
        let mut plan = Plan::unchanged();
        if !names.is_empty() {
            if view.ahead.below(REPOSITORIES.into()).next().is_some() {
                return Ok(Plan::unknown("an earlier step changes a repository"));
            }
            if step.refreshes && !matches!(step.wanted, Wanted::Absent { .. }) {
                match step.after_refresh(&names, |name| self.version(name)) {
                    Some(changes) => plan = Plan::of_changes(changes),
                    None => return Ok(Plan::unknown("the lists of packages are fetched first")),
                }
            } else {
                let steps = self.simulate(step, view.host, &names)?;
                refuse_surprises(step, &names, &steps)?;
                plan = Plan::of_changes(self.changes(&steps));
            }
        }
        plan.before = versions(step, |name| self.version(name));
        plan.predictions = step
            .names
            .iter()
            .map(|name| prediction(step, name))
            .collect();
        Ok(plan)
    }

    pub(super) fn apply(
        &self,
        step: &Package,
        host: &Host,
        database: &'static str,
    ) -> Result<Applied, ModuleError> {
        let mut applied = Applied::default();
        let names = self.missing(step, host)?;
        if !names.is_empty() {
            if step.refreshes {
                self.programs.refresh(host)?;
            }
            // What the refresh brought may remove something else than the plan knew.
            let steps = self.simulate(step, host, &names)?;
            refuse_surprises(step, &names, &steps)?;
            applied.is_changed = !steps.is_empty();
            // dnf writes logs even if there is nothing to do.
            if applied.is_changed {
                for arguments in self.arguments(step, &names) {
                    self.run(step, host, &arguments)?;
                }
            }
        }
        let after = Self::find(host, database)?;
        applied.result = versions(step, |name| after.version(name));
        Ok(applied)
    }

    fn installed(&self, name: &str) -> Option<&RpmPackage> {
        self.packages.iter().find(|package| package.has_name(name))
    }

    fn version(&self, name: &str) -> Option<String> {
        self.installed(name).map(|package| package.version.clone())
    }

    /// The packages that are not as wanted, by the database alone.
    fn missing<'s>(&self, step: &'s Package, host: &Host) -> Result<Vec<&'s str>, ModuleError> {
        let mut missing = Vec::new();
        for name in &step.names {
            let is_there = self.installed(name).is_some();
            let is_satisfied = match (step.wanted, &step.version) {
                (Wanted::Present, Some(version)) => self
                    .packages
                    .iter()
                    .any(|package| package.has_name(name) && package.has_version(version)),
                (Wanted::Present, None) => is_there || self.is_provided(name, host)?,
                (Wanted::Latest, _) => false,
                (Wanted::Absent { .. }, _) => !is_there,
            };
            if !is_satisfied {
                missing.push(name.as_str());
            }
        }
        Ok(missing)
    }

    /// Whether an installed package stands for a virtual one.
    fn is_provided(&self, name: &str, host: &Host) -> Result<bool, ModuleError> {
        let tool = self.programs.rpm(host);
        let exit = tool.args(["--query", "--whatprovides", name]).run(host)?;
        Ok(exit.code == 0)
    }

    /// What dnf would do, by what it fetched before.
    fn simulate(
        &self,
        step: &Package,
        host: &Host,
        names: &[&str],
    ) -> Result<Vec<DnfStep>, ModuleError> {
        let root = self.programs.question_root(host)?;
        let mut steps = Vec::new();
        for arguments in self.arguments(step, names) {
            let exit = self.programs.question(&root).args(arguments).run(host)?;
            let printed = String::from_utf8_lossy(&exit.stdout);
            let has_asked = String::from_utf8_lossy(&exit.stderr).contains("Operation aborted");
            if exit.code != 0 && !has_asked {
                return Err(failed(step, &exit));
            }
            steps.extend(parse_transaction(&printed));
        }
        Ok(steps)
    }

    fn run(&self, step: &Package, host: &Host, arguments: &[String]) -> Result<(), ModuleError> {
        let start = Instant::now();
        loop {
            let exit = self
                .programs
                .dnf(host)
                .args(["--quiet", "--setopt=exit_on_lock=1"])
                .args(arguments.iter().cloned())
                .run(host)?;
            match exit.code {
                0 => return Ok(()),
                LOCKED if start.elapsed() < step.lock_timeout => {}
                _ => return Err(failed(step, &exit)),
            }
            if host.stop.is_cancelled() {
                return Err(ModuleError::Stopped);
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
    }

    /// What dnf is asked for, one command after another.
    fn arguments(&self, step: &Package, names: &[&str]) -> Vec<Vec<String>> {
        let spec = |name: &&str| {
            let (name, architecture) = name.split_once(':').unwrap_or((name, ""));
            let dot = if architecture.is_empty() { "" } else { "." };
            match &step.version {
                Some(version) => format!("{name}-{version}{dot}{architecture}"),
                None => format!("{name}{dot}{architecture}"),
            }
        };
        let command = |verb: &str, names: &[&str]| -> Vec<String> {
            let options: &[&str] = match verb {
                // Packages that nothing needs any more are not named by the step.
                "remove" => &["--noautoremove", "remove", "--"],
                "upgrade" => &["upgrade", "--"],
                _ => &["install", "--"],
            };
            let options = options.iter().map(|option| (*option).to_owned());
            options.chain(names.iter().map(spec)).collect()
        };
        match step.wanted {
            Wanted::Present => vec![command("install", names)],
            Wanted::Absent { .. } => vec![command("remove", names)],
            Wanted::Latest => {
                let (there, missing): (Vec<&str>, Vec<&str>) = names
                    .iter()
                    .copied()
                    .partition(|name| self.installed(name).is_some());
                [("install", missing), ("upgrade", there)]
                    .into_iter()
                    .filter(|(_, names)| !names.is_empty())
                    .map(|(verb, names)| command(verb, &names))
                    .collect()
            }
        }
    }

    fn changes(&self, steps: &[DnfStep]) -> Vec<Change> {
        let version = |version: &str| State::default().with("version", version);
        let now = |name: &str| {
            self.version(name)
                .map_or_else(State::default, |now| version(&now))
        };
        let change = |step: &DnfStep| match step {
            DnfStep::Install { name, new } | DnfStep::Replace { name, new, .. } => {
                now(name).change_to(&version(new), Subject::Package(name.clone()))
            }
            DnfStep::Remove { name } => {
                now(name).change_to(&State::default(), Subject::Package(name.clone()))
            }
        };
        steps.iter().filter_map(change).collect()
    }
}

/// What apt can do and dnf cannot.
fn refuse_misfit(step: &Package) -> Result<(), ModuleError> {
    let (name, hint) = if step.hold.is_some() {
        (
            "hold",
            "dnf holds versions by its plugin `versionlock`: use a `command` step",
        )
    } else if step.wanted == (Wanted::Absent { purge: true }) {
        (
            "purge",
            "rpm keeps changed settings as `.rpmsave`: remove them with a `file` step",
        )
    } else if step.repairs {
        (
            "repair",
            "dnf has no interrupted state that it could complete",
        )
    } else {
        return Ok(());
    };
    let reason = format!("`{name}` is for apt");
    Err(ModuleError::failed("change packages", step.names.join(", "), reason).with_hint(hint))
}

/// A removal that nobody asked for, and an older version, are refused.
fn refuse_surprises(step: &Package, names: &[&str], steps: &[DnfStep]) -> Result<(), ModuleError> {
    let is_asked = |removed: &str| {
        matches!(step.wanted, Wanted::Absent { .. })
            && names
                .iter()
                .any(|name| name.split(':').next() == Some(removed))
    };
    let removed = steps.iter().filter_map(|step| match step {
        DnfStep::Remove { name } if !is_asked(name) => Some(name.as_str()),
        _ => None,
    });
    super::refuse_removals(names, &removed.collect::<Vec<_>>())?;
    for planned in steps {
        if let DnfStep::Replace {
            name,
            new,
            is_older: true,
        } = planned
            && !step.allows_downgrade
        {
            let reason = format!("{new} is older than what is installed");
            return Err(ModuleError::failed("install", name.as_str(), reason)
                .with_hint("use `allowDowngrade: true` if that is meant"));
        }
    }
    Ok(())
}

fn failed(step: &Package, exit: &Exit) -> ModuleError {
    let act = match step.wanted {
        Wanted::Absent { .. } => "remove",
        Wanted::Present | Wanted::Latest => "install",
    };
    let reason = format!("`dnf` {}", how_it_ended(exit));
    let error = ModuleError::failed(act, step.names.join(", "), reason);
    let text = String::from_utf8_lossy(&exit.stderr);
    if exit.code == LOCKED {
        return error.with_hint("another dnf is at work: wait longer with `lockTimeout`");
    }
    if text.contains("Unable to find a match") || text.contains("Cache-only enabled but no cache") {
        return error.with_hint("the lists of packages may be old: use `refresh: true`");
    }
    error
}
