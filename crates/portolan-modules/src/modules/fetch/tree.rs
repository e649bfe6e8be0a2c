//! Several files of a share in a directory: made beside it and put in its place, so that there is always one whole version.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;

use crate::action::{Applied, ModuleError};
use crate::ahead::{Attributes, PredictedPath, Prediction};
use crate::host::Host;
use crate::modules::attributes::{Ids, failure};
use crate::modules::path_state;
use crate::modules::write::missing_parents;
use crate::plan::{Change, ChangeKind, Plan, PlannedOutcome, Subject};
use crate::root::{Follow, NewFile};
use crate::share_files::{ShareFile, ShareFiles};
use crate::shares::MAX_SHARE_BYTES;
use crate::view::{Content, Found, View};

/// The permissions of a new directory: what is shared is a secret more often than not.
const NEW_MODE: u32 = 0o700;

/// The permissions of directories below it.
const INNER_MODE: u32 = 0o755;

/// The most names in the directory that are looked at.
const MAX_NAMES: usize = 10_000;

/// How many files that are not in the share a message names.
const NAMED: usize = 5;

/// A directory with the files of a share.
pub(super) struct FetchedTree {
    pub(super) directory: Utf8PathBuf,
    /// The mode of the directory, and the owner and group of everything.
    pub(super) attributes: Attributes,
    /// Whether other files are removed.
    pub(super) purge: bool,
}

impl FetchedTree {
    pub(super) fn plan(&self, view: &View<'_>, files: &ShareFiles) -> Result<Plan, ModuleError> {
        let (path, found) = view.find(&self.directory, Follow::Yes)?;
        let wanted = self.attributes.named(view)?;
        let mut changes = Vec::new();
        match &found {
            Found::Absent => {
                if let Some(lowest) = missing_parents(view, &path)?.last() {
                    let reason = format!("the directory `{lowest}` is missing");
                    return Err(self
                        .error(&reason)
                        .with_hint("add a step with the module `directory` before this one"));
                }
                changes.push(Change {
                    subject: Subject::Path(self.directory.clone()),
                    kind: ChangeKind::Create,
                    before: path_state::of_absent(),
                    after: path_state::of_directory(&wanted),
                    diff: String::new(),
                });
            }
            Found::Directory(there) => {
                if !wanted.differences(there).is_empty() {
                    changes.push(Change {
                        subject: Subject::Path(self.directory.clone()),
                        kind: ChangeKind::Update,
                        before: path_state::of_directory(&wanted.managed(there)),
                        after: path_state::of_directory(&wanted),
                        diff: String::new(),
                    });
                }
            }
            _ => return Err(self.error(&"it is not a directory")),
        }
        let others = self.others(view, &path, files)?;
        for other in &others {
            changes.push(Change {
                subject: Subject::Path(self.directory.join(other)),
                kind: ChangeKind::Remove,
                before: path_state::of_kind("other"),
                after: path_state::of_absent(),
                diff: String::new(),
            });
        }
        for (name, file) in files.iter() {
            match self.file_change(view, &path, name, file, &wanted)? {
                Some(FileState::Same) => {}
                Some(FileState::Other(change)) => changes.push(change),
                None => return Ok(Plan::unknown("an earlier step writes into the directory")),
            }
        }
        let mut plan = Plan::of_changes(changes);
        if matches!(plan.outcome, PlannedOutcome::Change(_)) {
            plan.predictions = predictions(&path, files, &wanted);
        }
        Ok(plan)
    }

    fn error(&self, reason: &dyn std::fmt::Display) -> ModuleError {
        ModuleError::failed("fill the directory", &self.directory, reason.to_string())
    }

