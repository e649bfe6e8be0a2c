//! Events: many in one record of the store, and each an object of its own to clients.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use portolan_server::{ManualTime, SystemTimeSource, TimeSource as _};
use portolan_store::Store;
use serde_json::{Value, json};

use crate::bed::{Bed, bed, bed_at, bed_in, eventually};
use crate::watches::{follow, next};

const EVENTS: &str = "/api/v1alpha/namespaces/default/events";

fn event(name: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "v1alpha", "kind": "Event", "metadata": {"name": name},
        "spec": {"type": kind, "summary": "something happened"},
    })
}

/// The records of events, and how many events are in them together.
async fn records(bed: &Bed) -> usize {
    let engine = Arc::clone(&bed.engine) as Arc<dyn portolan_store::Engine>;
    let mut count = 0;
    let span = portolan_store::Span::prefix("/portolan/v1/object-event/");
    Store::new(engine)
        .scan(&span, None, |_| {
            count += 1;
            Ok(())
        })
        .await
        .expect("read");
    count
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
    items.iter().filter_map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_second_share_a_record_and_are_objects_of_their_own() {
    let bed = bed().await;
    let created = (0..60).map(|number| {
        let path = if number % 3 == 0 {
            EVENTS.replace("default", "system")
        } else {
            EVENTS.to_owned()
        };
        let kind = if number % 2 == 0 {
            "disk.full"
        } else {
            "disk.ok"
        };
        let (bed, body) = (&bed, event(&format!("e-{number}"), kind));
        async move { bed.post(&path, body).await }
    });
    for (status, created) in futures_util::future::join_all(created).await {
        assert_eq!(status, 201, "{created}");
        assert!(
            created["metadata"]["resourceVersion"].is_string(),
            "{created}"
        );
    }
    let records = records(&bed).await;
    assert!(records < 20, "60 events at once are {records} records");

    let (_, read) = bed.get(&format!("{EVENTS}/e-1")).await;
    assert_eq!(read["spec"]["type"], "disk.ok", "{read}");
    assert_eq!(
        bed.get(&format!("{EVENTS}/e-0")).await.0,
        404,
        "it is of another namespace"
    );
    assert_eq!(bed.get(&format!("{EVENTS}/nobody")).await.0, 404);
    let (_, all) = bed.get("/api/v1alpha/events?limit=500").await;
    assert_eq!(names(&all).len(), 60, "{all}");
    let (_, some) = bed
        .get(&format!("{EVENTS}?fieldSelector=spec.type=disk.full"))
        .await;
    assert_eq!(names(&some).len(), 20, "{some}");

    // Pages end within records, and are of one revision.
    let (mut paged, mut resume) = (Vec::new(), String::new());
    loop {
        let (_, page) = bed
            .get(&format!("/api/v1alpha/events?limit=7&continue={resume}"))
            .await;
        assert!(names(&page).len() <= 7, "{page}");
        paged.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(next) => resume = next.to_owned(),
            None => break,
        }
        assert_eq!(
            bed.post(EVENTS, event(&format!("late-{}", paged.len()), "late"))
                .await
                .0,
            201
        );
    }
    assert_eq!(paged, names(&all));
    let wrong = "/api/v1alpha/events?continue=MQ~eA";
    assert_eq!(bed.get(wrong).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_created_once_and_never_changed() {
    let bed = bed().await;
    let first = bed.post(EVENTS, event("once", "disk.full")).await;
    assert_eq!(first.0, 201, "{}", first.1);
    let again = bed.post(EVENTS, event("once", "disk.full")).await;
    assert_eq!(
        (again.0.as_u16(), again.1["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    // Two at the same moment, too.
    let (one, other) = tokio::join!(
        bed.post(EVENTS, event("twice", "disk.full")),
        bed.post(EVENTS, event("twice", "disk.full")),
    );
    let mut statuses = [one.0.as_u16(), other.0.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);

    let path = format!("{EVENTS}/once");
    assert_eq!(bed.put(&path, first.1.clone()).await.0, 405);
    let (_, history) = bed.get(&format!("{path}?history=true")).await;
    assert_eq!(
        history["items"].as_array().map(Vec::len),
        Some(1),
        "{history}"
    );
    let nowhere = "/api/v1alpha/namespaces/nowhere/events";
    assert_eq!(bed.post(nowhere, event("lost", "disk.full")).await.0, 404);
    let mut large = event("large", "disk.full");
    large["metadata"]["annotations"] = json!({"a": "x".repeat(70 << 10)});
    assert_eq!(bed.post(EVENTS, large).await.0, 400);

    assert_eq!(bed.delete(&path).await.0, 200);
    assert_eq!(bed.get(&path).await.0, 404);
    assert_eq!(
        bed.get(&format!("{EVENTS}/twice")).await.0,
        200,
        "its neighbour stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_events_and_goes_on_after_a_restart() {
    let bed = bed().await;
    let (_, before) = bed.post(EVENTS, event("before", "disk.full")).await;
    let version = before["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    assert_eq!(bed.post(EVENTS, event("after", "disk.full")).await.0, 201);
    assert_eq!(bed.post(EVENTS, event("other", "disk.ok")).await.0, 201);
    let bed = bed_in(bed.stop().await).await;
    assert_eq!(
        bed.get(&format!("{EVENTS}/before")).await.0,
        200,
        "the index is read at a start"
    );
    let query =
        format!("{EVENTS}?watch=true&fieldSelector=spec.type=disk.full&resourceVersion={version}");
    let mut stream = follow(&bed, &query, "application/x-ndjson").await;
    let line: Value = serde_json::from_str(&next(&mut stream).await).expect("JSON");
    assert_eq!(
        (&line["type"], &line["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("after"))
    );
    assert_eq!(bed.post(EVENTS, event("new", "disk.full")).await.0, 201);
    let line: Value = serde_json::from_str(&next(&mut stream).await).expect("JSON");
    assert_eq!(
        (&line["type"], &line["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("new"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_with_their_namespace_and_by_age() {
    let bed = bed().await;
    let team = json!({"apiVersion": "v1alpha", "kind": "Namespace", "metadata": {"name": "team"}});
    assert_eq!(
        bed.post("/api/v1alpha/namespaces", team.clone()).await.0,
        201
    );
    let of_team = EVENTS.replace("default", "team");
    let (one, other) = tokio::join!(
        bed.post(&of_team, event("of-team", "disk.full")),
        bed.post(EVENTS, event("stays", "disk.full")),
    );
    assert_eq!((one.0, other.0), (StatusCode::CREATED, StatusCode::CREATED));
    assert_eq!(bed.delete("/api/v1alpha/namespaces/team").await.0, 202);
    eventually(|| async { bed.get("/api/v1alpha/namespaces/team").await.0 == 404 }).await;
    assert_eq!(bed.post("/api/v1alpha/namespaces", team).await.0, 201);
    assert_eq!(
        bed.get(&format!("{of_team}/of-team")).await.0,
        404,
        "nothing of the old one"
    );
    assert_eq!(bed.get(&format!("{EVENTS}/stays")).await.0, 200);

    let config = json!({
        "apiVersion": "v1alpha", "kind": "Config", "metadata": {"name": "server"},
        "spec": {"events": {"retention": "1h"}},
    });
    assert_eq!(bed.post("/api/v1alpha/configs", config).await.0, 201);
    let later = SystemTimeSource.now() + Duration::from_hours(2);
    let later = Arc::new(ManualTime::new(later.as_secs()));
    let bed = bed_at(bed.stop().await, later).await;
    let stays = format!("{EVENTS}/stays");
    eventually(|| async { bed.get(&stays).await.0 == 404 }).await;
    let (_, status) = bed.get("/api/v1alpha/status").await;
    assert_eq!(status["events"], json!({"kept": 0, "bytes": 0}), "{status}");
}
