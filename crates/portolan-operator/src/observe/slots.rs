//! The two slots: what they run, how many of their pods are ready, and what keeps the others from being so.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_cluster::ClusterError;
use portolan_cluster::kube::core::DynamicObject;
use portolan_rollout::objects::{REVISION_ANNOTATION, ROLLOUT_LABEL, SLOT_LABEL};
use portolan_rollout::{ObservedSlot, Revision, Slot, Trouble, TroubleKind};
use serde_json::Value;

use super::Look;
use crate::kinds;

/// The label of an `EndpointSlice` with the name of its Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The most of what Kubernetes says that is kept.
const LONGEST_MESSAGE: usize = 256;

impl Look<'_> {
    pub(super) fn slot(&self, slot: Slot) -> ObservedSlot {
        let name = self.app().slot_name(slot);
        let caches = &self.ctx.caches;
        let deployment = caches.deployments.get(self.namespace(), &name);
        let deployment = deployment.filter(|deployment| self.is_own(deployment));
        let revision = deployment.as_deref().and_then(revision_of);
        let replicas = deployment.as_deref().map_or(0, |deployment| {
            self.floor(&name).unwrap_or_else(|| asked_pods(deployment))
        });
        let of_slot = |pod: &&Arc<DynamicObject>| {
            label(pod, SLOT_LABEL) == Some(slot_text(slot))
                && pod.metadata.deletion_timestamp.is_none()
        };
        let pods = caches.pods.group(self.namespace(), self.name());
        let pods: Vec<_> = pods.iter().filter(of_slot).collect();
        let is_current = |pod: &DynamicObject| {
            let revision = revision.as_ref().map(Revision::as_str);
            label(pod, "version") == revision
        };
        let current = pods.iter().filter(|pod| is_current(pod));
        let ready = current.clone().filter(|pod| is_ready(pod)).count();
        let mut unready = current.filter(|pod| !is_ready(pod));
        let trouble = unready.find_map(|pod| trouble_of(pod));
        let trouble = trouble.or_else(|| failed_creation(deployment.as_deref()?));
        ObservedSlot {
            revision,
            replicas,
            ready: u32::try_from(ready).unwrap_or(u32::MAX),
            endpoints: self.endpoints(&name),
            pods: pods
                .iter()
                .filter_map(|pod| pod.metadata.name.clone())
                .collect(),
            trouble,
        }
    }

    /// The least number of pods that an autoscaler of a slot keeps, if there is one.
    pub(crate) fn floor(&self, name: &str) -> Option<u32> {
        let caches = &self.ctx.caches;
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let autoscaler = caches.pod_autoscalers.get(self.namespace(), name);
        let by_keda = || {
            let scaled = caches.scaled_objects.get(self.namespace(), name)?;
            number(&scaled.data["spec"]["minReplicaCount"])
        };
        let by_kubernetes =
            autoscaler.and_then(|scaler| number(&scaler.data["spec"]["minReplicas"]));
        by_kubernetes.or_else(by_keda)
    }

    /// How many ready endpoints a Service has.
    fn endpoints(&self, service: &str) -> u32 {
        let slices = self.slices_of(service);
        let pods: BTreeSet<&str> = slices
            .iter()
            .flat_map(|slice| ready_endpoints(&slice.data))
            .collect();
        u32::try_from(pods.len()).unwrap_or(u32::MAX)
    }

    /// What is watched of a Service's endpoints.
    fn slices_of(&self, service: &str) -> Vec<Arc<DynamicObject>> {
        let slices = &self.ctx.caches.endpoint_slices;
        let mut slices = slices.group(self.namespace(), self.name());
        slices.retain(|slice| label(slice, SERVICE_LABEL) == Some(service));
        slices
    }

    /// Whether the Service of a slot has a ready endpoint at this moment, as the API server knows it. What is watched may
    /// be late: pods that are gone would get requests.
    pub(crate) async fn answers_now(&self, slot: Slot) -> Result<bool, ClusterError> {
        for slice in self.slices_of(&self.app().slot_name(slot)) {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            let kind = kinds::endpoint_slices();
            let slice = self.ctx.cluster.read(&kind, self.namespace(), name).await?;
            if slice.is_some_and(|slice| ready_endpoints(&slice).next().is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The slot that the application's own Service selects.
    pub(super) fn apex(&self) -> Option<Slot> {
        let service = self
            .ctx
            .caches
            .services
            .get(self.namespace(), self.name())?;
        let selector = &service.data["spec"]["selector"];
        let selects = selector.as_object().map_or(0, serde_json::Map::len);
        let is_ours = self.is_own(&service)
            && selector[ROLLOUT_LABEL].as_str() == Some(self.name())
            && selects == 2;
        let slot = selector[SLOT_LABEL].as_str().filter(|_| is_ours)?;
        Slot::BOTH
            .into_iter()
            .find(|known| slot_text(*known) == slot)
    }

    /// Other Services that select pods of the slots: requests to them are not split.
    pub(super) fn bypasses(&self) -> Vec<String> {
        let pods = self.ctx.caches.pods.group(self.namespace(), self.name());
        let services = self.ctx.caches.services_for(self.namespace(), self.name());
        let others = services.iter().filter(|service| !self.is_own(service));
        let selects = |service: &DynamicObject| {
            let selector = service.data["spec"]["selector"].as_object();
            let selector = selector.filter(|selector| !selector.is_empty());
            selector.is_some_and(|selector| {
                pods.iter().any(|pod| {
                    let mut wanted = selector.iter();
                    wanted.all(|(key, value)| label(pod, key) == value.as_str())
                })
            })
        };
        let others = others.filter(|service| selects(service));
        others
            .filter_map(|service| service.metadata.name.as_deref())
            .map(|name| format!("the Service {name} selects pods of both revisions"))
            .collect()
    }

    /// Whether an object has this rollout as its owner.
    pub(crate) fn is_own(&self, object: &DynamicObject) -> bool {
        let owners = object.metadata.owner_references.iter().flatten();
        owners
            .into_iter()
            .any(|owner| owner.uid == self.rollout.uid)
    }

    /// How many seconds each ready pod of a slot has been ready.
    pub(crate) fn pod_ages(&self, slot: Slot, at: i64) -> std::collections::BTreeMap<String, u64> {
        let pods = self.ctx.caches.pods.group(self.namespace(), self.name());
        let pods = pods
            .iter()
            .filter(|pod| label(pod, SLOT_LABEL) == Some(slot_text(slot)));
        pods.filter_map(|pod| {
            let since = condition(pod, "Ready")?["lastTransitionTime"].as_str()?;
            let since: jiff::Timestamp = since.parse().ok()?;
            let age = u64::try_from(at - since.as_second()).unwrap_or(0);
            Some((pod.metadata.name.clone()?, age))
        })
        .collect()
    }
}

/// The pods or addresses of an `EndpointSlice` that are ready.
pub(crate) fn ready_endpoints(slice: &Value) -> impl Iterator<Item = &str> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    endpoints.filter_map(|endpoint| {
        // What is not said is ready.
        let is_ready = endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
        let pod = endpoint["targetRef"]["name"].as_str();
        let address = endpoint["addresses"][0].as_str();
        pod.or(address).filter(|_| is_ready)
    })
}

fn slot_text(slot: Slot) -> &'static str {
    match slot {
        Slot::A => "a",
        Slot::B => "b",
    }
}

