//! TLS with both protocols on one port, and certificates that change.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use portolan_listen::{Limits, ListenConfig, TlsSource};
use portolan_testbed::Authority;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::{PATIENCE, Server, in_time};

async fn connect(
    server: &Server,
    trusted: &str,
    alpn: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let certificate =
        CertificateDer::from_pem_slice(trusted.as_bytes()).expect("the test's own part works");
    roots.add(certificate).expect("the test's own part works");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the test's own part works")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let stream = TcpStream::connect(server.address).await?;
    let name = "localhost".try_into().expect("the test's own part works");
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

fn request(uri: &str) -> Request<Body> {
    Request::get(uri)
        .header("host", "test")
        .body(Body::empty())
        .expect("the test's own part works")
}

async fn ask_http1(stream: TlsStream<TcpStream>) -> (StatusCode, String) {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("the test's own part works");
    let connection = tokio::spawn(connection);
    let response = in_time(sender.send_request(request("/hello")))
        .await
        .expect("the test's own part works");
    let status = response.status();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("the test's own part works")
        .to_bytes();
    connection.abort();
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn ask_http2(stream: TlsStream<TcpStream>) -> (StatusCode, String) {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("the test's own part works");
    let connection = tokio::spawn(connection);
    let response = in_time(sender.send_request(request("https://test/hello")))
        .await
        .expect("the test's own part works");
    let status = response.status();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("the test's own part works")
        .to_bytes();
    connection.abort();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn write(directory: &Path, authority: &Authority) {
    std::fs::write(directory.join("tls.crt"), &authority.server_certificate)
        .expect("the test's own part works");
    std::fs::write(directory.join("tls.key"), &authority.server_key)
        .expect("the test's own part works");
}

async fn start(tls: TlsSource, limits: Limits) -> Server {
    Server::start_with(ListenConfig {
        tls: Some(tls),
        limits,
        reload_every: Duration::from_millis(20),
        ..ListenConfig::default()
    })
    .await
}

#[tokio::test]
async fn both_protocols_are_spoken_and_a_new_certificate_is_shown_without_a_restart() {
    let directory = tempfile::tempdir().expect("the test's own part works");
    let first = Authority::new();
    write(directory.path(), &first);
    let files = TlsSource::Files {
        certificate: directory.path().join("tls.crt"),
        key: directory.path().join("tls.key"),
    };
    let server = start(files, Limits::default()).await;
    let hello = (StatusCode::OK, "hello\n".to_owned());
    let stream = connect(&server, &first.certificate, "http/1.1")
        .await
        .expect("the test's own part works");
    assert_eq!(ask_http1(stream).await, hello);
    let stream = connect(&server, &first.certificate, "h2")
        .await
        .expect("the test's own part works");
    assert_eq!(ask_http2(stream).await, hello);

    // Half of a renewal, and rubbish, change nothing.
    let second = Authority::new();
    std::fs::write(directory.path().join("tls.crt"), &second.server_certificate)
        .expect("the test's own part works");
    std::fs::write(directory.path().join("tls.key"), "no key").expect("the test's own part works");
    let stream = connect(&server, &first.certificate, "h2")
        .await
        .expect("the test's own part works");
    assert_eq!(ask_http2(stream).await, hello);

    write(directory.path(), &second);
    let renewed = async {
        while connect(&server, &second.certificate, "http/1.1")
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, renewed)
        .await
        .expect("the new certificate is not shown");
}

#[tokio::test]
async fn an_authority_of_our_own_is_made_once_and_kept() {
    let directory = tempfile::tempdir().expect("the test's own part works");
    let own = TlsSource::OwnAuthority {
        directory: directory.path().join("ca"),
        names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
    };
    let mut certificates = Vec::new();
    for _ in 0..2 {
        let server = start(own.clone(), Limits::default()).await;
        // The first handshake waits until the authority has been made.
        let metric = server.metric("portolan_listen_connections ");
        assert_eq!(metric, 0);
        let file = directory.path().join("ca/ca.pem");
        let made = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        in_time(made).await;
        let trusted = std::fs::read_to_string(&file).expect("the test's own part works");
        let stream = connect(&server, &trusted, "h2")
            .await
            .expect("the test's own part works");
        assert_eq!(ask_http2(stream).await.0, StatusCode::OK);
        certificates.push(trusted);
    }
    assert_eq!(certificates[0], certificates[1]);
    let key =
        std::fs::metadata(directory.path().join("ca/ca.key")).expect("the test's own part works");
    let mode = std::os::unix::fs::PermissionsExt::mode(&key.permissions());
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[tokio::test]
async fn a_handshake_that_is_not_made_is_closed_in_time() {
    let directory = tempfile::tempdir().expect("the test's own part works");
    write(directory.path(), &Authority::new());
    let files = TlsSource::Files {
        certificate: directory.path().join("tls.crt"),
        key: directory.path().join("tls.key"),
    };
    let limits = Limits {
        header_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = start(files, limits).await;
    let mut silent = server.connect().await;
    assert_eq!(silent.rest().await, "");
    let closed = "portolan_listen_connections_closed_total{reason=\"headers\"}";
    assert_eq!(server.metric(closed), 1);
}
