//! Deploy steps beside manifests and charts: git, Flux and canaries; and `ship run` and `ship apply`, on a real API server.

mod portolan;
mod rollout_bed;

use std::fs;
use std::process::Command;

use portolan::Answer;
use portolan::project::{Project, WEB};
use portolan_testbed::cluster::{Cluster as TestCluster, Kubelet, KubeletSetup, PORT_ANNOTATION};
use portolan_testbed::{HttpServer, Reply};
use rollout_bed::Bed;
use serde_json::Value;

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

/// What git prints in a directory below a project.
fn git(project: &Project, directory: &str, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=tester@example.com",
        ])
        .args(args)
        .current_dir(project.path(directory))
        .output()
        .expect("git");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A project with a repository beside its own files, and somebody who commits.
fn with_repository(branch: &str) -> Project {
    let deploy = format!(
        "{WEB}  deploy:\n  - {{name: pin, git: {{path: gitops, files: [\"apps/**\"], branch: {branch}, message: \"web ${{DIGEST}}\"}}}}\n"
    );
    let mut project = Project::new(&deploy);
    project.env = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"]
        .map(|name| (name, "Tester".to_owned()))
        .into_iter()
        .chain(
            ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]
                .map(|name| (name, "tester@example.com".to_owned())),
        )
        .collect();
    project.write("gitops/apps/web.yaml", "# the web shop\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - image: registry.example/shop/web:old # ours\n    name: web\n  - {name: other, image: registry.example/other:1}\n");
    project.write("gitops/other/web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: registry.example/shop/web:old}]}\n");
    git(
        &project,
        "gitops",
        &["init", "--quiet", "--initial-branch", "main"],
    );
    git(&project, "gitops", &["add", "."]);
    git(
        &project,
        "gitops",
        &["commit", "--quiet", "--message", "first"],
    );
    project
}

/// A kubeconfig is needed to know that nothing is done with it.
fn deploy(project: &Project, kubeconfig: &str, args: &[&str]) -> Answer {
    let base = [
        "ship",
        "deploy",
        "--kubeconfig",
        kubeconfig,
        "--context",
        "test",
        "-o",
        "json",
    ];
    project.run(&[&base, args].concat())
}

const NOWHERE: &str = "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: test, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n";

#[test]
fn images_are_committed_to_a_branch_and_nothing_else_changes() {
    let project = with_repository("ship/web");
    project.write("nowhere", NOWHERE);
    let (built, _) = project.build(&[]);
    let image = built["artifacts"][0]["image"]
        .as_str()
        .expect("an image")
        .to_owned();
    let answer = deploy(&project, "nowhere", &[]);
    assert_eq!(answer.code, 0, "{answer}");
    assert_eq!(
        json(&answer)["steps"][0]["note"],
        "to push: git -C gitops push origin ship/web"
    );
    // What is checked out stays, and no other work tree is left.
    assert_eq!(
        git(&project, "gitops", &["rev-parse", "--abbrev-ref", "HEAD"]),
        "main"
    );
    assert_eq!(git(&project, "gitops", &["status", "--porcelain"]), "");
    assert_eq!(
        git(&project, "gitops", &["worktree", "list"])
            .lines()
            .count(),
        1
    );
    let diff = git(
        &project,
        "gitops",
        &["diff", "--unified=0", "main", "ship/web"],
    );
    let changed: Vec<&str> = diff
        .lines()
        .filter(|line| line.starts_with(['+', '-']))
        .collect();
    assert_eq!(
        changed,
        [
            "--- a/apps/web.yaml",
            "+++ b/apps/web.yaml",
            "-  - image: registry.example/shop/web:old # ours",
            &format!("+  - image: {image} # ours"),
        ]
    );
    let digest = image.split_once('@').expect("a digest").1;
    assert_eq!(
        git(
            &project,
            "gitops",
            &["log", "-1", "--format=%s", "ship/web"]
        ),
        format!("web {digest}")
    );
    let again = deploy(&project, "nowhere", &[]);
    assert_eq!(
        json(&again)["steps"][0]["note"],
        "`ship/web` has these images already",
        "{again}"
    );
    assert_eq!(
        git(&project, "gitops", &["rev-list", "--count", "ship/web"]),
        "2"
    );
}

