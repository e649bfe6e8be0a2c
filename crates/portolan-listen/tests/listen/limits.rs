//! What clients may cost.

use std::time::Duration;

use portolan_listen::Limits;

use crate::harness::{Server, head, in_time, status};

const SOON: Duration = Duration::from_millis(200);

fn closed(reason: &str) -> String {
    format!("portolan_listen_connections_closed_total{{reason=\"{reason}\"}}")
}

#[tokio::test]
async fn a_client_that_drips_its_headers_is_closed_in_time() {
    let limits = Limits {
        header_time: SOON,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut connection = server.connect().await;
    connection.send("GET /hello HTTP/1.1\r\nhost: te").await;
    assert_eq!(connection.rest().await, "");
    assert_eq!(server.metric(&closed("headers")), 1);
    // One that says nothing at all has not even chosen a protocol.
    let mut silent = server.connect().await;
    assert_eq!(silent.rest().await, "");
    assert_eq!(server.metric(&closed("headers")), 2);
}

#[tokio::test]
async fn a_connection_that_asks_nothing_more_is_closed_in_time() {
    let limits = Limits {
        idle_time: SOON,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut connection = server.connect().await;
    connection.send(&head("/hello", "")).await;
    connection.until("hello\n").await;
    // Also when it begins another request and does not end it.
    connection.send("GET /hello HTTP/1.1\r\nhost: te").await;
    assert_eq!(connection.rest().await, "");
    assert_eq!(server.metric(&closed("idle")), 1);
}

#[tokio::test]
async fn half_open_connections_beyond_the_cap_make_room_for_new_ones() {
    let limits = Limits {
        connections: 20,
        connections_per_client: 1000,
        ..Limits::default()
    };
    check_half_open(limits).await;
}

#[tokio::test]
async fn half_open_connections_of_one_client_make_room_for_its_new_ones() {
    let limits = Limits {
        connections: 1000,
        connections_per_client: 20,
        ..Limits::default()
    };
    check_half_open(limits).await;
}

/// Opens ten times as many connections as there are places, and is still answered at once.
async fn check_half_open(limits: Limits) {
    let server = Server::start(limits).await;
    let mut open = Vec::new();
    for number in 0..200 {
        let mut connection = server.connect().await;
        if number % 2 == 0 {
            connection.send("GET /hello HTTP/1.1\r\n").await;
        }
        open.push(connection);
        assert!(server.metric("portolan_listen_connections ") <= 20);
    }
    let answer = server.get("/hello").await;
    assert!(answer.ends_with("hello\n"), "{answer}");
    assert!(server.metric("portolan_listen_connections ") <= 20);
    assert!(server.metric(&closed("evicted")) >= 180);
}

#[tokio::test]
async fn connections_with_a_request_are_not_closed_for_new_ones() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut connection = server.connect().await;
        connection
            .send(&head("/wait", "connection: close\r\n"))
            .await;
        in_time(server.asked.notified()).await;
        busy.push(connection);
    }
    assert_eq!(server.connect().await.rest().await, "");
    assert_eq!(
        server.metric("portolan_listen_connections_refused_total"),
        1
    );
    for connection in &mut busy {
        server.go.notify_one();
        assert!(connection.rest().await.ends_with("waited\n"));
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_closed_in_time() {
    let limits = Limits {
        response_time: SOON,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut connection = server.connect().await;
    connection.send(&head("/large", "")).await;
    server.wait_for_metric(&closed("slow-reader"), 1).await;
    server
        .wait_for_metric("portolan_listen_connections ", 0)
        .await;
    let got = connection.rest().await.len();
    assert!(got < 64 << 20, "{got}");
}

#[tokio::test]
async fn large_and_many_headers_are_refused() {
    let limits = Limits {
        header_bytes: 8192,
        headers: 10,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let many = "h: 1\r\n".repeat(20);
    for headers in [format!("a: {}\r\n", "x".repeat(10_000)), many] {
        let mut connection = server.connect().await;
        connection.send(&head("/hello", &headers)).await;
        assert_eq!(status(&connection.rest().await), "431");
    }
}

#[tokio::test]
async fn a_large_body_is_refused_whether_it_says_so_or_not() {
    let limits = Limits {
        body_bytes: 1000,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut connection = server.connect().await;
    connection
        .send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 1001\r\n\r\n")
        .await;
    let answer = connection.until("}\n").await;
    assert_eq!(status(&answer), "413");
    assert!(answer.contains("\"error\":\"the request's body is larger than 1000 bytes\""));

    let mut endless = server.connect().await;
    endless
        .send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    for _ in 0..11 {
        endless
            .send(&format!("64\r\n{}\r\n", "x".repeat(100)))
            .await;
    }
    assert_eq!(status(&endless.until("}\n").await), "413");

    let mut fitting = server.connect().await;
    fitting
        .send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 1000\r\n\r\n")
        .await;
    fitting.send(&"y".repeat(1000)).await;
    assert_eq!(status(&fitting.until("yyy").await), "200");
}

#[tokio::test]
async fn a_body_that_never_ends_is_refused_in_time() {
    let limits = Limits {
        body_time: SOON,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut connection = server.connect().await;
    connection
        .send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\nabc")
        .await;
    assert_eq!(status(&connection.until("}\n").await), "408");
}

#[tokio::test]
async fn a_handler_that_never_answers_is_given_up() {
    let limits = Limits {
        handler_time: SOON,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    assert_eq!(status(&server.get("/never").await), "503");
}

#[tokio::test]
async fn a_client_that_asks_too_often_is_told_so_and_probes_are_not() {
    let limits = Limits {
        requests_per_second: 1,
        request_burst: 3,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut refused = None;
    for _ in 0..50 {
        let answer = server.get("/hello").await;
        if status(&answer) == "429" {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("nobody can ask fifty times in so short a time");
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    assert_eq!(status(&server.get("/healthz").await), "200");
    assert_eq!(status(&server.get("/readyz").await), "200");
}
