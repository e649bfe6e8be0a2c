//! A fake kubelet: makes pods run by writing their status, without nodes and containers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinHandle;

/// How often pods are looked at.
const PERIOD: Duration = Duration::from_millis(100);

/// How the fake kubelet behaves.
#[derive(Debug, Clone, Default)]
pub struct KubeletSetup {
    /// Pods with a container of one of these images never become ready.
    pub failing_images: Vec<String>,
}

/// Runs pods until it is dropped.
pub struct Kubelet {
    failing: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<()>,
}

impl Kubelet {
    /// Looks after all pods of a cluster, or of a namespace.
    pub fn start(client: kube::Client, namespace: Option<&str>, setup: KubeletSetup) -> Self {
        let failing = Arc::new(Mutex::new(setup.failing_images.into_iter().collect()));
        let namespace = namespace.map(str::to_owned);
        let task = tokio::spawn(run(client, namespace, Arc::clone(&failing)));
        Self { failing, task }
    }

    /// Pods of this image fail from now on.
    ///
    /// # Panics
    /// When another thread panicked while it changed the list.
    pub fn fail_image(&self, image: &str) {
        self.failing
            .lock()
            .expect("no panic")
            .insert(image.to_owned());
    }

    /// Pods of this image run from now on.
    ///
    /// # Panics
    /// When another thread panicked while it changed the list.
    pub fn heal_image(&self, image: &str) {
        self.failing.lock().expect("no panic").remove(image);
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    client: kube::Client,
    namespace: Option<String>,
    failing: Arc<Mutex<BTreeSet<String>>>,
) {
    let all: Api<Pod> = match &namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    loop {
        // A cluster that is going down answers with errors; the next look decides.
        if let Ok(pods) = all.list(&ListParams::default()).await {
            for (number, pod) in pods.items.iter().enumerate() {
                let failing = failing
                    .lock()
                    .map(|failing| failing.clone())
                    .unwrap_or_default();
                tend(&client, pod, number, &failing).await;
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Brings one pod a step further.
async fn tend(client: &kube::Client, pod: &Pod, number: usize, failing: &BTreeSet<String>) {
    let (Some(name), Some(namespace)) = (&pod.metadata.name, &pod.metadata.namespace) else {
        return;
    };
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    if pod.metadata.deletion_timestamp.is_some() {
        let _ = api
            .delete(name, &DeleteParams::default().grace_period(0))
            .await;
        return;
    }
    let images = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .filter_map(|container| container.image.clone());
    let images: Vec<String> = images.collect();
    let wanted = !images.iter().any(|image| failing.contains(image));
    if is_ready(pod) != Some(wanted) {
        let status = status(pod, number, wanted);
        let _ = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await;
    }
}

/// Whether the pod is ready; `None` when nobody has said yet.
fn is_ready(pod: &Pod) -> Option<bool> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")?;
    Some(ready.status == "True")
}

fn status(pod: &Pod, number: usize, ready: bool) -> serde_json::Value {
    let state = if ready {
        json!({"running": {}})
    } else {
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": "the test wants it so"}})
    };
    let containers: Vec<_> = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .map(|container| {
            json!({"name": container.name, "image": container.image, "imageID": "", "ready": ready, "started": ready, "restartCount": 0, "state": state})
        })
        .collect();
    let word = if ready { "True" } else { "False" };
    let address = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    json!({"status": {
        "phase": if ready { "Running" } else { "Pending" },
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": "Ready", "status": word},
            {"type": "ContainersReady", "status": word},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": containers,
    }})
}
