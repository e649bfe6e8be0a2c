//! A root directory for tests of modules, with a file outside it that nobody may touch and files of a book.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::{
    Action, Applied, BookFileError, BookFiles, Host, ModuleError, ParameterFault, Plan,
    PlannedOutcome, Root, View, find_module,
};
use serde_json::Value;

pub(crate) struct Bed {
    directory: tempfile::TempDir,
    pub(crate) host: Host,
}

/// Files of a book, in memory.
#[derive(Default)]
pub(crate) struct MemoryFiles(pub(crate) BTreeMap<Utf8PathBuf, Arc<[u8]>>);

impl BookFiles for MemoryFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| BookFileError::Missing(path.to_owned()))
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let below = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(directory).ok());
        Ok(below.map(Utf8Path::to_owned).collect())
    }
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::with_files(&[])
    }

    pub(crate) fn with_files(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let path = Utf8Path::from_path(directory.path()).expect("a path of UTF-8");
        fs::create_dir_all(path.join("root/etc")).expect("a root directory");
        fs::create_dir(path.join("outside")).expect("a directory outside");
        fs::write(path.join("outside/sentinel"), "untouched").expect("a file outside");
        fs::write(
            path.join("root/etc/passwd"),
            "root:x:0:0::/root:/bin/sh\nweb:x:12345:12346::/:/bin/sh\n",
        )
        .expect("users");
        fs::write(path.join("root/etc/group"), "root:x:0:\nweb:x:12346:\n").expect("groups");
        let root = Arc::new(Root::other(&path.join("root")).expect("a root directory"));
        let files = files
            .iter()
            .map(|(name, content)| (Utf8PathBuf::from(*name), Arc::from(*content)));
        let host = Host {
            book_files: Arc::new(MemoryFiles(files.collect())),
            book: "web".to_owned(),
            step: "config".to_owned(),
            ..Host::local(root)
        };
        Self { directory, host }
    }

    /// A path below the root, on this machine.
    pub(crate) fn path(&self, path: &str) -> Utf8PathBuf {
        self.host.root.machine_path(path.into())
    }

    pub(crate) fn outside(&self) -> Utf8PathBuf {
        let path = Utf8Path::from_path(self.directory.path()).expect("a path of UTF-8");
        path.canonicalize_utf8()
            .expect("the directory is there")
            .join("outside")
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        fs::write(self.path(path), content).expect("a file of the test");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a file of the test")
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        let found = fs::symlink_metadata(self.path(path)).expect("a file of the test");
        found.permissions().mode() & 0o7777
    }

    /// Everything below the root, with times: a check must leave it as it is.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut lines = Vec::new();
        describe(&self.path("/"), &mut lines, true);
        lines
    }

    pub(crate) fn plan(&self, module: &str, parameters: &Value) -> Result<Plan, ModuleError> {
        let before = self.tree();
        let plan = action(module, parameters).plan(&View::of(&self.host));
        assert_eq!(self.tree(), before, "a check changes nothing");
        plan
    }

    /// Checks, applies, verifies, and looks that a second apply changes nothing. Returns what was planned and done.
    pub(crate) fn converge(
        &self,
        module: &str,
        parameters: &Value,
    ) -> Result<(Plan, Applied), ModuleError> {
        let action = action(module, parameters);
        let plan = self.plan(module, parameters)?;
        let applied = action.apply(&self.host, &plan)?;
        assert_eq!(
            applied.is_changed,
            matches!(plan.outcome, PlannedOutcome::Change(_)),
            "{parameters}"
        );
        action.verify(&self.host)?;
        let after = self.tree();
        let again = self.plan(module, parameters)?;
        assert!(
            matches!(again.outcome, PlannedOutcome::Unchanged),
            "{parameters}: {:?}",
            again.outcome
        );
        let second = action.apply(&self.host, &again)?;
        assert!(!second.is_changed);
        assert_eq!(self.tree(), after, "a second apply changes nothing");
        self.assert_outside_untouched();
        Ok((plan, applied))
    }

    pub(crate) fn assert_outside_untouched(&self) {
        let mut lines = Vec::new();
        describe(&self.outside(), &mut lines, false);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let sentinel = self.outside().join("sentinel");
        assert_eq!(
            fs::read_to_string(sentinel).expect("the sentinel"),
            "untouched"
        );
    }
}

/// The action of a module with these parameters, which must be right.
pub(crate) fn action(module: &str, parameters: &Value) -> Box<dyn Action> {
    read(module, parameters)
        .map_err(|faults| format!("{parameters}: {faults:?}"))
        .expect("parameters that are right")
}

/// Reads parameters of a module.
pub(crate) fn read(
    module: &str,
    parameters: &Value,
) -> Result<Box<dyn Action>, Vec<ParameterFault>> {
    let definition = find_module(module).expect("a module");
    definition.read(parameters.as_object().expect("a map of parameters"))
}

/// What is wrong with parameters, as one text.
pub(crate) fn faults(module: &str, parameters: &Value) -> String {
    let faults = read(module, parameters).err().unwrap_or_default();
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// The error of a step as people see it.
pub(crate) fn shown(error: &ModuleError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; hint: {hint}"),
        None => error.to_string(),
    }
}

/// All diffs of a plan.
pub(crate) fn diffs(plan: &Plan) -> String {
    plan.changes()
        .iter()
        .map(|change| change.diff.as_str())
        .collect()
}

fn describe(path: &Utf8Path, lines: &mut Vec<String>, with_times: bool) {
    let found = fs::symlink_metadata(path).expect("something in the tree");
    let time = if with_times {
        (found.mtime(), found.mtime_nsec())
    } else {
        (0, 0)
    };
    let content = if found.is_file() {
        format!("{:?}", fs::read(path).expect("a readable file"))
    } else if found.is_symlink() {
        fs::read_link(path).expect("a link").display().to_string()
    } else {
        String::new()
    };
    lines.push(format!(
        "{path} {:o} {}:{} {} {time:?} {content}",
        found.mode(),
        found.uid(),
        found.gid(),
        found.ino()
    ));
    if found.is_dir() {
        let entries = path.read_dir_utf8().expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").into_path())
            .collect();
        names.sort();
        for name in names {
            describe(&name, lines, with_times);
        }
    }
}
