//! A fake kubelet: makes pods run by writing their status, on nodes that are only names.
//!
//! A pod with the annotation [`EXIT_CODE`] ends at once with that code, as those of Jobs do.
//! It watches pods, so hundreds of them cost no more than their own changes. If there are nodes, pods are bound to
//! them and `EndpointSlices` are filled.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::node::NodeEndpoint;

/// The pause after a watch that failed, as while a cluster goes down.
const PAUSE: Duration = Duration::from_millis(200);

/// So many pods are looked after at a time.
const AT_ONCE: usize = 16;

/// The annotation of a pod whose containers end, with the code that they end with.
pub const EXIT_CODE: &str = "testbed.portolan.dev/exit-code";

/// How the fake kubelet behaves.
#[derive(Clone, Default)]
pub struct KubeletSetup {
    /// Pods with a container of one of these images never become ready.
    pub failing_images: Vec<String>,
    /// How many nodes there are. Without any, pods run but no `EndpointSlice` names them.
    pub nodes: u32,
    /// Gives pods logs, commands and ports; needs a node.
    pub endpoint: Option<NodeEndpoint>,
}

/// What keeps pods of an image from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodFault {
    /// Containers end again and again.
    CrashLoop,
    /// The image cannot be had.
    ImagePull,
    /// No node has room.
    Unschedulable,
    /// Containers run and never become ready.
    NeverReady,
}

/// Runs pods until it is dropped.
pub struct Kubelet {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    client: kube::Client,
    nodes: u32,
    endpoint: Option<NodeEndpoint>,
    faults: Mutex<BTreeMap<String, PodFault>>,
    rooms: Mutex<BTreeMap<String, Room>>,
    changed: Notify,
    /// How many addresses were given to pods.
    addresses: AtomicU32,
}

/// Room for pods of one image.
#[derive(Debug, Default)]
struct Room {
    /// How many pods the nodes have room for.
    pods: usize,
    /// Those that were put on a node.
    taken: BTreeSet<String>,
}

impl Kubelet {
    /// Looks after all pods of a cluster, or of a namespace.
    pub fn start(client: kube::Client, namespace: Option<&str>, setup: KubeletSetup) -> Self {
        let failing = setup.failing_images.into_iter();
        let faults = failing.map(|image| (image, PodFault::CrashLoop)).collect();
        let shared = Arc::new(Shared {
            client,
            nodes: setup.nodes,
            endpoint: setup.endpoint,
            faults: Mutex::new(faults),
            rooms: Mutex::default(),
            changed: Notify::new(),
            addresses: AtomicU32::new(0),
        });
        let namespace = namespace.map(str::to_owned);
        let task = tokio::spawn(run(Arc::clone(&shared), namespace));
        Self { shared, task }
    }

    /// Pods of this image crash from now on.
    pub fn fail_image(&self, image: &str) {
        self.fail_image_with(image, PodFault::CrashLoop);
    }

    /// Pods of this image do not run from now on.
    pub fn fail_image_with(&self, image: &str, fault: PodFault) {
        let mut faults = self
            .shared
            .faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        faults.insert(image.to_owned(), fault);
        self.shared.changed.notify_one();
    }

    /// The nodes have room for so many pods of this image from now on.
    pub fn set_room(&self, image: &str, pods: usize) {
        let mut rooms = self
            .shared
            .rooms
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        rooms.entry(image.to_owned()).or_default().pods = pods;
        self.shared.changed.notify_one();
    }

