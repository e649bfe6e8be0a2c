//! A client that is given addresses by others does not call those of the machine's own link.

use portolan_http::{Client, HttpError, HttpOptions, Request, UnreachableReason};
use portolan_testbed::{HttpServer, Reply};

fn client() -> Client {
    Client::new(&HttpOptions {
        link_local: false,
        ..HttpOptions::default()
    })
    .expect("a client")
}

async fn is_refused(client: &Client, url: &str) -> bool {
    let request = Request::parse(url).expect("an address");
    match client.send(&request).await {
        Err(HttpError::Unreachable { source, .. }) => source.why == UnreachableReason::OnLink,
        _ => false,
    }
}

#[tokio::test]
async fn addresses_of_the_link_are_refused_however_they_are_written() {
    let client = client();
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9.254.169.254/",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fd00:ec2::254]/",
    ] {
        assert!(is_refused(&client, url).await, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_redirected_to_the_link_and_all_else_is_called() {
    let server = HttpServer::start(|request| match request.path() {
        "/away" => Reply::status(302).header("location", "http://169.254.169.254/"),
        _ => Reply::ok("fine"),
    });
    let client = client();
    assert!(is_refused(&client, &format!("{}/away", server.url())).await);
    let port = server.url().rsplit(':').next().expect("a port").to_owned();
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{port}/");
        let request = Request::parse(&url).expect("an address");
        let answer = client.send(&request).await;
        assert_eq!(answer.expect("an answer").status(), 200, "{url}");
    }
}
