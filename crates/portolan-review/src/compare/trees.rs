//! Where the two sides of a comparison come from: git, the work tree, directories.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_flux::repository_root;
use portolan_git::{BaseTree, Change, CommitId, GitError, Repository as Git, Tree, WorkTreeFiles};
use portolan_vfs::{Disk, Frozen, Lineage, Vfs};

use crate::{FluxRepository, ReviewError};

/// Branches that others usually start from, in the order they are tried.
const USUAL_BASES: [&str; 3] = ["origin/HEAD", "main", "master"];

/// What to do without git.
const WITHOUT_GIT: &str = "`--path-orig DIR` compares with another directory, without git";

/// What to do when history is missing.
const UNSHALLOW: &str =
    "`git fetch --unshallow` brings the history; in GitHub Actions, `fetch-depth: 0` does";

/// Which commits are compared.
#[derive(Debug, Clone, Default)]
pub struct Revisions {
    /// The branch, tag or commit to compare with; the branch that others usually start from when not given.
    pub from: Option<String>,
    /// What is compared; the files as they are now when not given.
    pub to: Option<String>,
    /// Whether `from` itself counts, not the commit that it has in common with the other side.
    pub exact: bool,
}

/// Commits that are compared, found in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commits {
    /// The top of the work tree.
    pub top: Utf8PathBuf,
    /// What was: the name it goes by, and the commit.
    pub old: (String, String),
    /// What is to be, likewise; `None` is the files as they are now.
    pub new: Option<(String, String)>,
}

impl Revisions {
    /// Finds the commits in the repository that a directory is in.
    pub fn find(&self, directory: &Utf8Path) -> Result<Commits, ReviewError> {
        let git = Git::discover(directory).map_err(|error| no_repository(error, directory))?;
        let (name, commit) = base(self, &git)?;
        let new = self.to.as_ref().map(|name| {
            let commit = resolve(&git, name)?;
            Ok::<_, ReviewError>((name.clone(), commit.to_string()))
        });
        let top = git.work_tree().ok_or_else(|| {
            ReviewError::refused("the git repository has no work tree").hint(WITHOUT_GIT)
        })?;
        Ok(Commits {
            top: top.to_owned(),
            old: (name, commit.to_string()),
            new: new.transpose()?,
        })
    }
}

/// The files of both sides.
pub struct Trees {
    /// What was; nothing when the repository was not there yet.
    pub old: Option<Arc<dyn Vfs>>,
    /// What is to be.
    pub new: Arc<dyn Vfs>,
    /// The cluster's directory on the old side, where it is another.
    pub(super) old_root: Option<Utf8PathBuf>,
    /// Whether the old side was named as a directory.
    pub(super) is_old_named: bool,
    /// The sides by name: `main (1a2b3c4) → work tree`.
    pub title: String,
    /// The way from the git repository's top to that of the Flux repository, with a slash at its end.
    pub prefix: String,
}

impl Trees {
    /// Compares with another directory: another checkout or, if a path is given, the same cluster's directory in
    /// that checkout.
    pub fn of_directories(
        repository: &FluxRepository,
        old: &Utf8Path,
        title: String,
    ) -> Result<Self, ReviewError> {
        let is_cluster = repository.root.is_some();
        let top = if is_cluster {
            repository_root(&Disk::machine(), old, true)
        } else {
            old.to_owned()
        };
        let disk = Disk::open(&top).map_err(ReviewError::failed)?;
        let inside = old.strip_prefix(disk.root()).unwrap_or(Utf8Path::new(""));
        let old_root = is_cluster.then(|| Utf8Path::new("/").join(inside));
        Ok(Self {
            title,
            old: Some(Arc::new(Frozen::new(disk))),
            new: Arc::new(Frozen::new(repository.disk.clone())),
            old_root,
            is_old_named: true,
            prefix: String::new(),
        })
    }

