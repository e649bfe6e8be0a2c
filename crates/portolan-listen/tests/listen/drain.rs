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
