//! Token services, identity tokens and credential helpers.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use portolan_http::Credentials;
use portolan_oci::{DockerConfig, Repository};
use portolan_testbed::{HttpServer, Reply, Request};

use crate::{anonymous, with_logins};

const BASIC: &str = "Basic YWRhOmh1bnRlcjI=";

/// A registry that hands out tokens at `/token` to whom `may_enter` lets in.
fn registry(may_enter: fn(&Request) -> bool) -> HttpServer {
    HttpServer::start(move |request| {
        let host = request.header("host").unwrap_or_default();
        match (request.path(), request.header("authorization")) {
            ("/token", _) if may_enter(request) => Reply::ok(r#"{"token":"pass"}"#),
            ("/token", _) => Reply::status(401),
            (_, Some("Bearer pass")) => Reply::ok(r#"{"tags":["1"]}"#),
            _ => Reply::status(401).header(
                "www-authenticate",
                format!("Bearer realm=\"http://{host}/token\",service=\"test\""),
            ),
        }
    })
}

fn repository(server: &HttpServer) -> Repository {
    format!("{}/org/app", server.host()).parse().unwrap()
}

#[tokio::test]
async fn an_anonymous_token_opens_a_public_repository() {
    let server = registry(|_| true);
    let client = anonymous();
    client.tags(&repository(&server)).await.unwrap();
    let asked = server.requests().into_iter().find(|r| r.path() == "/token");
    assert_eq!(
        asked.unwrap().target,
        "/token?service=test&scope=repository%3Aorg%2Fapp%3Apull"
    );
    client.tags(&repository(&server)).await.unwrap();
    let tokens = server
        .paths()
        .iter()
        .filter(|path| *path == "/token")
        .count();
    assert_eq!(tokens, 1, "the token is kept");
}

#[tokio::test]
async fn a_login_goes_to_the_token_service_and_not_to_the_registry() {
    let server = registry(|request| request.header("authorization") == Some(BASIC));
    let login = DockerConfig::single(&server.host(), Credentials::new("ada", "hunter2"));
    let tags = with_logins(login).tags(&repository(&server)).await.unwrap();
    assert_eq!(tags, ["1"]);
    let requests = server.requests();
    let mut to_registry = requests.iter().filter(|r| r.path() != "/token");
    assert!(to_registry.all(|r| r.header("authorization") != Some(BASIC)));
}

#[tokio::test]
async fn an_identity_token_is_traded_for_an_access_token() {
    let server = registry(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        request.method == "POST" && body.contains("refresh_token=identity")
    });
    let config = format!(
        r#"{{"auths":{{"{}":{{"identitytoken":"identity"}}}}}}"#,
        server.host()
    );
    let logins = DockerConfig::parse(config.as_bytes()).unwrap();
    with_logins(logins)
        .tags(&repository(&server))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_refused_token_names_the_repository() {
    let server = registry(|_| false);
    let repository = repository(&server);
    let error = anonymous().tags(&repository).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the registry refuses access to `{repository}`: no login is stored for it")
    );
}

/// A registry that sends its readers elsewhere must not make us log in there with the registry's login.
#[tokio::test]
async fn a_login_never_goes_to_a_host_that_the_registry_redirects_to() {
    for challenge in ["Basic realm=\"x\"", "Bearer realm=\"http://HOST/token\""] {
        let elsewhere = HttpServer::start(move |request| {
            let host = request.header("host").unwrap_or_default();
            Reply::status(401).header("www-authenticate", challenge.replace("HOST", host))
        });
        let target = format!("{}/tags", elsewhere.url());
        let registry = HttpServer::start(move |_| Reply::redirect(target.clone()));
        let login = DockerConfig::single(&registry.host(), Credentials::new("ada", "hunter2"));
        let repository = repository(&registry);
        let error = with_logins(login).tags(&repository).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "`{repository}` is redirected to `{}`, which asks for a login: logins go to the registry alone",
                elsewhere.host()
            )
        );
        assert_eq!(elsewhere.paths(), ["/tags"]);
        let requests = elsewhere.requests();
        assert!(requests.iter().all(|r| r.header("authorization").is_none()));
    }
}

