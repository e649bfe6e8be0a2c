//! The steps of `action.yml` and the job of `ci/gitlab.yml`, run as a runner would run them: expressions filled in, files to
//! write to, a web server that plays releases and comments, no runner.

mod portolan;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use flate2::{Compression, write::GzEncoder};
use portolan::Answer;
use portolan::git::{self, GitRepository};
use portolan::repository::HARBOR;
use portolan_object::Digest;
use portolan_testbed::{HttpServer, Reply, Request};
use portolan_yaml::{Dialect, Node, parse};
use serde_json::{Value, json};
use tempfile::TempDir;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The values of expressions in the action.
type Expressions<'a> = &'a [(&'a str, &'a str)];

/// The first document of a file of this repository.
fn document(file: &str) -> Node {
    let text = fs::read_to_string(format!("{TOP}/{file}")).expect(file);
    parse(text, Dialect::Kustomize).expect("YAML").remove(0)
}

/// A step of the action by its name.
fn step(name: &str) -> Node {
    let action = document("action.yml");
    let steps = action.at_path(&["runs", "steps"]);
    let steps = steps.and_then(Node::as_list).expect("a list");
    let is_it = |step: &&Node| step.get("name").and_then(Node::as_str) == Some(name);
    steps.iter().find(is_it).expect("such a step").clone()
}

/// A text of the action with its expressions filled in.
fn filled(text: &str, expressions: Expressions<'_>) -> String {
    let mut filled = text.to_owned();
    for (expression, value) in expressions {
        filled = filled.replace(&format!("${{{{ {expression} }}}}"), value);
    }
    assert!(!filled.contains("${{"), "nobody says what is in `{filled}`");
    filled
}

/// Runs a script in a directory as a runner does.
fn bash(script: &str, directory: &Path) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
        .current_dir(directory);
    command
}

fn answer(command: &mut Command) -> Answer {
    Answer::of(&command.output().expect("bash is installed"))
}

/// Prepares a step in a directory; its files lie in `temp`.
fn prepared(step: &Node, directory: &Path, temp: &Path, expressions: Expressions<'_>) -> Command {
    let script = step.get("run").and_then(Node::as_str).expect("a script");
    let mut command = bash(&filled(script, expressions), directory);
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_ACTION_PATH", TOP)
        .env("GITHUB_OUTPUT", temp.join("output"))
        .env("GITHUB_STEP_SUMMARY", temp.join("summary"))
        .env("RUNNER_TEMP", temp);
    let variables = step.get("env").and_then(Node::as_map).expect("a map");
    for entry in variables {
        let text = entry.value.as_str().expect("a text");
        command.env(entry.key.as_str(), filled(text, expressions));
    }
    command
}

/// Runs a step in a directory; its files lie in `temp`.
fn run(step: &Node, directory: &Path, temp: &Path, expressions: Expressions<'_>) -> bool {
    let answer = answer(&mut prepared(step, directory, temp, expressions));
    fs::write(temp.join("log"), &answer.stdout).expect("it can be written");
    answer.code == 0
}

/// Comments as a server keeps them.
#[derive(Default)]
struct Comments(Mutex<Vec<Value>>);

impl Comments {
    /// Answers as GitHub does for the pull request 7, and as GitLab does for the merge request 7 of the project 3.
    fn answer(&self, request: &Request) -> Reply {
        let mut kept = self.0.lock().expect("nobody panics");
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let path = request.path().trim_start_matches("/projects/3");
        match (request.method.as_str(), path) {
            ("GET", "/issues/7/comments" | "/merge_requests/7/notes") => {
                let page: usize = request
                    .target
                    .rsplit('=')
                    .next()
                    .expect("one")
                    .parse()
                    .expect("a number");
                let page: Vec<&Value> = kept.iter().skip((page - 1) * 100).take(100).collect();
                Reply::ok(json!(page).to_string())
            }
            ("POST", "/issues/7/comments" | "/merge_requests/7/notes") => {
                let id = kept.len();
                kept.push(json!({"id": id, "body": body["body"]}));
                Reply {
                    status: 201,
                    ..Reply::ok("{}")
                }
            }
            ("PATCH" | "PUT", path) => {
                let id = path.strip_prefix("/issues/comments/");
                let id = id
                    .or_else(|| path.strip_prefix("/merge_requests/7/notes/"))
                    .expect("a comment");
                let id: usize = id.parse().expect("a number");
                kept[id]["body"] = body["body"].clone();
                Reply::ok("{}")
            }
            _ => Reply::status(404),
        }
    }

