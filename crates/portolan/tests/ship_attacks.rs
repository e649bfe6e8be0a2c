//! What goes wrong around a run: a disk that is full, a cluster that is lost. One clear result, the rest goes on, and nothing is
//! left behind. A registry that misbehaves is in `ship_push.rs`, objects that are refused or never ready in `ship_deploy.rs`.

mod portolan;
#[path = "../../portolan-cluster/tests/proxy/mod.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod proxy;

use std::fs;
use std::process::Command;

use portolan::Answer;
use portolan::project::Project;
use portolan_testbed::cluster::{Cluster as TestCluster, Kubelet, KubeletSetup, eventually};
use proxy::Proxy;
use serde_json::Value;

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

/// The store is on a file system of one mebibyte, which is then made larger.
#[test]
fn a_full_disk_fails_what_needs_it_and_the_next_build_goes_on() {
    let artifacts = "  - {name: big, image: registry.example/big, oci: {context: big}}\n  - {name: on-big, image: registry.example/on-big, oci: {context: web, base: {artifact: big}}}\n  - {name: web, image: registry.example/web, oci: {context: web}}\n";
    let project = Project::new(artifacts);
    // Bytes that cannot be compressed.
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()
    });
    let noise: Vec<u8> = noise.take(400_000).flatten().collect();
    fs::create_dir_all(project.path("big")).expect("a directory");
    fs::write(project.path("big/noise"), noise).expect("written");
    fs::create_dir_all(project.path("store")).expect("a directory");
    let binary = env!("CARGO_BIN_EXE_portolan");
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs store || exit 77\n{binary} ship build --store store -o json > first.json; echo $? > first.code\nfind store -name 'work-*' > left.txt\nmount -o remount,size=64m store\n{binary} ship build --store store -o json > second.json; echo $? > second.code\n"
    );
    let mut command = Command::new("unshare");
    command
        .args(["-Urm", "sh", "-c", &script])
        .current_dir(project.path("."));
    let ran = command.status();
    if !ran.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no file system can be mounted here");
        assert!(
            std::env::var_os("CI").is_none(),
            "a file system must be mountable in CI"
        );
        return;
    }
    let read = |name: &str| fs::read_to_string(project.path(name)).expect("a file");
    let statuses = |name: &str| {
        let value: Value = serde_json::from_str(&read(name)).expect("JSON");
        let artifacts = value["artifacts"].as_array().expect("a list").clone();
        let words: Vec<String> = artifacts
            .iter()
            .map(|artifact| {
                format!(
                    "{} {}",
                    artifact["name"].as_str().expect("a name"),
                    artifact["status"].as_str().expect("a status")
                )
            })
            .collect();
        (words, artifacts)
    };
    let (words, artifacts) = statuses("first.json");
    assert_eq!(words, ["big failed", "on-big skipped", "web built"]);
    let error = artifacts[0]["error"].as_str().expect("an error");
    assert!(error.contains("No space left on device"), "{error}");
    assert_eq!(
        (read("first.code").trim(), read("left.txt").trim()),
        ("1", "")
    );
    assert_eq!(
        statuses("second.json").0,
        ["big built", "on-big built", "web cached"]
    );
    assert_eq!(read("second.code").trim(), "0");
}

/// The connection to the cluster ends while a release waits for a hook. What is recorded is enough to go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_that_is_lost_half_way_is_one_result_and_the_next_run_goes_on() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let document = "  - {name: web, image: registry.example/shop/web, oci: {context: web}}\n  deploy:\n  - {name: shop, namespace: ship-lost, wait: {timeout: 40s}, helm: {chart: chart, createNamespace: true}}\n  - {name: after, needs: [shop], namespace: ship-lost, manifests: {paths: [after.yaml]}}\n";
    let project = Project::new(document);
    project.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: shop\nversion: 1.2.3\n",
    );
    project.write(
        "chart/templates/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
    );
    project.write(
        "after.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: after}\n",
    );
    let wait = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: wait\n  annotations: {helm.sh/hook: pre-install}\nspec: {containers: [{name: a, image: a}]}\n";
    project.write("chart/templates/wait.yaml", wait);
    let client = test.client().await;
    let _kubelet = Kubelet::start(client.clone(), Some("ship-lost"), KubeletSetup::default());
    let link = Proxy::start(test.url()).await;
    project.write("link", &test.kubeconfig().replace(test.url(), &link.url()));
    let lost = std::thread::spawn({
        let mut command = project.command(&[
            "ship",
            "deploy",
            "--kubeconfig",
            "link",
            "--context",
            "test",
            "-o",
            "json",
        ]);
        move || Answer::of(&command.output().expect("it ran"))
    });
    eventually("the hook was made", || async {
        let request = http::Request::get("/api/v1/namespaces/ship-lost/pods/wait")
            .body(Vec::new())
            .expect("a request");
        client.request::<Value>(request).await.is_ok()
    })
    .await;
    link.refuse();
    let lost = tokio::task::spawn_blocking(move || lost.join().expect("it ended"))
        .await
        .expect("it ended");
    assert_eq!(lost.code, 1, "{lost}");
    let value = json(&lost);
    let error = value["steps"][0]["error"].as_str().expect("an error");
    assert!(
        error.starts_with("cannot reach the API server at ")
            && error.contains("revision 1 stays recorded as pending"),
        "{error}"
    );
    assert_eq!(value["steps"][1]["status"], "skipped", "{lost}");
    fs::remove_file(project.path("chart/templates/wait.yaml")).expect("removed");
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let again = project.run(&[
        "ship",
        "deploy",
        "--kubeconfig",
        &kubeconfig,
        "--context",
        "test",
        "-o",
        "json",
    ]);
    assert_eq!(again.code, 0, "{again}");
}
