//! What is watched, and who is woken when it changes.
//!
//! Own objects are found by their labels. Services and routes are watched whole, because others may send requests past a
//! rollout; of configuration and of Deployments that a spec refers to, metadata are enough.

use std::sync::Arc;

use futures_util::future::{BoxFuture, select_all};
use portolan_cluster::kube::core::DynamicObject;
use portolan_cluster::{Cache, CacheOptions, CacheState, Cluster};
use portolan_rollout::ConfigKind;
use portolan_rollout::objects::ROLLOUT_LABEL;
use serde_json::{Value, json};

use crate::kinds;
use crate::observe::ready_endpoints;

/// Everything that is watched.
pub(crate) struct Caches {
    pub(crate) rollouts: Cache,
    pub(crate) analyses: Cache,
    pub(crate) cluster_analyses: Cache,
    pub(crate) deployments: Cache,
    pub(crate) workloads: Cache,
    pub(crate) revisions: Cache,
    pub(crate) pods: Cache,
    pub(crate) services: Cache,
    pub(crate) endpoint_slices: Cache,
    pub(crate) config_maps: Cache,
    pub(crate) secrets: Cache,
    pub(crate) virtual_services: Cache,
    pub(crate) destination_rules: Cache,
    pub(crate) http_routes: Cache,
    pub(crate) pod_autoscalers: Cache,
    pub(crate) scaled_objects: Cache,
}

impl Caches {
    /// Empty caches for one namespace, or for all.
    pub(crate) fn new(namespace: Option<&str>) -> Self {
        let options = |trim: fn(&mut DynamicObject)| CacheOptions {
            namespace: namespace.map(str::to_owned),
            group: |object| Some(object.metadata.labels.as_ref()?.get(ROLLOUT_LABEL)?.clone()),
            trim,
            ..CacheOptions::default()
        };
        let own = |trim| CacheOptions {
            labels: ROLLOUT_LABEL.to_owned(),
            ..options(trim)
        };
        let metadata = || CacheOptions {
            metadata_only: true,
            ..options(trim_metadata)
        };
        Self {
            rollouts: Cache::new(kinds::rollouts(), options(trim_annotations)),
            analyses: Cache::new(kinds::analyses(), options(trim_metadata)),
            cluster_analyses: Cache::new(kinds::cluster_analyses(), options(trim_metadata)),
            deployments: Cache::new(kinds::deployments(), own(trim_metadata)),
            workloads: Cache::new(kinds::deployments(), metadata()),
            revisions: Cache::new(
                kinds::revisions(),
                CacheOptions {
                    metadata_only: true,
                    ..own(trim_metadata)
                },
            ),
            pods: Cache::new(kinds::pods(), own(trim_pod)),
            services: Cache::new(
                kinds::services(),
                CacheOptions {
                    group: |service| Some(selected_rollout(service).to_owned()),
                    // Every look at a rollout looks at all of them.
                    read_often: |service| selected_rollout(service).is_empty(),
                    ..options(trim_service)
                },
            ),
            endpoint_slices: Cache::new(kinds::endpoint_slices(), own(trim_endpoints)),
            config_maps: Cache::new(kinds::config_maps(), metadata()),
            secrets: Cache::new(kinds::secrets(), metadata()),
            virtual_services: Cache::new(kinds::virtual_services(), options(trim_metadata)),
            destination_rules: Cache::new(kinds::destination_rules(), own(trim_metadata)),
            http_routes: Cache::new(kinds::http_routes(), options(trim_metadata)),
            pod_autoscalers: Cache::new(kinds::pod_autoscalers(), own(trim_metadata)),
            scaled_objects: Cache::new(kinds::scaled_objects(), own(trim_metadata)),
        }
    }

    fn all(&self) -> [&Cache; 16] {
        [
            &self.rollouts,
            &self.analyses,
            &self.cluster_analyses,
            &self.deployments,
            &self.workloads,
            &self.revisions,
            &self.pods,
            &self.services,
            &self.endpoint_slices,
            &self.config_maps,
            &self.secrets,
            &self.virtual_services,
            &self.destination_rules,
            &self.http_routes,
            &self.pod_autoscalers,
            &self.scaled_objects,
        ]
    }

