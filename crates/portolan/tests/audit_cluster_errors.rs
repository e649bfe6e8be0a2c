//! What `portolan audit cluster` says when a cluster cannot be audited: the server, the cause, and what to do.

mod portolan;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portolan::{Answer, portolan};
use portolan_testbed::{Authority, HttpServer, Reply, Request};
use tempfile::TempDir;

/// A kubeconfig with two contexts: `a` as told, and `broken` without a cluster.
fn kubeconfig(directory: &TempDir, server: &str, user: &str) -> String {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: a, cluster: {{server: \"{server}\"}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}, {{name: broken, context: {{cluster: none, user: a}}}}]\n\
         users: [{{name: a, user: {user}}}]\n"
    );
    write(directory, &text).display().to_string()
}

fn write(directory: &TempDir, text: &str) -> PathBuf {
    let file = directory.path().join("kubeconfig");
    std::fs::write(&file, text).expect("a file");
    file
}

fn audit(kubeconfig: &str, args: &[&str]) -> Answer {
    portolan(&[&["audit", "cluster", "--kubeconfig", kubeconfig], args].concat())
}

/// The exit code is 2, stdout is empty, and stderr says all of this.
fn check(answer: &Answer, words: &[&str]) {
    assert_eq!(answer.code, 2, "{answer}");
    assert_eq!(answer.stdout, "", "{answer}");
    for word in words {
        assert!(answer.stderr.contains(word), "`{word}` is not in {answer}");
    }
}

#[test]
fn a_server_that_does_not_listen_is_told_with_its_address() {
    let directory = tempfile::tempdir().unwrap();
    let address = "https://127.0.0.1:1";
    let answer = audit(&kubeconfig(&directory, address, "{token: t}"), &[]);
    check(
        &answer,
        &[address, "Connection refused", "hint:", "--context"],
    );
}

#[test]
fn a_name_that_nobody_knows_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let address = "https://nowhere.invalid:6443";
    let answer = audit(&kubeconfig(&directory, address, "{token: t}"), &[]);
    check(&answer, &[address, "lookup", "hint:"]);
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_told() {
    let server = HttpServer::start_tls(&Authority::new(), |_| Reply::ok("{}"));
    let directory = tempfile::tempdir().unwrap();
    let answer = audit(&kubeconfig(&directory, &server.url(), "{token: t}"), &[]);
    check(
        &answer,
        &[&server.url(), "certificate", "certificate-authority"],
    );
}

#[test]
fn a_server_that_is_slow_is_given_up() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let server = HttpServer::start(move |_| {
        // Ends when the test drops its end.
        let _ = wait.lock().map(|wait| wait.recv());
        Reply::status(200)
    });
    let directory = tempfile::tempdir().unwrap();
    let config = kubeconfig(&directory, &server.url(), "{token: t}");
    let answer = audit(&config, &["--timeout", "1"]);
    check(
        &answer,
        &[&server.url(), "/version", "within 1 s", "--timeout"],
    );
    drop(release);
}

#[test]
fn a_refusal_is_told_with_what_to_do() {
    for (status, words) in [
        (401, &["401", "/version", "log in again"][..]),
        (403, &["403", "deploy/audit/rbac.yaml", "--only live"]),
        (500, &["500", "busy or in trouble"]),
        (429, &["429", "busy or in trouble"]),
    ] {
        let server = HttpServer::start(move |_| Reply::status(status).header("retry-after", "0"));
        let directory = tempfile::tempdir().unwrap();
        let config = kubeconfig(&directory, &server.url(), "{token: t}");
        check(&audit(&config, &[]), words);
    }
}

#[test]
fn what_is_no_api_server_is_told() {
    let server = HttpServer::start(|_| Reply::ok("<html>hello</html>"));
    let directory = tempfile::tempdir().unwrap();
    let config = kubeconfig(&directory, &server.url(), "{token: t}");
    check(
        &audit(&config, &[]),
        &["cannot understand the answer to `/version`"],
    );
}

/// Least privilege: a list that is forbidden is a warning, and the others are still read.
#[test]
fn a_list_that_is_forbidden_is_a_warning() {
    let server = HttpServer::start(|request: &Request| match request.path() {
        "/version" => json(r#"{"gitVersion": "v1.36.3"}"#),
        "/api/v1" => json(
            r#"{"resources": [{"name": "endpoints", "kind": "Endpoints", "namespaced": true, "verbs": ["list"]}]}"#,
        ),
        "/apis" => json(r#"{"groups": []}"#),
        "/metrics" | "/api/v1/endpoints" => Reply {
            status: 403,
            ..json(r#"{"message": "nobody may list it"}"#)
        },
        path => panic!("{path}"),
    });
    let directory = tempfile::tempdir().unwrap();
    let config = kubeconfig(&directory, &server.url(), "{token: t}");
    let answer = audit(&config, &["--only", "live"]);
    assert_eq!(answer.code, 0, "{answer}");
    for word in [
        "v1 endpoints cannot be listed",
        "nobody may list it",
        "metrics cannot be read",
    ] {
        assert!(answer.stderr.contains(word), "{answer}");
    }
}

#[test]
fn credentials_that_cannot_be_got_are_told() {
    let server = HttpServer::start(|_| Reply::ok("{}"));
    let directory = tempfile::tempdir().unwrap();
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-helper, interactiveMode: Never}}";
    let answer = audit(&kubeconfig(&directory, &server.url(), user), &[]);
    check(&answer, &["`no-such-helper`", "No such file"]);
    for (script, words) in [
        ("yes", "wrote more than 1048576 bytes and was ended"),
        (
            "echo PLANTED; echo log in first >&2; exit 1",
            "log in first",
        ),
        ("exit 4", "exit status: 1"),
    ] {
        let user = format!(
            "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, '{script}'], interactiveMode: Never}}}}"
        );
        let answer = audit(&kubeconfig(&directory, &server.url(), &user), &[]);
        check(&answer, &["`sh`", words]);
        assert!(!answer.stderr.contains("PLANTED"), "{answer}");
    }
}

#[test]
fn a_kubeconfig_that_is_not_there_or_lacks_the_context_is_told() {
    check(&audit("/nowhere", &[]), &["/nowhere", "--kubeconfig"]);
    let directory = tempfile::tempdir().unwrap();
    let config = kubeconfig(&directory, "https://127.0.0.1:1", "{token: t}");
    check(&audit(&config, &["--context", "b"]), &["`b`", "--context"]);
    check(
        &audit(&config, &["--context", "broken"]),
        &["none", "--context"],
    );
}

/// Neither a kubeconfig nor a pod.
#[test]
fn without_any_cluster_the_places_are_told() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["audit", "cluster"])
        .env("HOME", home.path())
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let answer = Answer::of(&output);
    check(&answer, &["--kubeconfig", "~/.kube/config"]);
}

#[test]
fn a_kubeconfig_that_is_broken_is_told_without_what_stands_in_it() {
    let directory = tempfile::tempdir().unwrap();
    for text in ["users:\n- user: {token: planted\n", "users: planted\n"] {
        let file: &Path = &write(&directory, text);
        let answer = audit(&file.display().to_string(), &[]);
        check(&answer, &["kubeconfig cannot be read"]);
        assert!(!answer.stderr.contains("planted"), "{answer}");
    }
}

fn json(text: &str) -> Reply {
    Reply::ok(text).header("content-type", "application/json")
}