#[test]
fn a_work_tree_with_changes_is_refused() {
    let project = with_repository("main");
    project.write("nowhere", NOWHERE);
    project.write("gitops/apps/new.yaml", "a: b\n");
    let refused = deploy(&project, "nowhere", &[]);
    assert_eq!(refused.code, 1, "{refused}");
    let error = json(&refused)["steps"][0]["error"].clone();
    assert_eq!(
        error,
        "the work tree `gitops` has changes that were not committed: ?? apps/new.yaml"
    );
    fs::remove_file(project.path("gitops/apps/new.yaml")).expect("removed");
    // The branch that is checked out is committed to in place.
    let answer = deploy(&project, "nowhere", &[]);
    assert_eq!(answer.code, 0, "{answer}");
    assert_eq!(
        git(&project, "gitops", &["rev-list", "--count", "main"]),
        "2"
    );
    assert_eq!(git(&project, "gitops", &["status", "--porcelain"]), "");
    let text = fs::read_to_string(project.path("gitops/apps/web.yaml")).expect("a file");
    assert!(
        text.contains("@sha256:") && text.starts_with("# the web shop\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flux_repository_is_deployed_without_flux() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let _kubelet = Kubelet::start(
        test.client().await,
        Some("ship-flux"),
        KubeletSetup::default(),
    );
    let project = Project::new(&format!(
        "{WEB}  deploy:\n  - {{name: gitops, flux: {{path: clusters/dev, only: [apps]}}, wait: {{timeout: 40s}}}}\n"
    ));
    project.write("clusters/dev/apps.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substitute: {level: dev}}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: other, namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./other, sourceRef: {kind: GitRepository, name: flux-system}}\n");
    project.write("apps/all.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ship-flux}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: level, namespace: ship-flux}\ndata: {level: \"${level}\"}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: ship-flux}\nspec: {containers: [{name: a, image: registry.example/shop/web}]}\n");
    project.write(
        "other/all.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\n",
    );
    let rendered = project.run(&["ship", "render"]);
    assert_eq!(rendered.code, 0, "{rendered}");
    assert!(
        rendered.stdout.contains("level: dev\n") && !rendered.stdout.contains("name: other"),
        "{rendered}"
    );
    let answer = deploy(&project, &kubeconfig, &[]);
    assert_eq!(answer.code, 0, "{answer}");
    let value = json(&answer);
    let objects: Vec<_> = value["steps"][0]["objects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|object| object["object"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        objects,
        [
            "Namespace ship-flux",
            "ConfigMap ship-flux/level",
            "Pod ship-flux/web"
        ]
    );
    project.write(
        "portolan.yaml",
        &fs::read_to_string(project.path("portolan.yaml"))
            .expect("a document")
            .replace("[apps]", "[none]"),
    );
    let missing = project.run(&["ship", "render"]);
    assert!(
        missing.code == 2
            && missing
                .stderr
                .contains("it has no Kustomization or HelmRelease `none`"),
        "{missing}"
    );
}

/// All stages in one run, and what was rendered applied elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_built_tested_deployed_and_verified_in_one_run() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let Some(endpoint) = test.node_endpoint() else {
        return;
    };
    let setup = KubeletSetup {
        nodes: 1,
        endpoint: Some(endpoint),
        ..KubeletSetup::default()
    };
    let _kubelet = Kubelet::start(test.client().await, Some("ship-run"), setup);
    let server = HttpServer::start(|_| Reply::ok("fine"));
    let port = server.url().trim_start_matches("http://").to_owned();
    let document = format!(
        "{WEB}  - {{name: api, image: registry.example/shop/api, oci: {{context: web, labels: {{a: b}}}}}}\n  tests:\n  - {{name: page, artifacts: [web, api], image: {{files: [{{path: /index.html}}]}}}}\n  - {{name: fine, artifacts: [api], command: {{run: [sh, test.sh]}}}}\n  deploy:\n  - {{name: web, namespace: ship-run, manifests: {{paths: [web.yaml]}}, wait: {{timeout: 40s}}}}\n  - {{name: api, namespace: ship-run, manifests: {{paths: [api.yaml]}}, wait: {{timeout: 40s}}}}\n  verify:\n  - {{name: ready, needs: [web], namespace: ship-run, cluster: {{apiVersion: v1, kind: Pod, selector: app=web, condition: Ready, atLeast: 1, timeout: 30s}}}}\n  - {{name: two, needs: [web], namespace: ship-run, cluster: {{apiVersion: v1, kind: Pod, selector: app=web, atLeast: 2, timeout: 1s}}}}\n  - {{name: after, needs: [api], command: {{run: [\"true\"]}}}}\n  - {{name: inside, needs: [web], namespace: ship-run, http: {{forward: pod/web:8080, path: /healthz, contains: fine}}}}\n  - {{name: wrong, needs: [web], namespace: ship-run, http: {{forward: pod/web:8080, path: /healthz, status: 201, for: 1s}}}}\n"
    );
    let project = Project::new(&document);
    project.write("test.sh", "exit 1\n");
    let pod = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}, annotations: {{{PORT_ANNOTATION}8080: \"{port}\"}}}}\nspec: {{containers: [{{name: a, image: registry.example/shop/{name}}}]}}\n"
        )
    };
    project.write(
        "web.yaml",
        &format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: ship-run}}\n---\n{}",
            pod("web")
        ),
    );
    project.write("api.yaml", &pod("api"));
    let arguments = [
        "ship",
        "run",
        "--kubeconfig",
        &kubeconfig,
        "--context",
        "test",
    ];
    let answer = project.run(&[&arguments[..], &["-o", "json"]].concat());
    assert_eq!(answer.code, 1, "{answer}");
    let value = json(&answer);
    let statuses = |list: &str| -> Vec<String> {
        let items = value[list].as_array().expect("a list").iter();
        items
            .map(|item| {
                format!(
                    "{} {}",
                    item["name"].as_str().unwrap_or_default(),
                    item["status"].as_str().unwrap_or_default()
                )
            })
            .collect()
    };
    assert_eq!(value["kind"], "RunResult");
    assert_eq!(statuses("artifacts"), ["web built", "api built"]);
    assert_eq!(
        statuses("tests"),
        ["page passed", "page passed", "fine failed"]
    );
    assert_eq!(statuses("steps"), ["web deployed", "api skipped"]);
    assert_eq!(
        statuses("verifications"),
        [
            "ready passed",
            "two failed",
            "after skipped",
            "inside passed",
            "wrong failed"
        ]
    );
    assert_eq!(
        value["verifications"][1]["error"],
        "there are 1 of Pod and not 2, after 1 s"
    );
    assert_eq!(
        value["verifications"][4]["error"],
        "`pod/web:8080/healthz` did not answer as it should within 1 s: its status is 200 and not 201"
    );
    project.write("test.sh", "exit 0\n");
    let text = project.run(&arguments);
    assert!(
        text.stdout.contains("3 of 3 tests passed\n")
            && text.stdout.contains("2 of 2 steps deployed in "),
        "{text}"
    );
    assert!(
        text.stdout.contains("✗ two  failed after ")
            && text.stdout.ends_with("3 of 5 verifications passed\n"),
        "{text}"
    );
    // Elsewhere: what was rendered, without the project's files.
    let rendered = project.run(&["ship", "render"]);
    project.write(
        "all.yaml",
        &rendered.stdout.replace("name: web\n", "name: copy\n"),
    );
    let applied = project.run(&[
        "ship",
        "apply",
        "all.yaml",
        "-n",
        "ship-run",
        "--kubeconfig",
        &kubeconfig,
        "--context",
        "test",
    ]);
    assert_eq!(applied.code, 0, "{applied}");
    assert!(
        applied.stdout.contains("  ready    Pod ship-run/copy\n"),
        "{applied}"
    );
    project.write("broken.yaml", "kind: Pod\n");
    let refused = project.run(&[
        "ship",
        "apply",
        "broken.yaml",
        "--kubeconfig",
        &kubeconfig,
        "--context",
        "test",
    ]);
    assert!(
        refused.code == 2
            && refused
                .stderr
                .contains("broken.yaml:1:1: this is no object"),
        "{refused}"
    );
}

