//! Sources and charts from elsewhere: fetched once, pinned, built offline; and what is said when they cannot be had.

mod portolan;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::{Compression, write::GzEncoder};
use portolan::Answer;
use portolan::repository::{repository, write};
use portolan_testbed::{HttpServer, Registry, RegistrySetup, Reply, git_backend};
use tempfile::TempDir;

const KUSTOMIZATION: &str = "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  path: ./apps
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
";

/// A repository with a release of the chart `web`, from a source that the test writes.
fn with_release(source: &str, chart: &str) -> TempDir {
    let release = format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: apps}}\nspec:\n  \
         interval: 1h\n{chart}"
    );
    repository(&[
        ("cluster/apps.yaml", KUSTOMIZATION),
        ("apps/release.yaml", &release),
        ("apps/source.yaml", source),
        (
            "apps/plain.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: apps}\n",
        ),
    ])
}

fn helm_repository(url: &str) -> TempDir {
    with_range(url, "^1")
}

fn with_range(url: &str, range: &str) -> TempDir {
    let source = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: charts, namespace: apps}}\n\
         spec: {{url: \"{url}\"}}\n"
    );
    let chart = format!(
        "  chart: {{spec: {{chart: web, version: \"{range}\", sourceRef: {{kind: HelmRepository, name: charts}}}}}}\n"
    );
    with_release(&source, &chart)
}

/// A repository with a Kustomization that builds the files of another source.
fn with_source(kind: &str, spec: &str) -> TempDir {
    let source = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: other, namespace: flux-system}}\n\
         spec: {spec}\n"
    );
    let other = KUSTOMIZATION
        .replace("name: apps,", "name: other,")
        .replace("path: ./apps", "path: ./deploy")
        .replace(
            "kind: GitRepository, name: flux-system",
            &format!("kind: {kind}, name: other"),
        );
    repository(&[
        ("cluster/source.yaml", &source),
        ("cluster/other.yaml", &other),
    ])
}

fn run(repository: &TempDir, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .args(args)
        .args(["--repo", ".", "--path", "cluster"])
        .current_dir(repository.path())
        .env("HOME", repository.path())
        .env("PORTOLAN_CACHE", repository.path().join("cache"))
        .env_remove("DOCKER_CONFIG")
        .env_remove("NETRC")
        .stdin(Stdio::null());
    for proxy in [
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        command.env_remove(proxy);
    }
    Answer::of(
        &command
            .output()
            .expect("the binary was built with this test"),
    )
}

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        let added = builder.append_data(&mut header, path, text.as_bytes());
        added.expect("memory takes everything");
    }
    let plain = builder.into_inner().expect("memory takes everything");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&plain).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn chart(version: &str) -> Vec<u8> {
    packed(&[
        (
            "web/Chart.yaml",
            &format!("apiVersion: v2\nname: web\nversion: {version}\n"),
        ),
        (
            "web/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-chart}\ndata: {version: \"{{ .Chart.Version }}\"}\n",
        ),
    ])
}

const INDEX: &str = "apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.2.0, urls: [web-1.2.0.tgz]}\n  \
                     - {name: web, version: 2.0.0, urls: [web-2.0.0.tgz]}\n";

fn charts() -> HttpServer {
    HttpServer::start(|request| match request.path() {
        "/index.yaml" => Reply::ok(INDEX),
        "/web-1.2.0.tgz" => Reply::ok(chart("1.2.0")),
        _ => Reply::status(404),
    })
}

/// What is said of a release whose chart cannot be had; everything else is still built.
#[track_caller]
fn assert_refused(repository: &TempDir, expected: &[&str]) {
    let answer = run(repository, &["build", "all"]);
    assert_eq!(answer.code, 1, "{answer}");
    for text in expected {
        assert!(answer.stderr.contains(text), "{text}\n{answer}");
    }
}

