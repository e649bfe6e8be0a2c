//! A repository whose charts all lie elsewhere: what is fetched for an answer, and what is said when nothing can be.

mod portolan;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use flate2::{Compression, write::GzEncoder};
use portolan::Answer;
use portolan::git::GitRepository;
use portolan::repository::kustomization;
use portolan_testbed::{HttpServer, Reply};
use serde_json::Value;

/// How many releases there are, each of a chart of its own.
const CHARTS: usize = 60;

/// An address where nothing listens: the port is reserved.
const UNREACHABLE: &str = "http://127.0.0.1:1";

fn release(number: usize) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: app-{number:02}, namespace: apps}}\nspec:\n  \
         interval: 1h\n  chart:\n    spec:\n      chart: web-{number:02}\n      version: 1.0.0\n      sourceRef: {{kind: HelmRepository, name: charts}}\n  \
         values: {{colour: red}}\n"
    )
}

/// A repository with sixty releases of charts at an address; the first commit is on `main`.
fn repository(url: &str) -> GitRepository {
    let repository = GitRepository::new();
    let source = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: charts, namespace: apps}}\nspec: {{url: \"{url}\"}}\n"
    );
    let root = kustomization("root", "./clusters/a");
    repository.write("clusters/a/root.yaml", &root);
    repository.write("clusters/a/source.yaml", &source);
    for number in 0..CHARTS {
        let name = format!("clusters/a/app-{number:02}.yaml");
        repository.write(&name, &release(number));
    }
    repository.write(".gitignore", "/cache\n");
    repository.commit("first");
    repository
}

/// A chart server; every chart has the versions 1.0.0 and 1.1.0.
fn chart_server() -> HttpServer {
    HttpServer::start(|request| {
        let path = request.path();
        if path == "/index.yaml" {
            return Reply::ok(index());
        }
        let chart = path.trim_start_matches('/').trim_end_matches(".tgz");
        match chart.rsplit_once('-') {
            Some((name, version)) => Reply::ok(chart_archive(name, version)),
            None => Reply::status(404),
        }
    })
}

fn index() -> String {
    let mut index = "apiVersion: v1\nentries:\n".to_owned();
    for number in 0..CHARTS {
        let _ = writeln!(index, "  web-{number:02}:");
        for version in ["1.0.0", "1.1.0"] {
            let name = format!("web-{number:02}");
            let _ = writeln!(
                index,
                "  - {{name: {name}, version: {version}, urls: [{name}-{version}.tgz]}}"
            );
        }
    }
    index
}

