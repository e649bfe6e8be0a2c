//! A file with a content and attributes, planned and written: what the modules `file`, `line`, `block` and `directory`
//! share.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::attributes::{failure, refuse_foreign_link};
use super::path_state;
use crate::action::{Applied, ModuleError};
use crate::ahead::{Attributes, PredictedPath, Prediction};
use crate::host::Host;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::process::Program;
use crate::root::{Follow, NewFile};
use crate::unified::unified;
use crate::view::{Content, Found, View};

/// The largest file that is read or written by these modules.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The permissions of new files for which nobody says any.
pub(crate) const FILE_MODE: u32 = 0o644;

/// The permissions of new directories for which nobody says any.
pub(crate) const DIRECTORY_MODE: u32 = 0o755;

/// How a file is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Owner, group and permissions.
    pub(crate) attributes: Attributes,
    /// Whether a link at the path leads to the file that is meant.
    pub(crate) follow: bool,
    /// What missing directories on the way get; without it they are not made.
    pub(crate) parents: Option<Attributes>,
    /// A program that looks at the new file before it is put in place; `%s` stands for its path.
    pub(crate) validate: Option<Vec<String>>,
    /// How many older contents are kept.
    pub(crate) backups: u32,
    /// Whether the file is written into instead of replaced.
    pub(crate) in_place: bool,
}

/// What is to be done to one file.
pub(crate) struct FileWork {
    /// The changes, in the order in which they are done; the file itself is the last.
    pub(crate) changes: Vec<Change>,
    pub(crate) predictions: Vec<Prediction>,
    pub(crate) notes: Vec<String>,
    /// Directories to be made.
    parents: Vec<Utf8PathBuf>,
    /// The file, after links.
    path: Utf8PathBuf,
    /// The new content, if it differs.
    content: Option<Arc<[u8]>>,
    /// The attributes to be given.
    attributes: Attributes,
    is_new: bool,
}

/// Makes the content that a file should have of the one that it has.
pub(crate) type Edit<'a> = dyn Fn(Option<&[u8]>) -> Result<Option<Arc<[u8]>>, ModuleError> + 'a;

/// The outcome of a look at a file.
pub(crate) enum Look {
    /// This is to be done; nothing if it has no changes.
    Work(Box<FileWork>),
    /// Nobody can tell before earlier steps are done.
    Unknown(String),
}

impl WriteOptions {
    /// Looks what must be done so that a file has a content. `edit` gets the content that is there, or `None` if there is
    /// no file, and gives the one that should be; `None` leaves it as it is.
    pub(crate) fn look(
        &self,
        view: &View<'_>,
        asked: &Utf8Path,
        edit: &Edit<'_>,
    ) -> Result<Look, ModuleError> {
        let (path, found) = self.target(view, asked)?;
        let wanted = self.attributes.named(view)?;
        let (old, there) = match &found {
            Found::Absent | Found::Link(_) => (None, Attributes::default()),
            Found::File(there) => match view.read(&path, MAX_FILE_BYTES)? {
                Some(Content::Known(old)) => (Some(old), there.clone()),
                Some(Content::Unknown) => {
                    return Ok(Look::Unknown(format!(
                        "an earlier step writes `{path}`, and what it writes is not known"
                    )));
                }
                None => (None, Attributes::default()),
            },
            Found::Directory(_) => {
                return Err(ModuleError::failed("write", asked, "it is a directory")
                    .with_hint("use the module `directory`, or remove it first"));
            }
            Found::Other => {
                return Err(ModuleError::failed(
                    "write",
                    asked,
                    "it is a device, a pipe or a socket",
                ));
            }
        };
        let is_new = old.is_none();
        let mut work = FileWork {
            changes: Vec::new(),
            predictions: Vec::new(),
            notes: Vec::new(),
            parents: Vec::new(),
            path,
            content: None,
            attributes: self.attributes.clone(),
            is_new,
        };
        let new = edit(old.as_deref())?;
        if is_new && new.is_none() {
            return Ok(Look::Work(Box::new(work)));
        }
        if is_new {
            self.plan_parents(view, &mut work)?;
        }
        let new = new.unwrap_or_else(|| old.clone().unwrap_or_else(|| Arc::from([])));
        let after = if is_new {
            wanted.of_new(view, FILE_MODE)?
        } else {
            wanted.clone()
        };
        let mut diff = unified(asked.as_str(), old.as_deref(), Some(&new));
        if is_new && new.is_empty() {
            diff.push_str("a new empty file\n");
        }
        if let Found::Link(target) = &found {
            diff.insert_str(0, &format!("the link to {target} becomes a file\n"));
        }
        diff.extend(wanted.differences(&there));
        if diff.is_empty() {
            return Ok(Look::Work(Box::new(work)));
        }
        let before = match (&old, &found) {
            (Some(old), _) => path_state::of_file(old, &wanted.managed(&there)),
            (None, Found::Link(target)) => path_state::of_link(target),
            (None, _) => path_state::of_absent(),
        };
        work.note_names(view, self.in_place)?;
        if old.as_ref() != Some(&new) {
            work.predictions.push(Prediction::Path(
                work.path.clone(),
                PredictedPath::File(Some(Arc::clone(&new))),
            ));
        }
        work.predictions.push(after.predict(&work.path));
        work.changes.push(Change {
            subject: Subject::Path(asked.to_owned()),
            kind: if matches!(found, Found::Absent) {
                ChangeKind::Create
            } else {
                ChangeKind::Update
            },
            before,
            after: path_state::of_file(&new, &wanted),
            diff,
        });
        if old.as_ref() != Some(&new) {
            work.content = Some(new);
        }
        Ok(Look::Work(Box::new(work)))
    }