#[test]
fn what_was_fetched_and_pinned_is_built_offline() {
    let server = charts();
    let repository = helm_repository(&server.url());
    let fetched = run(&repository, &["fetch"]);
    assert_eq!(fetched.code, 0, "{fetched}");
    assert!(
        fetched.stderr.contains("fetching chart `web` `^1` of"),
        "{fetched}"
    );
    assert!(fetched.stdout.contains("1.2.0"), "{fetched}");
    let lock = std::fs::read_to_string(repository.path().join("portolan.lock")).expect("a lock");
    assert!(lock.contains("\"version\": \"1.2.0\""), "{lock}");
    drop(server);
    let built = run(&repository, &["build", "all", "--offline"]);
    assert_eq!((built.code, built.stderr.as_str()), (0, ""), "{built}");
    assert!(built.stdout.contains("version: 1.2.0"), "{built}");
}

#[test]
fn a_pin_holds_until_it_is_updated() {
    let newer = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&newer);
    let server = HttpServer::start(move |request| match request.path() {
        "/index.yaml" if seen.load(std::sync::atomic::Ordering::Relaxed) => {
            Reply::ok(INDEX.replace("2.0.0", "1.9.0"))
        }
        "/index.yaml" => Reply::ok(INDEX),
        "/web-1.2.0.tgz" => Reply::ok(chart("1.2.0")),
        "/web-1.9.0.tgz" => Reply::ok(chart("1.9.0")),
        _ => Reply::status(404),
    });
    let repository = helm_repository(&server.url());
    run(&repository, &["fetch"]);
    newer.store(true, std::sync::atomic::Ordering::Relaxed);
    let built = run(&repository, &["build", "all"]);
    assert!(built.stdout.contains("version: 1.2.0"), "{built}");
    let kept = run(&repository, &["fetch"]);
    assert!(kept.stdout.contains("kept"), "{kept}");
    let updated = run(&repository, &["fetch", "--update"]);
    assert!(updated.stdout.contains("changed"), "{updated}");
    let built = run(&repository, &["build", "all"]);
    assert!(built.stdout.contains("version: 1.9.0"), "{built}");
}

#[test]
fn offline_names_what_would_be_fetched_and_what_to_do() {
    let repository = helm_repository("https://charts.example");
    let answer = run(&repository, &["build", "all", "--offline"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("name: plain"), "{answer}");
    for text in [
        "HelmRelease apps/web",
        "chart `web` `^1` of `https://charts.example` is not in the cache, and --offline fetches nothing",
        "hint: `portolan fetch` brings it while there is a network",
    ] {
        assert!(answer.stderr.contains(text), "{text}\n{answer}");
    }
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    let server = charts();
    let url = server.url();
    drop(server);
    assert_refused(
        &helm_repository(&url),
        &[
            "cannot fetch",
            &url,
            "hint: check the network and the address",
            "apps/",
        ],
    );
}

#[test]
fn a_refused_login_says_where_logins_come_from() {
    let server = HttpServer::start(|_| Reply::status(401));
    assert_refused(
        &helm_repository(&server.url()),
        &["answered 401 (Unauthorized)", "hint: log in with"],
    );
}

#[test]
fn a_download_that_breaks_off_is_told_and_not_kept() {
    let server = HttpServer::start(|request| match request.path() {
        "/index.yaml" => Reply::ok(INDEX),
        _ => Reply {
            cut_after: Some(20),
            ..Reply::ok(chart("1.2.0"))
        },
    });
    assert_refused(
        &helm_repository(&server.url()),
        &["broke off after 20 bytes"],
    );
}

#[test]
fn content_with_another_digest_is_refused() {
    let wrong = INDEX.replace(
        "version: 1.2.0,",
        &format!("version: 1.2.0, digest: {},", "ab".repeat(32)),
    );
    let server = HttpServer::start(move |request| match request.path() {
        "/index.yaml" => Reply::ok(wrong.as_str()),
        _ => Reply::ok(chart("1.2.0")),
    });
    assert_refused(
        &helm_repository(&server.url()),
        &[
            "has the digest `sha256:",
            "but the repository's index says `sha256:abab",
        ],
    );
}

#[test]
fn a_range_that_nothing_fits_and_one_that_is_none_are_told() {
    let server = charts();
    assert_refused(
        &with_range(&server.url(), "^7"),
        &["chart `web` `^7`", "source.yaml"],
    );
    assert_refused(&with_range(&server.url(), "not a range"), &["not a range"]);
}

#[test]
fn every_failure_of_a_fetch_is_told_and_the_rest_is_pinned() {
    let server = charts();
    let repository = helm_repository(&server.url());
    let second =
        std::fs::read_to_string(repository.path().join("apps/release.yaml")).expect("a file");
    for name in ["missing", "gone"] {
        let other = second
            .replace("name: web,", &format!("name: {name},"))
            .replace("chart: web,", &format!("chart: {name},"));
        write(repository.path(), &format!("apps/{name}.yaml"), &other);
    }
    let answer = run(&repository, &["fetch"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(
        answer.stderr.contains("HelmRelease apps/missing"),
        "{answer}"
    );
    assert!(answer.stderr.contains("HelmRelease apps/gone"), "{answer}");
    assert!(answer.stdout.contains("1.2.0"), "{answer}");
    assert!(repository.path().join("portolan.lock").exists());
}

fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    assert!(done.expect("git is there").success(), "git {args:?}");
}

const DEPLOYED: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-elsewhere, namespace: apps}\n";

fn git_server() -> (TempDir, HttpServer) {
    let directory = repository(&[("deploy/cm.yaml", DEPLOYED)]);
    let root = directory.path().to_owned();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "one"]);
    git(&root, &["tag", "v1.0.0"]);
    let server = HttpServer::start(move |request| git_backend(&root, request));
    (directory, server)
}

