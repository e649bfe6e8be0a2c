//! Tests of what no request can cause.

use portolan_store::{Embedded, EmbeddedOptions, Ownership};

use super::*;
use crate::clock::SystemTimeSource;

async fn objects(directory: &tempfile::TempDir) -> Objects {
    let path = directory.path().join("store.redb");
    let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("a store");
    let store = Store::new(Arc::new(engine));
    Objects {
        incarnation: Arc::new(Incarnation::open(&store).await.expect("an incarnation")),
        store,
        time: Arc::new(SystemTimeSource),
        sealer: None,
    }
}

fn namespace(name: &str) -> KindObject {
    let kind = portolan_kinds::find_kind("Namespace").expect("a kind");
    KindObject::new(kind, name, None, json!({}))
}

/// A server that stood still while another one took over goes on with what it was about to write.
#[tokio::test]
async fn a_stale_owner_writes_nothing_and_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let objects = objects(&directory).await;
    let hour = std::time::Duration::from_hours(1);
    let mut owners = Vec::new();
    for name in ["old", "new"] {
        let (lease, _) = objects.store.grant(hour).await.expect("a lease");
        let claim = Ownership::claim(&objects.store, &objects.incarnation, 0, name, lease);
        let owned = claim.await.expect("an answer").expect("free");
        owners.push(Author {
            name: name.to_owned(),
            fence: Some(owned.fence()),
            ..Author::default()
        });
        if name == "old" {
            let create = objects.create(namespace("web"), &owners[0]).await;
            create.expect("it owns the shard");
            objects.store.revoke(lease).await.expect("ended");
        }
    }
    let [old, new] = &owners[..] else {
        unreachable!("two owners")
    };
    let key = key_of(&namespace("web"));
    let before = objects.get(&key).await.expect("read").expect("there");
    let status = || json!({"phase": "terminating", "remaining": 3});
    let mut update = before.object.clone();
    update.spec = json!({"description": "late"});
    let none = Preconditions::default();
    let refusals = [
        objects.create(namespace("late"), old).await.err(),
        objects.update(update, old).await.err(),
        objects.set_status(&key, status(), old).await.err(),
        objects.delete(&key, "web", &none, old).await.err(),
    ];
    for refused in refusals {
        let refused = refused.expect("the fence stops it");
        let told = "another server has taken over this work: nothing was written";
        assert_eq!(
            (refused.status.as_u16(), refused.message.as_str()),
            (503, told)
        );
    }
    let after = objects.get(&key).await.expect("read").expect("there");
    assert_eq!(after, before);
    let late = objects.get(&key_of(&namespace("late"))).await;
    assert_eq!(late.expect("read"), None);
    let written = objects.set_status(&key, status(), new).await;
    written.expect("the new owner writes");
}

#[tokio::test]
async fn a_status_that_its_kind_cannot_hold_is_an_error_and_not_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let objects = objects(&directory).await;
    let namespace = namespace("web");
    let key = key_of(&namespace);
    let author = Author::default();
    objects.create(namespace, &author).await.expect("created");

    let status = json!({"phase": "terminating", "remaining": 3});
    let written = objects.set_status(&key, status.clone(), &author).await;
    let written = written.expect("written").expect("an object");
    assert_eq!(written.object.status, status);

    let wrong = json!({"phase": "ended", "left": 3});
    let refused = objects.set_status(&key, wrong, &author).await;
    let refused = refused.expect_err("no such word").to_string();
    assert!(
        refused.contains("`phase`") && refused.contains("`left`"),
        "{refused}"
    );
    let kept = objects.get(&key).await.expect("read").expect("an object");
    assert_eq!(kept.object.status, status);
}
