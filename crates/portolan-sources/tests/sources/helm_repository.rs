//! Charts from HTTP repositories.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_http::{ByteProgress, Credentials, Tls};
use portolan_oci::Digest;
use portolan_sources::{Access, ChartRequest, Lock, Pin, PinKind, SourceError};
use portolan_testbed::{Authority, HttpServer, Reply, Request};

use crate::desk::{Desk, gzip, options};

const BASIC: &str = "Basic YWRhOmh1bnRlcjI=";

fn index(entries: &str) -> String {
    format!("apiVersion: v1\nentries:\n  web:\n{entries}")
}

/// A repository with three versions, whose archives hold their own path.
fn repository(request: &Request) -> Reply {
    match request.path() {
        "/charts/index.yaml" => Reply::ok(index(
            "  - {name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}\n\
             \x20 - {name: web, version: 1.2.0, urls: [/elsewhere/web-1.2.0.tgz]}\n\
             \x20 - {name: web, version: 2.0.0-rc.1, urls: [web-2.0.0-rc.1.tgz]}\n",
        )),
        path if is_archive(path) => Reply::ok(path.to_owned()),
        _ => Reply::status(404),
    }
}

fn is_archive(path: &str) -> bool {
    path.rsplit('.').next() == Some("tgz")
}

fn request(server: &HttpServer, version: &str) -> ChartRequest {
    ChartRequest {
        repository: format!("{}/charts", server.url()),
        name: "web".to_owned(),
        version: version.to_owned(),
        access: Access::default(),
    }
}

fn with_login(server: &HttpServer, version: &str) -> ChartRequest {
    let mut request = request(server, version);
    request.access.credentials = Some(Credentials::new("ada", "hunter2"));
    request
}

#[tokio::test]
async fn the_newest_version_in_the_range_is_fetched() {
    let server = HttpServer::start(repository);
    let desk = Desk::new();
    for (range, version, content) in [
        ("", "1.2.0", "/elsewhere/web-1.2.0.tgz"),
        ("~1.0", "1.0.0", "/charts/web-1.0.0.tgz"),
        (">=2.0.0-0", "2.0.0-rc.1", "/charts/web-2.0.0-rc.1.tgz"),
    ] {
        let chart = desk.open().chart(&request(&server, range)).await.unwrap();
        assert_eq!(chart.version, version, "{range}");
        assert_eq!(chart.content, content.as_bytes());
        assert_eq!(chart.digest, Digest::of(content.as_bytes()));
    }
}

#[tokio::test]
async fn the_index_is_fetched_once_in_a_run_and_a_chart_once_for_all() {
    let server = HttpServer::start(repository);
    let desk = Desk::new();
    let sources = desk.open();
    let one = request(&server, "1.0.0");
    let two = request(&server, "^1");
    let (a, b, c) = tokio::join!(
        sources.chart(&one),
        sources.chart(&two),
        sources.chart(&one)
    );
    assert_eq!(a.unwrap().version, c.unwrap().version);
    assert_eq!(b.unwrap().version, "1.2.0");
    let count = |path: &str| server.paths().iter().filter(|p| *p == path).count();
    assert_eq!(count("/charts/index.yaml"), 1);
    assert_eq!(count("/charts/web-1.0.0.tgz"), 1);
    desk.open().chart(&one).await.unwrap();
    assert_eq!(
        server.paths().len(),
        3,
        "an exact version needs no network again"
    );
}

#[tokio::test]
async fn a_version_that_a_range_chose_is_known_by_its_own_name_too() {
    let server = HttpServer::start(repository);
    let desk = Desk::new();
    desk.open().chart(&request(&server, "^1")).await.unwrap();
    let exact = desk
        .offline()
        .chart(&request(&server, "1.2.0"))
        .await
        .unwrap();
    assert_eq!(exact.version, "1.2.0");
}

#[tokio::test]
async fn a_compressed_index_is_read() {
    let server = HttpServer::start(|request| match request.path() {
        "/charts/index.yaml" => {
            let text = index("  - {name: web, version: 1.0.0, urls: [x.tgz]}\n");
            Reply::ok(gzip(text.as_bytes())).header("content-encoding", "gzip")
        }
        _ => Reply::ok("chart"),
    });
    let chart = Desk::new()
        .open()
        .chart(&request(&server, ""))
        .await
        .unwrap();
    assert_eq!(chart.version, "1.0.0");
}