pub(crate) fn label<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    let labels = object.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

fn revision_of(deployment: &DynamicObject) -> Option<Revision> {
    let annotations = deployment.metadata.annotations.as_ref()?;
    let revision = annotations.get(REVISION_ANNOTATION)?;
    serde_json::from_value(Value::from(revision.as_str())).ok()
}

fn asked_pods(deployment: &DynamicObject) -> u32 {
    let replicas = deployment.data["spec"]["replicas"].as_u64().unwrap_or(1);
    u32::try_from(replicas).unwrap_or(u32::MAX)
}

fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

fn is_ready(pod: &DynamicObject) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// What keeps a pod from being ready.
fn trouble_of(pod: &DynamicObject) -> Option<Trouble> {
    let scheduled = condition(pod, "PodScheduled");
    if let Some(scheduled) = scheduled.filter(|one| one["reason"] == "Unschedulable") {
        return Some(trouble(TroubleKind::NoCapacity, &scheduled["message"]));
    }
    let status = &pod.data["status"];
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists.into_iter().filter_map(|list| status[list].as_array());
    containers.flatten().find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        let kind = match reason {
            "CrashLoopBackOff" => TroubleKind::CrashLoop,
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                TroubleKind::ImagePull
            }
            "ContainerCreating" | "PodInitializing" => return None,
            _ => TroubleKind::Other,
        };
        let name = container["name"].as_str().unwrap_or_default();
        let message = waiting["message"].as_str().unwrap_or_default();
        let message = format!("container {name}: {reason} {message}");
        Some(trouble(kind, &Value::from(message.trim_end())))
    })
}

/// Pods that could not even be made: a quota, or somebody who is asked about every pod.
fn failed_creation(deployment: &DynamicObject) -> Option<Trouble> {
    let failure = condition(deployment, "ReplicaFailure")?;
    let message = failure["message"].as_str().unwrap_or_default();
    let is_quota = message.contains("exceeded quota");
    let kind = if is_quota {
        TroubleKind::NoCapacity
    } else {
        TroubleKind::Other
    };
    (failure["status"] == "True").then(|| trouble(kind, &failure["message"]))
}

fn trouble(kind: TroubleKind, message: &Value) -> Trouble {
    let message = message.as_str().unwrap_or_default();
    Trouble {
        kind,
        message: message.chars().take(LONGEST_MESSAGE).collect(),
    }
}
