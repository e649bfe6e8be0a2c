//! Files and directories as one kustomization sees them: how paths are resolved, and which are forbidden.
//!
//! ```text
//! Loader(/app/overlay) ──▶ Loader(/app/base) ──▶ …
//! ```
//!
//! Each loader knows the loader before it, so a directory never builds itself.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_budget::Budget;
use portolan_vfs::{Vfs, VfsError, clean, resolve};

use crate::error::{During, Error, Result};
use crate::load::fetch::{Fetch, RepoSpec, is_remote_file};
use crate::options::{LoadRestrictor, Options};

/// How many levels of kustomizations may name each other.
pub const MAX_DIRECTORIES: usize = 64;

/// What reading a file costs beside its bytes: it is looked for and opened.
const FILE_STEPS: u64 = 200;

/// The files of one kustomization.
#[derive(Clone)]
pub(crate) struct Loader<'a> {
    files: Files<'a>,
    root: Utf8PathBuf,
    restrictor: LoadRestrictor,
    /// The roots of those who asked for this one, outermost first.
    visited: Vec<Visited>,
    /// The repository this root lies in, if it was fetched.
    repository: Option<Arc<RepoSpec>>,
    fetch: Option<&'a dyn Fetch>,
    budget: Budget,
}

#[derive(Clone)]
enum Files<'a> {
    Given(&'a dyn Vfs),
    Fetched(Arc<dyn Vfs>),
}

/// A directory that is being built.
#[derive(Clone)]
enum Visited {
    Directory(Utf8PathBuf),
    Repository(Arc<RepoSpec>),
}

impl<'a> Loader<'a> {
    /// The loader of the directory that is built.
    pub(crate) fn new(
        root: &Utf8Path,
        files: &'a dyn Vfs,
        options: &Options<'a>,
        budget: &Budget,
    ) -> Result<Self> {
        let files = Files::Given(files);
        let root = files.directory(root)?;
        Ok(Self {
            files,
            visited: vec![Visited::Directory(root.clone())],
            root,
            restrictor: options.load_restrictor,
            repository: None,
            fetch: options.fetch,
            budget: budget.clone(),
        })
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The loader of another kustomization: a directory, or a repository somewhere else.
    pub(crate) fn open(&self, path: &str) -> Result<Self> {
        if path.is_empty() {
            return Err(Error::refused("new root cannot be empty"));
        }
        if self.visited.len() > MAX_DIRECTORIES {
            return Err(Error::TooManyLevels(self.root.clone()));
        }
        if let Some(spec) = RepoSpec::parse(path) {
            return self.open_repository(spec);
        }
        if path.starts_with('/') {
            return Err(Error::refused(format!(
                "new root `{path}` cannot be absolute"
            )));
        }
        let root = self.files.directory(&resolve(&self.root, path))?;
        self.check_cycle(&root)?;
        let mut loader = self.clone();
        loader.visited.push(Visited::Directory(root.clone()));
        loader.root = root;
        Ok(loader)
    }

    fn open_repository(&self, spec: RepoSpec) -> Result<Self> {
        for visited in &self.visited {
            if let Visited::Repository(known) = visited
                && known.raw.starts_with(&spec.raw)
            {
                let (new, old) = (&spec.raw, &known.raw);
                return Err(Error::refused(format!(
                    "cycle detected: URI `{new}` referenced by previous URI `{old}`"
                )));
            }
        }
        let fetched = match self.fetch {
            Some(fetch) => fetch.repository(&spec),
            None => Err("remote bases are not enabled here".into()),
        };
        let tree = fetched.map_err(|cause| Error::unfetched(&spec.raw, cause))?;
        let files = Files::Fetched(tree);
        let root = files.directory(&clean(&Utf8Path::new("/").join(&spec.path)))?;
        let spec = Arc::new(spec);
        let mut visited = self.visited.clone();
        visited.push(Visited::Repository(Arc::clone(&spec)));
        Ok(Self {
            files,
            root,
            // What comes from elsewhere reads its own files only.
            restrictor: LoadRestrictor::RootOnly,
            visited,
            repository: Some(spec),
            fetch: self.fetch,
            budget: self.budget.clone(),
        })
    }

    fn check_cycle(&self, candidate: &Utf8Path) -> Result<()> {
        // Roots before the last repository lie in another tree of files.
        for visited in self.visited.iter().rev() {
            match visited {
                Visited::Repository(_) => break,
                Visited::Directory(root) if root.starts_with(candidate) => {
                    return Err(Error::Cycle {
                        candidate: candidate.to_owned(),
                        visited: root.clone(),
                    });
                }
                Visited::Directory(_) => {}
            }
        }
        if self.repository.is_some() && self.root.starts_with(candidate) {
            return Err(Error::Cycle {
                candidate: candidate.to_owned(),
                visited: self.root.clone(),
            });
        }
        Ok(())
    }

    /// Reads a file as named by the kustomization. Files are bounded in size, so one is charged when its length is known.
    pub(crate) fn load(&self, path: &str) -> Result<Vec<u8>> {
        let content = self.read(path)?;
        self.budget.step(FILE_STEPS)?;
        let charged = self.budget.allocate(content.len()).map_err(Error::from);
        charged.during(|| format!("reading `{}`", self.path_of(path)))?;
        Ok(content)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if is_remote_file(path) {
            let fetched = match self.fetch {
                Some(fetch) => fetch.file(path),
                None => Err("remote files are not enabled here".into()),
            };
            return fetched.map_err(|cause| Error::unfetched(path, cause));
        }
        let full = resolve(&self.root, path);
        if self.restrictor == LoadRestrictor::RootOnly {
            let real = self.files.get().canonicalize(&full)?;
            if self.files.get().is_directory(&real) {
                return Err(Error::refused(format!("`{full}` must resolve to a file")));
            }
            if !real.starts_with(&self.root) {
                return Err(Error::OutsideRoot {
                    file: real,
                    root: self.root.clone(),
                });
            }
            return Ok(self.files.get().read(&real)?);
        }
        Ok(self.files.get().read(&full)?)
    }

    /// The path of a file as named by the kustomization, for messages and origins.
    pub(crate) fn path_of(&self, path: &str) -> Utf8PathBuf {
        if is_remote_file(path) {
            return path.into();
        }
        resolve(&self.root, path)
    }

    pub(crate) fn files(&self) -> &dyn Vfs {
        self.files.get()
    }
}

impl Files<'_> {
    fn get(&self) -> &dyn Vfs {
        match self {
            Self::Given(files) => *files,
            Self::Fetched(files) => files.as_ref(),
        }
    }

    /// The real path of a directory.
    fn directory(&self, path: &Utf8Path) -> Result<Utf8PathBuf> {
        let files = self.get();
        let real = files.canonicalize(path)?;
        if !files.is_directory(&real) {
            return Err(VfsError::NotDirectory(path.to_owned()).into());
        }
        Ok(real)
    }
}