    fn bodies(&self) -> Vec<String> {
        let kept = self.0.lock().expect("nobody panics");
        let text = |comment: &Value| comment["body"].as_str().expect("a text").to_owned();
        kept.iter().map(text).collect()
    }
}

/// A server that keeps comments.
fn comment_server() -> (HttpServer, Arc<Comments>) {
    let comments = Arc::<Comments>::default();
    let kept = Arc::clone(&comments);
    (
        HttpServer::start(move |request| kept.answer(request)),
        comments,
    )
}

/// Runs the comment step with a report against a server.
fn comment(server: &HttpServer, report: &str) -> Answer {
    let temp = tempfile::tempdir().expect("a directory can be made");
    fs::create_dir(temp.path().join("portolan")).expect("it can be made");
    fs::write(temp.path().join("portolan/report.md"), report).expect("it can be written");
    let url = server.url();
    let place = temp.path().to_str().expect("UTF-8");
    // The repository is part of the path that the server does not look at.
    let expressions = [
        ("inputs.token", "t0ken"),
        ("runner.temp", place),
        (
            "github.api_url }}/repos/${{ github.repository",
            url.as_str(),
        ),
        ("github.event.pull_request.number", "7"),
        ("inputs.path", "clusters/production"),
    ];
    answer(&mut prepared(
        &step("Comment"),
        temp.path(),
        temp.path(),
        &expressions,
    ))
}

/// An archive with a program that says which version it is, and its checksum.
fn release(version: &str) -> (Vec<u8>, String) {
    let script = format!("#!/bin/sh\necho portolan {version}\n");
    let mut header = tar::Header::new_gnu();
    header.set_size(script.len() as u64);
    header.set_mode(0o755);
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    let added = builder.append_data(&mut header, "portolan", script.as_bytes());
    added.expect("memory takes everything");
    let encoder = builder.into_inner().expect("memory takes everything");
    let archive = encoder.finish().expect("memory takes everything");
    let checksum = Digest::of(&archive).to_string();
    (archive, checksum)
}

/// A server of the releases 9.9.9, which is the latest, 1.0.0, which is not what its checksum says, and 2.0.0, which has
/// none.
fn release_server() -> HttpServer {
    HttpServer::start(|request| {
        let path = request.path();
        let (directory, file) = path.rsplit_once('/').expect("an absolute path");
        let (archive, checksum) = release("9.9.9");
        let name = file.trim_end_matches(".sha256");
        let other = "0".repeat(64);
        match (directory, file.ends_with(".sha256")) {
            ("/latest/download" | "/download/v9.9.9", true) => {
                Reply::ok(format!("{checksum}  {name}\n"))
            }
            ("/download/v1.0.0", true) => Reply::ok(format!("{other}  {name}\n")),
            (
                "/latest/download" | "/download/v9.9.9" | "/download/v1.0.0" | "/download/v2.0.0",
                false,
            ) => Reply::ok(archive),
            _ => Reply::status(404),
        }
    })
}

/// A directory with the programs that installing needs, cargo not among them.
fn programs() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for program in [
        "bash",
        "curl",
        "dirname",
        "gzip",
        "mkdir",
        "sh",
        "sha256sum",
        "tar",
        "uname",
    ] {
        let path = std::env::var_os("PATH").expect("it is set");
        let mut found = std::env::split_paths(&path).map(|at| at.join(program));
        let found = found.find(|at| at.exists()).expect(program);
        symlink(found, directory.path().join(program)).expect("it can be linked");
    }
    directory
}

