//! Images committed to a branch of a git repository, for Flux or others to take from there. Nothing is pushed.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::{DeployError, DeploySetup, DeployedStep, Deployer};
use crate::document::GitSource;
use crate::git_images::{GitImagesError, put_images};
use crate::process::{End, Program};
use crate::task::Task;

/// How long one command of git may take.
const LIMIT: Duration = Duration::from_mins(5);

/// Variables that git needs besides those that every program gets: who commits, where it is configured and how it signs.
const VARIABLES: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "XDG_CONFIG_HOME",
];

/// Commits images.
pub(super) struct GitDeployer {
    pub(super) source: GitSource,
    pub(super) images: BTreeMap<String, String>,
    pub(super) setup: DeploySetup,
}

impl Deployer for GitDeployer {
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let root = self.setup.build.directory.join(&self.source.path);
        let changes = self.git(&root, &["status", "--porcelain"], task)?;
        if let Some(first) = changes.first() {
            return Err(GitImagesError::Dirty {
                path: Utf8PathBuf::from(&self.source.path),
                first: first.trim().to_owned(),
            }
            .into());
        }
        let current = self.git(&root, &["rev-parse", "--abbrev-ref", "HEAD"], task)?;
        if current.first() == Some(&self.source.branch) {
            return self.commit(&root, task);
        }
        // Another branch gets a work tree of its own: what is checked out stays.
        let tree = task.scratch().join("tree");
        let is_there = self.git(&root, &["branch", "--list", &self.source.branch], task)?;
        let mut add = vec!["worktree", "add", "--quiet"];
        if is_there.is_empty() {
            add.extend(["-b", &self.source.branch, tree.as_str(), "HEAD"]);
        } else {
            add.extend([tree.as_str(), &self.source.branch]);
        }
        self.git(&root, &add, task)?;
        let done = self.commit(&tree, task);
        // The directory goes with the task; git forgets it now.
        let removed = self.git(
            &root,
            &["worktree", "remove", "--force", tree.as_str()],
            task,
        );
        let done = done?;
        removed?;
        Ok(done)
    }
}

impl GitDeployer {
    /// Puts the images in and commits what changed.
    fn commit(&self, tree: &Utf8Path, task: &Task) -> Result<DeployedStep, DeployError> {
        let (changed, artifacts) = put_images(&self.source, &self.setup.ship, tree, &self.images)?;
        let (path, branch) = (&self.source.path, &self.source.branch);
        if changed.is_empty() {
            return Ok(DeployedStep {
                note: Some(format!("`{branch}` has these images already")),
                ..DeployedStep::default()
            });
        }
        for file in &changed {
            task.log(format!("changed {file}"));
        }
        let digests = artifacts.iter().filter_map(|name| {
            let (_, digest) = self.images.get(name)?.split_once('@')?;
            Some(digest)
        });
        let digests = digests.collect::<Vec<_>>().join(", ");
        let message = self.source.message.replace("${DIGEST}", &digests);
        let files = changed.iter().map(|file| file.as_str());
        self.git(
            tree,
            &[&["add", "--"], files.collect::<Vec<_>>().as_slice()].concat(),
            task,
        )?;
        self.git(tree, &["commit", "--quiet", "--message", &message], task)?;
        let remote = self.git(tree, &["remote"], task)?;
        let remote = remote.first().map_or("origin", String::as_str);
        Ok(DeployedStep {
            objects: changed.len(),
            note: Some(format!("to push: git -C {path} push {remote} {branch}")),
            ..DeployedStep::default()
        })
    }

    /// The lines that git prints.
    fn git(
        &self,
        directory: &Utf8Path,
        args: &[&str],
        task: &Task,
    ) -> Result<Vec<String>, GitImagesError> {
        let mut env = self.setup.build.usual_variables();
        let given = VARIABLES.iter().filter_map(|name| {
            Some(((*name).to_owned(), self.setup.build.env.get(*name)?.clone()))
        });
        env.extend(given);
        let argv = ["git"]
            .iter()
            .chain(args)
            .map(|word| (*word).to_owned())
            .collect();
        let program = Program {
            argv,
            directory: directory.to_owned(),
            env,
        };
        let ended = task.run(&program, LIMIT).map_err(GitImagesError::Start)?;
        let failed = |how: String| GitImagesError::Git {
            command: args.join(" "),
            how,
        };
        match ended.how {
            End::Exit(status) if status.success() => Ok(ended.last_lines),
            End::Exit(_) => Err(failed(format!("failed: {}", ended.last_lines.join("; ")))),
            End::TimedOut => Err(failed(format!("took longer than {} s", LIMIT.as_secs()))),
            End::Cancelled => Err(GitImagesError::Cancelled),
        }
    }
}
