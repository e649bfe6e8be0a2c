//! Watches: what exists, and every change of what is selected.

use std::time::Duration;

use axum::body::Body;
use http::{Request, header};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::bed::{Bed, VARIABLES, bed, variable};

/// Follows the Variables.
pub(crate) async fn watch(bed: &Bed, query: &str, accept: &str) -> axum::body::BodyDataStream {
    follow(bed, &format!("{VARIABLES}?watch=true{query}"), accept).await
}

/// Follows what a path names.
pub(crate) async fn follow(bed: &Bed, path: &str, accept: &str) -> axum::body::BodyDataStream {
    let request = Request::builder()
        .uri(path)
        .header(header::HOST, "portolan.test")
        .header(header::ACCEPT, accept)
        .header(header::AUTHORIZATION, format!("Bearer {}", bed.admin))
        .body(Body::empty())
        .expect("a request");
    let response = bed.router.clone().call(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream()
}

pub(crate) async fn next(stream: &mut axum::body::BodyDataStream) -> String {
    let next = futures_util::StreamExt::next(stream);
    let piece = tokio::time::timeout(Duration::from_secs(10), next)
        .await
        .expect("in time");
    String::from_utf8(piece.expect("a piece").expect("bytes").to_vec()).expect("text")
}

/// The type of a message, the name of its object and one label.
pub(crate) fn seen(line: &str) -> (String, String) {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|_| unreachable!("{line}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&value["type"]),
        text(&value["object"]["metadata"]["name"]),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_the_objects_then_every_change_of_what_it_selects() {
    let bed = bed().await;
    let mut a = variable("a", json!({"x": 1}));
    a["metadata"]["labels"] = json!({"in": "yes"});
    let (_, a) = bed.post(VARIABLES, a).await;
    bed.post(VARIABLES, variable("b", json!({"x": 1}))).await;
    let mut stream = watch(&bed, "&labelSelector=in%3Dyes", "*/*").await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("ADDED".to_owned(), "a".to_owned())
    );
    let bookmark = next(&mut stream).await;
    assert_eq!(seen(&bookmark).0, "BOOKMARK");

    // An object that comes into the selection is added, one that leaves it is deleted.
    let (_, mut b) = bed.get(&format!("{VARIABLES}/b")).await;
    b["metadata"]["labels"] = json!({"in": "yes"});
    bed.put(&format!("{VARIABLES}/b"), b).await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("ADDED".to_owned(), "b".to_owned())
    );
    let mut left = a.clone();
    left["metadata"]["labels"] = json!({});
    bed.put(&format!("{VARIABLES}/a"), left).await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("DELETED".to_owned(), "a".to_owned())
    );

    // A watch goes on where another one ended, also as server-sent events.
    let version: Value = serde_json::from_str(&bookmark).expect("JSON");
    let version = version["object"]["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    let mut resumed = watch(
        &bed,
        &format!("&labelSelector=in%3Dyes&resourceVersion={version}"),
        "text/event-stream",
    )
    .await;
    let first = next(&mut resumed).await;
    assert!(
        first.starts_with("id: 1.") && first.contains("event: ADDED\ndata: {"),
        "{first}"
    );
    bed.delete(&format!("{VARIABLES}/b")).await;
    assert!(
        next(&mut resumed).await.contains("event: DELETED"),
        "a left"
    );
    assert!(
        next(&mut resumed).await.contains("event: DELETED"),
        "b is gone"
    );

    // When the server ends, the last thing is a bookmark.
    bed.cancelled.cancel();
    let mut last = next(&mut stream).await;
    while seen(&last).0 == "DELETED" {
        last = next(&mut stream).await;
    }
    assert_eq!(seen(&last).0, "BOOKMARK");
}
