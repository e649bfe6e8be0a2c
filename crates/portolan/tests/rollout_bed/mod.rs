//! A real API server with the kinds of rollouts, and what else a rollout needs: pods that run, routes, requests that are counted.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_testbed::cluster::{
    Cluster, ClusterSetup, Follower, Kubelet, KubeletSetup, WORKLOADS, definitions, eventually,
};
use portolan_testbed::{Mesh, MeshSetup, Prometheus, PrometheusSetup, free_port};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::portolan::{Answer, portolan, portolan_with_input};

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// The kinds of Istio and the Gateway API that rollouts make.
const NEEDED: [&str; 3] = ["VirtualService", "DestinationRule", "HTTPRoute"];

pub(crate) struct Bed {
    pub(crate) cluster: Cluster,
    pub(crate) client: kube::Client,
    _kubelet: Kubelet,
    directory: TempDir,
}

impl Bed {
    /// Starts a cluster; `None` if there are no programs for it.
    pub(crate) async fn start() -> Option<Self> {
        let setup = ClusterSetup {
            controllers: WORKLOADS,
            rbac: false,
        };
        let cluster = Cluster::start(setup).await?;
        let client = cluster.client().await;
        let kubelet = KubeletSetup {
            nodes: 2,
            ..KubeletSetup::default()
        };
        let bed = Self {
            _kubelet: Kubelet::start(client.clone(), None, kubelet),
            directory: tempfile::tempdir().expect("a directory"),
            cluster,
            client,
        };
        for name in ["istio", "gateway-api"] {
            bed.apply_kinds(&definitions(name)?, &NEEDED).await;
        }
        let ours = portolan(&["crds"]);
        assert_eq!(ours.code, 0, "{ours}");
        let kinds = [
            "IstioCanaryDeployment",
            "RolloutAnalysis",
            "ClusterRolloutAnalysis",
        ];
        bed.apply_kinds(&ours.stdout, &kinds).await;
        Some(bed)
    }

    pub(crate) fn kubeconfig(&self) -> String {
        self.cluster.kubeconfig_path().display().to_string()
    }

    /// Runs `portolan rollout` on this cluster.
    pub(crate) fn rollout(&self, args: &[&str]) -> Answer {
        let kubeconfig = self.kubeconfig();
        portolan(&[&["rollout"], args, &["--kubeconfig", &kubeconfig]].concat())
    }

    pub(crate) fn api(&self, kind: (&str, &str, &str), namespace: &str) -> Api<DynamicObject> {
        let (group, version, kind) = kind;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    pub(crate) fn rollouts(&self, namespace: &str) -> Api<DynamicObject> {
        self.api(
            ("portolan.dev", "v1alpha1", "IstioCanaryDeployment"),
            namespace,
        )
    }

    pub(crate) async fn namespace(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create(&object).await;
    }

    pub(crate) async fn create(&self, object: &Value) {
        let api = self.api_of(object);
        let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        api.create(&PostParams::default(), &object)
            .await
            .expect("created");
    }

    /// Applies the objects of YAML text, as `kubectl apply --server-side` does.
    pub(crate) async fn apply(&self, yaml: &str) {
        for object in objects(yaml) {
            let name = object["metadata"]["name"]
                .as_str()
                .expect("a name")
                .to_owned();
            let params = PatchParams::apply("kubectl").force();
            self.api_of(&object)
                .patch(&name, &params, &Patch::Apply(&object))
                .await
                .expect("applied");
        }
    }

    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        let api_version = object["apiVersion"].as_str().expect("a version");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().expect("a kind");
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn apply_kinds(&self, yaml: &str, kinds: &[&str]) {
        for object in objects(yaml) {
            let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default();
            if !kinds.contains(&kind) {
                continue;
            }
            self.create(&object).await;
            let name = object["metadata"]["name"].as_str().expect("a name");
            let api = self.api_of(&object);
            eventually(name, || async {
                let found = api.get(name).await.expect("the definition");
                let conditions = found.data["status"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|condition| {
                    condition["type"] == "Established" && condition["status"] == "True"
                })
            })
            .await;
        }
    }

    /// The status of a rollout.
    pub(crate) async fn status(&self, namespace: &str, name: &str) -> Value {
        let found = self
            .rollouts(namespace)
            .get_opt(name)
            .await
            .expect("an answer");
        found.map_or(Value::Null, |found| found.data["status"].clone())
    }

    /// Waits until something holds of a status.
    pub(crate) async fn wait(
        &self,
        (namespace, name): (&str, &str),
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let started = Instant::now();
        loop {
            let status = self.status(namespace, name).await;
            if holds(&status) {
                return status;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "{what} is not reached: {status:#}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts `portolan operator`.
    pub(crate) fn operator(&self, args: &[&str]) -> OperatorProcess {
        let log = self.directory.path().join("operator.log");
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["operator", "--kubeconfig", &self.kubeconfig()])
            .arg(format!("--listen=127.0.0.1:{port}"))
            .args(args)
            .env("PORTOLAN_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("the binary was built with this test");
        OperatorProcess { child, log, port }
    }
}

/// An operator that ends with the test.
pub(crate) struct OperatorProcess {
    child: Child,
    log: std::path::PathBuf,
    /// Where its metrics are.
    pub(crate) port: u16,
}

impl OperatorProcess {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for OperatorProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests that are counted, and who counts them.
pub(crate) struct Traffic {
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) prometheus: Prometheus,
    _follower: Follower,
}

impl Traffic {
    /// Lets so many requests a second flow to every route of some namespaces; `None` without Prometheus.
    pub(crate) fn start(bed: &Bed, namespaces: &[&str], rate: f64) -> Option<Self> {
        let mesh = Arc::new(Mesh::start(MeshSetup {
            rate,
            ..MeshSetup::default()
        }));
        let setup = PrometheusSetup {
            targets_urls: vec![mesh.targets_url()],
            ..PrometheusSetup::default()
        };
        let prometheus = Prometheus::start(&setup)?;
        let follower = Follower::start(bed.client.clone(), namespaces, Arc::clone(&mesh));
        Some(Self {
            mesh,
            prometheus,
            _follower: follower,
        })
    }
}

/// The objects of YAML text as JSON.
pub(crate) fn objects(yaml: &str) -> Vec<Value> {
    let text = format!("\n{yaml}");
    let documents = text
        .split("\n---")
        .filter(|document| document.contains("\nkind:"));
    let read = |document: &str| {
        let answer = portolan_with_input(&["yaml", "to-json", "-"], document);
        assert_eq!(answer.code, 0, "{answer}");
        serde_json::from_str(&answer.stdout).expect("JSON")
    };
    documents.map(read).collect()
}
