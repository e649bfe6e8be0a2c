//! Makes the requests of a [`Mesh`] follow a cluster: its routes give the shares, its endpoints and pods the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::{Mesh, MeshPod, MeshRoute};

/// How often the cluster is looked at: proxies of a real mesh need about as long to learn of a change.
const PERIOD: Duration = Duration::from_millis(150);

/// Keeps a mesh's routes those of a namespace until it is dropped.
pub struct Follower {
    task: JoinHandle<()>,
}

impl Follower {
    /// Follows every `VirtualService` and `HTTPRoute` of some namespaces.
    pub fn start(client: kube::Client, namespaces: &[&str], mesh: Arc<Mesh>) -> Self {
        let namespaces: Vec<String> = namespaces.iter().map(|&name| name.to_owned()).collect();
        let task = tokio::spawn(async move {
            loop {
                // What cannot be read now stays as it was, as in proxies.
                if let Ok(routes) = all_routes(&client, &namespaces).await {
                    mesh.set_routes(routes);
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
        Self { task }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn all_routes(
    client: &kube::Client,
    namespaces: &[String],
) -> kube::Result<BTreeMap<String, MeshRoute>> {
    let mut all = BTreeMap::new();
    for namespace in namespaces {
        all.extend(routes_of(client, namespace).await?);
    }
    Ok(all)
}

async fn routes_of(
    client: &kube::Client,
    namespace: &str,
) -> kube::Result<BTreeMap<String, MeshRoute>> {
    let pods = serving_pods(client, namespace).await?;
    let istio = list(client, namespace, "networking.istio.io", "VirtualService").await?;
    let gateway = list(client, namespace, "gateway.networking.k8s.io", "HTTPRoute").await?;
    let weighted = istio
        .iter()
        .map(|object| (object, istio_weights(&object.data)));
    let weighted = weighted.chain(
        gateway
            .iter()
            .map(|object| (object, gateway_weights(&object.data))),
    );
    let routes = weighted.map(|(object, weights)| {
        let slots: BTreeSet<&String> = weights.iter().map(|(slot, _)| slot).collect();
        let pods = pods
            .iter()
            .filter(|pod| slots.contains(&pod.slot))
            .cloned()
            .collect();
        let route = MeshRoute {
            namespace: namespace.to_owned(),
            weights,
            pods,
        };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        (format!("{namespace}/{name}"), route)
    });
    Ok(routes.collect())
}

/// Objects of a kind; none if the cluster does not have it.
async fn list(
    client: &kube::Client,
    namespace: &str,
    group: &str,
    kind: &str,
) -> kube::Result<Vec<DynamicObject>> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Pods that are ready endpoints of a Service, once for each Service.
async fn serving_pods(client: &kube::Client, namespace: &str) -> kube::Result<Vec<MeshPod>> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let slices = slices.list(&ListParams::default()).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default()).await?;
    let by_name: BTreeMap<&str, &Pod> = pods
        .items
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.as_deref()?, pod)))
        .collect();
    let mut serving = Vec::new();
    for slice in &slices.items {
        let labels = slice.metadata.labels.as_ref();
        let service = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
        for endpoint in slice.endpoints.iter().flatten() {
            let ready = endpoint
                .conditions
                .as_ref()
                .and_then(|conditions| conditions.ready);
            let name = endpoint
                .target_ref
                .as_ref()
                .and_then(|target| target.name.as_deref());
            let pod = name.and_then(|name| by_name.get(name));
            if let (Some(service), Some(true), Some(pod)) = (service, ready, pod) {
                serving.push(mesh_pod(pod, service));
            }
        }
    }
    Ok(serving)
}

fn mesh_pod(pod: &Pod, service: &str) -> MeshPod {
    let label = |key: &str| {
        let labels = pod.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(key))
            .cloned()
            .unwrap_or_default()
    };
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let image = containers.find_map(|container| container.image.clone());
    MeshPod {
        name: pod.metadata.name.clone().unwrap_or_default(),
        slot: service.to_owned(),
        workload: workload_of(pod).unwrap_or_default(),
        revision: label("service.istio.io/canonical-revision"),
        image: image.unwrap_or_default(),
    }
}

/// The workload of a pod as Istio names it: what owns its `ReplicaSet`.
fn workload_of(pod: &Pod) -> Option<String> {
    let owner = pod.metadata.owner_references.as_ref()?.first()?;
    let labels = pod.metadata.labels.as_ref()?;
    let keys = ["rollouts-pod-template-hash", "pod-template-hash"];
    let hash = keys.into_iter().find_map(|key| labels.get(key))?;
    let name = owner.name.strip_suffix(hash.as_str())?;
    Some(name.trim_end_matches('-').to_owned())
}

/// The weights of the last route, which takes what no other matches.
fn istio_weights(object: &Value) -> Vec<(String, u32)> {
    let routes = object["spec"]["http"].as_array();
    let destinations = routes
        .and_then(|routes| routes.last())
        .map(|route| &route["route"]);
    let destinations = destinations.and_then(Value::as_array);
    let is_alone = destinations.is_some_and(|destinations| destinations.len() == 1);
    let weights = destinations
        .into_iter()
        .flatten()
        .filter_map(|destination| {
            let host = destination["destination"]["host"].as_str()?;
            let name = host.split('.').next().unwrap_or(host);
            let weight = destination["weight"].as_u64();
            let weight = if is_alone { 100 } else { weight.unwrap_or(0) };
            Some((name.to_owned(), u32::try_from(weight).unwrap_or(0)))
        });
    weights.collect()
}

/// The same of an `HTTPRoute`, where a weight that is left out is 1.
fn gateway_weights(object: &Value) -> Vec<(String, u32)> {
    let rules = object["spec"]["rules"].as_array();
    let backends = rules
        .and_then(|rules| rules.last())
        .map(|rule| &rule["backendRefs"]);
    let backends = backends.and_then(Value::as_array).into_iter().flatten();
    let weights = backends.filter_map(|backend| {
        let weight = backend["weight"].as_u64().unwrap_or(1);
        Some((
            backend["name"].as_str()?.to_owned(),
            u32::try_from(weight).unwrap_or(0),
        ))
    });
    weights.collect()
}
