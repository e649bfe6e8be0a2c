//! Hosts that cannot be reached, and servers that take their time.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use portolan_http::{
    Client, HttpError, HttpOptions, KnownHosts, Proxy, Request, Unreachable, UnreachableReason,
};
use portolan_testbed::{HttpServer, Reply};

fn options() -> HttpOptions {
    HttpOptions {
        proxy: Proxy::None,
        retries: 0,
        ..HttpOptions::default()
    }
}

fn get(url: &str) -> Request {
    Request::parse(url).unwrap()
}

/// A port that nobody listens on.
fn closed_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn unreachable(error: HttpError) -> Option<Unreachable> {
    match error {
        HttpError::Unreachable { source, .. } => Some(source),
        _ => None,
    }
}

#[tokio::test]
async fn a_host_that_refuses_connections_is_named_with_the_reason() {
    let port = closed_port();
    let client = Client::new(&options()).unwrap();
    let error = client
        .fetch(&get(&format!("http://127.0.0.1:{port}/a")))
        .await;
    let expected = Unreachable {
        host: format!("127.0.0.1:{port}"),
        why: UnreachableReason::Refused,
    };
    assert_eq!(unreachable(error.unwrap_err()), Some(expected));
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_told_as_such() {
    let client = Client::new(&options()).unwrap();
    let error = client.fetch(&get("http://nowhere.invalid/a")).await;
    assert_eq!(
        unreachable(error.unwrap_err()).unwrap().to_string(),
        "cannot reach `nowhere.invalid`: its name cannot be resolved"
    );
}

/// Without a memory every request would pay for its own retries.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_out_of_reach_is_tried_once_whoever_asks_and_with_whichever_client() {
    let hosts = KnownHosts::default();
    let options = HttpOptions {
        retries: 2,
        hosts,
        ..options()
    };
    let clients = [
        Client::new(&options).unwrap(),
        Client::new(&options).unwrap(),
    ];
    let port = closed_port();
    let started = Instant::now();
    let asked = (0..40).map(|number| {
        let client = clients[number % 2].clone();
        let url = format!("http://127.0.0.1:{port}/{number}");
        tokio::spawn(async move { client.fetch(&get(&url)).await })
    });
    let asked: Vec<_> = asked.collect();
    let mut causes = Vec::new();
    for task in asked {
        causes.push(unreachable(task.await.unwrap().unwrap_err()).unwrap());
    }
    causes.dedup();
    assert_eq!(causes.len(), 1);
    // Three attempts of one request take 1.25 seconds; of forty they would take most of a minute on eight permits.
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_redirect_to_a_host_out_of_reach_names_that_host() {
    let port = closed_port();
    let server = HttpServer::start(move |_| Reply::redirect(format!("http://127.0.0.1:{port}/")));
    let client = Client::new(&options()).unwrap();
    for _ in 0..2 {
        let error = client.fetch(&get(&server.url())).await.unwrap_err();
        assert_eq!(
            unreachable(error).unwrap().host,
            format!("127.0.0.1:{port}")
        );
    }
}

/// No single read of this server is slow enough for the idle timeout.
#[tokio::test]
async fn an_answer_that_drips_is_given_up() {
    let server =
        HttpServer::start(|_| Reply::ok(vec![b'x'; 100_000]).drip(Duration::from_millis(5)));
    let options = HttpOptions {
        slow_start: Duration::from_millis(200),
        ..options()
    };
    let client = Client::new(&options).unwrap();
    let response = client.fetch(&get(&server.url())).await.unwrap();
    let error = response.bytes(1_000_000).await.unwrap_err();
    assert!(
        matches!(error, HttpError::TooSlow { received: 1.., .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_answer_that_takes_too_long_in_all_is_given_up() {
    let server =
        HttpServer::start(|_| Reply::ok(vec![b'x'; 100_000]).drip(Duration::from_millis(5)));
    let options = HttpOptions {
        slowest_rate: 1,
        request_timeout: Duration::from_millis(200),
        ..options()
    };
    let client = Client::new(&options).unwrap();
    let response = client.fetch(&get(&server.url())).await.unwrap();
    let error = response.bytes(1_000_000).await.unwrap_err();
    assert!(matches!(error, HttpError::TooSlow { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let options = HttpOptions {
        response_timeout: Duration::from_millis(200),
        ..options()
    };
    let client = Client::new(&options).unwrap();
    let error = client.fetch(&get(&url)).await.unwrap_err();
    let HttpError::Unreachable { source, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.why, UnreachableReason::TimedOut);
    // Nobody else waits for it, unless the program runs for so long that it may come back.
    let started = Instant::now();
    client
        .fetch(&get(&format!("{url}/other")))
        .await
        .unwrap_err();
    assert!(started.elapsed() < Duration::from_millis(200));
    let options = HttpOptions {
        hosts: KnownHosts::forgetful(),
        ..options
    };
    let client = Client::new(&options).unwrap();
    let error = client.fetch(&get(&url)).await.unwrap_err();
    assert!(
        matches!(error, HttpError::TooSlow { received: 0, .. }),
        "{error:?}"
    );
}
