//! The exporter under a flood of connections that say nothing: scrapes are still answered.

use std::sync::Arc;
use std::time::Duration;

use portolan_audit::Checker;
use portolan_exporter::{Exporter, ExporterOptions, ScanOptions, serve};
use portolan_listen::{Limits, ListenConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Far more than the exporter holds, and less than the 1,024 descriptors that this process may have.
const HALF_OPEN: usize = 400;

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the test's own part works");
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the test's own part works");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(30), read)
        .await
        .expect("an answer")
        .expect("the test's own part works");
    answer
}

#[tokio::test]
async fn a_scrape_is_answered_while_others_hold_connections_open() {
    let (exporter, _) = Exporter::open(ExporterOptions {
        scan: ScanOptions::default(),
        checker: Box::new(|_| Checker::default()),
        ttl: Duration::from_hours(1),
        state: None,
        baseline: None,
        finding_series: 0,
    });
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("the test's own part works");
    let address = listener.local_addr().expect("the test's own part works");
    let cancelled = CancellationToken::new();
    let config = ListenConfig::default();
    let served = serve(listener, Arc::new(exporter), config, cancelled.clone());
    let served = tokio::spawn(served);

    let mut held = Vec::new();
    for _ in 0..HALF_OPEN {
        let mut stream = TcpStream::connect(address)
            .await
            .expect("the test's own part works");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\n")
            .await
            .expect("the test's own part works");
        held.push(stream);
    }
    let answer = get(address, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("portolan_audit_has_data 0\n"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    let open = answer
        .lines()
        .find_map(|line| line.strip_prefix("portolan_listen_connections "));
    let open: usize = open
        .expect("the number of connections")
        .parse()
        .expect("the test's own part works");
    assert!(open <= Limits::CONNECTIONS_PER_CLIENT, "{open}");
    assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 503 "));
    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200 "));

    cancelled.cancel();
    let drained = tokio::time::timeout(Duration::from_secs(30), served).await;
    assert_eq!(
        drained
            .expect("it ends")
            .expect("the test's own part works")
            .expect("the test's own part works")
            .cut,
        0
    );
}
