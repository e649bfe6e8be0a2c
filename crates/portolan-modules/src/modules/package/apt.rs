//! apt and dpkg, on the machine or below another root.

use camino::Utf8Path;

use super::{Package, Wanted, is_satisfied_ahead, prediction, versions};
use crate::action::{Applied, ModuleError};
use crate::apt_tool::{AptTool, SOURCES, STATUS};
use crate::dpkg_status::{AptStep, DpkgPackage, parse_simulation, parse_status};
use crate::host::Host;
use crate::plan::{Change, Plan, Subject};
use crate::process::Exit;
use crate::root::{Follow, NewFile};
use crate::state::State;
use crate::tool::{Tool, how_it_ended};
use crate::view::View;

/// Changes that dpkg has not yet written into its database; files are left here only after an interruption.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// The locks of programs that install packages.
const LOCKS: &[&str] = &["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"];

/// Says whether maintainer scripts may start services.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The most bytes of the database that are read; a large desktop has 10 MB.
const MAX_BYTES: u64 = 256 << 20;

/// apt of a host.
pub(super) struct Apt {
    programs: AptTool,
    packages: Vec<DpkgPackage>,
}

impl Apt {
    /// Reads the database.
    pub(super) fn find(host: &Host) -> Result<Self, ModuleError> {
        let status = host
            .root
            .read(STATUS.into(), MAX_BYTES)
            .map_err(|error| ModuleError::failed("read", STATUS, error))?;
        let status = status.unwrap_or_default();
        Ok(Self {
            programs: AptTool::new(host)?,
            packages: parse_status(&String::from_utf8_lossy(&status)),
        })
    }

    pub(super) fn plan(&self, step: &Package, view: &View<'_>) -> Result<Plan, ModuleError> {
        self.refuse_interrupted(step, view.host)?;
        let names: Vec<&str> = step
            .names
            .iter()
            .map(String::as_str)
            .filter(|name| !self.is_satisfied(step, name))
            .filter(|name| !is_satisfied_ahead(step, view, name))
            .collect();
        let mut plan = Plan::unchanged();
        let mut changes = Vec::new();
        if !names.is_empty() {
            if view.ahead.below(SOURCES.into()).next().is_some() {
                return Ok(Plan::unknown("an earlier step changes a repository"));
            }
            changes = match self.planned_changes(step, view.host, &names)? {
                Some(changes) => changes,
                None => return Ok(Plan::unknown("the lists of packages are fetched first")),
            };
        }
        changes.extend(self.hold_changes(step));
        plan.outcome = Plan::of_changes(changes).outcome;
        plan.notes = self.notes(step);
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
        plan: &Plan,
    ) -> Result<Applied, ModuleError> {
        let _policy = PolicyFile::write(host)?;
        let subject = step.names.join(", ");
        if self.is_interrupted(host)? {
            self.programs
                .program("dpkg", host)
                .args(["--configure", "-a"])
                .run_for(host, "complete the installation of", &subject)?;
        }
        let mut applied = Applied {
            is_changed: !plan.changes().is_empty(),
            notes: plan.notes.clone(),
            ..Applied::default()
        };
        let names: Vec<&str> = step
            .names
            .iter()
            .map(String::as_str)
            .filter(|name| !self.is_satisfied(step, name))
            .collect();
        if !names.is_empty() {
            if step.refreshes {
                self.programs.refresh(host, &[], step.lock_timeout)?;
            }
            // What the refresh brought may remove something else than the plan knew.
            let steps = self.simulate(step, host, &names)?;
            self.refuse_surprises(step, host, &names, &steps)?;
            applied.is_changed |= !steps.is_empty();
            if !steps.is_empty() {
                self.run_apt(step, host, &names)?;
            }
        }
        let after = Self::find(host)?;
        after.set_hold(step, host)?;
        applied.result = versions(step, |name| after.version(name));
        Ok(applied)
    }

    fn installed(&self, name: &str) -> Option<&DpkgPackage> {
        self.packages
            .iter()
            .find(|package| package.has_name(name) && package.is_installed())
    }

    fn version(&self, name: &str) -> Option<String> {
        self.installed(name).map(|package| package.version.clone())
    }

