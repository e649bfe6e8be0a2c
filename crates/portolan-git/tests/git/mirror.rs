//! Fetching over HTTP from git's own backend, and from files.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_git::{FetchOptions, GitError, Mirror, Wanted};
use portolan_http::{Credentials, Proxy, Tls};
use portolan_testbed::{Authority, HttpServer, Reply, git_backend};
use portolan_vfs::Vfs as _;
use tempfile::TempDir;

use crate::workshop::Workshop;

/// A directory for mirrors.
struct Cache(TempDir);

impl Cache {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> Utf8PathBuf {
        let path = Utf8Path::from_path(self.0.path()).unwrap();
        path.join("git/mirror.git")
    }

    fn mirror(&self, url: &str) -> Mirror {
        let options = FetchOptions {
            proxy: Proxy::None,
            allow_local: true,
            ..FetchOptions::default()
        };
        Mirror::new(&self.path(), url, options).unwrap()
    }
}

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    workshop.write("apps/a.yaml", "one");
    workshop.commit("first");
    workshop.git(&["tag", "-a", "v1.0.0", "-m", "annotated"]);
    workshop.write("apps/a.yaml", "two");
    workshop.commit("second");
    workshop.git(&["branch", "release"]);
    workshop
}

fn serve(workshop: &Workshop) -> HttpServer {
    let root = workshop.path();
    HttpServer::start(move |request| git_backend(root.as_std_path(), request))
}

fn read(mirror: &Mirror, wanted: &Wanted) -> String {
    let commit = mirror.fetch(wanted).unwrap();
    let tree = mirror.repository().unwrap().tree(commit).unwrap();
    String::from_utf8(tree.read("/apps/a.yaml".into()).unwrap()).unwrap()
}

#[test]
fn branches_tags_names_and_commits_are_fetched_over_http() {
    let workshop = workshop();
    let server = serve(&workshop);
    let cache = Cache::new();
    let mirror = cache.mirror(&format!("{}/.git", server.url()));
    assert_eq!(read(&mirror, &Wanted::Branch("main".to_owned())), "two");
    assert_eq!(read(&mirror, &Wanted::Tag("v1.0.0".to_owned())), "one");
    assert_eq!(read(&mirror, &Wanted::Default), "two");
    let name = Wanted::Name("refs/heads/release".to_owned());
    assert_eq!(read(&mirror, &name), "two");
    workshop.git(&["config", "uploadpack.allowReachableSHA1InWant", "true"]);
    let first = workshop.git(&["rev-parse", "HEAD~1"]).parse().unwrap();
    assert_eq!(
        read(
            &Cache::new().mirror(&format!("{}/.git", server.url())),
            &Wanted::Commit(first)
        ),
        "one"
    );
}

#[test]
fn a_branch_that_moved_is_fetched_again() {
    let workshop = workshop();
    let server = serve(&workshop);
    let cache = Cache::new();
    let mirror = cache.mirror(&format!("{}/.git", server.url()));
    let main = Wanted::Branch("main".to_owned());
    assert_eq!(read(&mirror, &main), "two");
    workshop.write("apps/a.yaml", "three");
    workshop.git(&["add", "-A"]);
    workshop.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    assert_eq!(read(&mirror, &main), "three");
    assert_eq!(read(&mirror, &main), "three");
}

#[test]
fn only_the_wanted_commit_is_fetched_and_not_its_history() {
    let workshop = workshop();
    let cache = Cache::new();
    let mirror = cache.mirror(&format!("file://{}", workshop.path()));
    let commit = mirror.fetch(&Wanted::Default).unwrap();
    let repository = mirror.repository().unwrap();
    assert!(mirror.has(commit));
    assert!(repository.is_shallow());
    assert!(repository.resolve(&format!("{commit}~1")).is_err());
}

#[test]
fn the_refs_of_a_remote_are_listed_with_tags_followed() {
    let workshop = workshop();
    let server = serve(&workshop);
    let refs = Cache::new()
        .mirror(&format!("{}/.git", server.url()))
        .refs()
        .unwrap();
    let head = workshop.git(&["rev-parse", "HEAD"]);
    let first = workshop.git(&["rev-parse", "HEAD~1"]);
    let refs: Vec<_> = refs
        .iter()
        .map(|r| (r.name.as_str(), r.commit.to_string()))
        .collect();
    assert_eq!(
        refs,
        [
            ("refs/heads/main", head.clone()),
            ("refs/heads/release", head),
            ("refs/tags/v1.0.0", first),
        ]
    );
}

