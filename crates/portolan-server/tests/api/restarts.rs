//! What is there after a restart, and after a restore.

use std::sync::Arc;
use std::time::Duration;

use portolan_server::BackupOptions;
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::json;

use crate::bed::{VARIABLES, bed, bed_in, bed_with, eventually, variable};
use crate::watches::{next, seen, watch};

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_has_everything_and_watches_resume() {
    let first = bed().await;
    let (_, created) = first.post(VARIABLES, variable("a", json!({"x": 1}))).await;
    first.post(VARIABLES, variable("b", json!({"x": 1}))).await;
    let directory = first.stop().await;
    let second = bed_in(directory).await;
    assert_eq!(second.get(&format!("{VARIABLES}/a")).await.1, created);
    let version = created["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let mut stream = watch(&second, &format!("&resourceVersion={version}"), "*/*").await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("ADDED".to_owned(), "b".to_owned())
    );
    let (_, status) = second.get("/api/v1alpha/status").await;
    assert_eq!(status["store"]["engine"], "embedded");
    assert_eq!(second.get("/openapi.json").await.1["openapi"], "3.1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_makes_backups_and_says_how_old_they_are() {
    let backups = tempfile::tempdir().expect("a directory");
    let directory = tempfile::tempdir().expect("a directory");
    let bed = bed_with(directory, |options| {
        options.backups = Some(BackupOptions {
            directory: backups.path().join("daily"),
            every: Duration::from_secs(1),
            keep: 2,
        });
    })
    .await;
    let (status, created) = bed
        .post(VARIABLES, variable("region", json!({"region": "north"})))
        .await;
    assert_eq!(status, 201, "{created}");
    let version = created["metadata"]["resourceVersion"].as_str();
    let revision = version.and_then(|text| text.split_once('.')?.1.parse::<u64>().ok());
    let revision = revision.expect("a revision");
    eventually(|| async {
        let (_, status) = bed.get("/api/v1alpha/status").await;
        let last = &status["backup"]["last"];
        last["revision"]
            .as_u64()
            .is_some_and(|made| made >= revision)
            && last["ageSeconds"].is_u64()
            && status["warnings"] == json!([])
    })
    .await;
    bed.stop().await;
    let mut files: Vec<_> = std::fs::read_dir(backups.path().join("daily"))
        .expect("a directory")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "backup"))
        .collect();
    files.sort();
    assert!((1..=2).contains(&files.len()), "{files:?}");
    let file = files.pop().expect("a backup");
    // A new server begins where the backup was made.
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Embedded::open(
        &directory.path().join("store.redb"),
        EmbeddedOptions::default(),
    );
    let store = Store::new(Arc::new(engine.expect("a store")));
    portolan_store::restore_file(&store, &file)
        .await
        .expect("restored");
    let kept = store
        .get("/portolan/v1/object/variables/default/region/spec")
        .await;
    assert!(
        kept.expect("read").is_some(),
        "the variable is in the backup"
    );
}