    /// An installed package that stands for a virtual one.
    fn provider(&self, name: &str) -> Option<&DpkgPackage> {
        let provides = |package: &&DpkgPackage| {
            package.is_installed() && package.provides.iter().any(|known| known == name)
        };
        let is_real = self
            .packages
            .iter()
            .any(|package| package.name == name && package.is_installed());
        self.packages.iter().find(provides).filter(|_| !is_real)
    }

    /// Whether nothing has to be done, by the database alone.
    fn is_satisfied(&self, step: &Package, name: &str) -> bool {
        match step.wanted {
            Wanted::Present => match (&step.version, self.installed(name)) {
                (Some(version), Some(package)) => package.version == *version,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) => self.provider(name).is_some(),
            },
            Wanted::Latest => false,
            Wanted::Absent { purge } => {
                let mut known = self
                    .packages
                    .iter()
                    .filter(|package| package.has_name(name));
                known.all(|package| {
                    let has_settings = package.state == "config-files" && purge;
                    package.state == "not-installed"
                        || (!package.is_installed() && !has_settings && !package.is_broken())
                })
            }
        }
    }

    /// What apt would do; `None` if only a refresh shows it.
    fn planned_changes(
        &self,
        step: &Package,
        host: &Host,
        names: &[&str],
    ) -> Result<Option<Vec<Change>>, ModuleError> {
        self.refuse_held(step, names)?;
        if step.refreshes && !matches!(step.wanted, Wanted::Absent { .. }) {
            return Ok(step.after_refresh(names, |name| self.version(name)));
        }
        let steps = self.simulate(step, host, names)?;
        self.refuse_surprises(step, host, names, &steps)?;
        let version = |version: &str| State::default().with("version", version);
        let changes = steps.iter().filter_map(|step| match step {
            AptStep::Install { name, old, new } => old
                .as_deref()
                .map_or_else(State::default, version)
                .change_to(&version(new), Subject::Package(name.clone())),
            AptStep::Remove { name, old } => {
                version(old).change_to(&State::default(), Subject::Package(name.clone()))
            }
        });
        let mut changes: Vec<Change> = changes.collect();
        if changes.is_empty() && matches!(step.wanted, Wanted::Absent { .. }) {
            // Only settings are left of it, which the simulation does not list.
            let settings = State::default().with("settings", "kept");
            let change = |name: &&str| {
                settings.change_to(&State::default(), Subject::Package((*name).to_owned()))
            };
            changes.extend(names.iter().filter_map(change));
        }
        Ok(Some(changes))
    }

    fn simulate(
        &self,
        step: &Package,
        host: &Host,
        names: &[&str],
    ) -> Result<Vec<AptStep>, ModuleError> {
        // Without its caches and the log of its decisions apt writes nothing.
        let tool = self
            .programs
            .program("apt-get", host)
            .args([
                "-o",
                "Dir::Cache::pkgcache=",
                "-o",
                "Dir::Cache::srcpkgcache=",
                "-o",
                "Dir::Log::Planner=",
            ])
            .args(["--quiet", "--simulate", "-o", "Debug::NoLocking=true"])
            .args(arguments(step, names));
        let exit = tool.run(host)?;
        if exit.code != 0 {
            return Err(failed_apt(step, host, &exit));
        }
        Ok(parse_simulation(&String::from_utf8_lossy(&exit.stdout)))
    }

    fn run_apt(&self, step: &Package, host: &Host, names: &[&str]) -> Result<(), ModuleError> {
        let timeout = format!("DPkg::Lock::Timeout={}", step.lock_timeout.as_secs());
        let tool = self
            .programs
            .program("apt-get", host)
            .args(["--quiet", "--yes", "-o", &timeout])
            // The maintainer's version of a file is taken only where nobody changed it.
            .args([
                "-o",
                "Dpkg::Options::=--force-confdef",
                "-o",
                "Dpkg::Options::=--force-confold",
            ])
            .args(arguments(step, names));
        let exit = tool.run(host)?;
        if exit.code != 0 {
            return Err(failed_apt(step, host, &exit));
        }
        Ok(())
    }

    /// A removal that nobody asked for, and an older version, are refused.
    fn refuse_surprises(
        &self,
        step: &Package,
        host: &Host,
        names: &[&str],
        steps: &[AptStep],
    ) -> Result<(), ModuleError> {
        let is_asked = |removed: &str| {
            matches!(step.wanted, Wanted::Absent { .. })
                && names
                    .iter()
                    .any(|name| *name == removed || name.split(':').next() == Some(removed))
        };
        let removed: Vec<&str> = steps
            .iter()
            .filter_map(|step| match step {
                AptStep::Remove { name, .. } if !is_asked(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        super::refuse_removals(names, &removed)?;
        for planned in steps {
            let AptStep::Install {
                name,
                old: Some(old),
                new,
            } = planned
            else {
                continue;
            };
            let is_held = self.installed(name).is_some_and(DpkgPackage::is_held);
            if is_held && step.hold != Some(false) {
                return Err(held(name));
            }
            if !step.allows_downgrade && is_older(host, new, old)? {
                let reason = format!("{new} is older than {old}");
                return Err(ModuleError::failed("install", name.as_str(), reason)
                    .with_hint("use `allowDowngrade: true` if that is meant"));
            }
        }
        Ok(())
    }

    fn refuse_held(&self, step: &Package, names: &[&str]) -> Result<(), ModuleError> {
        let is_held = |name: &&&str| self.installed(name).is_some_and(DpkgPackage::is_held);
        match names.iter().find(is_held) {
            // Whether a newer one exists shows only later.
            Some(_) if step.hold == Some(false) || step.wanted == Wanted::Latest => Ok(()),
            Some(name) => Err(held(name)),
            None => Ok(()),
        }
    }

    fn is_interrupted(&self, host: &Host) -> Result<bool, ModuleError> {
        let path = Utf8Path::new(UPDATES);
        let failed = |error: std::io::Error| ModuleError::failed("read", UPDATES, error);
        let has_updates = host
            .root
            .status(path, Follow::Yes)
            .map_err(failed)?
            .is_some()
            && host
                .root
                .list(path)
                .map_err(failed)?
                .iter()
                .any(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        Ok(has_updates || self.packages.iter().any(DpkgPackage::is_broken))
    }

    fn refuse_interrupted(&self, step: &Package, host: &Host) -> Result<(), ModuleError> {
        if step.repairs || !self.is_interrupted(host)? {
            return Ok(());
        }
        let broken = self.packages.iter().find(|package| package.is_broken());
        let what = broken.map_or("packages", |package| &package.name);
        Err(ModuleError::failed(
            "change packages",
            step.names.join(", "),
            format!("dpkg was interrupted while it worked on {what}"),
        )
        .with_hint("use `repair: true`, or run `dpkg --configure -a`"))
    }

    fn hold_changes(&self, step: &Package) -> Vec<Change> {
        let state = |held: bool| State::default().with("held", if held { "yes" } else { "no" });
        let Some(wanted) = step.hold else {
            return Vec::new();
        };
        let change = |name: &String| {
            let now = self.installed(name).is_some_and(DpkgPackage::is_held);
            state(now).change_to(
                &state(wanted),
                Subject::Other("hold of package", name.clone()),
            )
        };
        step.names.iter().filter_map(change).collect()
    }

    fn set_hold(&self, step: &Package, host: &Host) -> Result<(), ModuleError> {
        let Some(wanted) = step.hold else {
            return Ok(());
        };
        let verb = if wanted { "hold" } else { "unhold" };
        let is_other = |name: &&String| {
            self.installed(name)
                .is_some_and(|package| package.is_held() != wanted)
        };
        let names: Vec<&String> = step.names.iter().filter(is_other).collect();
        if names.is_empty() {
            return Ok(());
        }
        let subject = step.names.join(", ");
        self.programs
            .program("apt-mark", host)
            .arg(verb)
            .args(names.into_iter().cloned())
            .run_for(host, verb, &subject)?;
        Ok(())
    }

    fn notes(&self, step: &Package) -> Vec<String> {
        if step.wanted != Wanted::Present {
            return Vec::new();
        }
        let note = |name: &String| {
            let provider = self.provider(name)?;
            Some(format!("`{name}` is provided by {}", provider.name))
        };
        step.names.iter().filter_map(note).collect()
    }
}

/// What apt is asked for.
fn arguments(step: &Package, names: &[&str]) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    if step.allows_downgrade {
        arguments.push("--allow-downgrades".to_owned());
    }
    if step.hold == Some(false) {
        arguments.push("--allow-change-held-packages".to_owned());
    }
    let verb = match step.wanted {
        Wanted::Present | Wanted::Latest => "install",
        Wanted::Absent { purge: false } => "remove",
        Wanted::Absent { purge: true } => "purge",
    };
    arguments.extend([verb.to_owned(), "--".to_owned()]);
    arguments.extend(names.iter().map(|name| match &step.version {
        Some(version) => format!("{name}={version}"),
        None => (*name).to_owned(),
    }));
    arguments
}

fn is_older(host: &Host, new: &str, old: &str) -> Result<bool, ModuleError> {
    let exit = Tool::new("dpkg")
        .args(["--compare-versions", new, "lt", old])
        .run(host)?;
    Ok(exit.code == 0)
}

fn held(name: &str) -> ModuleError {
    ModuleError::failed("change package", name, "it is held")
        .with_hint("use `hold: false` to change it")
}

fn failed_apt(step: &Package, host: &Host, exit: &Exit) -> ModuleError {
    let act = match step.wanted {
        Wanted::Absent { .. } => "remove",
        Wanted::Present | Wanted::Latest => "install",
    };
    let error = ModuleError::failed(
        act,
        step.names.join(", "),
        format!("`apt-get` {}", how_it_ended(exit)),
    );
    let text = String::from_utf8_lossy(&exit.stderr);
    if text.contains("Unable to locate package") || text.contains("has no installation candidate") {
        return error.with_hint("the lists of packages may be old: use `refresh: true`");
    }
    if text.contains("Could not get lock") || text.contains("Unable to acquire the dpkg") {
        let holder = lock_holder(host).map_or_else(
            || "another program".to_owned(),
            |process| format!("process {process}"),
        );
        return error.with_hint(format!(
            "{holder} holds the lock: wait longer with `lockTimeout`"
        ));
    }
    error
}

/// The number of the process that holds one of dpkg's locks, by the kernel's list of locks.
fn lock_holder(host: &Host) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let inodes: Vec<u64> = LOCKS
        .iter()
        .filter_map(|path| host.root.status(Utf8Path::new(path), Follow::No).ok()?)
        .map(|status| status.inode)
        .collect();
    locks.lines().find_map(|line| {
        // `1: POSIX  ADVISORY  WRITE 4711 08:01:1234 0 EOF`
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let inode: u64 = fields.get(5)?.rsplit(':').next()?.parse().ok()?;
        let process = fields.get(4)?;
        inodes.contains(&inode).then(|| (*process).to_owned())
    })
}

/// Below another root nothing may be started, so maintainer scripts are told that services are not to be. The file goes
/// when this does.
struct PolicyFile<'h> {
    host: Option<&'h Host>,
}

impl<'h> PolicyFile<'h> {
    fn write(host: &'h Host) -> Result<Self, ModuleError> {
        let path = Utf8Path::new(POLICY);
        let failed = |error: std::io::Error| ModuleError::failed("write", POLICY, error);
        let has = |path: &Utf8Path| {
            host.root
                .status(path, Follow::No)
                .map(|found| found.is_some())
        };
        let directory = path.parent().unwrap_or(path);
        if !host.is_rooted() || !has(directory).map_err(failed)? || has(path).map_err(failed)? {
            return Ok(Self { host: None });
        }
        let new = NewFile {
            content: b"#!/bin/sh\nexit 101\n",
            mode: Some(0o755),
            uid: None,
            gid: None,
        };
        host.root.replace(path, &new).map_err(failed)?;
        Ok(Self { host: Some(host) })
    }
}

impl Drop for PolicyFile<'_> {
    fn drop(&mut self) {
        if let Some(host) = self.host {
            // What stays only keeps services from being started by packages.
            let _ = host.root.remove_file(Utf8Path::new(POLICY));
        }
    }
}
