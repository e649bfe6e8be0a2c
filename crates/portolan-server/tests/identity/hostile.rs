//! Clients that mean no good, in a process of their own: others notice nothing.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

use super::bed::{PATIENCE, ask, bed, request};

/// Connections that say nothing: many times more than the server allows.
const IDLE: usize = 3_000;
const ALL_IDLE: usize = 10_000;

/// The requests of a client from another address meanwhile.
const REQUESTS: usize = 40;

/// A request from another address than that of the attackers.
async fn ask_from_elsewhere(config: &Arc<ClientConfig>, port: u16, token: &str) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    let own: SocketAddr = "127.0.0.2:0".parse().expect("an address");
    socket.bind(own).expect("bound");
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let stream = socket.connect(server).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::clone(config));
    let mut stream = connector.connect(name, stream).await.expect("TLS");
    let text = request("GET", "/api/v1alpha/namespaces", Some(token), None);
    stream.write_all(text.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_clients_do_not_keep_others_from_being_answered() {
    let bed = bed().await;
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let idle = if is_long { ALL_IDLE } else { IDLE };
    eprintln!("idle connections: {idle} of {ALL_IDLE}");
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/identity/hostile_client.py"
    );
    let mut hostile = tokio::process::Command::new("python3")
        .arg(script)
        .args([bed.first.port.to_string(), idle.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python");
    let output = hostile.stdout.take().expect("its output");
    let mut lines = BufReader::new(output).lines();
    let ready = tokio::time::timeout(4 * PATIENCE, lines.next_line()).await;
    let ready = ready.expect("in time").expect("a line");
    assert_eq!(ready.as_deref(), Some("ready"));
    let (config, token) = (bed.anonymous(), bed.admin_token());
    for number in 0..REQUESTS {
        let asked = ask_from_elsewhere(&config, bed.first.port, &token);
        let answer = tokio::time::timeout(PATIENCE, asked)
            .await
            .expect("in time");
        assert!(answer.starts_with("HTTP/1.1 200"), "{number}: {answer}");
    }
    drop(hostile.stdin.take());
    let ended = tokio::time::timeout(PATIENCE, hostile.wait()).await;
    ended.expect("in time").expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_and_keys_that_stand_there_twice_are_refused() {
    let bed = bed().await;
    let (config, token) = (bed.anonymous(), bed.admin_token());
    let ask = async |head: &str, body: &str| {
        let mut stream = super::bed::connect(&config, bed.first.port).await;
        let text = format!(
            "POST /api/v1alpha/auth/can-i HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n{head}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let body = r#"{"verb": "get", "kind": "Node"}"#;
    let fine = ask("", body).await;
    assert!(fine.starts_with("HTTP/1.1 200"), "{fine}");
    for head in [
        "origin: https://evil.example\r\n",
        "sec-fetch-site: cross-site\r\n",
    ] {
        let foreign = ask(head, body).await;
        assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    }
    let twice = ask("", r#"{"verb": "get", "verb": "delete", "kind": "Node"}"#).await;
    assert!(twice.starts_with("HTTP/1.1 400"), "{twice}");
    assert!(twice.contains("twice"), "{twice}");
    ask_object_twice(&bed).await;
}

/// Keys of objects stand there once, too.
async fn ask_object_twice(bed: &super::bed::Bed) {
    let config = bed.anonymous();
    let token = bed.admin_token();
    let mut stream = super::bed::connect(&config, bed.first.port).await;
    let body = r#"{"apiVersion": "v1alpha", "kind": "Namespace", "metadata": {"name": "a", "name": "b"}, "spec": {}}"#;
    let text = format!(
        "POST /api/v1alpha/namespaces HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let none = ask(
        &config,
        bed.first.port,
        "GET",
        "/api/v1alpha/namespaces/b",
        Some(&token),
        None,
    );
    assert_eq!(none.await.status, 404);
}
