//! Makes real repositories with the real `git`, away from the user's own settings.

use std::path::Path;
use std::process::Command;

use camino::Utf8PathBuf;
use tempfile::TempDir;

/// A work tree with its repository.
pub(crate) struct Workshop {
    directory: TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        let workshop = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        workshop.git(&["init", "-q", "-b", "main"]);
        workshop
    }

    pub(crate) fn path(&self) -> Utf8PathBuf {
        let path = self.directory.path().canonicalize().unwrap();
        Utf8PathBuf::from_path_buf(path).unwrap()
    }

    /// Runs git and returns what it printed.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(self.directory.path(), args)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Commits everything and returns the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {shown}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