    /// What is in the directory and not in the share: the topmost names of it.
    fn others(
        &self,
        view: &View<'_>,
        path: &Utf8Path,
        files: &ShareFiles,
    ) -> Result<Vec<Utf8PathBuf>, ModuleError> {
        let above = files.iter().flat_map(|(name, _)| name.ancestors().skip(1));
        let directories: BTreeSet<&Utf8Path> = above.collect();
        let mut others = Vec::new();
        let mut waiting = vec![Utf8PathBuf::new()];
        let mut names = 0;
        while let Some(below) = waiting.pop() {
            for name in view.list(&path.join(&below))? {
                names += 1;
                if names > MAX_NAMES {
                    return Err(self.error(&format!("it has more than {MAX_NAMES} names")));
                }
                let name = below.join(name);
                let found = view.find(&path.join(&name), Follow::No)?.1;
                match found {
                    Found::Absent => {}
                    Found::Directory(_) if directories.contains(name.as_path()) => {
                        waiting.push(name);
                    }
                    _ if files.get(&name).is_some() => {}
                    _ => others.push(name),
                }
            }
        }
        others.sort();
        if self.purge || others.is_empty() {
            return Ok(others);
        }
        let named: Vec<&str> = others
            .iter()
            .take(NAMED)
            .map(|path| path.as_str())
            .collect();
        let more = match others.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let reason = format!(
            "it has files that are not in the share: {}{more}",
            named.join(", ")
        );
        Err(self
            .error(&reason)
            .with_hint("name a directory for the share alone, or write `purge: true`"))
    }

    /// How a file differs; `None` if that cannot be told.
    fn file_change(
        &self,
        view: &View<'_>,
        path: &Utf8Path,
        name: &Utf8Path,
        file: &ShareFile,
        of_tree: &Attributes,
    ) -> Result<Option<FileState>, ModuleError> {
        let place = path.join(name);
        let wanted = Attributes {
            mode: Some(file.mode),
            ..of_tree.clone()
        };
        let after = path_state::of_file(&file.content, &wanted);
        let mut change = Change {
            subject: Subject::Path(self.directory.join(name)),
            kind: ChangeKind::Update,
            before: path_state::of_absent(),
            after,
            diff: String::new(),
        };
        let (found_at, found) = view.find(&place, Follow::No)?;
        match found {
            // A link on the way leads out of the directory: what is there does not count.
            _ if found_at != place => change.before = path_state::of_kind("link"),
            Found::Absent => change.kind = ChangeKind::Create,
            Found::File(there) => match view.read(&place, MAX_SHARE_BYTES as u64 * 2) {
                Ok(Some(Content::Known(content))) => {
                    let is_same = *content == *file.content;
                    if is_same && wanted.differences(&there).is_empty() {
                        return Ok(Some(FileState::Same));
                    }
                    change.before = path_state::of_file(&content, &wanted.managed(&there));
                }
                Ok(_) => return Ok(None),
                // It is too large to be ours.
                Err(_) => change.before = path_state::of_kind("other"),
            },
            _ => change.before = path_state::of_kind("other"),
        }
        Ok(Some(FileState::Other(change)))
    }

    pub(super) fn apply(
        &self,
        host: &Host,
        plan: &Plan,
        files: &ShareFiles,
    ) -> Result<Applied, ModuleError> {
        if plan.changes().is_empty() {
            return Ok(Applied::default());
        }
        let (path, found) = View::of(host).find(&self.directory, Follow::Yes)?;
        let failed = |error| failure(host, "fill the directory", &self.directory, error);
        let staging = host.root.make_staging_directory(&path).map_err(failed)?;
        let is_new = found == Found::Absent;
        let filled = self.fill(host, &path, &staging, files, is_new);
        if filled.is_err() {
            // The error that counts is the first one.
            let _ = host.root.remove_all(&staging);
        }
        filled?;
        let mut applied = Applied {
            is_changed: true,
            ..Applied::default()
        };
        applied
            .result
            .insert("files".to_owned(), json!(files.count()));
        Ok(applied)
    }

