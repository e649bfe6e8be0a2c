//! The test cluster itself: it comes up, runs what it is given, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use portolan_testbed::cluster::{
    Cluster, ClusterSetup, Follower, Kubelet, KubeletSetup, PodFault, WORKLOADS, eventually,
};
use portolan_testbed::{Mesh, MeshSetup};
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

/// With nodes, pods are endpoints of their Service; without, `EndpointSlices` stay empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_follow_the_routes_and_endpoints_of_a_cluster() {
    let setup = ClusterSetup {
        controllers: WORKLOADS,
        rbac: true,
    };
    let Some(cluster) = Cluster::start(setup).await else {
        return;
    };
    let client = cluster.client().await;
    make_virtual_services(&client).await;
    let setup = KubeletSetup {
        nodes: 1,
        ..KubeletSetup::default()
    };
    let kubelet = Kubelet::start(client.clone(), None, setup);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let params = PostParams::default();
    deployments
        .create(&params, &deployment("web:1"))
        .await
        .unwrap();
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let service = serde_json::from_value(service).unwrap();
    services
        .create(&PostParams::default(), &service)
        .await
        .unwrap();

    let mesh = Arc::new(Mesh::start(MeshSetup::default()));
    let _follower = Follower::start(client.clone(), &["default"], Arc::clone(&mesh));
    route(&client, &[("web", 100)]).await;
    let grew = async |slot: &str, is_bad: bool| {
        let (total, bad) = mesh.sent(slot);
        eventually("requests", || async {
            let (now_total, now_bad) = mesh.sent(slot);
            now_total > total + 20 && (!is_bad || now_bad > bad + 20)
        })
        .await;
    };
    // Until the pods are ready every request fails, and then none does.
    eventually("an end of failures", || async {
        let (total, bad) = mesh.sent("web");
        total > bad + 20
    })
    .await;
    let (_, bad) = mesh.sent("web");
    grew("web", false).await;
    assert_eq!(mesh.sent("web").1, bad);
    kubelet.fail_image_with("web:1", PodFault::NeverReady);
    grew("web", true).await;
    assert_eq!(mesh.sent("other"), (0, 0));
    route(
        &client,
        &[("web", 50), ("other.default.svc.cluster.local", 50)],
    )
    .await;
    grew("other", true).await;
}

async fn make_virtual_services(client: &kube::Client) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "virtualservices.networking.istio.io"},
        "spec": {
            "group": "networking.istio.io",
            "scope": "Namespaced",
            "names": {"kind": "VirtualService", "plural": "virtualservices"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = serde_json::from_value(definition).expect("a definition");
    api.create(&PostParams::default(), &definition)
        .await
        .expect("accepted");
    let services = virtual_services(client);
    eventually("the kind", || async {
        services.list(&ListParams::default()).await.is_ok()
    })
    .await;
}

fn virtual_services(client: &kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("networking.istio.io", "v1", "VirtualService");
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind))
}

async fn route(client: &kube::Client, weights: &[(&str, u32)]) {
    let destinations: Vec<_> = weights
        .iter()
        .map(|(host, weight)| json!({"destination": {"host": host}, "weight": weight}))
        .collect();
    let object = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "web"},
        "spec": {"hosts": ["web"], "http": [{"route": destinations}]},
    });
    let params = PatchParams::apply("test").force();
    let api = virtual_services(client);
    api.patch("web", &params, &Patch::Apply(&object))
        .await
        .expect("accepted");
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