#[test]
fn a_git_repository_is_fetched_at_its_reference() {
    let (_directory, server) = git_server();
    for reference in [
        "{branch: main}",
        "{tag: v1.0.0}",
        "{semver: \">=1.0\"}",
        "{name: refs/heads/main}",
    ] {
        let spec = format!("{{url: \"{}/.git\", ref: {reference}}}", server.url());
        let answer = run(&with_source("GitRepository", &spec), &["build", "all"]);
        assert_eq!(answer.code, 0, "{reference}\n{answer}");
        assert!(
            answer.stdout.contains("name: from-elsewhere"),
            "{reference}\n{answer}"
        );
        assert!(
            answer.stderr.contains("fetching git repository"),
            "{answer}"
        );
    }
}

#[test]
fn a_branch_that_does_not_exist_is_told_where_the_source_is_declared() {
    let (_directory, server) = git_server();
    let spec = format!("{{url: \"{}/.git\", ref: {{branch: mian}}}}", server.url());
    let answer = run(&with_source("GitRepository", &spec), &["build", "all"]);
    assert_eq!(answer.code, 1, "{answer}");
    for text in ["mian", "main", "cluster/"] {
        assert!(answer.stderr.contains(text), "{text}\n{answer}");
    }
}

/// A clone knows its own address: no network is needed for it.
#[test]
fn a_source_that_is_this_repository_is_its_work_tree() {
    let repository = with_source(
        "GitRepository",
        "{url: \"ssh://git@example.com/ada/home.git\", ref: {branch: main}}",
    );
    write(repository.path(), "deploy/cm.yaml", DEPLOYED);
    git(repository.path(), &["init", "-q", "-b", "main"]);
    git(
        repository.path(),
        &["remote", "add", "origin", "https://example.com/ada/home"],
    );
    let answer = run(&repository, &["build", "all", "--offline"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
    assert!(answer.stdout.contains("name: from-elsewhere"), "{answer}");
}

#[test]
fn an_artifact_is_pulled_from_a_registry_and_an_unknown_tag_is_told() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    push(
        &registry,
        "manifests",
        "v1",
        &packed(&[("deploy/cm.yaml", DEPLOYED)]),
    );
    let spec = |tag: &str| {
        format!(
            "{{url: \"oci://{}/manifests\", insecure: true, ref: {{tag: {tag}}}}}",
            registry.host()
        )
    };
    let answer = run(
        &with_source("OCIRepository", &spec("v1")),
        &["build", "all"],
    );
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.contains("name: from-elsewhere"), "{answer}");
    let answer = run(
        &with_source("OCIRepository", &spec("v9")),
        &["build", "all"],
    );
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stderr.contains("is not in the registry"), "{answer}");
}

