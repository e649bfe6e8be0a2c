//! What git knows of the repository that a document is in.

use std::process::{Command, Stdio};

use portolan_secret::without_passwords;

use crate::builder::BuildSetup;

/// The repository as it is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitFacts {
    /// The address of `origin`, without a password.
    pub address: Option<String>,
    /// The revision that is checked out.
    pub revision: String,
    /// When that was committed, in seconds since 1970.
    pub committed: u64,
    /// Whether nothing in the work tree was changed since.
    pub is_clean: bool,
}

impl BuildSetup {
    /// What git knows; `None` if the document is in no repository with a commit. It is asked once for each run.
    pub(crate) fn git_facts(&self) -> Option<&GitFacts> {
        let found = self.git.get_or_init(|| {
            let revision = self.ask_git(&["rev-parse", "HEAD"])?;
            let committed = self.ask_git(&["log", "-1", "--format=%ct"])?;
            let address = self.ask_git(&["config", "--get", "remote.origin.url"]);
            Some(GitFacts {
                address: address.map(|address| without_passwords(&address).into_owned()),
                revision,
                committed: committed.parse().ok()?,
                is_clean: self.ask_git(&["status", "--porcelain"])?.is_empty(),
            })
        });
        found.as_ref()
    }

    fn ask_git(&self, args: &[&str]) -> Option<String> {
        let answer = Command::new("git")
            .args(args)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.usual_variables())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(answer.stdout).ok()?;
        answer.status.success().then(|| text.trim().to_owned())
    }
}