    /// The path that is written, after links, and what is there.
    pub(crate) fn target(
        &self,
        view: &View<'_>,
        asked: &Utf8Path,
    ) -> Result<(Utf8PathBuf, Found), ModuleError> {
        let mut at = view.find(asked, Follow::No)?;
        // Each link of a chain is looked at: any of them may lie where everybody can write.
        for _ in 0..crate::root::MAX_LINKS {
            let Found::Link(target) = &at.1 else {
                return Ok(at);
            };
            if !self.follow {
                return Ok(at);
            }
            refuse_foreign_link(view.host, &at.0)?;
            let next = at.0.parent().unwrap_or("/".into()).join(target);
            at = view.find(&next, Follow::No)?;
        }
        Err(ModuleError::failed(
            "write",
            asked,
            "too many links follow each other",
        ))
    }

    /// The directories on the way that are missing.
    fn plan_parents(&self, view: &View<'_>, work: &mut FileWork) -> Result<(), ModuleError> {
        let missing = missing_parents(view, &work.path)?;
        let Some(lowest) = missing.last() else {
            return Ok(());
        };
        let Some(parents) = &self.parents else {
            return Err(
                ModuleError::failed("write", &work.path, format!("the directory `{lowest}` is missing"))
                    .with_hint("add a step with the module `directory` before this one, or `parents: {mode: \"0755\"}`"),
            );
        };
        let wanted = parents.named(view)?;
        for path in missing {
            work.changes
                .push(new_directory(view, &path, &wanted, &mut work.predictions)?);
            work.parents.push(path);
        }
        Ok(())
    }

    /// Does what a look has shown.
    pub(crate) fn write(&self, host: &Host, work: &FileWork) -> Result<Applied, ModuleError> {
        let mut applied = Applied {
            is_changed: !work.changes.is_empty(),
            notes: work.notes.clone(),
            ..Applied::default()
        };
        for parent in &work.parents {
            make_directory(
                host,
                parent,
                self.parents.as_ref().unwrap_or(&Attributes::default()),
            )?;
        }
        let Some(content) = &work.content else {
            if applied.is_changed {
                work.attributes.set(host, &work.path)?;
            }
            return Ok(applied);
        };
        let ids = work.attributes.ids(&host.root)?;
        let new = NewFile {
            content,
            mode: work.attributes.mode,
            uid: ids.uid,
            gid: ids.gid,
        };
        let failed = |error| failure(host, "write", &work.path, error);
        let is_in_place = self.in_place && !work.is_new;
        if is_in_place && self.validate.is_none() {
            self.write_through(host, work, content)?;
            return Ok(applied);
        }
        let staged = host.root.stage(&work.path, &new).map_err(failed)?;
        if let Some(validate) = &self.validate {
            run_validator(host, validate, staged.path(), &work.path)?;
            if host.is_rooted() && !host.is_confined {
                applied.result.insert("unconfined".to_owned(), true.into());
            }
        }
        if is_in_place {
            drop(staged);
            self.write_through(host, work, content)?;
            return Ok(applied);
        }
        if !work.is_new {
            keep_backups(host, &work.path, self.backups, false)?;
        }
        let kept = staged.commit().map_err(failed)?;
        for name in kept.lost {
            applied.notes.push(format!(
                "the extended attribute `{name}` of `{}` could not be kept",
                work.path
            ));
        }
        Ok(applied)
    }

    fn write_through(
        &self,
        host: &Host,
        work: &FileWork,
        content: &[u8],
    ) -> Result<(), ModuleError> {
        keep_backups(host, &work.path, self.backups, true)?;
        let written = host.root.write_through(&work.path, content);
        written.map_err(|error| failure(host, "write", &work.path, error))?;
        work.attributes.set(host, &work.path)
    }
}

impl FileWork {
    /// The plan of a module that does only this.
    pub(crate) fn into_plan(self) -> Plan {
        let mut plan = Plan::of_changes(self.changes);
        plan.predictions = self.predictions;
        plan.notes = self.notes;
        plan
    }

