//! Tests of what no request can cause.

use portolan_store::{Embedded, EmbeddedOptions};

use super::*;
use crate::clock::SystemTimeSource;

#[tokio::test]
async fn a_status_that_its_kind_cannot_hold_is_an_error_and_not_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("a store");
    let store = Store::new(Arc::new(engine));
    let objects = Objects {
        incarnation: Arc::new(Incarnation::open(&store).await.expect("an incarnation")),
        store,
        time: Arc::new(SystemTimeSource),
        sealer: None,
    };
    let kind = portolan_kinds::find_kind("Namespace").expect("a kind");
    let namespace = KindObject::new(kind, "web", None, json!({}));
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
