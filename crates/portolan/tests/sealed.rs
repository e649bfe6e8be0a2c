//! Files that sops encrypted, opened with age keys; and that nothing of them is shown to whoever did not ask.

mod portolan;

use std::path::Path;
use std::process::{Command, Stdio};

use portolan::Answer;
use portolan::repository::write;
use tempfile::TempDir;

const SEALED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sealed");
const KEYS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../portolan-sops/tests/fixtures"
);

/// Every secret of the repository has this in it.
const PLANTED: &str = "planted";
/// The same in base64, wherever it begins among three bytes.
const ENCODED: [&str; 3] = ["cGxhbnRlZ", "BsYW50ZW", "wbGFudGVk"];

/// A copy of the repository that a test may change.
fn copied() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    copy(Path::new(SEALED), directory.path());
    directory
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a file");
        }
    }
}

/// Runs in a repository, with the key file of this name or none.
fn run(repository: &Path, key: Option<&str>, args: &[&str]) -> Answer {
    logged(repository, key, args, "")
}

fn logged(repository: &Path, key: Option<&str>, args: &[&str], log: &str) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .args(args)
        .args(["--repo", ".", "--path", "cluster", "--offline"])
        .current_dir(repository)
        .env("HOME", repository)
        .env("PORTOLAN_LOG", log)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("SOPS_AGE_KEY")
        .env_remove("SOPS_AGE_KEY_FILE")
        .stdin(Stdio::null());
    if let Some(key) = key {
        command.env("SOPS_AGE_KEY_FILE", format!("{KEYS}/{key}"));
    }
    Answer::of(
        &command
            .output()
            .expect("the binary was built with this test"),
    )
}

fn sealed(key: Option<&str>, args: &[&str]) -> Answer {
    run(Path::new(SEALED), key, args)
}

fn shows_secrets(text: &str) -> bool {
    text.contains(PLANTED) || ENCODED.iter().any(|code| text.contains(code))
}