fn chart_archive(name: &str, version: &str) -> Vec<u8> {
    let files = [
        (
            format!("{name}/Chart.yaml"),
            format!("apiVersion: v2\nname: {name}\nversion: {version}\n"),
        ),
        (
            format!("{name}/templates/cm.yaml"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-{{ .Release.Name }}}\ndata: {version: \"{{ .Chart.Version }}\", colour: {{ .Values.colour }}}\n"
                .to_owned(),
        ),
    ];
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in &files {
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

/// Runs the binary with a cache of the repository's own.
fn run(repository: &GitRepository, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .args(args)
        .current_dir(repository.path())
        .env("HOME", repository.path())
        .env("PORTOLAN_CACHE", repository.path().join("cache"))
        .env_remove("DOCKER_CONFIG")
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
    let output = command.output();
    Answer::of(&output.expect("the binary was built with this test"))
}

/// The charts that were downloaded, by file name.
fn fetched(server: &HttpServer) -> Vec<String> {
    let requests = server.requests().into_iter();
    let mut fetched: Vec<String> = requests
        .map(|request| request.path().trim_start_matches('/').to_owned())
        .filter(|path| path != "index.yaml")
        .collect();
    fetched.sort();
    fetched.dedup();
    fetched
}

fn bump(repository: &GitRepository, number: usize) {
    let name = format!("clusters/a/app-{number:02}.yaml");
    repository.edit(&name, "version: 1.0.0", "version: 1.1.0");
}

#[test]
fn a_diff_fetches_the_two_versions_of_the_chart_that_changes_and_nothing_else() {
    let server = chart_server();
    let repository = repository(&server.url());
    bump(&repository, 7);
    let answer = run(&repository, &["diff"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert_eq!(fetched(&server), ["web-07-1.0.0.tgz", "web-07-1.1.0.tgz"]);
    let end = "59 releases have equal inputs and were not rendered\n";
    assert!(answer.stdout.ends_with(end), "{answer}");
    assert!(
        answer
            .stdout
            .contains("HelmRelease apps/app-07 → ConfigMap apps/from-app-07"),
        "{answer}"
    );
}

#[test]
fn a_diff_of_one_release_fetches_its_chart_and_nothing_else() {
    let server = chart_server();
    let repository = repository(&server.url());
    repository.edit("clusters/a/app-03.yaml", "colour: red", "colour: blue");
    bump(&repository, 4);
    let answer = run(&repository, &["diff", "hr", "app-03"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert_eq!(fetched(&server), ["web-03-1.0.0.tgz"]);
}

/// How often Flux looks is no input of a render.
#[test]
fn a_diff_of_what_no_chart_decides_fetches_nothing() {
    let server = chart_server();
    let repository = repository(&server.url());
    repository.edit("clusters/a/app-03.yaml", "interval: 1h", "interval: 2h");
    let answer = run(&repository, &["diff"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("spec.interval"), "{answer}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn lists_and_fields_that_no_chart_decides_fetch_nothing() {
    let server = chart_server();
    let repository = repository(&server.url());
    for args in [
        &["get", "ks"][..],
        &["get", "hr"],
        &["get", "sources"],
        &["explain", "hr/app-03.spec.interval"],
    ] {
        let answer = run(&repository, args);
        assert_eq!(answer.code, 0, "{args:?}: {answer}");
    }
    assert_eq!(server.requests().len(), 0);
    let listed = run(&repository, &["get", "hr"]);
    assert_eq!(listed.stdout.lines().count(), CHARTS + 1, "{listed}");
    assert_eq!(
        listed.stderr,
        "note: 60 releases were not rendered: their charts are not in the cache\n"
    );
}

/// All releases are found, and only those that are asked for are rendered.
#[test]
fn a_namespace_to_build_fetches_its_own_charts_and_nothing_else() {
    let server = chart_server();
    let repository = repository(&server.url());
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: other}\n";
    let source = format!("{source}spec: {{url: \"{}\"}}\n", server.url());
    repository.write("clusters/a/other.yaml", &source);
    let moved = "namespace: other}";
    repository.edit("clusters/a/app-03.yaml", "namespace: apps}", moved);
    repository.edit("clusters/a/app-05.yaml", "namespace: apps}", moved);
    let built = run(&repository, &["build", "hr", "-n", "other"]);
    assert_eq!(built.code, 0, "{built}");
    let both = ["name: from-app-03", "name: from-app-05"];
    assert!(
        both.iter().all(|name| built.stdout.contains(name)),
        "{built}"
    );
    assert_eq!(fetched(&server), ["web-03-1.0.0.tgz", "web-05-1.0.0.tgz"]);
    let all = run(&repository, &["build", "-n", "other", "-o", "json"]);
    assert_eq!(all.code, 0, "{all}");
    repository.commit("second");
    bump(&repository, 3);
    bump(&repository, 7);
    let changed = run(&repository, &["diff", "-n", "other"]);
    assert_eq!(changed.code, 1, "{changed}");
    let expected = ["web-03-1.0.0.tgz", "web-03-1.1.0.tgz", "web-05-1.0.0.tgz"];
    assert_eq!(fetched(&server), expected);
    let nowhere = run(&repository, &["build", "hr", "-n", "othr"]);
    assert_eq!(nowhere.code, 2, "{nowhere}");
    assert!(
        nowhere.stderr.contains("did you mean `other`?"),
        "{nowhere}"
    );
    assert_eq!(
        fetched(&server),
        expected,
        "nothing of that is needed to say so"
    );
}

#[test]
fn charts_that_were_fetched_are_looked_at_without_a_network() {
    let server = chart_server();
    let repository = repository(&server.url());
    assert_eq!(run(&repository, &["build", "hr", "app-03"]).code, 0);
    drop(server);
    let listed = run(&repository, &["get", "hr", "app-03"]);
    assert_eq!(listed.code, 0, "{listed}");
    assert!(listed.stdout.contains("1 object"), "{listed}");
    assert_eq!(
        listed.stderr,
        "note: 59 releases were not rendered: their charts are not in the cache\n"
    );
}

/// A chart that lies elsewhere has no file that could be opened: it is named, and the line of its template.
#[test]
fn a_finding_in_a_fetched_chart_names_the_chart() {
    let server = chart_server();
    let repository = repository(&server.url());
    repository.edit("clusters/a/app-03.yaml", "colour: red", "colour: 5");
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 1, "{answer}");
    let place = "chart web-03 1.0.0: templates/cm.yaml:1:1\n";
    assert!(answer.stdout.contains(place), "{answer}");
}

#[test]
fn a_change_that_cannot_be_rendered_is_told_in_every_form() {
    for offline in [&["--offline"][..], &[]] {
        let repository = repository(UNREACHABLE);
        bump(&repository, 7);
        let diff = |args: &[&str]| run(&repository, &[&["diff"], offline, args].concat());
        let told = "changed, not rendered: chart web-07 1.0.0 → 1.1.0 cannot be fetched";
        for form in ["unified", "side-by-side", "markdown", "html", "github"] {
            let answer = diff(&["-o", form]);
            assert_eq!(answer.code, 2, "{form}: {answer}");
            assert!(answer.stdout.contains(told), "{form}: {answer}");
        }
        let json: Value = serde_json::from_str(&diff(&["-o", "json"]).stdout).expect("JSON");
        let failures = json["failures"].as_array().expect("a list");
        assert_eq!(failures.len(), 1, "{json:#}");
        assert_eq!(failures[0]["owner"], "HelmRelease apps/app-07");
        assert_eq!(failures[0]["change"], "changed");
        assert_eq!(failures[0]["inputs"][0]["input"], "chart version");
        assert_eq!(failures[0]["inputs"][0]["from"], "1.0.0");
        assert_eq!(failures[0]["inputs"][0]["to"], "1.1.0");
        assert_eq!(json["equalInputs"], 59);
    }
}

#[test]
fn one_release_of_sixty_that_cannot_be_had() {
    let repository = repository(UNREACHABLE);
    bump(&repository, 7);
    insta::assert_snapshot!(run(&repository, &["diff", "hr", "app-07", "--offline"]));
    insta::assert_snapshot!(run(&repository, &["diff", "--offline"]));
    insta::assert_snapshot!(run(&repository, &["diff", "--offline", "-o", "json"]));
}

#[test]
fn a_source_to_replace_that_nothing_has_is_told_with_the_nearest_when_two_sides_are_compared() {
    let repository = repository(UNREACHABLE);
    bump(&repository, 7);
    let answer = run(
        &repository,
        &[
            "diff",
            "--offline",
            "--source",
            "HelmRepository/apps/chart=.",
        ],
    );
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("charts"), "{answer}");
    insta::assert_snapshot!(answer.stderr);
}

#[test]
fn nothing_is_said_of_charts_that_cannot_be_had_when_their_releases_are_the_same() {
    let repository = repository(UNREACHABLE);
    repository.write(
        "clusters/a/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: apps}\n",
    );
    insta::assert_snapshot!(run(&repository, &["diff"]));
}

#[test]
fn sixty_changes_that_cannot_be_rendered_share_their_cause() {
    let repository = repository(UNREACHABLE);
    for number in 0..CHARTS {
        bump(&repository, number);
    }
    let answer = run(&repository, &["diff", "hr", "--offline", "-o", "json"]);
    assert_eq!(answer.code, 2);
    let json: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(json["failures"].as_array().map(Vec::len), Some(CHARTS));
    let markdown = run(
        &repository,
        &[
            "diff",
            "--offline",
            "-o",
            "markdown",
            "--max-chars",
            "20000",
        ],
    );
    assert!(markdown.stdout.len() <= 20_000, "{}", markdown.stdout.len());
    assert!(markdown.stdout.contains("**Not rendered**"), "{markdown}");
    assert!(
        markdown.stdout.contains("20 more are not listed"),
        "{markdown}"
    );
}

/// A chart may be told where in the repository to go on.
#[test]
fn a_chart_whose_values_name_a_directory_of_the_repository_is_fetched() {
    let server = chart_server();
    let repository = repository(&server.url());
    let leading = "colour: red, sync: {path: clusters/a}";
    repository.edit("clusters/a/app-09.yaml", "colour: red", leading);
    repository.commit("second");
    bump(&repository, 7);
    let answer = run(&repository, &["diff", "--from", "HEAD"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert_eq!(
        fetched(&server),
        ["web-07-1.0.0.tgz", "web-07-1.1.0.tgz", "web-09-1.0.0.tgz"]
    );
}

/// Data that only another release could print is not sought in charts that nobody asked for.
#[test]
fn values_that_nothing_in_the_repository_gives_fetch_no_other_chart() {
    let server = chart_server();
    let repository = repository(&server.url());
    let from = "values: {colour: red}\n  valuesFrom: [{kind: Secret, name: made-elsewhere}]";
    repository.edit("clusters/a/app-07.yaml", "values: {colour: red}", from);
    repository.commit("second");
    bump(&repository, 7);
    let answer = run(&repository, &["diff", "--from", "HEAD"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert_eq!(fetched(&server), ["web-07-1.0.0.tgz", "web-07-1.1.0.tgz"]);
}

#[test]
fn a_directory_to_compare_with_that_holds_no_cluster_is_an_error() {
    let repository = repository(UNREACHABLE);
    let other = tempfile::tempdir().expect("a directory can be made");
    let other = other.path().to_str().expect("UTF-8");
    for args in [
        &[
            "diff",
            "--path-orig",
            other,
            "--repo",
            ".",
            "--path",
            "clusters/a",
        ][..],
        &["diff", "--path-orig", other],
        &[
            "diff",
            "--path-orig",
            "/etc",
            "--repo",
            ".",
            "--path",
            "clusters/a",
        ],
    ] {
        let answer = run(&repository, args);
        assert_eq!(answer.code, 2, "{args:?}: {answer}");
    }
}

#[test]
fn a_namespace_that_nothing_has_is_told_with_the_nearest() {
    let repository = repository(UNREACHABLE);
    for args in [
        &["diff", "-n", "flux-sytem"][..],
        &["get", "ks", "-n", "flux-sytem"],
        &["get", "hr", "-n", "flux-sytem"],
        &["get", "sources", "-n", "flux-sytem"],
    ] {
        let answer = run(&repository, args);
        assert_eq!(answer.code, 2, "{args:?}: {answer}");
        let hint = "hint: did you mean `flux-system`?";
        assert!(answer.stderr.contains(hint), "{args:?}: {answer}");
    }
    let empty = run(&repository, &["get", "ks", "-n", "apps"]);
    assert_eq!(empty.code, 2, "{empty}");
    assert!(
        empty.stderr.contains("did you mean `flux-system`?"),
        "{empty}"
    );
}
