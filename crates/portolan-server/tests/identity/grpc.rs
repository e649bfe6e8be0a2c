//! The API over gRPC, asked by a client in Python that finds everything by reflection, and by curl.

use std::process::Stdio;

use serde_json::{Value, json};

use super::bed::{PATIENCE, bed_at};

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_finds_everything_by_reflection() {
    // The clock of the client is the machine's.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let bed = bed_at(now.expect("a time after 1970").as_secs()).await;
    let (node, key) = bed.node("web-1").await;
    let directory = bed.first.directory.path();
    std::fs::write(directory.join("node.pem"), &node.certificate).expect("written");
    std::fs::write(directory.join("node.key"), key.to_pem().as_bytes()).expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/identity/grpc_client.py");
    let mut command = tokio::process::Command::new("python3");
    command
        .arg(script)
        .arg(format!("localhost:{}", bed.first.port))
        .args(["ca.pem", "admin.token", "node.pem", "node.key", "web-1"])
        .current_dir(directory)
        .kill_on_drop(true)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = tokio::time::timeout(4 * PATIENCE, command.output()).await;
    let ended = ended
        .expect("in time")
        .expect("python with grpcio, which ./test installs");
    let errors = String::from_utf8_lossy(&ended.stderr);
    let lines = String::from_utf8_lossy(&ended.stdout);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(ended.status.success(), "{lines:?}\n{errors}");
    let expected = [
        json!({"services": ["grpc.reflection.v1alpha.ServerReflection", "portolan.v1alpha.Objects"]}),
        json!({"created": 1, "version": true}),
        json!({"again": "ALREADY_EXISTS"}),
        json!({"no_version": "FAILED_PRECONDITION"}),
        json!({"applied": 2}),
        json!({"stale": "ABORTED"}),
        json!({"unpacked": true, "region": "south"}),
        json!({"listed": ["region"]}),
        json!({"missing": "NOT_FOUND"}),
        json!({"unknown_kind": "NOT_FOUND"}),
        json!({"nobody": "UNAUTHENTICATED"}),
        json!({"wrong_token": "UNAUTHENTICATED"}),
        json!({"watched": ["ADDED", "BOOKMARK", "DELETED"]}),
        json!({"health": "0801"}),
        json!({"node": "web-1"}),
        json!({"other_node": "PERMISSION_DENIED"}),
        json!({"both": "UNAUTHENTICATED"}),
    ];
    assert_eq!(lines, expected);
}
