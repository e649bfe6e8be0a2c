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

/// A value as sops writes it.
fn enc(data: &str, kind: &str) -> String {
    format!("ENC[AES256_GCM,data:{data},iv:aXY=,tag:dGFn,type:{kind}]")
}

/// A repository whose Service, release and Secret were sealed, each value by the letters of its data.
fn sealed_scalars(data: &str) -> TempDir {
    let sops =
        "sops: {mac: 'ENC[AES256_GCM,data:bWFj,iv:aXY=,tag:dGFn,type:str]', version: 3.9.0}\n";
    let (number, truth, text) = (enc(data, "int"), enc(data, "bool"), enc(data, "str"));
    let directory = tempfile::tempdir().expect("a directory");
    let kustomization = portolan::repository::kustomization("apps", "./apps").replace(
        "spec: {",
        "spec: {interval: 10m, decryption: {provider: sops, secretRef: {name: age}}, ",
    );
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: apps}}\nspec:\n  publishNotReadyAddresses: {truth}\n  ports:\n  - port: {number}\n{sops}"
    );
    let release = format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: chart, namespace: apps}}\nspec:\n  interval: 1h\n  chart: {{spec: {{chart: ./chart, sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}\n  values:\n    port: {number}\n{sops}"
    );
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: apps}}\nstringData:\n  password: {text}\n  values.yaml: {text}\n  values.json: {text}\n{sops}"
    );
    let template = "apiVersion: v1\nkind: Service\nmetadata: {name: of-chart}\nspec: {ports: [{port: {{ int .Values.port }}, targetPort: {{ .Values.port }}}]}\n";
    let files = [
        ("cluster/apps.yaml", kustomization.as_str()),
        ("apps/service.yaml", &service),
        ("apps/release.yaml", &release),
        ("apps/secret.yaml", &secret),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
        ),
        ("chart/templates/service.yaml", template),
    ];
    for (name, text) in files {
        write(directory.path(), name, text);
    }
    directory
}

#[test]
fn sealed_numbers_and_booleans_are_hidden_and_not_judged_without_a_key() {
    let repository = sealed_scalars("YQ==");
    let built = run(repository.path(), None, &["build", "all"]);
    assert_eq!(built.code, 0, "{built}");
    for line in [
        "publishNotReadyAddresses: <hidden>\n",
        "  - port: <hidden>\n",
        "    targetPort: <hidden>\n",
    ] {
        assert!(built.stdout.contains(line), "{line}\n{built}");
    }
    assert!(!built.stdout.contains("86420975"), "{built}");
    let json = run(repository.path(), None, &["build", "all", "-o", "json"]);
    let json = json.stdout.replace([' ', '\n'], "");
    assert!(json.contains("\"port\":\"<hidden>\""), "{json}");
    let tested = run(repository.path(), None, &["test"]);
    assert_eq!(tested.code, 0, "{tested}");
    assert!(tested.stdout.ends_with(" 0 failed\n"), "{tested}");
}

#[test]
fn what_was_sealed_anew_is_a_change_of_unknown_content_without_a_key() {
    let (before, after) = (sealed_scalars("YQ=="), sealed_scalars("Yg=="));
    let before = before.path().join("cluster");
    let before = before.to_str().expect("UTF-8");
    let diff = |args: &[&str]| {
        let all = [&["diff", "--path-orig", before], args].concat();
        run(after.path(), None, &all)
    };
    let changed = diff(&[]);
    assert_eq!(changed.code, 1, "{changed}");
    for part in [
        "Secret apps/login",
        "stringData.password",
        "stringData.\"values.yaml\"",
        "stringData.\"values.json\"",
        "Service apps/web",
        "Service apps/of-chart",
    ] {
        assert!(changed.stdout.contains(part), "{part}\n{changed}");
    }
    assert!(!changed.stdout.contains("86420975"), "{changed}");
    let same = run(after.path(), None, &["diff", "--path-orig", "cluster"]);
    assert_eq!(same.code, 0, "{same}");
}