    /// Pods of this image run from now on.
    pub fn heal_image(&self, image: &str) {
        let mut faults = self
            .shared
            .faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        faults.remove(image);
        self.shared.changed.notify_one();
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(shared: Arc<Shared>, namespace: Option<String>) {
    shared.make_nodes().await;
    let pods: Api<Pod> = match &namespace {
        Some(namespace) => Api::namespaced(shared.client.clone(), namespace),
        None => Api::all(shared.client.clone()),
    };
    loop {
        // A cluster that is going down answers with errors; the next look decides.
        if shared.watch(&pods).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Shared {
    /// Tends all pods, then each that changes, until the watch ends or a fault was set or taken away.
    async fn watch(&self, pods: &Api<Pod>) -> kube::Result<()> {
        let list = pods.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let all = futures_util::stream::iter(&list.items);
        all.for_each_concurrent(AT_ONCE, |pod| self.tend(pod)).await;
        let events = pods.watch(&WatchParams::default(), &version).await?;
        let tended = events.for_each_concurrent(AT_ONCE, |event| async move {
            if let Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = &event {
                self.tend(pod).await;
            }
        });
        let mut tended = pin!(tended);
        tokio::select! {
            () = &mut tended => {}
            () = self.changed.notified() => {}
        }
        Ok(())
    }

    async fn make_nodes(&self) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        for number in 0..self.nodes {
            let node = json!({"metadata": {"name": node_name(number)}});
            if let Ok(node) = serde_json::from_value(node) {
                // Another kubelet of the same cluster may have made it.
                let _ = nodes.create(&PostParams::default(), &node).await;
            }
            if let Some(endpoint) = &self.endpoint {
                let status = json!({"status": {
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port()}},
                }});
                let params = PatchParams::default();
                let _ = nodes
                    .patch_status(&node_name(number), &params, &Patch::Merge(status))
                    .await;
            }
        }
    }

    /// Brings one pod a step further.
    async fn tend(&self, pod: &Pod) {
        let (Some(name), Some(namespace)) = (&pod.metadata.name, &pod.metadata.namespace) else {
            return;
        };
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        if pod.metadata.deletion_timestamp.is_some() {
            if let Some(endpoint) = &self.endpoint {
                endpoint.remove_pod(pod);
            }
            let at_once = DeleteParams::default().grace_period(0);
            let _ = api.delete(name, &at_once).await;
            return;
        }
        if let Some(code) = exit_code(pod) {
            if !is_ended(pod) {
                let status = ended(pod, code);
                let _ = api
                    .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
                    .await;
            }
            return;
        }
        let fault = self.fault_of(pod);
        if let Some(endpoint) = &self.endpoint {
            // A test that misses the directory says so.
            let _ = endpoint.make_pod(pod);
        }
        if fault != Some(PodFault::Unschedulable) {
            self.bind(&api, pod, name, namespace).await;
        }
        if is_ready(pod) != Some(fault.is_none()) {
            let status = self.status(pod, fault);
            let _ = api
                .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
                .await;
        }
    }

    fn fault_of(&self, pod: &Pod) -> Option<PodFault> {
        if !self.has_room(pod) {
            return Some(PodFault::Unschedulable);
        }
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let mut images = containers.filter_map(|container| container.image.as_ref());
        images.find_map(|image| faults.get(image).copied())
    }

    /// Whether a node takes the pod, which then keeps its place.
    fn has_room(&self, pod: &Pod) -> bool {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let image = containers.find_map(|container| container.image.as_ref());
        let Some(room) = image.and_then(|image| rooms.get_mut(image)) else {
            return true;
        };
        let name = pod.metadata.name.clone().unwrap_or_default();
        let has_place = room.taken.contains(&name);
        if !has_place && room.taken.len() < room.pods {
            room.taken.insert(name);
            return true;
        }
        has_place
    }

    /// Puts a pod on a node, as a scheduler does.
    async fn bind(&self, api: &Api<Pod>, pod: &Pod, name: &str, namespace: &str) {
        let is_bound = pod
            .spec
            .as_ref()
            .is_some_and(|spec| spec.node_name.is_some());
        if self.nodes == 0 || is_bound {
            return;
        }
        let node = node_name(self.addresses.load(Ordering::Relaxed) % self.nodes);
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let request = PostParams::default();
        let _: kube::Result<serde_json::Value> = api
            .create_subresource("binding", name, &request, &binding)
            .await;
    }

    fn status(&self, pod: &Pod, fault: Option<PodFault>) -> serde_json::Value {
        let is_ready = fault.is_none();
        let runs = matches!(fault, None | Some(PodFault::NeverReady));
        let state = match fault {
            None | Some(PodFault::NeverReady) => json!({"running": {}}),
            Some(PodFault::CrashLoop) => waiting("CrashLoopBackOff"),
            Some(PodFault::ImagePull) => waiting("ImagePullBackOff"),
            Some(PodFault::Unschedulable) => waiting("ContainerCreating"),
        };
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let containers: Vec<_> = containers
            .map(|container| {
                let crashed = u32::from(fault == Some(PodFault::CrashLoop)) * 3;
                json!({"name": container.name, "image": container.image, "imageID": "", "ready": is_ready, "started": runs, "restartCount": crashed, "state": state})
            })
            .collect();
        let now = k8s_openapi::jiff::Timestamp::now();
        let now = k8s_openapi::jiff::Timestamp::from_second(now.as_second())
            .unwrap_or(now)
            .to_string();
        let word = |yes: bool| if yes { "True" } else { "False" };
        let condition = |kind: &str, yes: bool| json!({"type": kind, "status": word(yes), "lastTransitionTime": now});
        let mut scheduled = condition("PodScheduled", fault != Some(PodFault::Unschedulable));
        let mut status = json!({
            "phase": if runs { "Running" } else { "Pending" },
            "startTime": now,
        });
        if fault == Some(PodFault::Unschedulable) {
            scheduled["reason"] = json!("Unschedulable");
            scheduled["message"] = json!("0/1 nodes are available: 1 Insufficient cpu.");
        } else {
            let address = self.address_of(pod);
            status["podIP"] = json!(address);
            status["podIPs"] = json!([{"ip": address}]);
            status["containerStatuses"] = json!(containers);
        }
        status["conditions"] = json!([
            condition("Ready", is_ready),
            condition("ContainersReady", is_ready),
            scheduled,
        ]);
        json!({"status": status})
    }

    /// The address that a pod has, or a new one.
    fn address_of(&self, pod: &Pod) -> String {
        let known = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        known.unwrap_or_else(|| {
            let number = self.addresses.fetch_add(1, Ordering::Relaxed);
            format!(
                "10.{}.{}.{}",
                100 + number / 62_500 % 100,
                number / 250 % 250,
                number % 250 + 1
            )
        })
    }
}

fn node_name(number: u32) -> String {
    format!("node-{number}")
}

fn waiting(reason: &str) -> serde_json::Value {
    json!({"waiting": {"reason": reason, "message": "the test wants it so"}})
}

/// The code that the containers of a pod end with.
fn exit_code(pod: &Pod) -> Option<i32> {
    let annotations = pod.metadata.annotations.as_ref()?;
    annotations.get(EXIT_CODE)?.parse().ok()
}

fn is_ended(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn ended(pod: &Pod, code: i32) -> serde_json::Value {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let containers: Vec<_> = containers
        .map(|container| {
            let state = json!({"terminated": {"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }}});
            json!({"name": container.name, "image": container.image, "imageID": "", "ready": false, "restartCount": 0, "state": state})
        })
        .collect();
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    json!({"status": {"phase": phase, "containerStatuses": containers}})
}

/// Whether the pod is ready; `None` when nobody has said yet.
fn is_ready(pod: &Pod) -> Option<bool> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")?;
    Some(ready.status == "True")
}
