//! The module `directory`: a directory, and files of the book in it.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::attributes::{GROUP, MODE, OWNER, failure, refuse_foreign_link};
use super::file::{FOLLOW, PARENTS, parse_parents, read_source};
use super::path_state;
use super::write::{FileWork, Look, WriteOptions, make_directory, missing_parents, new_directory};
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{Attributes, PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::Follow;
use crate::view::{Found, View};

/// The most files and directories below one directory that a step looks at.
pub const MAX_TREE_ENTRIES: usize = 100_000;

/// The deepest directory below another one that a step looks at.
const MAX_TREE_DEPTH: usize = 200;

pub(crate) static DIRECTORY: ModuleDefinition = ModuleDefinition {
    name: "directory",
    summary: "Makes a directory, fills it with files of the book, or removes it with everything in it.",
    parameters: &[
        ParameterDefinition {
            name: "path",
            kind: ParameterType::Path,
            is_required: true,
            summary: "Where the directory is.",
        },
        MODE,
        OWNER,
        GROUP,
        ParameterDefinition {
            name: "state",
            kind: ParameterType::Word(&["present", "absent"]),
            is_required: false,
            summary: "`present` (the default) or `absent`. A directory in which something else is mounted is not removed.",
        },
        FOLLOW,
        PARENTS,
        ParameterDefinition {
            name: "source",
            kind: ParameterType::Text,
            is_required: false,
            summary: "A directory of the book whose files are copied into it. New ones get the owner and group of the step and the mode `0644`.",
        },
        ParameterDefinition {
            name: "purge",
            kind: ParameterType::Boolean,
            is_required: false,
            summary: "Removes what is in the directory but not in `source` (default false).",
        },
        ParameterDefinition {
            name: "recurse",
            kind: ParameterType::Boolean,
            is_required: false,
            summary: "Gives owner and group to everything below, and the mode to the directories below. Links are not followed (default false).",
        },
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct DirectoryAction {
    path: Utf8PathBuf,
    is_absent: bool,
    attributes: Attributes,
    follow: bool,
    parents: Option<Attributes>,
    source: Option<Utf8PathBuf>,
    purge: bool,
    recurse: bool,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let action = DirectoryAction {
        is_absent: parameters.word("state") == Some("absent"),
        attributes: Attributes::parse(parameters),
        follow: parameters.boolean("follow", true),
        parents: parse_parents(parameters),
        source: parameters.line("source").map(Utf8PathBuf::from),
        purge: parameters.boolean("purge", false),
        recurse: parameters.boolean("recurse", false),
        path: parameters.path("path")?,
    };
    if action.purge && action.source.is_none() {
        parameters.fault_with(
            "purge",
            "needs `source`",
            Some("without it everything would be removed".to_owned()),
        );
    }
    if action.is_absent && action.source.is_some() {
        parameters.fault("source", "cannot stand beside `state: absent`");
    }
    if action.is_absent && action.path == "/" {
        parameters.fault("path", "must not be the root directory");
    }
    Some(Box::new(action))
}

/// What is to be done, in this order.
#[derive(Default)]
struct Work {
    changes: Vec<Change>,
    predictions: Vec<Prediction>,
    notes: Vec<String>,
    acts: Vec<Act>,
}

enum Act {
    Make(Utf8PathBuf, Attributes),
    Replace(Utf8PathBuf, Attributes),
    Set(Utf8PathBuf, Attributes),
    Write(Box<FileWork>, WriteOptions),
    Remove(Utf8PathBuf),
}

impl DirectoryAction {
    fn look(&self, view: &View<'_>) -> Result<Result<Work, String>, ModuleError> {
        let mut work = Work::default();
        let (mut path, mut found) = view.find(&self.path, Follow::No)?;
        if let Found::Link(_) = found
            && !self.is_absent
            && self.follow
        {
            refuse_foreign_link(view.host, &path)?;
            (path, found) = view.find(&self.path, Follow::Yes)?;
        }
        if self.is_absent {
            self.look_at_removal(path, &found, &mut work)?;
            return Ok(Ok(work));
        }
        self.look_at_directory(view, &path, &found, &mut work)?;
        if self.recurse {
            self.look_below(view, &path, 0, &mut work)?;
        }
        if let Some(source) = &self.source
            && let Some(unknown) = self.look_at_source(view, &path, source, &mut work)?
        {
            return Ok(Err(unknown));
        }
        Ok(Ok(work))
    }

    fn look_at_removal(
        &self,
        path: Utf8PathBuf,
        found: &Found,
        work: &mut Work,
    ) -> Result<(), ModuleError> {
        match found {
            Found::Absent => return Ok(()),
            Found::Directory(_) => {}
            _ => {
                return Err(
                    ModuleError::failed("remove", &self.path, "it is not a directory")
                        .with_hint("use the module `file` with `state: absent`"),
                );
            }
        }
        work.changes.push(Change {
            subject: Subject::Path(self.path.clone()),
            kind: ChangeKind::Remove,
            before: path_state::of_kind("directory"),
            after: path_state::of_absent(),
            diff: "the directory is removed with everything in it\n".to_owned(),
        });
        work.predictions
            .push(Prediction::Path(path.clone(), PredictedPath::Absent));
        work.acts.push(Act::Remove(path));
        Ok(())
    }

    fn look_at_directory(
        &self,
        view: &View<'_>,
        path: &Utf8Path,
        found: &Found,
        work: &mut Work,
    ) -> Result<(), ModuleError> {
        let wanted = self.attributes.named(view)?;
        match found {
            Found::Directory(there) => {
                work.set(&self.path, path, &self.attributes, &wanted, there);
                return Ok(());
            }
            Found::Absent => {}
            Found::Link(target) => {
                let mut change = new_directory(view, path, &wanted, &mut work.predictions)?;
                change.kind = ChangeKind::Update;
                change.before = path_state::of_link(target);
                change.diff = format!("the link to {target} becomes a directory\n");
                work.changes.push(change);
                work.acts
                    .push(Act::Replace(path.to_owned(), self.attributes.clone()));
                return Ok(());
            }
            _ => {
                let reason = "something that is not a directory is there";
                return Err(
                    ModuleError::failed("make the directory", &self.path, reason)
                        .with_hint("remove it first with the module `file`"),
                );
            }
        }
        let missing = missing_parents(view, path)?;
        if let Some(lowest) = missing.last() {
            let Some(parents) = &self.parents else {
                let reason = format!("the directory `{lowest}` is missing");
                return Err(
                    ModuleError::failed("make the directory", &self.path, reason)
                        .with_hint("add a step that makes it, or `parents: {mode: \"0755\"}`"),
                );
            };
            let named = parents.named(view)?;
            for parent in &missing {
                let change = new_directory(view, parent, &named, &mut work.predictions)?;
                work.changes.push(change);
                work.acts.push(Act::Make(parent.clone(), parents.clone()));
            }
        }
        let mut change = new_directory(view, path, &wanted, &mut work.predictions)?;
        change.subject = Subject::Path(self.path.clone());
        work.changes.push(change);
        work.acts
            .push(Act::Make(path.to_owned(), self.attributes.clone()));
        Ok(())
    }

    /// Gives what is below a directory its owner and group.
    fn look_below(
        &self,
        view: &View<'_>,
        directory: &Utf8Path,
        depth: usize,
        work: &mut Work,
    ) -> Result<(), ModuleError> {
        if depth > MAX_TREE_DEPTH || work.changes.len() > MAX_TREE_ENTRIES {
            return Err(ModuleError::failed(
                "look at",
                directory,
                "the tree is too large",
            ));
        }
        let wanted = self.attributes.named(view)?;
        let of_files = Attributes {
            mode: None,
            ..wanted.clone()
        };
        for name in view.list(directory)? {
            let path = directory.join(name);
            match view.find(&path, Follow::No)?.1 {
                Found::Directory(there) => {
                    work.set(&path, &path, &wanted, &wanted, &there);
                    self.look_below(view, &path, depth + 1, work)?;
                }
                Found::File(there) => work.set(&path, &path, &of_files, &of_files, &there),
                _ => {}
            }
        }
        Ok(())
    }

    /// Copies the files of the book. Returns a reason if that cannot be planned.
    fn look_at_source(
        &self,
        view: &View<'_>,
        target: &Utf8Path,
        source: &Utf8Path,
        work: &mut Work,
    ) -> Result<Option<String>, ModuleError> {
        let listed = view.host.book_files.list(source);
        let files = listed.map_err(|reason| ModuleError::failed("read", source, reason))?;
        // Later files look at what earlier ones will have made.
        let mut ahead = View {
            host: view.host,
            ahead: view.ahead.clone(),
        };
        ahead.ahead.add(&work.predictions);
        let options = WriteOptions {
            attributes: Attributes {
                mode: None,
                ..self.attributes.clone()
            },
            parents: Some(self.attributes.clone()),
            ..WriteOptions::default()
        };
        let mut kept = BTreeSet::new();
        for file in files {
            for part in file.ancestors().skip(1) {
                refuse_link(&ahead, &target.join(part), target)?;
            }
            kept.extend(file.ancestors().map(|part| target.join(part)));
            let content = read_source(view.host, &source.join(&file))?;
            let look = options.look(&ahead, &target.join(&file), &|_| Ok(Some(content.clone())))?;
            match look {
                Look::Unknown(reason) => return Ok(Some(reason)),
                Look::Work(file) => {
                    ahead.ahead.add(&file.predictions);
                    work.changes.extend(file.changes.iter().cloned());
                    work.predictions.extend(file.predictions.iter().cloned());
                    work.notes.extend(file.notes.iter().cloned());
                    work.acts.push(Act::Write(file, options.clone()));
                }
            }
        }
        if self.purge {
            purge(view, target, &kept, 0, work)?;
        }
        Ok(None)
    }
}

/// Refuses a link where the source has a directory: files would be written wherever it leads.
fn refuse_link(view: &View<'_>, path: &Utf8Path, top: &Utf8Path) -> Result<(), ModuleError> {
    if path != top && matches!(view.find(path, Follow::No)?.1, Found::Link(_)) {
        return Err(
            ModuleError::failed("fill the directory", path, "a link is there")
                .with_hint("remove it, or take its directory out of the source"),
        );
    }
    Ok(())
}

/// Removes what is below a directory but not among these paths.
fn purge(
    view: &View<'_>,
    directory: &Utf8Path,
    kept: &BTreeSet<Utf8PathBuf>,
    depth: usize,
    work: &mut Work,
) -> Result<(), ModuleError> {
    if depth > MAX_TREE_DEPTH || work.changes.len() > MAX_TREE_ENTRIES {
        return Err(ModuleError::failed(
            "look at",
            directory,
            "the tree is too large",
        ));
    }
    for name in view.list(directory)? {
        let path = directory.join(name);
        let found = view.find(&path, Follow::No)?.1;
        if kept.contains(&path) {
            if matches!(found, Found::Directory(_)) {
                purge(view, &path, kept, depth + 1, work)?;
            }
            continue;
        }
        let kind = match found {
            Found::Absent => continue,
            Found::Directory(_) => "directory",
            Found::File(_) => "file",
            Found::Link(_) => "link",
            Found::Other => "special",
        };
        work.changes.push(Change {
            subject: Subject::Path(path.clone()),
            kind: ChangeKind::Remove,
            before: path_state::of_kind(kind),
            after: path_state::of_absent(),
            diff: format!("the {kind} is removed: it is not in the source\n"),
        });
        work.predictions
            .push(Prediction::Path(path.clone(), PredictedPath::Absent));
        work.acts.push(Act::Remove(path));
    }
    Ok(())
}

impl Work {
    /// Plans other attributes for something that is there.
    fn set(
        &mut self,
        shown: &Utf8Path,
        path: &Utf8Path,
        given: &Attributes,
        wanted: &Attributes,
        there: &Attributes,
    ) {
        let differences = wanted.differences(there);
        if differences.is_empty() {
            return;
        }
        self.changes.push(Change {
            subject: Subject::Path(shown.to_owned()),
            kind: ChangeKind::Update,
            before: path_state::of_directory(&wanted.managed(there)),
            after: path_state::of_directory(wanted),
            diff: differences.concat(),
        });
        self.predictions.push(wanted.predict(path));
        self.acts.push(Act::Set(path.to_owned(), given.clone()));
    }

    fn do_acts(&self, host: &Host) -> Result<(), ModuleError> {
        for act in &self.acts {
            if host.stop.is_cancelled() {
                return Err(ModuleError::Stopped);
            }
            match act {
                Act::Make(path, attributes) => make_directory(host, path, attributes)?,
                Act::Replace(path, attributes) => {
                    let removed = host.root.remove_file(path);
                    removed.map_err(|error| failure(host, "replace", path, error))?;
                    make_directory(host, path, attributes)?;
                }
                Act::Set(path, attributes) => attributes.set(host, path)?,
                Act::Write(file, options) => {
                    options.write(host, file)?;
                }
                Act::Remove(path) => {
                    let removed = host.root.remove_all(path);
                    removed.map_err(|error| failure(host, "remove", path, error))?;
                }
            }
        }
        Ok(())
    }
}

impl Action for DirectoryAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let work = match self.look(view)? {
            Ok(work) => work,
            Err(reason) => return Ok(Plan::unknown(reason)),
        };
        let mut plan = Plan::of_changes(work.changes);
        plan.predictions = work.predictions;
        plan.notes = work.notes;
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let work = self.look(&View::of(host))?;
        let work = work.map_err(|reason| ModuleError::failed("plan", "the step", reason))?;
        plan.confirm(&Plan::of_changes(work.changes.clone()))?;
        work.do_acts(host)?;
        Ok(Applied {
            is_changed: !work.changes.is_empty(),
            notes: work.notes,
            ..Applied::default()
        })
    }
}
