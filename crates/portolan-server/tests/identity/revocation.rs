//! A revoked node is out within two seconds, on every server, with whatever connection it has.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::bed::{PATIENCE, ask, bed, connect, request};

const OWN: &str = "/api/v1alpha/nodes/web-1";

/// The limit is two seconds; the rest is for a machine that does other things too.
const CUT_WITHIN: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_node_is_cut_off_and_a_resumed_connection_does_not_help_it() {
    let bed = bed().await;
    let (node, key) = bed.node("web-1").await;
    let second = bed.another().await;
    let config = bed.mutual(&node, &key);
    let before = ask(&config, bed.first.port, "GET", OWN, None, None).await;
    assert_eq!(before.status, 200, "{}", before.body);
    let second_config = bed.mutual(&node, &key);
    let on_second = ask(&second_config, second.port, "GET", OWN, None, None).await;
    assert_eq!(on_second.status, 200, "{}", on_second.body);
    let resumed = ask(&config, bed.first.port, "GET", OWN, None, None).await;
    assert!(
        resumed.is_resumed,
        "the ticket of the first connection is used"
    );
    assert_eq!(resumed.status, 200);

    // A live watch on each server.
    let mut watches = Vec::new();
    for (config, port) in [(&config, bed.first.port), (&second_config, second.port)] {
        let mut stream = connect(config, port).await;
        let text = request("GET", "/api/v1alpha/nodes?watch=true", None, None);
        stream.write_all(text.as_bytes()).await.expect("sent");
        let mut begun = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut begun)).await;
        let read = read.expect("in time").expect("a beginning");
        assert!(begun[..read].starts_with(b"HTTP/1.1 200"));
        watches.push(stream);
    }
    let revoked = bed.admin("POST", &format!("{OWN}/revoke"), None).await;
    assert_eq!(revoked.body["epoch"], 2, "{}", revoked.body);
    let at = Instant::now();
    for stream in &mut watches {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        let _ = ended.expect("the watch ends");
        let text = String::from_utf8_lossy(&rest);
        assert!(
            !text.contains("\"epoch\":2"),
            "nothing is told after the revocation: {text}"
        );
    }
    assert!(at.elapsed() < CUT_WITHIN, "{:?}", at.elapsed());

    let resumed = ask(&config, bed.first.port, "GET", OWN, None, None).await;
    assert!(resumed.is_resumed, "the ticket is still good for TLS");
    assert_eq!(resumed.status, 401, "{}", resumed.body);
    for port in [bed.first.port, second.port] {
        let full = ask(&bed.mutual(&node, &key), port, "GET", OWN, None, None).await;
        assert_eq!(full.status, 401, "{}", full.body);
    }
    let new_key = portolan_identity::NodeKey::generate().expect("a key");
    let renewed = bed.client(&second).renew(&node, &key, &new_key).await;
    assert!(renewed.is_err(), "{renewed:?}");
    let is_refusal = |line: &Value| line["path"] == OWN && line["status"] == 401;
    assert!(bed.audit().iter().any(is_refusal));
}
