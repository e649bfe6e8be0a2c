//! What earlier steps of a check will have changed, so that later steps look at the host as it will be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

/// What will be true after a step.
#[derive(Debug, Clone)]
pub enum Prediction {
    /// There will be this at a path.
    Path(Utf8PathBuf, PredictedPath),
    /// What is at a path will have this owner, group and these permissions; those that are `None` stay as they are.
    Attributes(Utf8PathBuf, Attributes),
    /// A package will be there in a version, if that is known, or be gone.
    Package(String, Option<PredictedPackage>),
    /// A user will be there, or be gone.
    User(String, bool),
    /// A group will be there, or be gone.
    Group(String, bool),
    /// A unit of the service manager will be there.
    Service(String),
}

/// What will be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PredictedPath {
    /// A file with this content; `None` if the content is not known.
    File(Option<Arc<[u8]>>),
    /// A directory.
    Directory,
    /// A link to this.
    Link(String),
    /// Nothing.
    Absent,
}

/// Owner, group and permissions of what is at a path; `None` if one is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The permissions.
    pub mode: Option<u32>,
    /// The owner's name, or its number if it has none.
    pub owner: Option<String>,
    /// The group's name, or its number if it has none.
    pub group: Option<String>,
}

/// A package that will be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictedPackage {
    /// Its version, if it is known.
    pub version: Option<String>,
}

/// Everything that earlier steps of a check will have changed on one host.
#[derive(Debug, Clone, Default)]
pub struct Ahead {
    paths: BTreeMap<Utf8PathBuf, PredictedPath>,
    attributes: BTreeMap<Utf8PathBuf, Attributes>,
    packages: BTreeMap<String, Option<PredictedPackage>>,
    users: BTreeMap<String, bool>,
    groups: BTreeMap<String, bool>,
    services: BTreeSet<String>,
}

impl Ahead {
    /// Takes what a step predicts; it replaces what earlier steps said about the same thing.
    pub fn add(&mut self, predictions: &[Prediction]) {
        for prediction in predictions.iter().cloned() {
            match prediction {
                Prediction::Path(path, state) => {
                    if state == PredictedPath::Absent {
                        self.paths.retain(|known, _| !known.starts_with(&path));
                        self.attributes.retain(|known, _| !known.starts_with(&path));
                    }
                    self.paths.insert(path, state);
                }
                Prediction::Attributes(path, new) => {
                    let known = self.attributes.entry(path).or_default();
                    known.mode = new.mode.or(known.mode);
                    known.owner = new.owner.or(known.owner.take());
                    known.group = new.group.or(known.group.take());
                }
                Prediction::Package(name, state) => {
                    self.packages.insert(name, state);
                }
                Prediction::User(name, is_there) => {
                    self.users.insert(name, is_there);
                }
                Prediction::Group(name, is_there) => {
                    self.groups.insert(name, is_there);
                }
                Prediction::Service(name) => {
                    self.services.insert(name);
                }
            }
        }
    }

    /// What will be at a path; `None` if no step says anything about it.
    pub fn path(&self, path: &Utf8Path) -> Option<&PredictedPath> {
        if let Some(state) = self.paths.get(path) {
            return Some(state);
        }
        // What is below a removed directory is gone with it.
        path.ancestors()
            .skip(1)
            .find_map(|parent| self.paths.get(parent))
            .filter(|state| **state == PredictedPath::Absent)
    }

    /// What will be exactly at a path, whatever is said about the directories above it.
    pub(crate) fn exact_path(&self, path: &Utf8Path) -> Option<&PredictedPath> {
        self.paths.get(path)
    }

    /// Paths directly below a directory that will be there, or be gone.
    pub(crate) fn below<'a>(
        &'a self,
        directory: &'a Utf8Path,
    ) -> impl Iterator<Item = (&'a Utf8Path, &'a PredictedPath)> {
        let all = self.paths.iter();
        all.filter(move |(path, _)| path.parent() == Some(directory))
            .map(|(path, state)| (path.as_path(), state))
    }

    /// Whether a step says anything about a path, or about what is below it.
    pub(crate) fn has_below(&self, directory: &Utf8Path) -> bool {
        self.paths.keys().any(|path| path.starts_with(directory))
    }

    /// The owner, group and permissions that steps give to what is at a path.
    pub fn attributes(&self, path: &Utf8Path) -> Option<&Attributes> {
        self.attributes.get(path)
    }

    /// Whether no step says anything about a path.
    pub fn has_no_paths(&self) -> bool {
        self.paths.is_empty() && self.attributes.is_empty()
    }

    /// Whether no step says anything about the host.
    pub fn is_empty(&self) -> bool {
        self.has_no_paths()
            && self.packages.is_empty()
            && self.users.is_empty()
            && self.groups.is_empty()
            && self.services.is_empty()
    }

    /// Whether a package will be there; `None` if no step says anything about it.
    pub fn package(&self, name: &str) -> Option<&Option<PredictedPackage>> {
        self.packages.get(name)
    }

    /// Whether a user will be there; `None` if no step says anything about it.
    pub fn user(&self, name: &str) -> Option<bool> {
        self.users.get(name).copied()
    }

    /// Whether a group will be there; `None` if no step says anything about it.
    pub fn group(&self, name: &str) -> Option<bool> {
        self.groups.get(name).copied()
    }

    /// Whether an earlier step brings this unit.
    pub fn has_service(&self, name: &str) -> bool {
        self.services.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_removed_directory_is_gone() {
        let mut ahead = Ahead::default();
        ahead.add(&[
            Prediction::Path("/etc/web/a".into(), PredictedPath::File(None)),
            Prediction::Path("/etc/web".into(), PredictedPath::Absent),
        ]);
        assert_eq!(
            ahead.path("/etc/web/a".into()),
            Some(&PredictedPath::Absent)
        );
        assert_eq!(ahead.path("/etc".into()), None);
        ahead.add(&[Prediction::Path(
            "/etc/web".into(),
            PredictedPath::Directory,
        )]);
        assert_eq!(ahead.path("/etc/web/a".into()), None);
    }
}