/// Runs the install step with the address of the releases.
fn install(releases: &str, version: &str) -> Answer {
    let temp = tempfile::tempdir().expect("a directory can be made");
    let programs = programs();
    let mut command = prepared(
        &step("Install Portolan"),
        temp.path(),
        temp.path(),
        &[("inputs.version", version), ("inputs.releases", releases)],
    );
    answer(command.env("PATH", programs.path()))
}

#[test]
fn a_released_binary_is_installed_and_says_its_version() {
    let server = release_server();
    for version in ["latest", "9.9.9", "v9.9.9"] {
        let answer = install(&server.url(), version);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (0, "portolan 9.9.9\n"),
            "{answer}"
        );
    }
}

/// A download that was tampered with must not be run, and not be covered up by building something else.
#[test]
fn a_binary_without_its_checksum_is_not_installed() {
    let server = release_server();
    for (version, reason) in [
        ("1.0.0", "does not have its checksum"),
        ("2.0.0", "has no checksum beside it"),
    ] {
        let answer = install(&server.url(), version);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer}");
        assert!(answer.stderr.contains(reason), "{answer}");
    }
}

#[test]
fn a_version_that_was_never_released_is_built_or_refused() {
    let answer = install(&release_server().url(), "3.0.0");
    assert_eq!(answer.code, 2);
    assert!(
        answer
            .stderr
            .contains("there is no released binary of version `3.0.0`"),
        "{answer}"
    );
    assert!(answer.stderr.contains("cargo is not installed"), "{answer}");
}

/// A name that somebody else could register must not be where binaries come from.
#[test]
fn nothing_is_downloaded_from_an_address_that_nobody_gave() {
    let answer = install("", "latest");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("set PORTOLAN_RELEASES"), "{answer}");
}

#[test]
fn a_comment_is_posted_once_and_updated_from_then_on() {
    let (server, comments) = comment_server();
    // Somebody else's come first, more than fit on one page.
    let others = (0..100).map(|id| json!({"id": id, "body": "looks good"}));
    comments.0.lock().expect("nobody panics").extend(others);
    for report in [
        "### 1 object changes\n`a` \"b\"\n",
        "### 2 objects change\n",
        "### no differences\n",
    ] {
        let answer = comment(&server, report);
        assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{answer}");
        let bodies = comments.bodies();
        let mark = "<!-- portolan diff of clusters/production -->";
        assert_eq!(bodies.len(), 101);
        assert_eq!(bodies[100], format!("{report}\n{mark}\n"));
    }
    let requests = server.requests();
    let is_authorised = |request: &Request| request.header("authorization") == Some("Bearer t0ken");
    assert!(requests.iter().all(is_authorised));
}

#[test]
fn nothing_is_posted_while_nothing_differs() {
    let (server, comments) = comment_server();
    assert_eq!(comment(&server, "### no differences\n").code, 0);
    assert_eq!(comments.bodies(), [""; 0]);
}

#[test]
fn a_report_that_is_too_long_is_posted_as_its_first_line() {
    let (server, comments) = comment_server();
    // The limit counts characters, not bytes.
    assert_eq!(
        comment(
            &server,
            &format!("### 9 objects change\n{}", "ä".repeat(65_000))
        )
        .code,
        0
    );
    assert!(comments.bodies()[0].len() > 100_000);
    assert_eq!(
        comment(
            &server,
            &format!("### 9 objects change\n{}", "a".repeat(65_536))
        )
        .code,
        0
    );
    let short = "### 9 objects change\n\nThe report is too long for a comment; the job keeps it.\n\n<!-- portolan diff of clusters/production -->\n";
    assert_eq!(comments.bodies(), [short]);
}