#[tokio::test]
async fn a_token_never_goes_to_a_host_that_the_registry_redirects_to() {
    let elsewhere = HttpServer::start(|_| Reply::ok(r#"{"tags":["1"]}"#));
    let target = format!("{}/tags", elsewhere.url());
    let registry = HttpServer::start(move |request| {
        let host = request.header("host").unwrap_or_default();
        match (request.path(), request.header("authorization")) {
            ("/token", _) => Reply::ok(r#"{"token":"pass"}"#),
            (_, Some("Bearer pass")) => Reply::redirect(target.clone()),
            _ => Reply::status(401).header(
                "www-authenticate",
                format!("Bearer realm=\"http://{host}/token\""),
            ),
        }
    });
    anonymous().tags(&repository(&registry)).await.unwrap();
    let requests = elsewhere.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("authorization"), None);
}

/// A redirect that keeps the method would send the form with the refresh token along.
#[tokio::test]
async fn an_identity_token_is_not_posted_to_a_host_that_the_token_service_redirects_to() {
    let elsewhere = HttpServer::start(|_| Reply::ok(r#"{"token":"pass"}"#));
    let target = elsewhere.url();
    let registry = HttpServer::start(move |request| match request.path() {
        "/token" => Reply::status(307).header("location", target.clone()),
        _ => Reply::status(401).header(
            "www-authenticate",
            format!(
                "Bearer realm=\"http://{}/token\"",
                request.header("host").unwrap_or_default()
            ),
        ),
    });
    let config = format!(
        r#"{{"auths":{{"{}":{{"identitytoken":"identity"}}}}}}"#,
        registry.host()
    );
    let logins = DockerConfig::parse(config.as_bytes()).unwrap();
    let listed = with_logins(logins).tags(&repository(&registry)).await;
    assert!(listed.is_err());
    assert!(elsewhere.requests().is_empty());
}

/// Helpers are found on `PATH`, which only another process can have different: the test starts itself again.
#[test]
fn a_credential_helper_is_asked_for_its_registry() {
    let directory = tempfile::tempdir().unwrap();
    let helper = directory.path().join("docker-credential-portolan-test");
    let script = "#!/bin/sh\nread registry\n\
        [ \"$registry\" = known.example ] && { echo '{\"Username\":\"ada\",\"Secret\":\"hunter2\"}'; exit 0; }\n\
        [ \"$registry\" = broken.example ] && { echo 'key ring is locked'; exit 1; }\n\
        echo 'credentials not found in native keychain'; exit 1\n";
    std::fs::write(&helper, script).unwrap();
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "logins::child_with_helpers_on_its_path"])
        .env("PATH", path)
        .env("PORTOLAN_TEST_CHILD", "1")
        .output()
        .unwrap();
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stdout)
    );
}

#[tokio::test]
async fn child_with_helpers_on_its_path() {
    if std::env::var_os("PORTOLAN_TEST_CHILD").is_none() {
        return;
    }
    let config = r#"{"credsStore":"portolan-test","auths":{"file.example":{"auth":"Ym9iOng="}}}"#;
    let config = DockerConfig::parse(config.as_bytes()).unwrap();
    let login = async |registry: &str| {
        let repository: Repository = format!("{registry}/app").parse().unwrap();
        let login = config.login(&repository).await;
        login
            .map(|login| format!("{login:?}"))
            .map_err(|error| error.to_string())
    };
    assert!(login("known.example").await.unwrap().contains("ada"));
    assert!(login("file.example").await.unwrap().contains("bob"));
    assert_eq!(login("other.example").await.unwrap(), "None");
    let broken = login("broken.example").await.unwrap_err();
    assert_eq!(
        broken,
        "the credential helper `docker-credential-portolan-test` failed for `broken.example`: key ring is locked"
    );
}
