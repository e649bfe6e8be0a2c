//! The end of a server.

use std::time::Duration;

use portolan_listen::{Drained, Limits};
use tokio::net::TcpStream;

use crate::harness::{Server, head, in_time};

#[tokio::test]
async fn requests_in_flight_are_answered_and_no_new_connection_is_taken() {
    let server = Server::start(Limits::default()).await;
    let mut idle = server.connect().await;
    idle.send(&head("/hello", "")).await;
    idle.until("hello\n").await;
    let mut half = server.connect().await;
    half.send("GET /hello HTTP/1.1\r\n").await;
    let mut busy = server.connect().await;
    busy.send(&head("/wait", "")).await;
    in_time(server.asked.notified()).await;

    server.cancelled.cancel();
    assert_eq!(idle.rest().await, "");
    assert_eq!(half.rest().await, "");
    assert!(TcpStream::connect(server.address).await.is_err());
    server.go.notify_one();
    assert!(busy.rest().await.ends_with("waited\n"));
    assert_eq!(server.ended().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut() {
    let limits = Limits {
        drain_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut busy = server.connect().await;
    busy.send(&head("/wait", "")).await;
    in_time(server.asked.notified()).await;
    server.cancelled.cancel();
    assert_eq!(server.ended().await, Drained { cut: 1 });
    assert_eq!(busy.rest().await, "");
}

/// One that takes nothing holds the end up for a moment, not for as long as requests may take; one that reads gets everything.
#[tokio::test]
async fn a_reader_that_is_stuck_is_not_waited_for_and_one_that_reads_is() {
    let limits = Limits {
        drain_time: Duration::from_mins(10),
        drain_stall: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut stuck = server.connect().await;
    stuck.send(&head("/large", "")).await;
    stuck.until("200 OK").await;
    let mut reads = server.connect().await;
    reads.send(&head("/large", "")).await;
    reads.until("200 OK").await;
    server.cancelled.cancel();
    assert!(reads.rest().await.len() >= (64 << 20) - (1 << 20));
    assert_eq!(server.ended().await, Drained { cut: 0 });
    assert!(stuck.rest().await.len() < 64 << 20);
}
