//! A root for one test, and the rules that every module keeps: a check changes nothing and predicts the apply, and a
//! second apply changes nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::{
    Action, Applied, Host, ModuleError, ParameterFault, Plan, PlannedOutcome, Root, View,
    find_module,
};
use serde_json::{Map, Value};

/// A directory that stands for `/`, and a directory beside it that nothing may touch.
pub(crate) struct Bed {
    _directory: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) outside: Utf8PathBuf,
    pub(crate) host: Host,
}

impl Bed {
    /// A root with empty directories.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(directory.path().to_owned()).unwrap();
        let path = path.canonicalize_utf8().unwrap();
        let (root, outside) = (path.join("root"), path.join("outside"));
        for name in ["etc", "home", "srv", "tmp", "var", "run"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "untouched").unwrap();
        let host = Host::local(Arc::new(Root::other(&root).unwrap()));
        Self {
            _directory: directory,
            root,
            outside,
            host,
        }
    }

    /// A root with the accounts of a small system.
    pub(crate) fn with_accounts() -> Self {
        let bed = Self::new();
        bed.write(
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n",
        );
        bed.write(
            "etc/group",
            "root:x:0:\ndaemon:x:1:\nadm:x:4:\nsudo:x:27:\nusers:x:100:\n",
        );
        bed.write(
            "etc/shadow",
            "root:*:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
        );
        bed.write(
            "etc/gshadow",
            "root:*::\ndaemon:*::\nadm:*::\nsudo:*::\nusers:*::\n",
        );
        bed.write("etc/login.defs", "UID_MIN 1000\nUID_MAX 60000\nSYS_UID_MIN 100\nSYS_UID_MAX 999\nGID_MIN 1000\nGID_MAX 60000\nSYS_GID_MIN 100\nSYS_GID_MAX 999\nUSERGROUPS_ENAB yes\nHOME_MODE 0750\n");
        bed.write("etc/skel/.profile", "# new\n");
        bed
    }

    /// Writes a file below the root.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The content of a file below the root.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// What a plan of a step says.
    pub(crate) fn plan(&self, module: &str, parameters: &Value) -> Result<Plan, ModuleError> {
        action(module, parameters).plan(&View::of(&self.host))
    }

    /// Plans and applies a step, and holds it to the rules of all modules.
    #[track_caller]
    pub(crate) fn apply(
        &self,
        module: &str,
        parameters: &Value,
    ) -> Result<(Plan, Applied), ModuleError> {
        let action = action(module, parameters);
        let outside = tree(&self.outside);
        let before = tree(&self.root);
        let plan = action.plan(&View::of(&self.host));
        assert_same(&tree(&self.root), &before, "a plan changes nothing");
        let plan = plan?;
        let applied = action.apply(&self.host, &plan);
        assert_same(&tree(&self.outside), &outside, "nothing outside is touched");
        let applied = applied?;
        match &plan.outcome {
            PlannedOutcome::Unchanged => {
                assert!(!applied.is_changed, "a check that says unchanged is kept");
                assert_same(&tree(&self.root), &before, "unchanged changes nothing");
            }
            PlannedOutcome::Change(changes) => {
                assert!(!changes.is_empty());
                assert!(applied.is_changed, "a check that says change is kept");
            }
            PlannedOutcome::Unknown { .. } | PlannedOutcome::Skipped { .. } => {}
        }
        action.verify(&self.host)?;
        Ok((plan, applied))
    }

    /// As [`apply`](Self::apply), and once more, which changes nothing.
    #[track_caller]
    pub(crate) fn converge(&self, module: &str, parameters: &Value) -> (Plan, Applied) {
        let first = self.apply(module, parameters).unwrap();
        let after = tree(&self.root);
        let (plan, second) = self.apply(module, parameters).unwrap();
        assert!(
            matches!(plan.outcome, PlannedOutcome::Unchanged),
            "{:?}",
            plan.outcome
        );
        assert!(!second.is_changed);
        assert_same(&tree(&self.root), &after, "a second apply changes nothing");
        first
    }

    /// The message of a step that fails, and its hint.
    #[track_caller]
    pub(crate) fn fails(&self, module: &str, parameters: &Value) -> String {
        let before = tree(&self.root);
        let error = self.apply(module, parameters).unwrap_err();
        let why = "a step that fails in its plan changes nothing";
        assert_same(&tree(&self.root), &before, why);
        match error.hint() {
            Some(hint) => format!("{error} ({hint})"),
            None => error.to_string(),
        }
    }
}

/// The work of a step whose parameters are right.
#[track_caller]
pub(crate) fn action(module: &str, parameters: &Value) -> Box<dyn Action> {
    read(module, parameters).unwrap_or_else(|faults| panic!("{module}: {faults:?}"))
}

/// The faults of parameters, one on each line.
#[track_caller]
pub(crate) fn faults(module: &str, parameters: &Value) -> String {
    let faults = read(module, parameters)
        .err()
        .expect("the parameters are wrong");
    faults
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn read(module: &str, parameters: &Value) -> Result<Box<dyn Action>, Vec<ParameterFault>> {
    let values: &Map<String, Value> = parameters.as_object().unwrap();
    find_module(module).unwrap().read(values)
}

/// Compares two trees and shows only what differs.
#[track_caller]
fn assert_same(now: &[String], before: &[String], rule: &str) {
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        let other = |line: &&String| !those.contains(line);
        these.iter().filter(other).cloned().collect()
    };
    assert!(
        now == before,
        "{rule}: {:#?} became {:#?}",
        only(before, now),
        only(now, before)
    );
}

/// Everything below a directory: names, kinds, permissions, owners and contents.
pub(crate) fn tree(directory: &Utf8Path) -> Vec<String> {
    let mut lines = Vec::new();
    collect(directory.as_std_path(), &mut lines);
    lines.sort_unstable();
    lines
}

fn collect(path: &std::path::Path, lines: &mut Vec<String>) {
    let found = fs::symlink_metadata(path).unwrap();
    let content = match found.file_type() {
        kind if kind.is_symlink() => fs::read_link(path).unwrap().display().to_string(),
        kind if kind.is_file() => {
            let content = fs::read(path).unwrap();
            format!(
                "{} bytes, {}",
                content.len(),
                portolan_digest::Digest::of(&content)
            )
        }
        _ => String::new(),
    };
    let (mode, uid, gid) = (found.permissions().mode(), found.uid(), found.gid());
    lines.push(format!("{} {mode:o} {uid}:{gid} {content}", path.display()));
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), lines);
        }
    }
}

/// Whether the tests run as root; when not, those that make users and namespaces are skipped, but not in CI.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub(crate) fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        assert!(
            std::env::var_os("CI").is_none(),
            "only root can make users and namespaces"
        );
        eprintln!("SKIPPED: only root can make users and namespaces");
    }
    is_root
}

/// Runs a test again inside new namespaces, and returns whether this is that second run.
///
/// A test of the machine itself begins with `if !in_namespace("its::name", &["--uts"]) { return; }`.
#[track_caller]
pub(crate) fn in_namespace(test: &str, options: &[&str]) -> bool {
    const MARK: &str = "PORTOLAN_TEST_NAMESPACE";
    if std::env::var_os(MARK).is_some_and(|name| name == test) {
        return true;
    }
    if !is_root() {
        return false;
    }
    let output = Command::new("unshare")
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(MARK, test)
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("1 passed"),
        "`{test}` is the name of the test: {text}"
    );
    false
}