#[test]
fn objects_files_and_patches_are_opened_with_the_key() {
    let answer = sealed(Some("key.txt"), &["build", "all", "--show-secrets"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
    assert!(!answer.stdout.contains("ENC["), "{answer}");
    for line in [
        "password: planted-Passw0rd",
        "number: \"12345678901\"",
        "sealed: planted-by-patch-9",
        "where: harbour",
        "host: app.planted-domain.example",
        "url: https://user:plantedTokenXYZ@app.planted-domain.example/",
        "password: planted-in-values-7",
        // planted-env-token-5, planted-binary-content-3
        "ENV_TOKEN: cGxhbnRlZC1lbnYtdG9rZW4tNQ==",
        "token.bin: cGxhbnRlZC1iaW5hcnktY29udGVudC0zCg==",
        "planted-json-value-4",
    ] {
        assert!(answer.stdout.contains(line), "{line}\n{answer}");
    }
}

#[test]
fn without_a_key_everything_is_built_with_placeholders() {
    let answer = sealed(None, &["build", "all"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(
        answer
            .stderr
            .contains("built with placeholders, for want of an age key (--age-key-file)"),
        "{answer}"
    );
    assert!(answer.stdout.contains("host: app.placeholder"), "{answer}");
    assert!(!answer.stdout.contains("ENC["), "{answer}");
}

/// As Flux's own tools have it without a key.
#[test]
fn without_a_key_secrets_that_are_shown_are_shown_as_written() {
    let answer = sealed(None, &["build", "all", "--show-secrets"]);
    assert_eq!(answer.code, 0, "{answer}");
    let told = "left as written, for want of an age key (--age-key-file)";
    assert!(answer.stderr.contains(told), "{answer}");
    let host = "host: app.ENC[AES256_GCM,data:";
    assert!(answer.stdout.contains(host), "{answer}");
    assert!(!answer.stdout.contains("placeholder"), "{answer}");
}

#[test]
fn a_key_may_be_named_on_the_command_line() {
    let key = format!("{KEYS}/key.txt");
    let args = [
        "build",
        "ks",
        "web",
        "--show-secrets",
        "--age-key-file",
        &key,
    ];
    let answer = sealed(None, &args);
    assert!(
        answer.stdout.contains("app.planted-domain.example"),
        "{answer}"
    );
}

#[test]
fn a_wrong_key_is_an_error_that_names_the_file_and_the_recipient() {
    let answer = sealed(Some("other-key.txt"), &["build", "all"]);
    assert_eq!(answer.code, 1, "{answer}");
    for text in [
        "error: Kustomization flux-system/apps",
        "apps/",
        "none of the given age keys",
        "age1p78x",
    ] {
        assert!(answer.stderr.contains(text), "{text}\n{answer}");
    }
}

#[test]
fn a_file_that_was_changed_after_it_was_sealed_is_an_error() {
    let repository = copied();
    let path = repository.path().join("apps/secret.yaml");
    let text = std::fs::read_to_string(&path).expect("a file");
    write(
        repository.path(),
        "apps/secret.yaml",
        &text.replace("name: sealed", "name: pirated"),
    );
    let answer = run(repository.path(), Some("key.txt"), &["build", "all"]);
    assert_eq!(answer.code, 1, "{answer}");
    for text in [
        "apps/secret.yaml",
        "message authentication code does not match",
    ] {
        assert!(answer.stderr.contains(text), "{text}\n{answer}");
    }
}

/// Every command in every form, with everything that it writes; errors included.
#[test]
fn nothing_that_was_sealed_is_ever_shown_unasked() {
    let repository = copied();
    // The chart complains with its password in the message.
    let release =
        std::fs::read_to_string(repository.path().join("web/release.yaml")).expect("a file");
    let failing = release.replace("name: web,", "name: failing,") + "  values: {fail: true}\n";
    write(repository.path(), "web/failing.yaml", &failing);
    let older = copied();
    std::fs::remove_file(older.path().join("web/web.yaml")).expect("a file");
    let before = older.path().to_str().expect("UTF-8");
    let rendered = repository.path().join("rendered");
    let events = repository.path().join("events.json");
    let (rendered, events) = (
        rendered.to_str().expect("UTF-8"),
        events.to_str().expect("UTF-8"),
    );
    let mut commands = vec![
        vec!["build", "all"],
        vec!["build", "all", "-v", "--provenance"],
        vec!["build", "all", "-vv", "--events", events],
        vec!["build", "all", "--events", "-"],
        vec!["build", "all", "--output-dir", rendered],
        vec!["get", "ks", "--tree"],
        vec!["get", "objects", "--tree"],
        vec!["get", "hr", "--graph", "dot"],
        vec!["fetch"],
        vec!["test"],
        vec!["test", "-o", "json"],
        vec!["diff", "--path-orig", before],
        vec!["diff", "--path-orig", before, "-o", "json"],
        vec!["explain", "cm/web", "-n", "web"],
        vec!["explain", "cm/web.data.url", "-n", "web"],
    ];
    for what in ["ks", "hr", "sources", "images", "charts", "objects"] {
        for format in ["table", "wide", "yaml", "json", "name"] {
            commands.push(vec!["get", what, "-o", format]);
        }
    }
    for command in commands {
        let answer = logged(repository.path(), Some("key.txt"), &command, "trace");
        assert!(!shows_secrets(&answer.stdout), "{command:?}\n{answer}");
        assert!(!shows_secrets(&answer.stderr), "{command:?}\n{answer}");
        if command[0] == "build" {
            assert!(
                answer.stderr.contains("cannot go on with <hidden>"),
                "{command:?}\n{answer}"
            );
        }
    }
    let written = std::fs::read_to_string(events).expect("events");
    assert!(
        written.contains("cannot go on with") && !shows_secrets(&written),
        "{written}"
    );
    assert_no_secrets(Path::new(rendered));
}

fn assert_no_secrets(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            assert_no_secrets(&path);
        } else {
            let text = std::fs::read_to_string(&path).expect("a file");
            assert!(!shows_secrets(&text), "{}\n{text}", path.display());
        }
    }
}