#[test]
fn a_token_that_may_not_comment_is_told_and_fails_no_job() {
    for refused in ["GET", "POST"] {
        let server = HttpServer::start(move |request| {
            if request.method == refused {
                return Reply {
                    status: 403,
                    ..Reply::ok(r#"{"message": "Resource not accessible by integration"}"#)
                };
            }
            Reply::ok("[]")
        });
        let answer = comment(&server, "### 1 object changes\n");
        assert_eq!(answer.code, 0, "{answer}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(answer.stdout, @"::warning title=portolan diff::the token may not comment: the job needs `permissions: pull-requests: write`, which pull requests from forks never have");
        }
    }
}

#[test]
fn a_server_that_refuses_a_comment_is_quoted() {
    let server = HttpServer::start(|request| match request.method.as_str() {
        "GET" => Reply::ok("[]"),
        _ => Reply {
            status: 422,
            ..Reply::ok(r#"{"message": "Validation Failed"}"#)
        },
    });
    let answer = comment(&server, "### 1 object changes\n");
    assert_eq!(answer.code, 1, "{answer}");
    let shown = answer.stderr.replace(&server.url(), "API");
    insta::assert_snapshot!(shown, @"error: the comment could not be posted: POST API/issues/7/comments answered 422: Validation Failed");
}

/// The job of GitLab, whose parts are those of the action.
#[test]
fn a_merge_request_gets_a_note_that_is_updated() {
    let repository = GitRepository::of(Path::new(HARBOR));
    let base = repository.git(&["rev-parse", "HEAD"]);
    let tools = GitRepository::new();
    git::copy(Path::new(&format!("{TOP}/ci")), &tools.path().join("ci"));
    tools.commit("first");
    let (server, comments) = comment_server();
    let job = document("ci/gitlab.yml");
    let lines = job
        .at_path(&["portolan", "script"])
        .and_then(Node::as_list)
        .expect("a list");
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.as_str().expect("a line"))
        .collect();
    // The binary of this test stands for an installed one.
    let binary = env!("CARGO_BIN_EXE_portolan");
    let script = lines.join("\n").replace(
        r#""$tools/source/ci/install.sh" "$PORTOLAN_VERSION" "$tools""#,
        &format!("ln -s {binary} \"$tools/portolan\""),
    );
    assert!(script.contains(binary), "{script}");
    let run = |tag: &str| {
        repository.edit("apps/base/quay/deployment.yaml", "quay:2.3.0", tag);
        let mut command = bash(&script, repository.path());
        command
            .env(
                "PORTOLAN_SOURCE",
                format!("file://{}", tools.path().display()),
            )
            .env("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.trim())
            .env("CI_API_V4_URL", server.url())
            .env("CI_PROJECT_ID", "3")
            .env("CI_MERGE_REQUEST_IID", "7")
            .env("PORTOLAN_TOKEN", "t0ken")
            .env("FLUX_PATH", "clusters/production");
        let answer = answer(&mut command);
        assert_eq!(answer.code, 0, "{answer}");
        repository.git(&["checkout", "-q", "."]);
        comments.bodies()
    };
    for tag in ["quay:2.4.0", "quay:2.5.0"] {
        let bodies = run(tag);
        assert!(bodies.len() == 1 && bodies[0].contains(tag), "{bodies:?}");
    }
    let last = server.requests().pop().expect("one");
    assert_eq!(
        (last.method.as_str(), last.header("private-token")),
        ("PUT", Some("t0ken"))
    );
}

#[test]
fn the_report_of_a_pull_request_is_written_and_told() {
    let repository = GitRepository::of(Path::new(HARBOR));
    repository.git(&["switch", "-q", "-c", "change"]);
    repository.edit("apps/base/quay/deployment.yaml", "quay:2.3.0", "quay:2.4.0");
    repository.commit("bump");
    let temp = tempfile::tempdir().expect("a directory can be made");
    let binary = temp.path().join("portolan");
    fs::create_dir(&binary).expect("it can be made");
    fs::copy(env!("CARGO_BIN_EXE_portolan"), binary.join("portolan")).expect("it can be copied");
    let place = temp.path().to_str().expect("UTF-8");
    let expressions = |from: &'static str| {
        [
            ("runner.temp", place),
            ("inputs.path", "clusters/production"),
            ("inputs.repo", ""),
            (
                "inputs.from || (github.base_ref && format('origin/{0}', github.base_ref)) || ''",
                from,
            ),
            ("inputs.strip-attrs", ""),
            ("inputs.args", "--full"),
        ]
    };
    let compare = step("Compare");
    let read = |name: &str| fs::read_to_string(temp.path().join(name)).unwrap_or_default();
    assert!(run(
        &compare,
        repository.path(),
        temp.path(),
        &expressions("main")
    ));
    assert!(
        read("summary").contains("quay:2.4.0"),
        "{}",
        read("summary")
    );
    assert!(
        read("output").contains("differs=true"),
        "{}",
        read("output")
    );
    assert!(read("log").contains("::"), "annotations: {}", read("log"));

    let is_done = run(
        &compare,
        repository.path(),
        temp.path(),
        &expressions("nowhere"),
    );
    assert!(is_done, "the report is published first");
    assert!(read("portolan/report.md").contains("portolan diff"));
    assert!(!verdict(temp.path()), "{}", read("output"));
}

/// Runs the step that fails the job, with what the step before said.
fn verdict(temp: &Path) -> bool {
    let output = fs::read_to_string(temp.join("output")).expect("a step wrote it");
    let code = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("code="));
    let code = code.expect("a code").to_owned();
    let expressions = [("steps.diff.outputs.code", code.as_str())];
    run(&step("Verdict"), temp, temp, &expressions)
}

