//! The rows of the table of failures in `docs/server.md` that one server shows by itself. Killed servers, full disks and a lost
//! etcd are in `kills.rs`, `several.rs` and `servers.rs`; lost keys are in `secrets.rs`.

use portolan_store::EmbeddedOptions;
use serde_json::{Value, json};

use crate::bed::{VARIABLES, bed, bed_on, bed_with, eventually, variable};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_refuses_writes_and_goes_on_with_reads_and_deletions() {
    let small = EmbeddedOptions {
        max_bytes: 200 << 10,
        ..EmbeddedOptions::default()
    };
    let bed = bed_on(directory(), small, |_| ()).await;
    let filling = || variable("filling", json!({"text": "x".repeat(60 << 10)}));
    let first = bed.post(VARIABLES, filling()).await;
    assert_eq!(first.0, 201, "{}", first.1);
    let mut answer = (http::StatusCode::CREATED, Value::Null);
    for number in 0..10 {
        let mut body = filling();
        body["metadata"]["name"] = format!("filling-{number}").into();
        answer = bed.post(VARIABLES, body).await;
        if answer.0 != 201 {
            break;
        }
    }
    assert_eq!(answer.0, 507, "{}", answer.1);
    assert_eq!(answer.1["reason"], "StorageFull");
    let hint = answer.1["hint"].as_str().expect("a hint");
    assert!(hint.starts_with("delete what is not needed"), "{hint}");
    assert!(hint.contains("`portolan store compact`"), "{hint}");
    let path = format!("{VARIABLES}/filling");
    assert_eq!(bed.get(&path).await.0, 200);
    assert_eq!(bed.get(VARIABLES).await.0, 200);
    assert_eq!(bed.delete(&path).await.0, 200);
    assert_eq!(bed.get(&path).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_vault_only_its_secrets_are_missing() {
    let bed = bed_with(directory(), |options| {
        // Nobody listens there.
        let vault = options.vault.as_mut().expect("a vault");
        vault.address = "http://127.0.0.1:1".to_owned();
    })
    .await;
    let team = json!({
        "apiVersion": "v1alpha", "kind": "Namespace", "metadata": {"name": "team"},
        "spec": {"vaultPrefix": "secret/team"},
    });
    assert_eq!(bed.post("/api/v1alpha/namespaces", team).await.0, 201);
    let secrets = "/api/v1alpha/namespaces/team/secrets";
    let secret = |name: &str, spec: Value| json!({"apiVersion": "v1alpha", "kind": "Secret", "metadata": {"name": name}, "spec": spec});
    let of_vault = secret(
        "far",
        json!({"vault": {"path": "db", "keys": ["password"]}}),
    );
    assert_eq!(bed.post(secrets, of_vault).await.0, 201);
    let own = secret("near", json!({"values": {"password": "here"}}));
    assert_eq!(bed.post(secrets, own).await.0, 201);
    let (status, refused) = bed.get(&format!("{secrets}/far?reveal=true")).await;
    assert_eq!(status, 503, "{refused}");
    let (status, shown) = bed.get(&format!("{secrets}/near?reveal=true")).await;
    assert_eq!(
        (status.as_u16(), &shown["spec"]["values"]["password"]),
        (200, &json!("here"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_server_that_does_not_answer_is_told_and_what_was_applied_stays() {
    let bed = bed().await;
    let git = json!([{"verbs": ["create", "update"], "kinds": ["Variable"]}]);
    bed.user("git", git).await;
    assert_eq!(
        bed.post(VARIABLES, variable("region", json!({"region": "north"})))
            .await
            .0,
        201
    );
    let repository = json!({
        "apiVersion": "v1alpha", "kind": "Repository", "metadata": {"name": "main"},
        "spec": {"url": "https://127.0.0.1:1/fleet.git", "namespace": "default", "serviceAccount": "git", "interval": "1s"},
    });
    let made = bed.post("/api/v1alpha/repositories", repository).await;
    assert_eq!(made.0, 201, "{}", made.1);
    eventually(|| async {
        let (_, told) = bed.get("/api/v1alpha/repositories/main").await;
        told["status"]["error"]
            .as_str()
            .is_some_and(|error| error.contains("127.0.0.1"))
    })
    .await;
    assert_eq!(bed.get(&format!("{VARIABLES}/region")).await.0, 200);
}

/// The document promises a test for each row; a test that was renamed must be renamed there.
#[test]
fn every_row_of_the_table_of_failures_names_tests_that_exist() {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.join("../..");
    let document = std::fs::read_to_string(root.join("docs/server.md")).expect("a document");
    let (_, table) = document
        .split_once("| failure | what happens | test |\n")
        .expect("a table");
    let rows = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let mut count = 0;
    for row in rows {
        let tests = row
            .trim_end_matches([' ', '|'])
            .rsplit_once(" | ")
            .expect("a cell")
            .1;
        for one in tests.split("; ") {
            let mut parts = one.split('`').skip(1).step_by(2);
            let file = parts.next().expect("a file");
            let places = [
                own.join("tests").join(file),
                own.join(file),
                root.join(file),
            ];
            let text = places
                .iter()
                .find_map(|path| std::fs::read_to_string(path).ok());
            let faults = own.join("tests/servers/faults.rs");
            let faults = std::fs::read_to_string(faults).expect("a file");
            let text = text.unwrap_or_else(|| unreachable!("{row}: no file {file}"));
            for name in parts {
                let is_there = text.contains(&format!("fn {name}("))
                    || faults.contains(&format!("Fault::{name},"));
                assert!(is_there, "{row}: no {name} in {file}");
            }
            count += 1;
        }
    }
    assert!(count >= 14, "{count} tests");
}
