//! The files that a program reads, by the patterns that name them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::{CopySpec, Entry, Node, Scan, ScanOptions, scan};
use portolan_layout::Run;

use super::{BuildSetup, ShipError};
use crate::task::Task;

/// Files of a directory that were read.
pub(crate) struct InputFiles {
    /// The directory.
    pub(crate) directory: Utf8PathBuf,
    /// What was found.
    pub(crate) found: Scan,
}

impl InputFiles {
    /// Reads the files of a directory that patterns name; all if there are none. What is known of files is kept under a
    /// name.
    pub(crate) fn read(
        setup: &BuildSetup,
        name: &str,
        directory: &str,
        patterns: &[String],
        run: &Run<'_>,
    ) -> Result<Self, ShipError> {
        let (directory, files) = setup.open(directory)?;
        // All is left out but what is named.
        let all = ["**".to_owned()].into_iter();
        let ignore = all.chain(patterns.iter().map(|pattern| format!("!{pattern}")));
        let copy = CopySpec {
            to: "/".to_owned(),
            ignore: if patterns.is_empty() {
                Vec::new()
            } else {
                ignore.collect()
            },
            ..CopySpec::default()
        };
        let never = setup.never_read(&directory);
        let memo = run.memo(name);
        let options = ScanOptions {
            ignore: &[],
            never: &never,
            memo: &memo,
            now: setup.now,
            threads: setup.threads,
        };
        let found = scan(&files, &[copy], &options)?;
        run.keep_memo(name, &found.memo);
        Ok(Self { directory, found })
    }

    /// A directory with these files and nothing else.
    pub(crate) fn copy(&self, task: &Task) -> Result<Utf8PathBuf, ShipError> {
        copy_files(&self.directory, &self.found, task)
    }
}

/// A directory with files that were found and nothing else; it goes with the task.
pub(super) fn copy_files(
    directory: &Utf8Path,
    found: &Scan,
    task: &Task,
) -> Result<Utf8PathBuf, ShipError> {
    let target = task.own_directory("inputs").map_err(at(task.scratch()))?;
    for Entry {
        path, node, mode, ..
    } in &found.entries
    {
        if task.is_cancelled() {
            return Err(ShipError::Cancelled);
        }
        let to = target.join(path);
        let made = match node {
            Node::Directory => fs::create_dir_all(&to),
            Node::Link(link) => symlink(link, &to),
            Node::File { source, .. } => fs::copy(directory.join(source), &to)
                .and_then(|_| fs::set_permissions(&to, fs::Permissions::from_mode(*mode))),
        };
        made.map_err(at(&to))?;
    }
    Ok(target)
}

fn at(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> ShipError {
    let path = path.to_owned();
    move |source| ShipError::File { path, source }
}