    /// Says that other names of the file keep its old content.
    fn note_names(&mut self, view: &View<'_>, in_place: bool) -> Result<(), ModuleError> {
        let status = view.host.root.status(&self.path, Follow::No);
        let status = status.map_err(|error| ModuleError::failed("look at", &self.path, error))?;
        if let Some(status) = status
            && status.kind == crate::root::FileKind::File
            && status.links > 1
            && !in_place
        {
            self.notes.push(format!(
                "`{}` has {} names: the others keep the old content (`inPlace: true` changes all)",
                self.path, status.links
            ));
        }
        Ok(())
    }
}

/// The directories above a path that are missing, the highest first.
pub(crate) fn missing_parents(
    view: &View<'_>,
    path: &Utf8Path,
) -> Result<Vec<Utf8PathBuf>, ModuleError> {
    let mut missing = Vec::new();
    for parent in path.ancestors().skip(1) {
        match view.find(parent, Follow::Yes)?.1 {
            Found::Absent => missing.push(parent.to_owned()),
            Found::Directory(_) => break,
            _ => {
                return Err(ModuleError::failed(
                    "write",
                    path,
                    format!("`{parent}` is not a directory"),
                ));
            }
        }
    }
    missing.reverse();
    Ok(missing)
}

/// The change that makes a directory.
pub(crate) fn new_directory(
    view: &View<'_>,
    path: &Utf8Path,
    wanted: &Attributes,
    predictions: &mut Vec<Prediction>,
) -> Result<Change, ModuleError> {
    let after = wanted.of_new(view, DIRECTORY_MODE)?;
    predictions.push(Prediction::Path(path.to_owned(), PredictedPath::Directory));
    predictions.push(after.predict(path));
    let mut diff = "a new directory\n".to_owned();
    diff.extend(wanted.differences(&Attributes::default()));
    Ok(Change {
        subject: Subject::Path(path.to_owned()),
        kind: ChangeKind::Create,
        before: path_state::of_absent(),
        after: path_state::of_directory(wanted),
        diff,
    })
}

/// Makes a directory and gives it its attributes.
pub(crate) fn make_directory(
    host: &Host,
    path: &Utf8Path,
    attributes: &Attributes,
) -> Result<(), ModuleError> {
    let made = host
        .root
        .make_directory(path, attributes.mode.unwrap_or(DIRECTORY_MODE));
    made.map_err(|error| failure(host, "make the directory", path, error))?;
    attributes.set(host, path)
}

/// Runs the program that looks at a file before it is put in place.
fn run_validator(
    host: &Host,
    validate: &[String],
    staged: &Utf8Path,
    path: &Utf8Path,
) -> Result<(), ModuleError> {
    let shown = host.program_path(staged);
    let arguments = validate
        .iter()
        .map(|part| part.replace("%s", shown.as_str()))
        .collect();
    let mut command = host.command(Program::Arguments(arguments));
    // The file belongs to its future owner, whom the step's user need not be.
    command.account = None;
    let exit = host.processes.run(&command, &host.stop)?;
    if exit.code == 0 {
        return Ok(());
    }
    let printed = [exit.stdout, exit.stderr].concat();
    let reason = format!(
        "`{}` found it wrong (exit code {})\n{}",
        validate.join(" "),
        exit.code,
        String::from_utf8_lossy(&printed).trim_end()
    );
    Err(ModuleError::failed("write", path, reason)
        .with_hint("the file is as it was; correct its new content"))
}

/// Keeps the content that is about to be replaced as `NAME.~1~`, older ones under higher numbers.
pub(crate) fn keep_backups(
    host: &Host,
    path: &Utf8Path,
    count: u32,
    is_copied: bool,
) -> Result<(), ModuleError> {
    let Some(name) = path.file_name().filter(|_| count > 0) else {
        return Ok(());
    };
    let numbered = |number: u32| path.with_file_name(format!("{name}.~{number}~"));
    let failed = |error| failure(host, "keep a backup of", path, error);
    for number in (1..count).rev() {
        let from = numbered(number);
        if host
            .root
            .status(&from, Follow::No)
            .map_err(failed)?
            .is_some()
        {
            host.root
                .rename(&from, &numbered(number + 1))
                .map_err(failed)?;
        }
    }
    let newest = numbered(1);
    if !is_copied {
        // The old file itself stays under this name, with everything that belongs to it.
        return host.root.hard_link(path, &newest).map_err(failed);
    }
    let (Some(status), Some(content)) = (
        host.root.status(path, Follow::Yes).map_err(failed)?,
        host.root.read(path, MAX_FILE_BYTES).map_err(failed)?,
    ) else {
        return Ok(());
    };
    let copy = NewFile {
        content: &content,
        mode: Some(status.mode),
        uid: Some(status.uid),
        gid: Some(status.gid),
    };
    host.root
        .replace(&newest, &copy)
        .map(|_| ())
        .map_err(failed)
}