#[test]
fn an_unknown_branch_is_answered_with_the_nearest_names() {
    let workshop = workshop();
    let server = serve(&workshop);
    let url = format!("{}/.git", server.url());
    let error = Cache::new()
        .mirror(&url)
        .fetch(&Wanted::Branch("relaese".to_owned()))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{url}` has no branch `relaese`, but `release`")
    );
}

#[test]
fn a_login_is_sent_when_the_remote_wants_one_and_never_shown() {
    let workshop = workshop();
    let root = workshop.path();
    let authority = Authority::new();
    let server = HttpServer::start_tls(&authority, move |request| {
        if request.header("authorization") == Some("Basic YWRhOmh1bnRlcjI=") {
            git_backend(root.as_std_path(), request)
        } else {
            Reply::status(401).header("www-authenticate", "Basic realm=\"git\"")
        }
    });
    let url = format!("{}/.git", server.url());
    let cache = Cache::new();
    let with = |credentials: Option<Credentials>| {
        let options = FetchOptions {
            credentials,
            tls: Tls {
                authorities: vec![authority.certificate.clone()],
                ..Tls::default()
            },
            proxy: Proxy::None,
            ..FetchOptions::default()
        };
        Mirror::new(&cache.path(), &url, options)
            .unwrap()
            .fetch(&Wanted::Default)
    };
    let anonymous = with(None).unwrap_err();
    assert_eq!(
        anonymous.to_string(),
        format!("`{url}` refuses access: it wants a login and none is given")
    );
    let wrong = with(Some(Credentials::new("ada", "wrong-password"))).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        format!("`{url}` refuses access: the login was not accepted")
    );
    assert!(!format!("{wrong:?}").contains("wrong-password"));
    with(Some(Credentials::new("ada", "hunter2"))).unwrap();
}

#[test]
fn a_password_is_not_sent_without_tls() {
    let server =
        HttpServer::start(|_| Reply::status(401).header("www-authenticate", "Basic realm=\"git\""));
    let options = FetchOptions {
        credentials: Some(Credentials::new("ada", "hunter2")),
        proxy: Proxy::None,
        ..FetchOptions::default()
    };
    let cache = Cache::new();
    let mirror = Mirror::new(&cache.path(), &server.url(), options).unwrap();
    mirror.fetch(&Wanted::Default).unwrap_err();
    let sent = server.requests();
    assert!(
        sent.iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[test]
fn an_authority_that_nobody_knows_is_not_trusted() {
    let server = HttpServer::start_tls(&Authority::new(), |_| Reply::status(404));
    let error = Cache::new().mirror(&server.url()).fetch(&Wanted::Default);
    assert!(matches!(error, Err(GitError::Fetch { .. })));
    assert!(server.requests().is_empty());
}

#[test]
fn a_server_that_is_not_git_is_a_clear_error() {
    let server = HttpServer::start(|_| Reply::ok("<html>hello</html>"));
    let error = Cache::new()
        .mirror(&server.url())
        .fetch(&Wanted::Default)
        .unwrap_err();
    assert!(matches!(error, GitError::Fetch { .. }), "{error:?}");
    let gone = HttpServer::start(|_| Reply::status(404));
    let error = Cache::new()
        .mirror(&gone.url())
        .fetch(&Wanted::Default)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot fetch default branch from `{}/`", gone.url())
    );
}

#[test]
fn answers_that_break_the_protocol_are_an_error_and_no_panic() {
    let id = "0123456789012345678901234567890123456789";
    let packet = |line: String| format!("{:04x}{line}", line.len() + 4);
    // A symbolic name that is not among the refs.
    let first = format!("{id} HEAD\0shallow symref=NONE:refs/heads/main\n");
    let body = packet("# service=git-upload-pack\n".to_owned())
        + "0000"
        + &packet(first)
        + &packet(format!("{id} refs/heads/main\n"))
        + "0000";
    let server = HttpServer::start(move |_| {
        let kind = "application/x-git-upload-pack-advertisement";
        Reply::ok(body.clone()).header("content-type", kind)
    });
    let cache = Cache::new();
    let error = cache.mirror(&server.url()).refs().unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("does not answer as a git server does"),
        "{error}"
    );
}

#[test]
fn many_threads_fetch_into_one_mirror() {
    let workshop = workshop();
    let server = serve(&workshop);
    let cache = Cache::new();
    let mirror = cache.mirror(&format!("{}/.git", server.url()));
    std::thread::scope(|scope| {
        for wanted in [
            Wanted::Default,
            Wanted::Branch("main".to_owned()),
            Wanted::Branch("release".to_owned()),
            Wanted::Tag("v1.0.0".to_owned()),
        ] {
            let mirror = &mirror;
            scope.spawn(move || mirror.fetch(&wanted).unwrap());
        }
    });
}

#[test]
fn addresses_that_would_start_programs_are_refused() {
    let cache = Cache::new();
    for url in [
        "ssh://git@example.com/x",
        "git@example.com:x",
        "ext::sh -c id",
        "/etc",
        "file:///x",
    ] {
        let error = Mirror::new(&cache.path(), url, FetchOptions::default()).unwrap_err();
        assert!(matches!(error, GitError::Scheme { .. }), "{url}");
    }
}

/// A closed port of this machine.
fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_host_out_of_reach_is_named_with_the_reason() {
    let port = closed_port();
    let cache = Cache::new();
    let mirror = cache.mirror(&format!("http://127.0.0.1:{port}/repo.git"));
    let text = format!("cannot reach `127.0.0.1:{port}`: it refuses connections");
    assert_eq!(unreachable(&mirror), text);
    let mirror = Cache::new().mirror("http://nowhere.invalid/repo.git");
    let text = "cannot reach `nowhere.invalid`: its name cannot be resolved";
    assert_eq!(unreachable(&mirror), text);
}

fn unreachable(mirror: &Mirror) -> String {
    match mirror.fetch(&Wanted::Default).unwrap_err() {
        GitError::Unreachable { source, .. } => source.to_string(),
        other => format!("another error: {other:?}"),
    }
}

/// Every byte comes before a read would time out.
#[test]
fn a_server_that_drips_is_given_up() {
    let server = HttpServer::start(|_| {
        let body = b"001e# service=git-upload-pack\n0000".repeat(100);
        Reply::ok(body)
            .header(
                "content-type",
                "application/x-git-upload-pack-advertisement",
            )
            .drip(Duration::from_millis(20))
    });
    let options = FetchOptions {
        proxy: Proxy::None,
        timeout: Duration::from_millis(500),
        ..FetchOptions::default()
    };
    let cache = Cache::new();
    let mirror = Mirror::new(&cache.path(), &format!("{}/r.git", server.url()), options).unwrap();
    let error = mirror.fetch(&Wanted::Default).unwrap_err();
    assert!(matches!(error, GitError::TooSlow { .. }), "{error:?}");
}

#[test]
fn a_list_of_refs_without_end_is_given_up_at_its_limit() {
    let id = "0123456789012345678901234567890123456789";
    let packet = |line: String| format!("{:04x}{line}", line.len() + 4);
    let many: String = (0..20_000)
        .map(|n| packet(format!("{id} refs/heads/{n}\n")))
        .collect();
    let body = packet("# service=git-upload-pack\n".to_owned())
        + "0000"
        + &packet(format!("{id} HEAD\0shallow\n"))
        + &many
        + "0000";
    let server = HttpServer::start(move |_| {
        let kind = "application/x-git-upload-pack-advertisement";
        Reply::ok(body.clone()).header("content-type", kind)
    });
    let options = FetchOptions {
        proxy: Proxy::None,
        max_ref_bytes: 100_000,
        ..FetchOptions::default()
    };
    let cache = Cache::new();
    let mirror = Mirror::new(&cache.path(), &server.url(), options).unwrap();
    for error in [
        mirror.refs().unwrap_err(),
        mirror.fetch(&Wanted::Default).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            format!("`{}/` sends more than 100000 bytes", server.url())
        );
    }
}

#[test]
fn a_pack_is_charged_as_it_comes() {
    let workshop = Workshop::new();
    // Not compressible, or nearly so: each line is another hash.
    let lines = (0..5_000_u32).map(|n| format!("{:x}\n", n.wrapping_mul(2_654_435_761)));
    workshop.write("apps/a.yaml", &lines.collect::<String>());
    workshop.commit("first");
    let server = serve(&workshop);
    let options = FetchOptions {
        proxy: Proxy::None,
        max_bytes: 10_000,
        ..FetchOptions::default()
    };
    let cache = Cache::new();
    let mirror = Mirror::new(&cache.path(), &server.url(), options).unwrap();
    let error = mirror.fetch(&Wanted::Default).unwrap_err();
    assert!(
        matches!(error, GitError::TooLarge { limit: 10_000, .. }),
        "{error:?}"
    );
}

#[test]
fn a_login_never_goes_to_a_host_that_the_remote_redirects_to() {
    let elsewhere = HttpServer::start(|_| {
        Reply::status(401).header("www-authenticate", "Basic realm=\"elsewhere\"")
    });
    let target = elsewhere.url();
    let server = HttpServer::start(move |r| Reply::redirect(format!("{target}{}", r.target)));
    let options = FetchOptions {
        credentials: Some(Credentials::new("ada", "hunter2")),
        proxy: Proxy::None,
        ..FetchOptions::default()
    };
    let cache = Cache::new();
    let mirror = Mirror::new(&cache.path(), &format!("{}/r.git", server.url()), options).unwrap();
    assert!(mirror.fetch(&Wanted::Default).is_err());
    let requests = elsewhere.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|r| r.header("authorization").is_none()));
}