/// A chart that cannot be had: the report says so and is published, then the job fails.
#[test]
fn a_change_that_cannot_be_rendered_is_published_and_fails_the_job() {
    let repository = GitRepository::new();
    let root = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: root, namespace: flux-system}\nspec: {path: ./clusters/a, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n";
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: apps}\nspec: {url: \"http://127.0.0.1:1\"}\n";
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: apps}\nspec:\n  interval: 1h\n  chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}\n";
    repository.write("clusters/a/root.yaml", root);
    repository.write("clusters/a/source.yaml", source);
    repository.write("clusters/a/release.yaml", release);
    repository.commit("first");
    repository.git(&["switch", "-q", "-c", "change"]);
    repository.edit("clusters/a/release.yaml", "1.0.0", "1.1.0");
    repository.commit("bump");
    let temp = tempfile::tempdir().expect("a directory can be made");
    let binary = temp.path().join("portolan");
    fs::create_dir(&binary).expect("it can be made");
    fs::copy(env!("CARGO_BIN_EXE_portolan"), binary.join("portolan")).expect("it can be copied");
    let expressions = [
        ("runner.temp", temp.path().to_str().expect("UTF-8")),
        ("inputs.path", "clusters/a"),
        ("inputs.repo", ""),
        (
            "inputs.from || (github.base_ref && format('origin/{0}', github.base_ref)) || ''",
            "main",
        ),
        ("inputs.strip-attrs", ""),
        ("inputs.args", "--offline"),
    ];
    assert!(run(
        &step("Compare"),
        repository.path(),
        temp.path(),
        &expressions
    ));
    let read = |name: &str| fs::read_to_string(temp.path().join(name)).unwrap_or_default();
    let told = "changed, not rendered: chart web 1.0.0 → 1.1.0 cannot be fetched";
    for file in ["summary", "portolan/report.md", "log"] {
        assert!(read(file).contains(told), "{file}: {}", read(file));
    }
    assert!(!verdict(temp.path()), "{}", read("output"));
}
