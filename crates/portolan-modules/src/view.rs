//! The host as a step sees it while it plans: what is there now, and what earlier steps of a check will change.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::accounts::Accounts;
use crate::action::ModuleError;
use crate::ahead::{Ahead, Attributes, PredictedPath};
use crate::host::Host;
use crate::root::{FileKind, Follow, MAX_LINKS, Root, Status};

/// The host as a step sees it while it plans.
pub struct View<'a> {
    /// The host.
    pub host: &'a Host,
    /// What earlier steps will have changed; empty when steps are applied.
    pub ahead: Ahead,
}

/// What is, or will be, at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// A regular file.
    File(Attributes),
    /// A directory.
    Directory(Attributes),
    /// A symbolic link, with its target as it is written.
    Link(String),
    /// A device, a pipe or a socket.
    Other,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Known(Arc<[u8]>),
    /// An earlier step of the check will write it, and nobody can tell what.
    Unknown,
}

impl<'a> View<'a> {
    /// The host as it is.
    pub fn of(host: &'a Host) -> Self {
        Self {
            host,
            ahead: Ahead::default(),
        }
    }

    /// What is, or will be, at a path, and that path after all links on the way (with [`Follow::Yes`] also the last one).
    /// Predictions are made for the path that is returned.
    ///
    /// # Errors
    /// When the host cannot be looked at, or links lead in a circle.
    pub fn find(
        &self,
        path: &Utf8Path,
        follow: Follow,
    ) -> Result<(Utf8PathBuf, Found), ModuleError> {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            match self.step(&path)? {
                Step::Through(next) => path = next,
                Step::Here(Found::Link(target)) if follow == Follow::Yes => {
                    path = join(path.parent().unwrap_or("/".into()), &target);
                }
                Step::Here(found) => return Ok((path, found)),
            }
        }
        Err(ModuleError::failed(
            "look at",
            path,
            "too many links follow each other",
        ))
    }

    /// The content of a file, links followed; `None` if there is nothing.
    ///
    /// # Errors
    /// When it is no file, larger than the limit, or cannot be read.
    pub fn read(&self, path: &Utf8Path, limit: u64) -> Result<Option<Content>, ModuleError> {
        let (path, found) = self.find(path, Follow::Yes)?;
        match found {
            Found::Absent => return Ok(None),
            Found::File(_) => {}
            _ => {
                return Err(ModuleError::failed(
                    "read",
                    path,
                    "it is not a regular file",
                ));
            }
        }
        match self.ahead.path(&path) {
            Some(PredictedPath::File(Some(content))) => {
                return Ok(Some(Content::Known(Arc::clone(content))));
            }
            Some(PredictedPath::File(None)) => return Ok(Some(Content::Unknown)),
            _ => {}
        }
        let content = self
            .host
            .root
            .read(&path, limit)
            .map_err(|error| ModuleError::failed("read", &path, error))?;
        Ok(content.map(|content| Content::Known(content.into())))
    }

    /// The names that are, or will be, in a directory, sorted; none if it is not there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self, directory: &Utf8Path) -> Result<Vec<String>, ModuleError> {
        let (directory, found) = self.find(directory, Follow::Yes)?;
        if !matches!(found, Found::Directory(_)) {
            return Ok(Vec::new());
        }
        let mut names: std::collections::BTreeSet<String> = match self.status(&directory)? {
            Some(status) if status.kind == FileKind::Directory => self
                .host
                .root
                .list(&directory)
                .map_err(|error| ModuleError::failed("list", &directory, error))?
                .into_iter()
                .collect(),
            _ => std::collections::BTreeSet::new(),
        };
        for (path, state) in self.ahead.below(&directory) {
            let Some(name) = path.file_name() else {
                continue;
            };
            if *state == PredictedPath::Absent {
                names.remove(name);
            } else {
                names.insert(name.to_owned());
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Whether a user is, or will be, there. A number is an id and needs no user.
    ///
    /// # Errors
    /// When the files of the host cannot be read.
    pub fn has_user(&self, name: &str) -> Result<bool, ModuleError> {
        match self.ahead.user(name) {
            Some(is_there) => Ok(is_there),
            None => Ok(self.accounts()?.uid(name).is_some()),
        }
    }

    /// Whether a group is, or will be, there. A number is an id and needs no group.
    ///
    /// # Errors
    /// When the files of the host cannot be read.
    pub fn has_group(&self, name: &str) -> Result<bool, ModuleError> {
        match self.ahead.group(name) {
            Some(is_there) => Ok(is_there),
            None => Ok(self.accounts()?.gid(name).is_some()),
        }
    }

    /// The users and groups of the host as they are now.
    ///
    /// # Errors
    /// When the files of the host cannot be read.
    pub fn accounts(&self) -> Result<Accounts, ModuleError> {
        Accounts::read(&self.host.root)
    }

    /// One look at a path: what is there, or the path that a link on the way leads to.
    fn step(&self, path: &Utf8Path) -> Result<Step, ModuleError> {
        let parent = path.parent().unwrap_or(path);
        // What most steps look at: no step says anything about paths, and no link is on the way.
        if self.ahead.has_no_paths() && self.host.root.is_plain_directory(parent) {
            return Ok(Step::Here(self.now(path)?));
        }
        let mut walked = Utf8PathBuf::from("/");
        let mut is_new = false;
        let names: Vec<&str> = path
            .as_str()
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .collect();
        for (at, name) in names.iter().enumerate() {
            if *name == ".." {
                walked.pop();
                continue;
            }
            walked.push(name);
            let is_last = at + 1 == names.len();
            let found = self.at(&walked, is_new)?;
            if is_last {
                let here = if walked == *path {
                    Step::Here(found)
                } else {
                    Step::Through(walked)
                };
                return Ok(here);
            }
            match found {
                Found::Link(target) => {
                    let above = walked.parent().unwrap_or("/".into());
                    let rest = names[at + 1..].join("/");
                    return Ok(Step::Through(join(above, &target).join(rest)));
                }
                Found::Directory(_) => {
                    is_new = is_new || self.is_replaced(&walked)?;
                }
                _ => {
                    // Nothing is below it. Later steps must find the same path again, however it was written.
                    let whole = walked.join(names[at + 1..].join("/"));
                    let is_same = whole == *path;
                    return Ok(if is_same {
                        Step::Here(Found::Absent)
                    } else {
                        Step::Through(whole)
                    });
                }
            }
        }
        if walked == *path {
            Ok(Step::Here(self.at(&walked, is_new)?))
        } else {
            Ok(Step::Through(walked))
        }
    }

    /// What will be at a path whose directories are no links. In a new directory is only what steps put there.
    fn at(&self, path: &Utf8Path, is_new: bool) -> Result<Found, ModuleError> {
        let given = self.ahead.attributes(path).cloned().unwrap_or_default();
        let predicted = if is_new {
            self.ahead.exact_path(path).or(Some(&PredictedPath::Absent))
        } else {
            self.ahead.path(path)
        };
        let now = match predicted {
            None => return Ok(with_attributes(self.now(path)?, &given)),
            Some(PredictedPath::Absent) => return Ok(Found::Absent),
            Some(PredictedPath::Link(target)) => return Ok(Found::Link(target.clone())),
            Some(_) if is_new => Found::Absent,
            Some(_) => self.now(path)?,
        };
        let found = match (predicted, now) {
            // What is written again keeps its attributes.
            (Some(PredictedPath::File(_)), Found::File(old)) => Found::File(old),
            (Some(PredictedPath::File(_)), _) => Found::File(Attributes::default()),
            (_, Found::Directory(old)) => Found::Directory(old),
            _ => Found::Directory(Attributes::default()),
        };
        Ok(with_attributes(found, &given))
    }

    /// Whether a step puts a directory where there is none now.
    fn is_replaced(&self, path: &Utf8Path) -> Result<bool, ModuleError> {
        if self.ahead.exact_path(path) != Some(&PredictedPath::Directory) {
            return Ok(false);
        }
        let status = self.status(path)?;
        Ok(status.is_none_or(|status| status.kind != FileKind::Directory))
    }

    fn status(&self, path: &Utf8Path) -> Result<Option<Status>, ModuleError> {
        status(&self.host.root, path)
    }

    /// What is at a path now.
    fn now(&self, path: &Utf8Path) -> Result<Found, ModuleError> {
        let Some(status) = self.status(path)? else {
            return Ok(Found::Absent);
        };
        Ok(match status.kind {
            FileKind::File => Found::File(self.attributes(&status)?),
            FileKind::Directory => Found::Directory(self.attributes(&status)?),
            FileKind::Link => {
                let target = self.host.root.read_link(path);
                let target = target.map_err(|error| ModuleError::failed("look at", path, error))?;
                target.map_or(Found::Absent, Found::Link)
            }
            FileKind::Other => Found::Other,
        })
    }

    fn attributes(&self, status: &Status) -> Result<Attributes, ModuleError> {
        let accounts = self.accounts()?;
        Ok(Attributes {
            mode: Some(status.mode),
            owner: Some(accounts.user_name(status.uid)),
            group: Some(accounts.group_name(status.gid)),
        })
    }
}

/// Where a look at a path ended.
enum Step {
    /// This is there.
    Here(Found),
    /// A link on the way, or `..`, leads to this path.
    Through(Utf8PathBuf),
}

fn with_attributes(found: Found, given: &Attributes) -> Found {
    let merge = |old: Attributes| Attributes {
        mode: given.mode.or(old.mode),
        owner: given.owner.clone().or(old.owner),
        group: given.group.clone().or(old.group),
    };
    match found {
        Found::File(old) => Found::File(merge(old)),
        Found::Directory(old) => Found::Directory(merge(old)),
        other => other,
    }
}

/// Where a link in a directory leads.
fn join(directory: &Utf8Path, target: &str) -> Utf8PathBuf {
    directory.join(target)
}

fn status(root: &Root, path: &Utf8Path) -> Result<Option<Status>, ModuleError> {
    root.status(path, Follow::No)
        .map_err(|error| ModuleError::failed("look at", path, error))
}