/// The step that waits for a canary ends with its verdict.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_canary_is_handed_over_and_its_verdict_waited_for() {
    let Some(bed) = Bed::start().await else {
        return;
    };
    bed.namespace("shop").await;
    let _operator = bed.operator(&["--namespace", "shop"]);
    let document = format!(
        "{WEB}  deploy:\n  - {{name: canary, namespace: shop, rollout: {{name: web, timeout: 100s}}}}\n"
    );
    let project = Project::new(&document);
    let kubeconfig = bed.kubeconfig();
    let missing = deploy(&project, &kubeconfig, &[]);
    assert_eq!(
        json(&missing)["steps"][0]["error"],
        "the rollout `shop/web` was not promoted: it does not exist",
        "{missing}"
    );
    let rollout = |image: &str| {
        format!(
            "apiVersion: portolan.dev/v1alpha1\nkind: IstioCanaryDeployment\nmetadata: {{name: web, namespace: shop}}\nspec:\n  replicas: 1\n  service: {{port: 80}}\n  template: {{spec: {{containers: [{{name: app, image: '{image}'}}]}}}}\n  strategy: {{weights: [50], stepInterval: 2s, soak: 2s, rollbackWindow: 60s, drain: 1s}}\n  analysis: {{interval: 2s, warmup: 0s}}\n"
        )
    };
    bed.apply(&rollout("web:1")).await;
    let first = deploy(&project, &kubeconfig, &[]);
    assert_eq!(first.code, 0, "{first}");
    // A new revision that a person calls off.
    bed.apply(&rollout("web:2")).await;
    let waiting = std::thread::spawn({
        let command = project.command(&[
            "ship",
            "deploy",
            "--kubeconfig",
            &kubeconfig,
            "--context",
            "test",
            "-o",
            "json",
        ]);
        move || Answer::of(&{ command }.output().expect("it ran"))
    });
    bed.wait(("shop", "web"), "a canary", |status| {
        status["phase"] != "Stable" && status["target"].is_string() && status["canary"].is_object()
    })
    .await;
    assert_eq!(bed.rollout(&["abort", "shop/web"]).code, 0);
    let second = waiting.join().expect("it ended");
    assert_eq!(second.code, 1, "{second}");
    let error = json(&second)["steps"][0]["error"]
        .as_str()
        .expect("an error")
        .to_owned();
    assert!(
        error.starts_with("the rollout `shop/web` was not promoted: Aborted: "),
        "{error}"
    );
}
