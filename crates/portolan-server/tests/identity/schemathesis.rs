//! Random requests made from `/openapi.json` by Schemathesis: no answer outside of the schema, and no 5xx.

use std::process::Stdio;

use super::bed::{PATIENCE, bed_at};

/// Requests for each operation.
const EXAMPLES: &str = "4";
const ALL_EXAMPLES: &str = "60";

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_what_the_document_says() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let bed = bed_at(now.expect("a time after 1970").as_secs()).await;
    let directory = bed.first.directory.path();
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let hooks = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/identity");
    let mut command = tokio::process::Command::new("st");
    command
        .arg("run")
        .arg(format!("https://localhost:{}/openapi.json", bed.first.port))
        .args(["--header", &format!("Authorization: Bearer {}", bed.admin_token())])
        .args(["--tls-verify", "ca.pem", "--phases", "fuzzing", "--seed", "1"])
        .args(["--max-examples", if is_long { ALL_EXAMPLES } else { EXAMPLES }])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"])
        .args(["--request-timeout", "30", "--no-color"])
        .env("PYTHONPATH", hooks)
        .env("SCHEMATHESIS_HOOKS", "schemathesis_hooks")
        .current_dir(directory)
        .kill_on_drop(true)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let patience = if is_long { 60 * PATIENCE } else { 8 * PATIENCE };
    let ended = tokio::time::timeout(patience, command.output()).await;
    let ended = ended
        .expect("in time")
        .expect("schemathesis, which ./test installs");
    let output = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{output}\n{errors}");
}
