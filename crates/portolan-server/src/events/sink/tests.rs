//! A queue that is too short, and events that come again.

use portolan_store::{Embedded, EmbeddedOptions, Incarnation, ShardLayout, Store};

use super::*;
use crate::clock::SystemTimeSource;
use crate::events::EventWriter;
use crate::field_selector::ObjectFilter;
use crate::objects::Objects;
use crate::page::ListQuery;
use crate::server_clocks::ServerClocks;

/// Events that can be written, and their tasks.
async fn events(directory: &tempfile::TempDir) -> (Events, JoinSet<()>) {
    let path = directory.path().join("store.redb");
    let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("a store");
    let store = Store::new(Arc::new(engine));
    let incarnation = Arc::new(Incarnation::open(&store).await.expect("an incarnation"));
    let objects = Objects {
        incarnation: Arc::clone(&incarnation),
        store: store.clone(),
        time: Arc::new(SystemTimeSource),
        sealer: None,
    };
    let kind = find_kind("Namespace").expect("a kind");
    let system = KindObject::new(kind, "system", None, json!({}));
    let made = objects.create(system, &author()).await.expect("made");
    let clocks = ServerClocks::new("a", Arc::new(SystemTimeSource));
    let started = Cache::start(&store, incarnation, clocks, made.revision()).await;
    let (cache, feed) = started.expect("a cache");
    let layout = ShardLayout::new(1);
    let (writer, batches) = EventWriter::new(objects.clone(), cache.clone(), layout, "test");
    let mut tasks = JoinSet::new();
    tasks.spawn(feed.run());
    tasks.spawn(batches.run());
    let events = Events {
        objects,
        cache,
        writer,
    };
    (events, tasks)
}

async fn stored(events: &Events) -> Vec<Value> {
    let kind = find_kind("Event").expect("a kind");
    let query = ListQuery {
        kind,
        namespace: None,
        filter: ObjectFilter::read(kind, "", "").expect("a filter"),
        limit: 500,
        resume: None,
    };
    let page = events.list(&query).await.expect("a page");
    let specs = page.objects.into_iter().map(|stored| stored.object.spec);
    specs.collect()
}

#[tokio::test]
async fn events_that_find_the_queue_full_are_counted_and_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let (events, mut tasks) = events(&directory).await;
    let (sink, sunk) = EventSink::with_queue(events.clone(), 4);
    for number in 0..7 {
        let event = NewEvent::new("node.ready", "a node is ready");
        sink.tell(event.named("node", &format!("{}", number % 3)));
    }
    tasks.spawn(sunk.run());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let dropped = loop {
        let all = stored(&events).await;
        let dropped = all.iter().find(|spec| spec["type"] == "events.dropped");
        if let Some(dropped) = dropped {
            break dropped.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "{all:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(dropped["data"]["count"], 3);
    sink.flush(Duration::from_secs(20)).await;
    // Four were taken, and two of them were the same.
    let all = stored(&events).await;
    let ready = all.iter().filter(|spec| spec["type"] == "node.ready");
    assert_eq!(ready.count(), 3, "{all:#?}");
}
