//! The test cluster itself: it comes up, runs what it is given, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use portolan_testbed::cluster::{
    Cluster, ClusterSetup, Kubelet, KubeletSetup, WORKLOADS, eventually,
};
use serde_json::json;

fn deployment(image: &str) -> Deployment {
    let labels = json!({"app": "web"});
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    });
    serde_json::from_value(object).expect("a deployment")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_rolls_out_on_the_fake_kubelet_and_fails_with_a_bad_image() {
    let setup = ClusterSetup {
        controllers: WORKLOADS,
        rbac: true,
    };
    let Some(cluster) = Cluster::start(setup).await else {
        return;
    };
    let client = cluster.client().await;
    let kubelet = Kubelet::start(client.clone(), None, KubeletSetup::default());
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &deployment("web:1"))
        .await
        .unwrap();
    let ready = async || {
        let status = api.get("web").await.unwrap().status.unwrap_or_default();
        status.ready_replicas.unwrap_or(0)
    };
    eventually("the roll-out", || async { ready().await == 2 }).await;
    kubelet.fail_image("web:1");
    eventually("the failure", || async { ready().await == 0 }).await;
    kubelet.heal_image("web:1");
    eventually("the recovery", || async { ready().await == 2 }).await;

    let directory = cluster.kubeconfig_path().parent().unwrap().to_owned();
    assert!(!users_of(&directory).is_empty());
    drop(cluster);
    assert!(!directory.exists());
    assert_eq!(users_of(&directory), Vec::<String>::new());
}

/// Set for the process that is to be killed: where it writes the directory of its cluster.
const VICTIM: &str = "PORTOLAN_TESTBED_VICTIM";

/// The test runs itself again as another process and kills that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_test_leaves_nothing_behind() {
    if let Some(note) = std::env::var_os(VICTIM) {
        let Some(cluster) = Cluster::start(ClusterSetup::default()).await else {
            return;
        };
        let directory = cluster.kubeconfig_path().parent().unwrap().to_owned();
        std::fs::write(&note, directory.display().to_string()).unwrap();
        return std::future::pending().await;
    }
    if !Cluster::is_installed() {
        return;
    }
    let notes = tempfile::tempdir().unwrap();
    let note = notes.path().join("directory");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_test_leaves_nothing_behind"])
        .env(VICTIM, &note)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&note).unwrap_or_default();
    eventually("the start", || async { !read().is_empty() }).await;
    let directory = PathBuf::from(read());
    assert!(!users_of(&directory).is_empty());
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("the end", || async {
        users_of(&directory).is_empty() && !directory.exists()
    })
    .await;
}

/// The processes that have the directory on their command line.
fn users_of(directory: &Path) -> Vec<String> {
    let needle = directory.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok())
        .filter(|line| line.contains(&needle))
        .collect()
}
