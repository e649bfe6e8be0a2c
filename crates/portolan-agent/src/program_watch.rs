//! Whether another program has taken the place of the one that runs: an upgrade.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};

/// Which file a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// Looks at the program's file from time to time.
#[derive(Debug)]
pub(crate) struct ProgramWatch {
    path: Utf8PathBuf,
    began: Option<FileIdentity>,
    last: Option<FileIdentity>,
}

impl ProgramWatch {
    /// Watches the file that the process was started from.
    pub(crate) fn new(path: &Utf8Path) -> Self {
        let began = identity(path);
        Self {
            path: path.to_owned(),
            began,
            last: began,
        }
    }

    /// Nothing is watched.
    pub(crate) fn none() -> Self {
        Self::new(Utf8Path::new(""))
    }

    /// Whether another file is there, and was the same when it was looked for the last time: nobody writes to it any more.
    pub(crate) fn is_replaced(&mut self) -> bool {
        let now = identity(&self.path);
        let is_settled = now.is_some() && now == std::mem::replace(&mut self.last, now);
        self.began.is_some() && is_settled && now != self.began
    }
}

fn identity(path: &Utf8Path) -> Option<FileIdentity> {
    let found = std::fs::metadata(path).ok()?;
    (found.is_file() && found.mode() & 0o111 != 0 && found.len() > 0).then(|| FileIdentity {
        device: found.dev(),
        inode: found.ino(),
        size: found.len(),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_replaced_when_another_one_stays_in_its_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(directory.path()).expect("UTF-8");
        let program = path.join("program");
        let write = |name: &Utf8Path, text: &str| {
            std::fs::write(name, text).expect("written");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(name, mode).expect("set");
        };
        write(&program, "one");
        let mut watch = ProgramWatch::new(&program);
        assert!(!watch.is_replaced() && !watch.is_replaced());
        std::fs::remove_file(&program).expect("removed");
        assert!(!watch.is_replaced() && !watch.is_replaced());
        write(&path.join("new"), "two");
        std::fs::rename(path.join("new"), &program).expect("renamed");
        assert!(!watch.is_replaced());
        assert!(watch.is_replaced());
        let mut none = ProgramWatch::none();
        assert!(!none.is_replaced() && !none.is_replaced());
    }
}
