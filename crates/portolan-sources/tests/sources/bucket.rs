//! Buckets of the S3 kind.

use portolan_http::Credentials;
use portolan_sources::{Access, BucketRequest, SourceError};
use portolan_testbed::{HttpServer, Reply, Request};
use portolan_vfs::Vfs as _;

use crate::desk::Desk;

/// A bucket `prod` of three objects on two pages.
fn bucket(request: &Request) -> Reply {
    let page = |keys: &[&str], next: Option<&str>| {
        let objects = keys
            .iter()
            .map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"));
        let objects = objects.collect::<Vec<_>>().concat();
        let more = next.map(|token| {
            format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>")
        });
        Reply::ok(format!(
            "<ListBucketResult>{objects}{}</ListBucketResult>",
            more.unwrap_or_default()
        ))
    };
    match request.target.as_str() {
        "/prod/?list-type=2&prefix=apps%2F" => page(&["apps/a.yaml", "apps/dir/"], Some("2=")),
        "/prod/?continuation-token=2%3D&list-type=2&prefix=apps%2F" => {
            page(&["apps/b c.yaml"], None)
        }
        "/prod/apps/a.yaml" => Reply::ok("a"),
        "/prod/apps/b%20c.yaml" => Reply::ok("b"),
        "/round/?list-type=2&prefix=apps%2F"
        | "/round/?continuation-token=x&list-type=2&prefix=apps%2F" => page(&[], Some("x")),
        "/evil/?list-type=2&prefix=apps%2F" => page(&["../../etc/passwd"], None),
        _ => Reply::status(404),
    }
}

fn request(server: &HttpServer, bucket: &str) -> BucketRequest {
    BucketRequest {
        endpoint: server.host(),
        bucket: bucket.to_owned(),
        prefix: "apps/".to_owned(),
        access: Access {
            plain_http: true,
            ..Access::default()
        },
        ..BucketRequest::default()
    }
}

#[tokio::test]
async fn every_object_below_the_prefix_becomes_a_file() {
    let server = HttpServer::start(bucket);
    let desk = Desk::new();
    let found = desk.open().bucket(&request(&server, "prod")).await.unwrap();
    assert_eq!(found.files.read("/apps/a.yaml".into()).unwrap(), b"a");
    assert_eq!(found.files.read("/apps/b c.yaml".into()).unwrap(), b"b");
    let offline = desk
        .offline()
        .bucket(&request(&server, "prod"))
        .await
        .unwrap();
    assert_eq!(offline.digest, found.digest);
}

#[tokio::test]
async fn requests_are_signed_when_there_is_a_key() {
    let server = HttpServer::start(bucket);
    let mut request = request(&server, "prod");
    request.access.credentials = Some(Credentials::new("KEY", "secret"));
    Desk::new().open().bucket(&request).await.unwrap();
    for sent in server.requests() {
        let header = sent.header("authorization").unwrap();
        assert!(
            header.starts_with("AWS4-HMAC-SHA256 Credential=KEY/"),
            "{header}"
        );
        assert!(!header.contains("secret"));
    }
}

#[tokio::test]
async fn a_key_that_leads_out_of_the_tree_is_refused() {
    let server = HttpServer::start(bucket);
    let error = Desk::new()
        .open()
        .bucket(&request(&server, "evil"))
        .await
        .unwrap_err();
    assert!(matches!(error, SourceError::Archive { .. }), "{error}");
}

#[tokio::test]
async fn a_list_whose_pages_lead_in_a_circle_is_refused() {
    let server = HttpServer::start(bucket);
    let sources = Desk::new().open();
    let error = sources
        .bucket(&request(&server, "round"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("does not end"), "{error}");
    assert_eq!(server.requests().len(), 2);
}
