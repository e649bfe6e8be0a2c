//! Where the two sides of a comparison come from: git, the work tree, directories.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_flux::repository_root;
use portolan_git::{Change, CommitId, GitError, Repository, Tree};
use portolan_vfs::{Disk, Frozen, Lineage, Vfs};

use super::base_tree::BaseTree;
use super::work_tree::WorkTree;
use super::{DiffArgs, refused};
use crate::directory;
use crate::error::CommandError;
use crate::repository::Located;

/// Branches that others usually start from, in the order they are tried.
const USUAL_BASES: [&str; 3] = ["origin/HEAD", "main", "master"];

/// What to do without git.
const WITHOUT_GIT: &str = "`--path-orig DIR` compares with another directory, without git";

/// What to do when history is missing.
const UNSHALLOW: &str =
    "`git fetch --unshallow` brings the history; in GitHub Actions, `fetch-depth: 0` does";

/// The files of both sides.
pub(super) struct Trees {
    /// What was; nothing when the repository was not there yet.
    pub(super) old: Option<Arc<dyn Vfs>>,
    /// What is to be.
    pub(super) new: Arc<dyn Vfs>,
    /// The repository on disk.
    pub(super) located: Located,
    /// The cluster's directory on the old side, where it is another.
    pub(super) old_root: Option<Utf8PathBuf>,
    /// The sides by name: `main (1a2b3c4) → work tree`.
    pub(super) title: String,
    /// The way from the git repository's top to that of the Flux repository, with a slash at its end.
    pub(super) prefix: String,
}

impl Trees {
    pub(super) fn find(args: &DiffArgs) -> Result<Self, CommandError> {
        let located = args.repository.locate()?;
        match &args.sides.path_orig {
            Some(path) => Self::of_directories(args, located, path),
            None => Self::of_git(args, located),
        }
    }

    fn of_directories(
        args: &DiffArgs,
        located: Located,
        path: &Utf8Path,
    ) -> Result<Self, CommandError> {
        let real = directory::existing(path, path)?;
        let is_cluster = located.root.is_some();
        let top = if is_cluster {
            repository_root(&Disk::machine(), &real, true)
        } else {
            real.clone()
        };
        let disk = Disk::open(&top).map_err(CommandError::user)?;
        let inside = real.strip_prefix(disk.root()).unwrap_or(Utf8Path::new(""));
        let old_root = is_cluster.then(|| Utf8Path::new("/").join(inside));
        let name = args
            .sides
            .path_orig
            .as_ref()
            .map_or("", |path| path.as_str());
        Ok(Self {
            title: format!("{name} → {}", args.repository.shown_path()),
            old: Some(Arc::new(Frozen::new(disk))),
            new: Arc::new(Frozen::new(located.disk.clone())),
            located,
            old_root,
            prefix: String::new(),
        })
    }

    fn of_git(args: &DiffArgs, located: Located) -> Result<Self, CommandError> {
        let top = located.disk.root();
        let repository = Repository::discover(top).map_err(|error| no_repository(error, top))?;
        let prefix = prefix(&repository, top)?;
        let (base_name, base) = base(args, &repository)?;
        let tree = |commit: CommitId| {
            let tree = repository.tree(commit).map_err(CommandError::user)?;
            tree.subtree(&Utf8Path::new("/").join(&prefix))
                .map_err(CommandError::user)
        };
        let old = tree(base)?;
        let (new_name, (old, new)) = match &args.sides.to {
            Some(name) => {
                let commit = resolve(&repository, name)?;
                let new = tree(commit)?.ok_or_else(|| {
                    CommandError::usage(format!("`{name}` has no directory `{prefix}`"))
                })?;
                let changed = repository.changed_paths(base, commit).ok();
                let touched = changed.map(|changed| below(&prefix, &changed));
                (name.as_str(), sides(old, Frozen::new(new), touched))
            }
            None => {
                let head = repository.resolve("HEAD").ok();
                let head = head.map(tree).transpose()?.flatten();
                let new = Frozen::new(WorkTree::new(located.disk.clone(), head));
                let touched = repository.touched_since(base, &prefix, &new);
                let touched = touched.map_err(CommandError::user)?;
                let touched = touched.map(|touched| touched.into_iter().collect());
                ("work tree", sides(old, new, touched))
            }
        };
        let short: String = base.to_string().chars().take(7).collect();
        Ok(Self {
            title: format!("{base_name} ({short}) → {new_name}"),
            old,
            new,
            located,
            old_root: None,
            prefix: if prefix.as_str().is_empty() {
                String::new()
            } else {
                format!("{prefix}/")
            },
        })
    }