#[test]
fn a_chart_of_a_registry_gets_the_digest_of_its_artifact_into_its_version() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let digest = push(&registry, "charts/web", "1.2.0", &chart("1.2.0"));
    let source = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: web, namespace: apps}}\n\
         spec: {{url: \"oci://{}/charts/web\", insecure: true, ref: {{semver: \"^1\"}}}}\n",
        registry.host()
    );
    let repository = with_release(&source, "  chartRef: {kind: OCIRepository, name: web}\n");
    let answer = run(&repository, &["build", "hr"]);
    assert_eq!(answer.code, 0, "{answer}");
    let short = digest
        .rsplit(':')
        .next()
        .and_then(|hex| hex.get(..12))
        .expect("a digest");
    assert!(
        answer.stdout.contains(&format!("version: 1.2.0+{short}")),
        "{answer}"
    );
}

/// Pushes an artifact of one layer and returns its digest.
fn push(registry: &Registry, name: &str, tag: &str, layer: &[u8]) -> String {
    use portolan_oci::{Digest, media_type};
    let config = Digest::of(b"{}");
    registry.push_blob(name, &config.to_string(), b"{}");
    let digest = Digest::of(layer);
    registry.push_blob(name, &digest.to_string(), layer);
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}","config":{{"mediaType":"application/json","digest":"{config}","size":2}},"layers":[{{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"{digest}","size":{}}}]}}"#,
        media_type::OCI_MANIFEST,
        layer.len()
    );
    registry.push_manifest(name, tag, media_type::OCI_MANIFEST, manifest.as_bytes());
    Digest::of(manifest.as_bytes()).to_string()
}

