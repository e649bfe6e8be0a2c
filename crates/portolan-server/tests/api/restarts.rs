//! What is there after a restart.

use serde_json::json;

use crate::bed::{VARIABLES, bed, bed_in, variable};
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
