//! `mount`: a file system is listed in `/etc/fstab` and mounted, or is neither.

use camino::{Utf8Path, Utf8PathBuf};

use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::fstab::{MountLine, line_of, mounted_type, with_line};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, Plan, Subject};
use crate::root::Follow;
use crate::state::State;
use crate::text_file::{TextFile, TextLook};
use crate::tool::Tool;
use crate::view::View;

/// The module `mount`.
pub(super) static MOUNT: ModuleDefinition = ModuleDefinition {
    name: "mount",
    summary: "Lists a file system in `/etc/fstab` and mounts it, or unmounts it and removes its line.",
    parameters: &[
        ParameterDefinition::required("path", ParameterType::Path, "Where it is mounted."),
        ParameterDefinition::optional(
            "source",
            ParameterType::Text,
            "What is mounted. A device such as `/dev/sdb1` is written by its UUID, because its name may change.",
        ),
        ParameterDefinition::optional("type", ParameterType::Text, "The type of the file system."),
        ParameterDefinition::optional(
            "options",
            ParameterType::TextList,
            "The mount options; `defaults` by default.",
        ),
        ParameterDefinition::optional(
            "nofail",
            ParameterType::Boolean,
            "Whether the machine starts without it if it is missing, which is the default.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["mounted", "listed", "absent"]),
            "`mounted`, which is the default, `listed` in `/etc/fstab` only, or `absent` from both.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::FilesOnly,
    parse,
};

const FSTAB: &str = "/etc/fstab";
const FSTAB_MODE: u32 = 0o644;
const MOUNTS: &str = "/proc/self/mountinfo";
const UUIDS: &str = "/dev/disk/by-uuid";

/// The permissions of a mount point that has to be made.
const MOUNT_POINT_MODE: u32 = 0o755;

/// The most processes that a message about a busy file system names.
const NAMED_PROCESSES: usize = 10;

struct Mount {
    path: Utf8PathBuf,
    wanted: Wanted,
}

enum Wanted {
    Mounted(Source),
    Listed(Source),
    Absent,
}

struct Source {
    device: String,
    kind: String,
    options: String,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let path = parameters.path("path")?;
    let state = parameters.word("state");
    if state == Some("absent") {
        return Some(Box::new(Mount {
            path,
            wanted: Wanted::Absent,
        }));
    }
    for name in ["source", "type"] {
        if !parameters.has(name) {
            parameters.fault(name, "is missing");
        }
    }
    let options = options(parameters);
    let source = Source {
        device: parameters.line("source")?.to_owned(),
        kind: parameters.line("type")?.to_owned(),
        options,
    };
    let wanted = match state {
        Some("listed") => Wanted::Listed(source),
        _ => Wanted::Mounted(source),
    };
    Some(Box::new(Mount { path, wanted }))
}

fn options(parameters: &mut Parameters<'_>) -> String {
    let mut options = parameters.text_list("options").unwrap_or_default();
    let is_option = |option: &String| {
        !option.is_empty()
            && !option.contains(|letter: char| letter.is_whitespace() || letter == '\0')
    };
    if !options.iter().all(is_option) {
        parameters.fault("options", "must be words without blanks");
    }
    if parameters.boolean("nofail", true) && !options.iter().any(|option| option == "nofail") {
        options.push("nofail".to_owned());
    }
    if options.is_empty() {
        options.push("defaults".to_owned());
    }
    options.join(",")
}

impl Action for Mount {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let TextLook::File(file) = self.look(view)? else {
            return Ok(Plan::unknown("an earlier step writes `/etc/fstab`"));
        };
        let mut changes: Vec<Change> = Vec::new();
        let is_listed = file.change().is_none();
        changes.extend(file.change());
        changes.extend(self.live_change(view.host, is_listed)?);
        let mut plan = Plan {
            predictions: vec![file.prediction()],
            ..Plan::of_changes(changes)
        };
        if let Wanted::Mounted(_) = &self.wanted {
            plan.predictions.push(Prediction::Path(
                self.path.clone(),
                PredictedPath::Directory,
            ));
            if view.host.is_rooted() {
                plan.notes
                    .push("listed and not mounted: this is not the machine's root".to_owned());
            }
        }
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
        let kind = self.mounted(host)?;
        if matches!(self.wanted, Wanted::Absent) && kind.is_some() {
            // Before its line goes: a file system that is busy stays listed.
            self.unmount(host)?;
        }
        if let TextLook::File(file) = self.look(&view)? {
            let is_line_new = file.write(host)?;
            if let Wanted::Mounted(_) = &self.wanted
                && !host.is_rooted()
            {
                self.mount(host, kind.is_some(), is_line_new)?;
            }
        }
        applied.notes.dedup();
        Ok(applied)
    }
}

impl Mount {
    fn look(&self, view: &View<'_>) -> Result<TextLook, ModuleError> {
        let source = match &self.wanted {
            Wanted::Mounted(source) | Wanted::Listed(source) => Some(source),
            Wanted::Absent => None,
        };
        let by_uuid = source.map(|source| source_by_uuid(view.host, &source.device));
        TextFile::look(view, FSTAB.into(), FSTAB_MODE, |old| {
            let text = old.unwrap_or_default();
            let known = line_of(text, self.path.as_str());
            let wanted = source.zip(by_uuid).map(|(source, by_uuid)| MountLine {
                source: by_uuid,
                path: self.path.to_string(),
                kind: source.kind.clone(),
                options: source.options.clone(),
                rest: known.map_or_else(|| ["0", "0"].map(str::to_owned), |line| line.rest),
            });
            let new = with_line(text, self.path.as_str(), wanted.as_ref());
            (old.is_some() || !new.is_empty()).then_some(new)
        })
    }

    /// The type of what is mounted at the path; `None` if nothing is, and below another root.
    fn mounted(&self, host: &Host) -> Result<Option<String>, ModuleError> {
        if host.is_rooted() {
            return Ok(None);
        }
        let mounts = std::fs::read_to_string(MOUNTS)
            .map_err(|error| ModuleError::failed("read", MOUNTS, error))?;
        Ok(mounted_type(&mounts, self.path.as_str()))
    }

    fn live_change(&self, host: &Host, is_listed: bool) -> Result<Option<Change>, ModuleError> {
        if host.is_rooted() {
            return Ok(None);
        }
        let now = self.mounted(host)?;
        let state = |kind: Option<&String>| match kind {
            Some(kind) => State::default().with("mounted", kind.as_str()),
            None => State::default(),
        };
        let subject = || Subject::Other("mount", self.path.to_string());
        match &self.wanted {
            Wanted::Mounted(_) if now.is_some() && !is_listed => Ok(Some(
                state(now.as_ref()).act(subject(), "mount again with the new options\n"),
            )),
            Wanted::Mounted(_) if now.is_some() => Ok(None),
            Wanted::Mounted(source) => {
                Ok(state(None).change_to(&state(Some(&source.kind)), subject()))
            }
            Wanted::Listed(_) => Ok(None),
            Wanted::Absent => Ok(state(now.as_ref()).change_to(&state(None), subject())),
        }
    }

    fn mount(&self, host: &Host, is_mounted: bool, is_line_new: bool) -> Result<(), ModuleError> {
        let failed = |error: std::io::Error| ModuleError::failed("make", self.path.as_str(), error);
        if host
            .root
            .status(&self.path, Follow::Yes)
            .map_err(failed)?
            .is_none()
        {
            host.root
                .make_directory(&self.path, MOUNT_POINT_MODE)
                .map_err(failed)?;
        }
        let tool = match (is_mounted, is_line_new) {
            (true, false) => return Ok(()),
            (true, true) => Tool::new("mount").args(["-o", "remount"]),
            (false, _) => Tool::new("mount"),
        };
        tool.args(["--", self.path.as_str()])
            .run_for(host, "mount", self.path.as_str())?;
        Ok(())
    }

    fn unmount(&self, host: &Host) -> Result<(), ModuleError> {
        let tool = Tool::new("umount").args(["--", self.path.as_str()]);
        match tool.run_for(host, "unmount", self.path.as_str()) {
            Ok(_) => Ok(()),
            Err(error) if error.to_string().contains("busy") => {
                let users = processes_below(&self.path);
                Err(error.with_hint(match users.as_slice() {
                    [] => "something else is mounted or kept open below it".to_owned(),
                    users => format!("these processes use it: {}", users.join(", ")),
                }))
            }
            Err(error) => Err(error),
        }
    }
}

/// A device by the UUID of its file system, if it has one; any other source as it is.
fn source_by_uuid(host: &Host, source: &str) -> String {
    if host.is_rooted() || !source.starts_with("/dev/") {
        return source.to_owned();
    }
    let find = || {
        let device = std::fs::canonicalize(source).ok()?;
        let links = std::fs::read_dir(UUIDS).ok()?;
        let mut same = links
            .flatten()
            .filter(|link| std::fs::canonicalize(link.path()).is_ok_and(|path| path == device));
        let uuid = same.next()?.file_name().into_string().ok()?;
        Some(format!("UUID={uuid}"))
    };
    find().unwrap_or_else(|| source.to_owned())
}

/// Processes that work in a directory, run a program from it or have a file of it open, as `name (pid)`.
fn processes_below(path: &Utf8Path) -> Vec<String> {
    let is_below = |link: std::path::PathBuf| {
        std::fs::read_link(link).is_ok_and(|target| target.starts_with(path.as_std_path()))
    };
    let uses = |process: &std::path::Path| {
        let opened = std::fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        ["cwd", "root", "exe"]
            .iter()
            .any(|name| is_below(process.join(name)))
            || opened.into_iter().any(|file| is_below(file.path()))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| uses(&entry.path()))
        .filter_map(|entry| {
            let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            Some(format!("{} ({})", name.trim(), entry.file_name().to_str()?))
        })
        .take(NAMED_PROCESSES)
        .collect()
}