#[test]
fn values_files_of_a_fetched_chart_stand_for_its_values() {
    let archive = packed(&[
        (
            "web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        ("web/values.yaml", "colour: none\nsize: small\n"),
        ("web/values-blue.yaml", "colour: blue\n"),
        (
            "web/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Values.colour }}-{{ .Values.size }}\"}\n",
        ),
    ]);
    let server = HttpServer::start(move |request| match request.path() {
        "/index.yaml" => Reply::ok(
            "apiVersion: v1\nentries:\n  web: [{name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}]\n",
        ),
        _ => Reply::ok(archive.clone()),
    });
    let repository = helm_repository(&server.url());
    let release = repository.path().join("apps/release.yaml");
    let text = std::fs::read_to_string(&release).expect("it was written");
    let built = |files: &str| {
        let with = format!("version: \"^1\", {files}, ");
        let text = text.replace("version: \"^1\", ", &with);
        std::fs::write(&release, text).expect("it can be written");
        run(&repository, &["build", "hr"])
    };
    let answer = built("valuesFiles: [values.yaml, values-blue.yaml]");
    assert!(answer.stdout.contains("name: blue-small"), "{answer}");
    let answer = built("valuesFiles: [none.yaml]");
    let told = "cannot read values file `none.yaml`: it does not exist";
    assert!(answer.stderr.contains(told), "{answer}");
    let answer = built("valuesFiles: [none.yaml, values.yaml], ignoreMissingValuesFiles: true");
    assert!(answer.stdout.contains("name: none-small"), "{answer}");
}

/// What `run` builds of a repository with a chart mapped to the given files.
fn mapped(repository: &TempDir, mapping: &str) -> Answer {
    run(
        repository,
        &[
            "build",
            "hr",
            "web",
            "-n",
            "apps",
            "--offline",
            "--source",
            mapping,
        ],
    )
}

const LOCAL_CHART: [(&str, &str); 2] = [
    ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.5.0\n"),
    (
        "templates/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-files}\n",
    ),
];

/// Files that stand for a source in every way that a user may have them at hand.
fn local_charts() -> TempDir {
    let files = tempfile::tempdir().expect("a temporary directory");
    for (path, text) in LOCAL_CHART {
        write(files.path(), &format!("web/{path}"), text);
        write(files.path(), &format!("several/web/{path}"), text);
        write(files.path(), &format!("several/db/{path}"), text);
    }
    let archive = packed(
        &LOCAL_CHART
            .map(|(path, text)| (path, text))
            .map(|(path, text)| {
                (
                    if path == "Chart.yaml" {
                        "web/Chart.yaml"
                    } else {
                        "web/templates/cm.yaml"
                    },
                    text,
                )
            }),
    );
    std::fs::write(files.path().join("web.tgz"), &archive).expect("a file");
    std::fs::create_dir(files.path().join("packed")).expect("a directory");
    std::fs::write(files.path().join("packed/web-1.5.0.tgz"), &archive).expect("a file");
    files
}

#[test]
fn files_stand_for_the_charts_of_a_helm_repository_in_every_form() {
    let files = local_charts();
    let repository = helm_repository("https://nowhere.invalid/charts");
    for path in ["web", "several", "web.tgz", "packed"] {
        for name in ["charts", "apps/charts", "HelmRepository/apps/charts"] {
            let mapping = format!("{name}={}", files.path().join(path).display());
            let answer = mapped(&repository, &mapping);
            assert_eq!(answer.code, 0, "{mapping}: {answer}");
            assert!(answer.stdout.contains("name: from-files"), "{answer}");
        }
    }
}

#[test]
fn files_stand_for_an_oci_repository_behind_a_chart_reference() {
    let files = local_charts();
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: chart, namespace: apps}\n\
                  spec: {url: oci://nowhere.invalid/charts/web, ref: {tag: 1.5.0}}\n";
    let repository = with_release(source, "  chartRef: {kind: OCIRepository, name: chart}\n");
    for path in ["web", "several", "web.tgz", "packed"] {
        for name in ["chart", "apps/chart", "OCIRepository/apps/chart"] {
            let mapping = format!("{name}={}", files.path().join(path).display());
            let answer = mapped(&repository, &mapping);
            assert_eq!(answer.code, 0, "{mapping}: {answer}");
            assert!(answer.stdout.contains("name: from-files"), "{answer}");
        }
    }
}

#[test]
fn files_stand_for_the_files_of_a_source_as_a_directory_or_an_archive() {
    const MAP: &str =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-files, namespace: a}\n";
    let files = tempfile::tempdir().expect("a temporary directory");
    write(files.path(), "tree/deploy/map.yaml", MAP);
    let archive = packed(&[("deploy/map.yaml", MAP)]);
    std::fs::write(files.path().join("tree.tgz"), archive).expect("a file");
    for (kind, spec) in [
        ("GitRepository", "{url: https://nowhere.invalid/other}"),
        ("OCIRepository", "{url: oci://nowhere.invalid/other}"),
        ("Bucket", "{endpoint: nowhere.invalid, bucketName: other}"),
        ("ExternalArtifact", "{}"),
    ] {
        let repository = with_source(kind, spec);
        for path in ["tree", "tree.tgz"] {
            let mapping = format!("other={}", files.path().join(path).display());
            let args = ["build", "ks", "other", "--offline", "--source", &mapping];
            let answer = run(&repository, &args);
            assert_eq!(answer.code, 0, "{kind} {path}: {answer}");
            assert!(answer.stdout.contains("name: from-files"), "{answer}");
        }
    }
}

#[test]
fn files_for_a_source_that_is_not_there_are_refused_with_the_nearest_name() {
    let repository = helm_repository("https://nowhere.invalid/charts");
    let answer = run(
        &repository,
        &["build", "all", "--offline", "--source", "chart=."],
    );
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer
            .stderr
            .contains("error: --source chart: there is no such source")
            && answer.stderr.contains("HelmRepository/apps/charts"),
        "{answer}"
    );
}

