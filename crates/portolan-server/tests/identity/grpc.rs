//! The API over gRPC, asked by a client in Python that finds everything by reflection, and by grpcurl.

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

/// `./test --long` installs grpcurl; elsewhere this test says that it did nothing.
#[tokio::test(flavor = "multi_thread")]
async fn grpcurl_lists_creates_reads_and_is_refused() {
    if std::env::var_os("PORTOLAN_LONG").is_none() {
        eprintln!("grpcurl as a client: 0 of 1");
        return;
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let bed = bed_at(now.expect("a time after 1970").as_secs()).await;
    let directory = bed.first.directory.path();
    let server = format!("localhost:{}", bed.first.port);
    let bearer = format!("authorization: Bearer {}", bed.admin_token());
    let grpcurl = async |token: Option<&str>, body: &str, what: &[&str]| {
        let mut command = tokio::process::Command::new("grpcurl");
        command.args(["-cacert", "ca.pem"]);
        if let Some(token) = token {
            command.args(["-H", token]);
        }
        if !body.is_empty() {
            command.args(["-d", body]);
        }
        command.arg(&server).args(what).current_dir(directory);
        let ended = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
        let ended = ended.expect("in time");
        let ended = ended.expect("grpcurl, which `./test --long` installs");
        [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [services, errors] = grpcurl(None, "", &["list"]).await;
    assert!(services.contains("portolan.v1alpha.Objects"), "{errors}");
    let [described, errors] = grpcurl(None, "", &["describe", "portolan.v1alpha.Objects"]).await;
    assert!(described.contains("rpc Watch"), "{errors}");
    let object = r#"{"object": {"kind": "Variable", "metadata": {"name": "region", "namespace": "default"},
        "spec": {"@type": "type.googleapis.com/portolan.v1alpha.VariableSpec", "values": {"region": {"text": "north"}}}}}"#;
    let method = |name: &str| format!("portolan.v1alpha.Objects/{name}");
    let [created, errors] = grpcurl(Some(&bearer), object, &[&method("Create")]).await;
    assert!(created.contains("\"uuid\""), "{errors}");
    let asked = r#"{"kind": "Variable", "namespace": "default", "name": "region"}"#;
    let [read, errors] = grpcurl(Some(&bearer), asked, &[&method("Get")]).await;
    assert!(read.contains("north"), "{read}{errors}");
    let [_, refused] = grpcurl(None, asked, &[&method("Get")]).await;
    assert!(refused.contains("Unauthenticated"), "{refused}");
    let missing = asked.replace("region", "nothing");
    let [_, refused] = grpcurl(Some(&bearer), &missing, &[&method("Get")]).await;
    assert!(refused.contains("NotFound"), "{refused}");
}