    /// Compares two states that git knows of, or one and the files as they are now.
    pub fn of_git(repository: &FluxRepository, revisions: &Revisions) -> Result<Self, ReviewError> {
        let top = repository.disk.root();
        let git = Git::discover(top).map_err(|error| no_repository(error, top))?;
        let prefix = prefix(&git, top)?;
        let (base_name, base) = base(revisions, &git)?;
        let tree = |commit: CommitId| {
            let tree = git.tree(commit).map_err(ReviewError::failed)?;
            tree.subtree(&Utf8Path::new("/").join(&prefix))
                .map_err(ReviewError::failed)
        };
        let old = tree(base)?;
        let (new_name, (old, new)) = match &revisions.to {
            Some(name) => {
                let commit = resolve(&git, name)?;
                let new = tree(commit)?.ok_or_else(|| {
                    ReviewError::refused(format!("`{name}` has no directory `{prefix}`"))
                })?;
                let changed = git.changed_paths(base, commit).ok();
                let touched = changed.map(|changed| below(&prefix, &changed));
                (name.as_str(), sides(old, Frozen::new(new), touched))
            }
            None => {
                let head = git.resolve("HEAD").ok();
                let head = head.map(tree).transpose()?.flatten();
                let new = Frozen::new(WorkTreeFiles::new(repository.disk.clone(), head));
                let touched = git.touched_since(base, &prefix, &new);
                let touched = touched.map_err(ReviewError::failed)?;
                let touched = touched.map(|touched| touched.into_iter().collect());
                ("work tree", sides(old, new, touched))
            }
        };
        let short: String = base.to_string().chars().take(7).collect();
        Ok(Self {
            title: format!("{base_name} ({short}) → {new_name}"),
            old,
            new,
            old_root: None,
            is_old_named: false,
            prefix: if prefix.as_str().is_empty() {
                String::new()
            } else {
                format!("{prefix}/")
            },
        })
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
fn prefix(repository: &Git, top: &Utf8Path) -> Result<Utf8PathBuf, ReviewError> {
    let work_tree = repository.work_tree().ok_or_else(|| {
        refused(
            "the git repository is bare: it has no files to compare",
            "compare in a checkout of it",
        )
    })?;
    let prefix = top.strip_prefix(work_tree).map_err(|_| {
        ReviewError::refused(format!(
            "`{top}` does not lie in the work tree `{work_tree}`"
        ))
    })?;
    Ok(prefix.to_owned())
}

/// The commit to compare with, and the name it goes by.
fn base(revisions: &Revisions, repository: &Git) -> Result<(String, CommitId), ReviewError> {
    let (name, commit) = match &revisions.from {
        Some(name) => (name.clone(), resolve(repository, name)?),
        None => usual_base(repository)?,
    };
    if revisions.exact {
        return Ok((name, commit));
    }
    let tip = resolve(repository, revisions.to.as_deref().unwrap_or("HEAD"))?;
    let base = repository
        .merge_base(commit, tip)
        .map_err(|error| no_merge_base(error, repository, &name))?;
    Ok((name, base))
}

/// Says that there is no repository; what git made of it only matters when there seems to be one.
fn no_repository(error: GitError, top: &Utf8Path) -> ReviewError {
    let seems_to_be = top.ancestors().any(|above| above.join(".git").exists());
    let error = if seems_to_be {
        ReviewError::failed(error)
    } else {
        ReviewError::refused(error.to_string())
    };
    error.hint(WITHOUT_GIT)
}

fn usual_base(repository: &Git) -> Result<(String, CommitId), ReviewError> {
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

fn resolve(repository: &Git, name: &str) -> Result<CommitId, ReviewError> {
    repository.resolve(name).map_err(|error| match error {
        GitError::UnknownRevision {
            revision,
            nearest,
            shallow,
        } => {
            let error = ReviewError::refused(format!(
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
        error => ReviewError::failed(error),
    })
}

fn no_merge_base(error: GitError, repository: &Git, name: &str) -> ReviewError {
    let error = ReviewError::failed(error);
    let exact = format!("`--exact` compares with `{name}` itself");
    if repository.is_shallow() {
        error.hint(UNSHALLOW).hint(exact)
    } else {
        error.hint(exact)
    }
}

/// Something that cannot be had, and what to do.
fn refused(message: &str, hint: &str) -> ReviewError {
    ReviewError::refused(message).hint(hint)
}