/// The file is broken, and nothing in the repository needs a login.
#[test]
fn a_broken_docker_configuration_matters_only_to_registries() {
    let server = charts();
    let repository = helm_repository(&server.url());
    write(repository.path(), ".docker/config.json", "{");
    let answer = run(&repository, &["build", "hr", "web", "-n", "apps"]);
    assert_eq!(answer.code, 0, "{answer}");
    let registry =
        HttpServer::start(|_| Reply::status(401).header("www-authenticate", "Basic realm=\"x\""));
    let source = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: chart, namespace: apps}}\n\
         spec: {{url: \"oci://{}/web\", ref: {{tag: 1.5.0}}}}\n",
        registry.host()
    );
    let repository = with_release(&source, "  chartRef: {kind: OCIRepository, name: chart}\n");
    write(repository.path(), ".docker/config.json", "{");
    let answer = run(&repository, &["build", "hr", "web", "-n", "apps"]);
    assert_ne!(answer.code, 0, "{answer}");
    assert!(
        answer.stderr.contains("cannot use the logins in `")
            && answer.stderr.contains(".docker/config.json")
            && answer.stderr.contains("DOCKER_CONFIG"),
        "{answer}"
    );
}

/// Nearly all the time without a network went into trying the same hosts again for each chart.
#[test]
fn a_host_out_of_reach_is_asked_once_in_a_run() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let mut files = vec![
        ("cluster/apps.yaml".to_owned(), KUSTOMIZATION.to_owned()),
        (
            "apps/source.yaml".to_owned(),
            format!(
                "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: charts, namespace: apps}}\n\
                 spec: {{url: \"http://127.0.0.1:{port}\"}}\n"
            ),
        ),
    ];
    for number in 0..40 {
        files.push((
            format!("apps/release-{number}.yaml"),
            format!(
                "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web-{number}, namespace: apps}}\n\
                 spec:\n  interval: 1h\n  chart: {{spec: {{chart: web-{number}, version: 1.0.0, sourceRef: {{kind: HelmRepository, name: charts}}}}}}\n"
            ),
        ));
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let repository = repository(&files);
    let started = std::time::Instant::now();
    let answer = run(&repository, &["build", "all"]);
    assert_ne!(answer.code, 0, "{answer}");
    let cause = format!("cannot reach `127.0.0.1:{port}`: it refuses connections");
    assert!(answer.stderr.contains(&cause), "{answer}");
    // One request with its retries takes 1.25 seconds; forty of them would take more than six.
    assert!(started.elapsed().as_secs() < 6, "{:?}", started.elapsed());
}

#[test]
fn the_cache_is_listed_and_emptied() {
    let server = charts();
    let repository = helm_repository(&server.url());
    run(&repository, &["fetch"]);
    let list = cache(&repository, &["list", "-o", "json"]);
    assert_eq!(list.code, 0, "{list}");
    let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(list["apiVersion"], "portolan.dev/v1alpha1");
    assert_eq!(list["kind"], "CacheList");
    let item = &list["items"][0];
    assert_eq!(item["kind"], "chart");
    assert_eq!(item["source"], format!("{}/web-1.2.0.tgz", server.url()));
    assert_eq!(item["version"], "1.2.0");
    let kept = cache(&repository, &["gc", "--lock", "portolan.lock"]);
    assert!(kept.stderr.contains("removed 0 of 1"), "{kept}");
    let fresh = cache(&repository, &["gc", "--max-size", "0"]);
    assert!(
        fresh.stderr.contains("1 stay because they are in use"),
        "{fresh}"
    );
    let missing = cache(&repository, &["gc", "--lock", "none.lock"]);
    assert_eq!(missing.code, 2, "{missing}");
}

fn cache(repository: &TempDir, args: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .arg("cache")
        .args(args)
        .current_dir(repository.path())
        .env("PORTOLAN_CACHE", repository.path().join("cache"))
        .output();
    Answer::of(&output.expect("the binary was built with this test"))
}
