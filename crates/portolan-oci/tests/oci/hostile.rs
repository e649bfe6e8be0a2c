//! Servers that lie, break off or go on for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portolan_http::Tls;
use portolan_oci::{Descriptor, Digest, OciError, Registry, RegistryOptions, Repository};
use portolan_testbed::{HttpServer, Reply};

use crate::{anonymous, client, read_blob};

fn repository(server: &HttpServer) -> Repository {
    format!("{}/app", server.host()).parse().unwrap()
}

fn descriptor(content: &[u8]) -> Descriptor {
    Descriptor {
        media_type: String::new(),
        digest: Digest::of(content),
        size: content.len() as u64,
        platform: None,
    }
}

#[tokio::test]
async fn a_manifest_with_another_digest_is_refused() {
    let server = HttpServer::start(|_| Reply::ok(r#"{"layers":[]}"#));
    let reference = repository(&server).digest(Digest::of(b"something else"));
    let error = anonymous().manifest(&reference).await.unwrap_err();
    assert!(matches!(error, OciError::DigestMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_manifest_that_is_not_what_the_header_announces_is_refused() {
    let server = HttpServer::start(|_| {
        let announced = Digest::of(b"announced").to_string();
        Reply::ok(r#"{"layers":[]}"#).header("docker-content-digest", announced)
    });
    let tag = repository(&server).tag("1").unwrap();
    let error = anonymous().manifest(&tag).await.unwrap_err();
    assert!(matches!(error, OciError::DigestMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_manifest_without_end_is_refused() {
    let server = HttpServer::start(|_| Reply::ok(vec![b' '; 5 * 1024 * 1024]));
    let tag = repository(&server).tag("1").unwrap();
    let error = anonymous().manifest(&tag).await.unwrap_err();
    assert!(error.to_string().ends_with("is larger than 4194304 bytes"));
}

#[tokio::test]
async fn a_blob_with_other_bytes_is_refused() {
    let server = HttpServer::start(|_| Reply::ok("evil"));
    let wanted = descriptor(b"good");
    let error = read_blob(&anonymous(), &repository(&server), &wanted)
        .await
        .unwrap_err();
    assert!(matches!(error, OciError::DigestMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_blob_that_is_longer_or_shorter_than_announced_is_refused() {
    let server = HttpServer::start(|_| Reply::ok("four"));
    let registry = anonymous();
    let longer = descriptor(b"fou");
    let error = read_blob(&registry, &repository(&server), &longer)
        .await
        .unwrap_err();
    assert!(
        error.to_string().ends_with("is larger than 3 bytes"),
        "{error}"
    );
    let shorter = descriptor(b"fourth");
    let error = read_blob(&registry, &repository(&server), &shorter)
        .await
        .unwrap_err();
    assert!(error.to_string().ends_with("has 4 bytes, not 6"), "{error}");
}

#[tokio::test]
async fn a_blob_that_breaks_off_is_an_error() {
    let server = HttpServer::start(|_| Reply::ok(vec![b'x'; 100_000]).cut_after(50_000));
    let wanted = descriptor(&vec![b'x'; 100_000]);
    let error = read_blob(&anonymous(), &repository(&server), &wanted)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("broke off after"), "{error}");
}

#[tokio::test]
async fn tags_are_read_page_by_page() {
    let server = HttpServer::start(|request| match request.target.as_str() {
        "/v2/app/tags/list?n=1000" => Reply::ok(r#"{"tags":["a","b"]}"#)
            .header("link", "</v2/app/tags/list?last=b>; rel=\"next\""),
        "/v2/app/tags/list?last=b" => Reply::ok(r#"{"tags":["c"]}"#),
        _ => Reply::status(404),
    });
    let tags = anonymous().tags(&repository(&server)).await.unwrap();
    assert_eq!(tags, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_tag_page_that_leads_to_itself_is_refused_at_once() {
    let server = HttpServer::start(|_| {
        Reply::ok(r#"{"tags":[]}"#).header("link", "</v2/app/tags/list?n=1000>; rel=\"next\"")
    });
    let error = anonymous().tags(&repository(&server)).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("a page leads back to an earlier one"),
        "{text}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn tag_pages_without_end_are_refused_when_their_time_is_up() {
    let page = AtomicUsize::new(0);
    let server = HttpServer::start(move |_| {
        let next = page.fetch_add(1, Ordering::Relaxed);
        let link = format!("</v2/app/tags/list?last={next}>; rel=\"next\"");
        Reply::ok(r#"{"tags":[]}"#).header("link", link)
    });
    let options = RegistryOptions {
        list_timeout: Duration::from_millis(300),
        ..RegistryOptions::default()
    };
    let registry = Registry::new(client(Tls::default()), options);
    let error = registry.tags(&repository(&server)).await.unwrap_err();
    assert!(matches!(error, OciError::EndlessTags { .. }), "{error}");
}

#[tokio::test]
async fn a_tag_list_that_goes_on_elsewhere_is_refused() {
    let server = HttpServer::start(|_| {
        Reply::ok(r#"{"tags":[]}"#).header("link", "<http://elsewhere.invalid/>; rel=\"next\"")
    });
    let error = anonymous().tags(&repository(&server)).await.unwrap_err();
    assert!(matches!(error, OciError::ForeignLink { .. }), "{error}");
}

#[tokio::test]
async fn redirects_in_circles_end() {
    let server = HttpServer::start(|request| Reply::redirect(request.target.clone()));
    let tag = repository(&server).tag("1").unwrap();
    let error = anonymous().manifest(&tag).await.unwrap_err();
    assert!(matches!(error, OciError::Http(_)), "{error}");
    assert!(server.requests().len() <= 12);
}