    /// Writes all files beside the directory, and puts them in its place.
    fn fill(
        &self,
        host: &Host,
        path: &Utf8Path,
        staging: &Utf8Path,
        files: &ShareFiles,
        is_new: bool,
    ) -> Result<(), ModuleError> {
        let failed = |error| failure(host, "fill the directory", &self.directory, error);
        let ids = self.attributes.ids(&host.root)?;
        // Nobody looks in before everything is there.
        host.root.set_mode(staging, NEW_MODE).map_err(failed)?;
        let above = files.iter().flat_map(|(name, _)| name.ancestors().skip(1));
        let directories: BTreeSet<&Utf8Path> =
            above.filter(|name| !name.as_str().is_empty()).collect();
        for name in directories {
            let (made, old) = (staging.join(name), path.join(name));
            host.root
                .make_directory(&made, INNER_MODE)
                .map_err(failed)?;
            set_owner(host, &made, ids, &old).map_err(failed)?;
        }
        for (name, file) in files.iter() {
            if host.stop.is_cancelled() {
                return Err(ModuleError::Stopped);
            }
            let (made, old) = (staging.join(name), path.join(name));
            let new = NewFile {
                content: &file.content,
                mode: Some(0o600),
                uid: None,
                gid: None,
            };
            host.root.replace(&made, &new).map_err(failed)?;
            // The owner first: nobody else may read it before.
            set_owner(host, &made, ids, &old).map_err(failed)?;
            host.root.set_mode(&made, file.mode).map_err(failed)?;
        }
        let old = host.root.status(path, Follow::No).map_err(failed)?;
        let kept = old.map_or(NEW_MODE, |old| old.mode);
        set_owner(host, staging, ids, path).map_err(failed)?;
        let mode = self.attributes.mode.unwrap_or(kept);
        host.root.set_mode(staging, mode).map_err(failed)?;
        host.root.sync_below(staging).map_err(failed)?;
        if is_new {
            return host.root.rename(staging, path).map_err(failed);
        }
        host.root.exchange(staging, path).map_err(failed)?;
        host.root.remove_all(staging).map_err(failed)
    }
}

/// How a file is there.
enum FileState {
    Same,
    Other(Change),
}

/// Gives something new the owner and group that are asked for, and otherwise those of what it replaces.
fn set_owner(host: &Host, made: &Utf8Path, ids: Ids, old: &Utf8Path) -> std::io::Result<()> {
    let old = host.root.status(old, Follow::No)?;
    let uid = ids.uid.or(old.as_ref().map(|old| old.uid));
    let gid = ids.gid.or(old.as_ref().map(|old| old.gid));
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    let now = host.root.status(made, Follow::No)?;
    let is_so = now.is_some_and(|now| {
        uid.is_none_or(|uid| uid == now.uid) && gid.is_none_or(|gid| gid == now.gid)
    });
    if is_so {
        return Ok(());
    }
    host.root.set_owner(made, uid, gid)
}

/// What will be there.
fn predictions(path: &Utf8Path, files: &ShareFiles, wanted: &Attributes) -> Vec<Prediction> {
    let mut predictions = vec![
        Prediction::Path(path.to_owned(), PredictedPath::Absent),
        Prediction::Path(path.to_owned(), PredictedPath::Directory),
        wanted.predict(path),
    ];
    let above = files.iter().flat_map(|(name, _)| name.ancestors().skip(1));
    let directories: BTreeSet<&Utf8Path> = above.filter(|name| !name.as_str().is_empty()).collect();
    for name in directories {
        predictions.push(Prediction::Path(path.join(name), PredictedPath::Directory));
    }
    for (name, file) in files.iter() {
        let place = path.join(name);
        let content = PredictedPath::File(Some(file.content.as_slice().into()));
        let attributes = Attributes {
            mode: Some(file.mode),
            ..wanted.clone()
        };
        let given = attributes.predict(&place);
        predictions.extend([Prediction::Path(place, content), given]);
    }
    predictions
}
