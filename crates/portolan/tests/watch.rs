//! `portolan watch`: files are saved in every way, and what was told is compared.
//!
//! A test starts the command, waits until it says what it should, and only then goes on.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use portolan::repository::{HARBOR, kustomization, repository, write};
use portolan::wait_until;

/// A running `portolan watch`, ended with the test.
struct Watch {
    child: Child,
    stdout: Heard,
    stderr: Heard,
}

/// What was said so far.
type Heard = Arc<Mutex<String>>;

impl Watch {
    fn start(directory: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .arg("watch")
            .args(args)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stdout = listen(child.stdout.take().expect("it was asked for"));
        let stderr = listen(child.stderr.take().expect("it was asked for"));
        let watch = Self {
            child,
            stdout,
            stderr,
        };
        Self::wait_for(&watch.stderr, "watching ");
        watch
    }

    /// Waits until a stream has said something.
    fn wait_for(heard: &Heard, text: &str) {
        wait_until(|| heard.lock().expect("no panic").contains(text));
    }

    /// Takes what was said so far.
    fn taken(heard: &Heard) -> String {
        std::mem::take(&mut *heard.lock().expect("no panic"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stream: impl Read + Send + 'static) -> Heard {
    let heard = Heard::default();
    let said = Arc::clone(&heard);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut said = said.lock().expect("no panic");
            said.push_str(&line);
            said.push('\n');
        }
    });
    heard
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {colour: red}\n";

/// A cluster of two Kustomizations.
fn small() -> tempfile::TempDir {
    repository(&[
        (
            "cluster/flux-system/root.yaml",
            &kustomization("flux-system", "./cluster"),
        ),
        ("cluster/shop.yaml", &kustomization("shop", "./shop")),
        ("cluster/other.yaml", &kustomization("other", "./other")),
        ("shop/config.yaml", CONFIG),
        (
            "other/config.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: other}\n",
        ),
    ])
}

#[test]
fn a_saved_file_shows_what_changed_and_builds_only_what_it_reaches() {
    let dir = small();
    let watch = Watch::start(dir.path(), &[]);
    assert!(
        Watch::taken(&watch.stderr).contains("3 Kustomizations and 0 releases"),
        "all are built at first"
    );
    write(
        dir.path(),
        "shop/config.yaml",
        &CONFIG.replace("red", "green"),
    );
    Watch::wait_for(&watch.stdout, "green");
    let shown = Watch::taken(&watch.stdout);
    assert!(
        shown.contains("data.colour") && shown.contains("red"),
        "{shown}"
    );
    Watch::wait_for(
        &watch.stderr,
        "saved shop/config.yaml: built 1 Kustomization and 0 releases again",
    );
}

/// Editors write a new file and rename it over the old one.
#[test]
fn a_file_that_is_replaced_counts_as_saved() {
    let dir = small();
    let watch = Watch::start(dir.path(), &[]);
    write(
        dir.path(),
        "shop/.config.yaml.swp",
        &CONFIG.replace("red", "blue"),
    );
    fs::rename(
        dir.path().join("shop/.config.yaml.swp"),
        dir.path().join("shop/config.yaml"),
    )
    .unwrap();
    Watch::wait_for(&watch.stdout, "blue");
}

#[test]
fn broken_yaml_is_told_once_and_the_next_good_state_is_compared_with_the_last() {
    let dir = small();
    let watch = Watch::start(dir.path(), &[]);
    write(dir.path(), "shop/config.yaml", "data: [\n");
    Watch::wait_for(&watch.stderr, "error: Kustomization flux-system/shop");
    assert_eq!(
        Watch::taken(&watch.stdout),
        "",
        "nothing is taken for removed"
    );
    write(
        dir.path(),
        "shop/config.yaml",
        &CONFIG.replace("red", "green"),
    );
    Watch::wait_for(&watch.stderr, "fixed: Kustomization flux-system/shop");
    Watch::wait_for(&watch.stdout, "green");
    let shown = Watch::taken(&watch.stdout);
    assert!(
        shown.contains("red") && shown.contains("1 object changes"),
        "{shown}"
    );
}

#[test]
fn a_directory_that_goes_and_comes_back_is_followed() {
    let dir = small();
    let watch = Watch::start(dir.path(), &[]);
    fs::remove_dir_all(dir.path().join("shop")).unwrap();
    Watch::wait_for(&watch.stderr, "error: Kustomization flux-system/shop");
    write(
        dir.path(),
        "shop/config.yaml",
        &CONFIG.replace("red", "green"),
    );
    Watch::wait_for(&watch.stdout, "green");
}

/// A branch switch touches many files, and the root itself may be away for a moment.
#[test]
fn another_branch_is_shown_as_what_differs() {
    let dir = small();
    let watch = Watch::start(dir.path(), &[]);
    fs::rename(dir.path().join("cluster"), dir.path().join("away")).unwrap();
    Watch::wait_for(&watch.stderr, "error: ");
    fs::rename(dir.path().join("away"), dir.path().join("cluster")).unwrap();
    fs::remove_file(dir.path().join("cluster/other.yaml")).unwrap();
    write(
        dir.path(),
        "shop/config.yaml",
        &CONFIG.replace("red", "green"),
    );
    Watch::wait_for(&watch.stdout, "green");
    Watch::wait_for(&watch.stdout, "removed");
}

#[test]
fn a_value_of_a_release_renders_that_release_alone() {
    let dir = tempfile::tempdir().unwrap();
    copy(Path::new(HARBOR), dir.path());
    let watch = Watch::start(dir.path(), &["--path", "clusters/production"]);
    let values = dir.path().join("apps/base/beacon/values.yaml");
    let text = fs::read_to_string(&values).unwrap();
    fs::write(&values, text.replace("64Mi", "96Mi")).unwrap();
    Watch::wait_for(
        &watch.stderr,
        "saved apps/base/beacon/values.yaml: built 1 Kustomization and 1 release again",
    );
    Watch::wait_for(&watch.stdout, "96Mi");
}

#[test]
fn changes_are_documents_for_programs_on_request() {
    let dir = small();
    let watch = Watch::start(dir.path(), &["-o", "json"]);
    write(
        dir.path(),
        "shop/config.yaml",
        &CONFIG.replace("red", "green"),
    );
    Watch::wait_for(&watch.stdout, "\"changes\"");
    Watch::wait_for(&watch.stdout, "green");
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).expect("it can be made");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}