    pub(crate) fn config(&self, kind: ConfigKind) -> &Cache {
        match kind {
            ConfigKind::ConfigMap => &self.config_maps,
            ConfigKind::Secret => &self.secrets,
        }
    }

    /// The Services that may select pods of a rollout, its own among them.
    pub(crate) fn services_for(&self, namespace: &str, rollout: &str) -> Vec<Arc<DynamicObject>> {
        let mut services = self.services.group(namespace, rollout);
        services.extend(self.services.group(namespace, ""));
        services
    }

    /// Keeps all of them current for as long as it is polled; tells of each object that changes.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        cluster: &Cluster,
        changed: impl Fn(&Cache, &DynamicObject) + Send + Sync,
    ) {
        let changed = &changed;
        let follow = |cache: &Cache| -> BoxFuture<'_, ()> {
            let cache = cache.clone();
            Box::pin(async move {
                match cache
                    .follow(cluster, |object| changed(&cache, object))
                    .await {}
            })
        };
        select_all(self.all().map(follow)).await;
    }

    /// Whether everything is known that decisions are made by; else what is not.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.rollouts.state() == CacheState::NotServed {
            let kind = &self.rollouts.resource().kind;
            return Err(format!(
                "the cluster does not know the kind {kind}; `portolan crds | kubectl apply --server-side -f -` defines it"
            ));
        }
        // Whoever looks after one namespace may have no rights outside of it; rollouts that need these say so.
        let is_needed = |cache: &&Cache| cache.resource().namespaced;
        for cache in self.all().into_iter().filter(is_needed) {
            if !cache.is_filled() {
                let resource = cache.resource();
                let why = match cache.state() {
                    CacheState::Failing(why) => why,
                    _ => "not listed yet".to_owned(),
                };
                return Err(format!("{}: {why}", resource.id()));
            }
        }
        Ok(())
    }
}

/// The rollout whose pods a Service selects by name; empty for one that selects by other labels, and so the pods of any
/// rollout perhaps.
fn selected_rollout(service: &DynamicObject) -> &str {
    let label = &service.data["spec"]["selector"][ROLLOUT_LABEL];
    label.as_str().unwrap_or_default()
}

/// An object as JSON, as far as it is kept.
pub(crate) fn as_json(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or(Value::Null)
}

fn trim_annotations(object: &mut DynamicObject) {
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.retain(|key, _| !key.starts_with("kubectl.kubernetes.io/"));
    }
}

/// Of annotations, only our own are read.
fn trim_metadata(object: &mut DynamicObject) {
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.retain(|key, _| key.starts_with("portolan.dev/"));
    }
}

/// Of a pod: whether it is ready since when, and what keeps it from being so.
fn trim_pod(object: &mut DynamicObject) {
    trim_metadata(object);
    let status = &object.data["status"];
    let waiting = |list: &str| {
        let containers = status[list].as_array();
        let containers = containers.into_iter().flatten();
        let kept = containers.map(|container| {
            json!({"name": container["name"], "state": {"waiting": container["state"]["waiting"]}})
        });
        kept.collect::<Vec<_>>()
    };
    object.data = json!({"status": {
        "conditions": status["conditions"],
        "containerStatuses": waiting("containerStatuses"),
        "initContainerStatuses": waiting("initContainerStatuses"),
    }});
}

/// Of a Service: what it selects, and its ports.
fn trim_service(object: &mut DynamicObject) {
    trim_metadata(object);
    let spec = &object.data["spec"];
    object.data = json!({"spec": {"selector": spec["selector"], "ports": spec["ports"]}});
}

/// Of endpoints: the pods that can be reached, each as its name where its address stood.
fn trim_endpoints(object: &mut DynamicObject) {
    trim_metadata(object);
    let ready = ready_endpoints(&object.data);
    let ready: Vec<Value> = ready.map(|name| json!({"addresses": [name]})).collect();
    object.data = json!({"endpoints": ready});
}
