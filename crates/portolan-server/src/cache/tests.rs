//! Tests of what would take a request too long to cause.

use bytes::Bytes;
use portolan_kinds::find_kind;
use portolan_kinds::wire::StoredObject;
use portolan_store::{Embedded, EmbeddedOptions};
use prost::Message as _;
use serde_json::json;

use super::*;
use crate::clock::SystemTimeSource;
use crate::field_selector::ObjectFilter;
use crate::watching::{MessageKind, ObjectWatch, WatchQuery};

async fn cache(directory: &tempfile::TempDir) -> Cache {
    let path = directory.path().join("store.redb");
    let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("a store");
    let store = Store::new(Arc::new(engine));
    let incarnation = Arc::new(Incarnation::open(&store).await.expect("an incarnation"));
    let clocks = ServerClocks::new("a", Arc::new(SystemTimeSource));
    // Nothing follows the store from here on: changes come from the tests.
    let started = Cache::start(&store, incarnation, clocks, 1).await;
    started.expect("a cache").0
}

fn event(name: &str, revision: Revision, text: &str, owner: Option<&str>) -> Event {
    let kind = find_kind("Variable").expect("a kind");
    let mut object = KindObject::new(kind, name, Some("default"), json!({"values": {"a": text}}));
    object.metadata.uuid = Some(format!("uuid-{name}"));
    object
        .metadata
        .labels
        .insert("tier".to_owned(), text[..1].to_owned());
    if let Some(owner) = owner {
        object.metadata.owners.push(portolan_kinds::wire::Owner {
            uuid: Some(format!("uuid-{owner}")),
            ..Default::default()
        });
    }
    let stored = StoredObject {
        metadata: Some(object.metadata.clone()),
        spec: object.spec_bytes().into(),
        ..StoredObject::default()
    };
    let key = ObjectKey::new(kind, Some("default"), name).spec();
    Event::Put(Record {
        key: key.into(),
        value: Bytes::from(stored.encode_to_vec()),
        create_revision: revision,
        mod_revision: revision,
        version: 1,
        lease: None,
    })
}

fn watch(cache: &Cache, labels: &str, after: Revision) -> ObjectWatch {
    let kind = find_kind("Variable").expect("a kind");
    let query = WatchQuery {
        kind,
        namespace: Some("default".to_owned()),
        filter: ObjectFilter::read(kind, labels, "").expect("a selector"),
    };
    ObjectWatch::after(cache.clone(), query, after)
}

#[tokio::test]
async fn a_watch_that_fell_behind_is_told_that_its_history_is_gone() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = cache(&directory).await;
    let start = cache.revision();
    let mut slow = watch(&cache, "", start);
    let large = "x".repeat(200 << 10);
    let count = (MAX_CHANGE_BYTES / large.len()) as Revision;
    for revision in start + 1..=start + count {
        cache.take(revision, &[event("large", revision, &large, None)]);
    }
    let kept = cache.counts().1 as u64;
    assert!(kept < count && kept > count / 4, "{kept} of {count}");
    let told = slow.next().await.expect("a message");
    assert_eq!(told.kind, MessageKind::Expired);
    assert!(slow.next().await.is_none(), "it is the last one");
    let mut fast = watch(&cache, "", start + count - 1);
    let told = fast.next().await.expect("a message");
    assert_eq!(told.kind, MessageKind::Modified);
}

/// Old changes are kept as bytes alone, and are told like new ones.
#[tokio::test]
async fn folded_changes_are_told_as_they_were() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = cache(&directory).await;
    let start = cache.revision();
    let all = 2 * MAX_OPEN_CHANGES as Revision;
    for number in 1..=all {
        let text = if number % 2 == 0 { "even" } else { "odd" };
        let revision = start + number;
        cache.take(
            revision,
            &[event(&format!("v-{number}"), revision, text, None)],
        );
    }
    let mut selected = watch(&cache, "tier=e", start);
    for number in (2..=all).step_by(2) {
        let told = selected.next().await.expect("a message");
        assert_eq!(told.kind, MessageKind::Added);
        let line = told.line();
        let line: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(line["object"]["metadata"]["name"], format!("v-{number}"));
        assert_eq!(line["object"]["spec"]["values"]["a"], "even");
        let position = portolan_store::Position {
            incarnation: cache.incarnation(),
            revision: start + number,
        };
        let version = &line["object"]["metadata"]["resourceVersion"];
        assert_eq!(version, &position.to_string());
    }
}

#[tokio::test]
async fn objects_whose_owners_are_gone_are_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = cache(&directory).await;
    let at = cache.revision();
    cache.take(at + 1, &[event("owner", at + 1, "o", None)]);
    cache.take(at + 2, &[event("owned", at + 2, "o", Some("owner"))]);
    cache.take(at + 3, &[event("free", at + 3, "o", None)]);
    assert!(cache.orphans(10).is_empty());
    assert_eq!(cache.dependents("uuid-owner", None), 1);
    assert_eq!(cache.in_namespace("default", 2).1, 3);
    assert_eq!(cache.in_namespace("default", 2).0.len(), 2);
    let Event::Put(gone) = event("owner", at + 4, "o", None) else {
        unreachable!("a put")
    };
    let deletion = Event::Delete {
        key: gone.key,
        mod_revision: at + 4,
    };
    cache.take(at + 4, &[deletion]);
    let orphans: Vec<String> = cache
        .orphans(10)
        .iter()
        .map(|one| one.name().to_owned())
        .collect();
    assert_eq!(orphans, ["owned"]);
    // An object of the same name is not the owner.
    let mut again = event("owner", at + 5, "o", None);
    if let Event::Put(record) = &mut again {
        let mut stored = StoredObject::decode(record.value.clone()).expect("an object");
        stored.metadata.get_or_insert_default().uuid = Some("another".to_owned());
        record.value = stored.encode_to_vec().into();
    }
    cache.take(at + 5, &[again]);
    assert_eq!(cache.orphans(10).len(), 1);
}
