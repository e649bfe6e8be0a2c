//! No command shows a secret that it was not asked to show: each command, in each of its formats, and when it fails.
//!
//! ```text
//! the program's own help ──▶ commands, formats ──┐
//! calls: arguments for each command ─────────────┴─▶ runs ──▶ stdout, stderr, events, written files: nothing planted
//! ```

#[path = "../portolan/mod.rs"]
mod portolan;

mod commands;
mod planted;
mod seal;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use planted::{CORES, Planted, shown_in};
use portolan::repository::write;
use portolan::{Answer, wait_until};
use portolan_testbed::{HttpServer, Reply, Request};
use serde_json::json;

/// What a call is expected to end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// It did what it was asked to, whether or not it found something wrong.
    Well,
    /// It could not.
    Badly,
    /// It goes on until it is told to end; it has begun its work when it says this.
    Never(&'static str),
}

/// A book with a secret input.
const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/secrets/book.yaml");

/// The arguments of calls to a command, besides the format; `None` for a command that is not known here.
fn calls(command: &str) -> Option<Vec<(Ends, Vec<&'static str>)>> {
    const REPO: [&str; 5] = ["--repo", ".", "--path", "cluster", "--offline"];
    const NOBODY: [&str; 4] = [
        "--server",
        "https://user:plant-Rho7391@127.0.0.1:1",
        "--token-file",
        "kubeconfig",
    ];
    let well = |args: &[&'static str]| (Ends::Well, args.to_vec());
    let badly = |args: &[&'static str]| (Ends::Badly, args.to_vec());
    let on_repository = |args: &[&'static str]| well(&[args, &REPO].concat());
    Some(match command {
        "audit files" => vec![well(&["."]), badly(&["nowhere"])],
        "audit repo" | "fetch" => vec![on_repository(&[])],
        "audit cluster" => vec![
            well(&["--only", "helm", "--kubeconfig", "kubeconfig"]),
            badly(&["--kubeconfig", "unreachable"]),
        ],
        "audit serve" => vec![(
            Ends::Never("scan"),
            vec![
                "--only",
                "helm",
                "--kubeconfig",
                "kubeconfig",
                "--listen",
                "127.0.0.1:0",
            ],
        )],
        "audit table" | "cache list" | "cache gc" | "crds" | "ship schema" | "version" => {
            vec![well(&[])]
        }
        "build" => vec![
            on_repository(&[]),
            on_repository(&["-v", "--provenance"]),
            on_repository(&["-vv", "--events", "-"]),
            on_repository(&["--skip-secrets", "--output-dir", "written"]),
            on_repository(&["--output-dir", "written-all"]),
            on_repository(&["--output-file", "written.yaml"]),
            (Ends::Badly, [&["ks", "nowhere"][..], &REPO].concat()),
            badly(&[
                "--repo",
                ".",
                "--path",
                "cluster",
                "--age-key-file",
                "web/config.yaml",
            ]),
        ],
        "completions" => vec![well(&["bash"])],
        "diff" => vec![
            on_repository(&["--path-orig", "former/cluster"]),
            on_repository(&["--full", "--path-orig", "empty/cluster"]),
            on_repository(&[
                "images",
                "--path-orig",
                "former/cluster",
                "--output-file",
                "diff.txt",
            ]),
            on_repository(&[
                "--path-orig",
                "former/cluster",
                "--write",
                "html=diff.html",
                "--write",
                "markdown=diff.md",
            ]),
            badly(&["--repo", ".", "--path", "cluster", "--path-orig", "nowhere"]),
        ],
        "store compact" => vec![badly(&["--data", "nowhere"])],
        "store backup" => vec![badly(&["--data", "nowhere", "--to", "x.backup"])],
        "store migrate" => vec![badly(&[
            "--from",
            "embedded",
            "--to",
            "etcd",
            "--data",
            "nowhere",
            "--etcd",
            "http://127.0.0.1:1",
        ])],
        "store restore" => vec![badly(&["--from", "nowhere", "--data", "restored"])],
        "store verify" => vec![
            badly(&["--data", "nowhere"]),
            badly(&["--etcd", "https://user:plant-Rho7391@127.0.0.1:1"]),
        ],
        "events" => vec![
            badly(&["--store", "nowhere"]),
            badly(&["--server", "http://user:plant-Rho7391@127.0.0.1:1"]),
        ],
        "explain" => vec![
            on_repository(&["cm/config", "-n", "web"]),
            on_repository(&["cm/config.data.alpha", "-n", "web"]),
            on_repository(&["cm/web-echo.data.plain", "-n", "web"]),
            on_repository(&["cm/numbers.data.flag", "-n", "web"]),
            on_repository(&[
                "secret/plain-variables.stringData.IOTA",
                "-n",
                "flux-system",
            ]),
            on_repository(&["cm/replaced.data.copy", "-n", "web"]),
            (Ends::Badly, [&["cm/nowhere"][..], &REPO].concat()),
        ],
        "get" => vec![
            on_repository(&[]),
            (Ends::Badly, [&["nowhere"][..], &REPO].concat()),
        ],
        "helm dependency build" => vec![well(&["chart"])],
        "helm lint" => vec![well(&["chart", "--set", "pw.p=nothing-planted,pw.num=1"])],
        "helm pull" => vec![
            badly(&["oci://127.0.0.1:1/charts/web", "--version", "1.0.0"]),
            badly(&[
                "web",
                "--repo",
                "https://user:plant-Rho7391@127.0.0.1:1/charts",
            ]),
            badly(&["https://user:plant-Rho7391@127.0.0.1:1/web-1.0.0.tgz"]),
        ],
        "helm template" => vec![
            well(&["web", "chart", "--set", "pw.p=nothing-planted,pw.num=1"]),
            badly(&["web", "oci://127.0.0.1:1/charts/web"]),
            badly(&[
                "web",
                "web",
                "--repo",
                "https://user:plant-Rho7391@127.0.0.1:1/charts",
            ]),
        ],
        "kustomize build" => vec![
            well(&["overlay"]),
            badly(&["remote"]),
            badly(&["https://user:plant-Rho7391@127.0.0.1:1/a.git//x?ref=v1"]),
        ],
        "fleet explain" => vec![well(&["secret.spec"]), badly(&["secret.spec.nothing"])],
        "fleet apply" | "fleet diff" => {
            vec![badly(&[&["-f", "web/config.yaml"][..], &NOBODY].concat())]
        }
        "fleet get" | "fleet describe" => vec![badly(&[&["secret", "db"][..], &NOBODY].concat())],
        "fleet delete" | "fleet edit" | "fleet history" => {
            vec![badly(&[&["secret/db"][..], &NOBODY].concat())]
        }
        "fleet watch" => vec![badly(&[&["secrets"][..], &NOBODY].concat())],
        "fleet status"
        | "fleet beacons"
        | "fleet shares"
        | "fleet login"
        | "fleet join-token create"
        | "fleet join-token list"
        | "fleet nodes pending"
        | "fleet cron"
        | "fleet events"
        | "fleet compliance"
        | "fleet runs list" => vec![badly(&NOBODY)],
        "fleet auth can-i" | "fleet auth why" => {
            vec![badly(&[&["get", "secrets"][..], &NOBODY].concat())]
        }
        "fleet lint" => vec![well(&[BOOK]), badly(&["cluster/nothing.yaml"])],
        "fleet run" => {
            let run = ["-f", BOOK, "--local", "--check", "--input"];
            let over_server = ["-f", BOOK, "--input", "token=plant-Rho7391"];
            vec![
                badly(&[&run[..], &["token=plant-Rho7391"]].concat()),
                badly(&[&over_server[..], &NOBODY].concat()),
                badly(&[&["web"][..], &NOBODY].concat()),
            ]
        }
        "fleet convert" => vec![
            badly(&["web/config.yaml"]),
            badly(&["cluster/nothing.yaml"]),
        ],
        "fleet bootstrap" => {
            let host = ["root@127.0.0.1", "--port", "1"];
            vec![badly(&[&host[..], &NOBODY].concat())]
        }
        "fleet nodes import" => vec![badly(&["cluster/nothing.ini"])],
        "fleet nodes label" => vec![badly(&[&["web-1", "a=b"][..], &NOBODY].concat())],
        "fleet sandbox" => vec![(
            Ends::Never("are ready"),
            vec!["--nodes", "1", "--directory", "sandbox"],
        )],
        "agent" => {
            let own = [
                "--server",
                "https://127.0.0.1:1",
                "--name",
                "web-1",
                "--data",
                "agent",
            ];
            // No join token, but something else that is secret.
            vec![badly(&[&own[..], &["--token-file", "kubeconfig"]].concat())]
        }
        "fleet join-token end"
        | "fleet nodes approve"
        | "fleet nodes deny"
        | "fleet nodes drain"
        | "fleet nodes remove"
        | "fleet nodes revoke"
        | "fleet logs"
        | "fleet runs approve"
        | "fleet runs cancel"
        | "fleet runs rerun"
        | "fleet runs resume"
        | "fleet triggers test"
        | "fleet vars explain"
        | "fleet why" => vec![badly(&[&["web-1"][..], &NOBODY].concat())],
        "fleet exec" => vec![badly(
            &[&["--nodes", "web-1"][..], &NOBODY, &["--", "true"]].concat(),
        )],
        "fleet auth certificate" => vec![badly(&[&["a"][..], &NOBODY].concat())],
        "fleet auth token" => vec![badly(&[&["--user", "a"][..], &NOBODY].concat())],
        "serve" => vec![
            (
                Ends::Never("listening"),
                vec!["--data", "served", "--listen", "127.0.0.1:0"],
            ),
            badly(&["--data", "web/config.yaml", "--listen", "127.0.0.1:0"]),
        ],
        "man" => vec![well(&["--dir", "pages"])],
        "operator" => vec![
            (
                Ends::Never("listening"),
                vec![
                    "--kubeconfig",
                    "kubeconfig",
                    "--listen",
                    "127.0.0.1:0",
                    "--prometheus",
                    "http://user:plant-Rho7391@127.0.0.1:1",
                ],
            ),
            badly(&["--kubeconfig", "nowhere", "--listen", "127.0.0.1:0"]),
        ],
        "rollout abort" | "rollout explain" | "rollout force" | "rollout get"
        | "rollout history" | "rollout pause" | "rollout promote" | "rollout query"
        | "rollout release" | "rollout restart" | "rollout resume" | "rollout retry"
        | "rollout status" | "rollout undo" => vec![badly(&["web", "--kubeconfig", "unreachable"])],
        "rollout adopt" => vec![badly(&["deployment/web", "--kubeconfig", "unreachable"])],
        "rollout convert" => vec![
            well(&["-f", "canary.yaml"]),
            badly(&["-f", "overlay/config.yaml"]),
        ],
        "rollout lint" => vec![well(&["rollout.yaml"]), badly(&["nowhere.yaml"])],
        "rollout list" => vec![badly(&["--kubeconfig", "unreachable"])],
        "rollout replay" => vec![badly(&[
            "web",
            "--from",
            "2026-01-31T12:00:00Z",
            "--to",
            "2026-01-31T12:01:00Z",
            "--kubeconfig",
            "unreachable",
        ])],
        "rollout set image" => vec![badly(&["web", "a=b", "--kubeconfig", "unreachable"])],
        "rollout judge" => vec![well(&["counts.csv"]), badly(&["nowhere.csv"])],
        "rollout simulate" => vec![well(&["--runs", "2"])],
        "ship build" => vec![
            well(&["-f", "shop/portolan.yaml", "--store", "shop-store", "-vv"]),
            well(&[
                "-f",
                "shop/portolan.yaml",
                "--store",
                "shop-store",
                "broken",
            ]),
            badly(&[
                "-f",
                "shop/portolan.yaml",
                "--store",
                "shop-store",
                "nothing",
            ]),
        ],
        "ship config" | "ship update" => vec![
            well(&["-f", "shop/portolan.yaml"]),
            badly(&["-f", "nowhere.yaml"]),
        ],
        "ship apply" => vec![badly(&[
            "shop/manifests/secret.yaml",
            "-f",
            "shop/deploy.yaml",
            "--kubeconfig",
            "unreachable",
            "--context",
            "a",
        ])],
        "ship test" | "ship verify" => vec![
            well(&["-f", "shop/checks.yaml", "--store", "shop-store", "-vv"]),
            badly(&["-f", "shop/deploy.yaml"]),
        ],
        "dev" | "ship delete" | "ship deploy" | "ship run" => vec![badly(&[
            "-f",
            "shop/deploy.yaml",
            "--kubeconfig",
            "unreachable",
            "--context",
            "a",
        ])],
        "ship render" => vec![
            well(&["-f", "shop/deploy.yaml", "--store", "shop-store"]),
            badly(&["-f", "shop/portolan.yaml"]),
        ],
        "ship explain" => vec![well(&[
            "web",
            "-f",
            "shop/portolan.yaml",
            "--store",
            "shop-store",
        ])],
        "ship gc" => vec![badly(&["--store", "nowhere"])],
        "ship init" => vec![well(&["shop-source", "--dry-run"])],
        "template" => vec![well(&["page.tmpl"]), badly(&["nowhere.tmpl"])],
        "test" => vec![on_repository(&[]), on_repository(&["-v"])],
        "watch" => vec![(Ends::Never("watching "), REPO.to_vec())],
        "yaml check" | "yaml fmt" | "yaml to-json" => vec![well(&["overlay/kustomization.yaml"])],
        _ => return None,
    })
}

/// The repository with everything that the calls need.
struct Bench {
    planted: Planted,
    _server: HttpServer,
    /// How many calls were made.
    calls: AtomicUsize,
}

impl Bench {
    fn new() -> Self {
        let planted = Planted::new();
        let server = HttpServer::start(answer);
        let top = planted.repository.path();
        let kubeconfig = |address: &str| {
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"{address}\"}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{token: plant-Rho7391}}}}]\n"
            )
        };
        write(top, "kubeconfig", &kubeconfig(&server.url()));
        write(top, "unreachable", &kubeconfig("http://127.0.0.1:1"));
        write(
            top,
            "overlay/kustomization.yaml",
            "resources: [config.yaml]\n",
        );
        write(
            top,
            "overlay/config.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        );
        write(
            top,
            "counts.csv",
            "time,canary_total,canary_bad,stable_total,stable_bad\na,10,0,10,0\n",
        );
        write(top, "page.tmpl", "{{ 1 }}\n");
        write(
            top,
            "rollout.yaml",
            "apiVersion: portolan.dev/v1alpha1\nkind: IstioCanaryDeployment\nmetadata: {name: web}\nspec: {replicas: 2, service: {port: 80}, template: {}}\n",
        );
        write(top, "shop-source/Dockerfile", "FROM scratch\n");
        write(top, "shop/secret.txt", "plant-Rho7391\n");
        write(top, "shop/web/index.html", "a page\n");
        write(
            top,
            "shop/portolan.yaml",
            "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: shop}\nspec:\n  artifacts:\n  - {name: web, image: x, oci: {context: web}}\n  - name: broken\n    image: x\n    command: {run: [/bin/sh, -c, 'while read line; do echo $line; done < $PORTOLAN_SECRETS/TOKEN; exit 3'], secrets: {TOKEN: {file: secret.txt}}}\n",
        );
        write(
            top,
            "shop/deploy.yaml",
            "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: shop}\nspec:\n  deploy: [{name: app, manifests: {paths: [manifests]}}]\n",
        );
        write(
            top,
            "shop/checks.yaml",
            "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: shop}\nspec:\n  artifacts: [{name: web, image: registry.example/shop/web, oci: {context: web}}]\n  tests: [{name: t, artifacts: [web], command: {run: [sh, -c, 'cat $PORTOLAN_SECRETS/KEY; exit 3'], secrets: {KEY: {file: secret.txt}}}}]\n  verify: [{name: v, command: {run: [sh, -c, 'cat $PORTOLAN_SECRETS/KEY; exit 3'], secrets: {KEY: {file: secret.txt}}}}]\n",
        );
        write(
            top,
            "shop/manifests/secret.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: plant-Rho7391}\n",
        );
        write(
            top,
            "canary.yaml",
            "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {name: web}\nspec: {targetRef: {kind: Deployment, name: web}, service: {port: 80}, analysis: {stepWeight: 10}}\n",
        );
        write(
            top,
            "empty/cluster/namespace.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
        );
        std::os::unix::fs::symlink(planted.former.path(), top.join("former")).expect("a link");
        // Outside of the repository: others search it while runs come and go in the store.
        let store = planted.home.path().join("shop-store");
        std::fs::create_dir(&store).expect("a directory");
        std::os::unix::fs::symlink(&store, top.join("shop-store")).expect("a link");
        Self {
            planted,
            _server: server,
            calls: AtomicUsize::new(0),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        let home = self.planted.home.path();
        command
            .args(args)
            .current_dir(self.planted.repository.path())
            .env_clear()
            .env("PATH", "/nowhere")
            .env("HOME", home)
            .env("SOPS_AGE_KEY_FILE", home.join("age.txt"))
            .env("PORTOLAN_LOG", "trace")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str], ends: Ends) -> Answer {
        let mut command = self.command(args);
        if let Ends::Never(sign) = ends {
            return run_until(command, sign);
        }
        Answer::of(
            &command
                .output()
                .expect("the binary was built with this test"),
        )
    }
}

/// A cluster with one release, whose manifest holds a Secret and a removed API.
fn answer(request: &Request) -> Reply {
    let manifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: plant-Rho7391}\n---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: web\n";
    let record = json!({"name": "web", "manifest": manifest, "config": {"password": "plant-Rho7391"}, "chart": {"metadata": {"name": "shop", "version": "1.2.3"}}});
    let labels = json!({"owner": "helm", "name": "web", "status": "deployed", "version": "3"});
    let body = match request.path() {
        "/version" => json!({"gitVersion": "v1.36.3"}),
        _ if request.target.contains("watch=1") => return Reply::ok(""),
        "/api/v1/secrets" => json!({
            "metadata": {"resourceVersion": "7"},
            "items": [{"metadata": {"name": "sh.helm.release.v1.web.v3", "namespace": "shop", "uid": "u", "resourceVersion": "5", "labels": labels}}],
        }),
        "/api/v1/configmaps" => json!({"metadata": {"resourceVersion": "7"}, "items": []}),
        _ => json!({"data": {"release": STANDARD.encode(STANDARD.encode(record.to_string()))}}),
    };
    Reply::ok(body.to_string()).header("content-type", "application/json")
}

/// Runs a command that does not end by itself until it says something.
fn run_until(mut command: Command, sign: &str) -> Answer {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let mut stderr = BufReader::new(child.stderr.take().expect("it was asked for"));
    let mut said = String::new();
    while !said.contains(sign) {
        let read = stderr.read_line(&mut said).expect("text");
        assert!(read > 0, "it ended early:\n{said}");
    }
    child.kill().expect("it runs");
    stderr.read_to_string(&mut said).expect("text");
    let mut stdout = String::new();
    let mut out = child.stdout.take().expect("it was asked for");
    out.read_to_string(&mut stdout).expect("text");
    child.wait().expect("it was started");
    Answer {
        code: 0,
        stdout,
        stderr: said,
    }
}

#[test]
fn no_command_shows_a_planted_secret_in_any_format() {
    let bench = Bench::new();
    thread::scope(|scope| {
        for command in commands::commands() {
            let bench = &bench;
            scope.spawn(move || check_command(bench, &command));
        }
    });
    assert_nothing_shown(bench.planted.repository.path());
    assert_nothing_shown(&bench.planted.home.path().join(".cache"));
}

/// Makes every call of a command in every format.
fn check_command(bench: &Bench, command: &commands::Command) {
    let calls = calls(&command.name);
    assert!(calls.is_some(), "no calls are known for `{}`", command.name);
    let calls = calls.unwrap_or_default();
    let mut variants: Vec<Vec<&str>> = vec![vec![]];
    variants.extend(command.formats.iter().map(|format| vec!["-o", format]));
    variants.extend(command.graphs.iter().map(|graph| vec!["--graph", graph]));
    // Others have a subject unless one is named.
    let subjects: Vec<&str> = match command.name.as_str() {
        "get" => command.subjects.iter().map(String::as_str).collect(),
        _ => vec![],
    };
    let words: Vec<&str> = command.name.split(' ').collect();
    for (ends, args) in &calls {
        for variant in &variants {
            if subjects.is_empty() {
                check(bench, &[&words, args.as_slice(), variant].concat(), *ends);
            }
            for subject in &subjects {
                let args = [&words, &[*subject][..], args, variant].concat();
                check(bench, &args, *ends);
            }
        }
    }
}

fn check(bench: &Bench, args: &[&str], ends: Ends) {
    let number = bench.calls.fetch_add(1, Ordering::Relaxed);
    let file = format!("events-{number}.jsonl");
    let events = ["--events", file.as_str()];
    let writes_events = !args.contains(&"--events") && ends == Ends::Well;
    let args = if writes_events {
        [args, &events].concat()
    } else {
        args.to_vec()
    };
    let answer = bench.run(&args, ends);
    // These cannot be drawn as a graph: that is told, and told without secrets.
    let is_no_graph =
        args.contains(&"--graph") && answer.stderr.contains("cannot be shown as a tree");
    match ends {
        // The broken release differs on both sides, and nobody knows how: a diff ends with 2, but not without an answer.
        Ends::Well if args.contains(&"diff") => {
            assert!((0..3).contains(&answer.code), "{args:?}\n{answer}");
            let is_written = args.contains(&"--output-file");
            assert!(
                is_written || !answer.stdout.is_empty(),
                "{args:?}\n{answer}"
            );
        }
        Ends::Well if !is_no_graph => assert!((0..2).contains(&answer.code), "{args:?}\n{answer}"),
        Ends::Badly => assert!(answer.code > 0, "{args:?}\n{answer}"),
        _ => {}
    }
    let shown = shown_in(&answer.to_string());
    assert!(shown.is_empty(), "{args:?} shows {shown:?}\n{answer}");
    let is_mixed = args.windows(2).any(|pair| pair == ["--events", "-"]);
    if args.contains(&"json") && ends == Ends::Well && !answer.stdout.is_empty() && !is_mixed {
        assert_json(&args, &answer);
    }
}

/// One document, or one on each line.
fn assert_json(args: &[&str], answer: &Answer) {
    let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    let is_one = is_json(&answer.stdout);
    assert!(
        is_one || answer.stdout.lines().all(is_json),
        "{args:?}\n{answer}"
    );
}

/// Neither in what was written nor in what files are called; the planted files themselves are left out.
fn assert_nothing_shown(directory: &Path) {
    const PLANTED: [&str; 10] = [
        "plain",
        "shop",
        "remote",
        "kubeconfig",
        "unreachable",
        "former",
        "sealed",
        "web",
        "more",
        "broken",
    ];
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if PLANTED.contains(&name.as_str()) && directory.join("cluster").exists() {
            continue;
        }
        assert!(shown_in(&name).is_empty(), "{}", path.display());
        if path.is_dir() {
            assert_nothing_shown(&path);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
            let shown = shown_in(&text);
            assert!(
                shown.is_empty(),
                "{} shows {shown:?}\n{text}",
                path.display()
            );
        }
    }
}

/// What is planted does reach the output when it is asked for: otherwise the test above could not fail.
#[test]
fn what_is_planted_in_the_repository_is_shown_when_asked_for() {
    let bench = Bench::new();
    let args = [
        "build",
        "--show-secrets",
        "--repo",
        ".",
        "--path",
        "cluster",
        "--offline",
    ];
    let answer = bench.run(&args, Ends::Well);
    let shown = shown_in(&answer.to_string());
    // Logins and addresses are not part of any object.
    let outside = ["Nu7391nu", "Xi7391xi", "Pi7391pi", "Rho7391"];
    for core in CORES.iter().filter(|core| !outside.contains(core)) {
        assert!(shown.contains(core), "{core}\n{answer}");
    }
}

/// A command that is being watched shows the change of a secret without its values.
#[test]
fn a_watched_change_shows_no_secret() {
    let bench = Bench::new();
    let args = ["watch", "--repo", ".", "--path", "cluster", "--offline"];
    let mut child = bench
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    let stdout = child.stdout.take().expect("it was asked for");
    let heard = Arc::new(Mutex::new(String::new()));
    let reader = thread::spawn({
        let heard = Arc::clone(&heard);
        move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                heard.lock().expect("no panic").push_str(&(line + "\n"));
            }
        }
    });
    let said = || heard.lock().expect("no panic").clone();
    let saves = std::cell::Cell::new(0);
    // It may not have begun to look when a file is saved: each save is another.
    wait_until(|| {
        if !said().is_empty() {
            return true;
        }
        saves.set(saves.get() + 1);
        let count = saves.get();
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: more, namespace: web}}\ndata:\n  iota: ${{IOTA}}\n  alpha: plant-Iota7391-{count}\n"
        );
        write(bench.planted.repository.path(), "more/config.yaml", &text);
        false
    });
    child.kill().expect("it runs");
    child.wait().expect("it was started");
    reader.join().expect("no panic");
    let shown = shown_in(&said());
    assert!(shown.is_empty(), "{shown:?}\n{}", said());
}