#[tokio::test]
async fn a_missing_chart_or_version_is_named() {
    let server = HttpServer::start(repository);
    let url = server.url();
    let error = Desk::new()
        .open()
        .chart(&request(&server, ">9"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot find chart `web` `>9` of `{url}/charts`")
    );
    let gone = HttpServer::start(|_| Reply::status(404));
    let error = Desk::new()
        .open()
        .chart(&request(&gone, ""))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot fetch the index of the chart repository `{}/charts`",
            gone.url()
        )
    );
}

#[tokio::test]
async fn credentials_go_to_the_repository_and_not_to_other_hosts() {
    let other = HttpServer::start(|_| Reply::ok("chart"));
    let elsewhere = other.url();
    let server = HttpServer::start(move |request| {
        if request.header("authorization") != Some(BASIC) {
            return Reply::status(401);
        }
        match request.path() {
            "/charts/index.yaml" => Reply::ok(index(&format!(
                "  - {{name: web, version: 1.0.0, urls: [web.tgz]}}\n\
                 \x20 - {{name: web, version: 2.0.0, urls: ['{elsewhere}/web.tgz']}}\n"
            ))),
            _ => Reply::ok("own"),
        }
    });
    let desk = Desk::new();
    let anonymous = desk.open().chart(&request(&server, "")).await.unwrap_err();
    assert!(matches!(&anonymous, SourceError::Http { source, .. } if source.status() == Some(401)));
    desk.open()
        .chart(&with_login(&server, "1.0.0"))
        .await
        .unwrap();
    desk.open()
        .chart(&with_login(&server, "2.0.0"))
        .await
        .unwrap();
    assert_eq!(other.requests()[0].header("authorization"), None);
    let mut passed = with_login(&server, "2.0.0");
    passed.access.pass_credentials = true;
    Desk::new().open().chart(&passed).await.unwrap();
    assert_eq!(other.requests()[1].header("authorization"), Some(BASIC));
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_host() {
    let other = HttpServer::start(|_| Reply::ok(index("  - {version: 1.0.0, urls: [x]}\n")));
    let elsewhere = format!("{}/index.yaml", other.url());
    let server = HttpServer::start(move |_| Reply::redirect(elsewhere.clone()));
    let _ = Desk::new().open().chart(&with_login(&server, "")).await;
    assert_eq!(other.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_no_entry() {
    let server = HttpServer::start(|request| match repository(request) {
        reply if is_archive(request.path()) => {
            Reply::ok(vec![b'x'; 100_000]).cut_after(reply.body.len())
        }
        reply => reply,
    });
    let desk = Desk::new();
    let error = desk
        .open()
        .chart(&request(&server, "1.0.0"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot fetch chart `web` `1.0.0` of `{}/charts`",
            server.url()
        )
    );
    assert_eq!(desk.entries(), 0);
}

#[tokio::test]
async fn a_chart_with_another_digest_than_the_index_says_is_refused() {
    let server = HttpServer::start(|request| match request.path() {
        "/charts/index.yaml" => {
            let digest = Digest::of(b"good");
            Reply::ok(index(&format!(
                "  - {{version: 1.0.0, urls: [x.tgz], digest: {}}}\n",
                digest.hex()
            )))
        }
        _ => Reply::ok("evil"),
    });
    let error = Desk::new()
        .open()
        .chart(&request(&server, ""))
        .await
        .unwrap_err();
    assert!(matches!(error, SourceError::WrongDigest { .. }), "{error}");
}

#[tokio::test]
async fn a_chart_or_index_without_end_is_refused() {
    let server = HttpServer::start(repository);
    let mut small = options();
    small.limits.chart_bytes = 10;
    let desk = Desk::new();
    let sources = desk.open_with(Lock::default(), small);
    let error = sources.chart(&request(&server, "1.0.0")).await.unwrap_err();
    assert!(matches!(error, SourceError::Http { .. }), "{error}");
    assert_eq!(desk.entries(), 0);

    let bomb = HttpServer::start(|_| Reply::ok(gzip(&vec![b' '; 1_000_000])));
    let mut small = options();
    small.limits.index_bytes = 100_000;
    let sources = desk.open_with(Lock::default(), small);
    let error = sources.chart(&request(&bomb, "")).await.unwrap_err();
    assert!(matches!(error, SourceError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_repository_with_its_own_authority_is_trusted_when_given() {
    let authority = Authority::new();
    let server = HttpServer::start_tls(&authority, repository);
    let mut trusting = request(&server, "1.0.0");
    let error = Desk::new().open().chart(&trusting).await.unwrap_err();
    assert!(matches!(error, SourceError::Http { .. }), "{error}");
    trusting.access.tls = Some(Tls {
        authorities: vec![authority.certificate.clone()],
        ..Tls::default()
    });
    Desk::new().open().chart(&trusting).await.unwrap();
}

fn with_digest(digest: &'static str) -> HttpServer {
    HttpServer::start(move |request| match request.path() {
        "/charts/index.yaml" => Reply::ok(index(&format!(
            "  - {{name: web, version: 1.0.0, digest: '{digest}', urls: [x.tgz]}}\n"
        ))),
        _ => Reply::ok("chart"),
    })
}

/// What cannot be checked must not pass for checked.
#[tokio::test]
async fn a_digest_in_an_unknown_form_is_refused() {
    for digest in ["sha512:00", "md5:11", "nonsense"] {
        let server = with_digest(digest);
        let sources = Desk::new().open();
        let error = sources.chart(&request(&server, "")).await.unwrap_err();
        assert!(
            matches!(error, SourceError::UnknownDigest { .. }),
            "{error}"
        );
    }
}

fn pinned(server: &HttpServer, url: &str) -> Lock {
    let mut lock = Lock::default();
    let pin = Pin {
        kind: PinKind::Chart,
        url: url.to_owned(),
        version: "1.0.0".to_owned(),
        digest: Digest::of(b"/charts/web-1.0.0.tgz").to_string(),
    };
    lock.insert(format!("chart {}/charts web 1.0.0", server.url()), pin);
    lock
}

#[tokio::test]
async fn a_locked_chart_is_not_fetched_from_a_place_that_the_repository_does_not_name() {
    let server = HttpServer::start(repository);
    let elsewhere = HttpServer::start(|_| Reply::ok("/charts/web-1.0.0.tgz"));
    let lock = pinned(&server, &format!("{}/web.tgz", elsewhere.url()));
    let sources = Desk::new().open_with(lock, options());
    let error = sources.chart(&request(&server, "1.0.0")).await.unwrap_err();
    assert!(
        matches!(error, SourceError::PinnedElsewhere { .. }),
        "{error}"
    );
    assert!(elsewhere.requests().is_empty());
    let lock = pinned(&server, &format!("{}/charts/web-1.0.0.tgz", server.url()));
    let sources = Desk::new().open_with(lock, options());
    sources.chart(&request(&server, "1.0.0")).await.unwrap();
}

/// Chart repositories on one host often keep their archives on another.
#[tokio::test]
async fn a_locked_chart_is_fetched_from_another_host_that_the_index_names() {
    let elsewhere = HttpServer::start(|_| Reply::ok("/charts/web-1.0.0.tgz"));
    let archive = format!("{}/web-1.0.0.tgz", elsewhere.url());
    let named = archive.clone();
    let server = HttpServer::start(move |_| {
        Reply::ok(index(&format!(
            "  - {{name: web, version: 1.0.0, urls: ['{named}']}}\n"
        )))
    });
    let sources = Desk::new().open_with(pinned(&server, &archive), options());
    sources.chart(&request(&server, "1.0.0")).await.unwrap();
}

#[tokio::test]
async fn an_index_that_drips_is_given_up() {
    let server =
        HttpServer::start(|_| Reply::ok(vec![b'x'; 10_000]).drip(Duration::from_millis(10)));
    let mut options = options();
    options.http.slow_start = Duration::from_millis(200);
    let sources = Desk::new().open_with(Lock::default(), options);
    let error = sources.chart(&request(&server, "")).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("is too slow"), "{cause}");
}

#[tokio::test]
async fn a_host_out_of_reach_is_the_same_cause_for_every_chart() {
    let gone = HttpServer::start(|_| Reply::status(200));
    let (one, two) = (request(&gone, "1.0.0"), request(&gone, "2.0.0"));
    drop(gone);
    let sources = Desk::new().open();
    let (one, two) = tokio::join!(sources.chart(&one), sources.chart(&two));
    let (one, two) = (one.unwrap_err(), two.unwrap_err());
    assert!(one.unreachable().is_some(), "{one}");
    assert_eq!(one.unreachable(), two.unreachable());
}

#[tokio::test]
async fn downloads_report_their_bytes() {
    let server = HttpServer::start(repository);
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&reported);
    let mut request = request(&server, "1.0.0");
    request.access.progress = ByteProgress::new(move |done, total| {
        listener.lock().unwrap().push((done, total));
    });
    let chart = Desk::new().open().chart(&request).await.unwrap();
    let size = chart.content.len() as u64;
    assert_eq!(reported.lock().unwrap().last(), Some(&(size, Some(size))));
}
