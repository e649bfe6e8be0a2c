//! Git repositories made for one test, with the real git.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::repository::write;
use super::{Answer, portolan_in};

/// A repository with a work tree that goes away with it.
pub(crate) struct GitRepository {
    directory: TempDir,
}

impl GitRepository {
    /// A repository on the branch `main`, without commits.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let repository = Self { directory };
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    /// A repository whose first commit holds a copy of a directory.
    pub(crate) fn of(source: &Path) -> Self {
        let repository = Self::new();
        copy(source, repository.path());
        repository.commit("first");
        repository
    }

    /// Its top directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs git in it.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(self.path(), args)
    }

    /// Commits everything.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        write(self.path(), name, text);
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect(name)
    }

    /// Replaces a text that must be there.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "`{name}` has no `{from}`");
        self.write(name, &text.replace(from, to));
    }

    /// Runs `portolan` in it.
    pub(crate) fn portolan(&self, args: &[&str]) -> Answer {
        portolan_in(self.path().to_str().expect("UTF-8"), args)
    }
}

/// Runs git without the user's settings.
pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "t")
        .env("GIT_AUTHOR_EMAIL", "t@example.com")
        .env("GIT_COMMITTER_NAME", "t")
        .env("GIT_COMMITTER_EMAIL", "t@example.com")
        .output()
        .expect("git is installed");
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Copies a directory with everything below it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    for entry in fs::read_dir(from).expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}