    /// The repository of the old side, with the cluster's directory there.
    pub(super) fn old_located(&self) -> Located {
        Located {
            disk: self.located.disk.clone(),
            root: self.old_root.clone().or_else(|| self.located.root.clone()),
        }
    }
}

/// Both sides; they share what was not touched, where that is known.
fn sides<V: Vfs + 'static>(
    old: Option<Tree>,
    new: Frozen<V>,
    touched: Option<Vec<Utf8PathBuf>>,
) -> (Option<Arc<dyn Vfs>>, Arc<dyn Vfs>) {
    match (old, touched) {
        (Some(old), Some(touched)) => {
            let lineage = Lineage::begin();
            let touched = touched.iter().map(Utf8PathBuf::as_path);
            let new: Arc<dyn Vfs> = Arc::new(new.with_lineage(lineage.followed_by(touched)));
            let old = BaseTree::new(old, lineage, Arc::clone(&new));
            (Some(Arc::new(old)), new)
        }
        (old, _) => {
            let old = old.map(|old| Arc::new(Frozen::new(old)) as Arc<dyn Vfs>);
            (old, Arc::new(new))
        }
    }
}

/// What changed below a directory, as paths in it.
fn below(prefix: &Utf8Path, changes: &[Change]) -> Vec<Utf8PathBuf> {
    let below = changes
        .iter()
        .filter_map(|change| change.path.strip_prefix(prefix).ok());
    below.map(|path| Utf8Path::new("/").join(path)).collect()
}

/// The way from the git work tree's top to the Flux repository's.
fn prefix(repository: &Repository, top: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let work_tree = repository.work_tree().ok_or_else(|| {
        refused(
            "the git repository is bare: it has no files to compare",
            "compare in a checkout of it",
        )
    })?;
    let prefix = top.strip_prefix(work_tree).map_err(|_| {
        CommandError::usage(format!(
            "`{top}` does not lie in the work tree `{work_tree}`"
        ))
    })?;
    Ok(prefix.to_owned())
}

/// The commit to compare with, and the name it goes by.
fn base(args: &DiffArgs, repository: &Repository) -> Result<(String, CommitId), CommandError> {
    let (name, commit) = match &args.sides.from {
        Some(name) => (name.clone(), resolve(repository, name)?),
        None => usual_base(repository)?,
    };
    if args.sides.exact {
        return Ok((name, commit));
    }
    let tip = resolve(repository, args.sides.to.as_deref().unwrap_or("HEAD"))?;
    let base = repository
        .merge_base(commit, tip)
        .map_err(|error| no_merge_base(error, repository, &name))?;
    Ok((name, base))
}

/// Says that there is no repository; what git made of it only matters when there seems to be one.
fn no_repository(error: GitError, top: &Utf8Path) -> CommandError {
    let seems_to_be = top.ancestors().any(|above| above.join(".git").exists());
    let error = if seems_to_be {
        CommandError::user(error)
    } else {
        CommandError::usage(error.to_string())
    };
    error.hint(WITHOUT_GIT)
}

fn usual_base(repository: &Repository) -> Result<(String, CommitId), CommandError> {
    let found = USUAL_BASES
        .iter()
        .find_map(|name| Some(((*name).to_owned(), repository.resolve(name).ok()?)));
    found.ok_or_else(|| {
        if repository.resolve("HEAD").is_err() {
            return refused(
                "the git repository has no commit to compare with",
                WITHOUT_GIT,
            );
        }
        refused(
            "the repository has neither a branch `main` nor `master`, nor an `origin`",
            "name what to compare with: --from REF",
        )
    })
}

fn resolve(repository: &Repository, name: &str) -> Result<CommitId, CommandError> {
    repository.resolve(name).map_err(|error| match error {
        GitError::UnknownRevision {
            revision,
            nearest,
            shallow,
        } => {
            let error = CommandError::usage(format!(
                "`{revision}` is neither a branch, tag nor commit of this repository"
            ));
            let error = match nearest.first() {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            };
            // `main~3` is no name that a server knows.
            let is_reckoned = revision.contains(['~', '^', '@']);
            match (shallow, is_reckoned) {
                (false, _) => error,
                (true, false) => error.hint(format!(
                    "the clone is shallow: `git fetch origin {revision}` brings it here"
                )),
                (true, true) => error.hint(UNSHALLOW),
            }
        }
        error => CommandError::user(error),
    })
}

fn no_merge_base(error: GitError, repository: &Repository, name: &str) -> CommandError {
    let error = CommandError::user(error);
    let exact = format!("`--exact` compares with `{name}` itself");
    if repository.is_shallow() {
        error.hint(UNSHALLOW).hint(exact)
    } else {
        error.hint(exact)
    }
}
