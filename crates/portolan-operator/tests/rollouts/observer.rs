//! Reads every version of every object of a namespace and checks the rules about traffic, in the order in which the
//! versions were written: resource versions count all writes of a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_testbed::cluster::eventually;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::bed::shares_of;

const KINDS: [(&str, &str, &str); 5] = [
    ("portolan.dev", "v1alpha1", "IstioCanaryDeployment"),
    ("networking.istio.io", "v1", "VirtualService"),
    ("", "v1", "Service"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("apps", "v1", "Deployment"),
];

/// One version of an object; no object is a deletion.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) number: u64,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) object: Option<Value>,
}

pub(crate) struct Observer {
    client: kube::Client,
    namespace: String,
    kinds: Vec<(&'static str, &'static str, &'static str)>,
    seen: Arc<Mutex<Vec<Version>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Observer {
    pub(crate) async fn start(client: kube::Client, namespace: &str) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        let mut kinds = Vec::new();
        for (group, version, kind) in KINDS {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk(&gvk);
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            // A kind that is defined later is not observed.
            let Ok(list) = api.list(&ListParams::default()).await else {
                continue;
            };
            let from = list.metadata.resource_version.unwrap_or_default();
            kinds.push((group, version, kind));
            tasks.push(tokio::spawn(watch(api, kind, from, Arc::clone(&seen))));
        }
        Self {
            client,
            namespace: namespace.to_owned(),
            kinds,
            seen,
            tasks,
        }
    }

    /// Every version so far, in the order of their writing.
    pub(crate) fn versions(&self) -> Vec<Version> {
        let mut versions = self.seen.lock().expect("no panic").clone();
        versions.sort_by_key(|version| version.number);
        versions
    }

    /// The newest version of an object that was seen; `None` if there is none, or no more.
    pub(crate) fn newest(&self, kind: &str, name: &str) -> Option<Value> {
        let seen = self.seen.lock().expect("no panic");
        let newest = seen
            .iter()
            .rfind(|version| version.kind == kind && version.name == name)?;
        newest.object.clone()
    }

    /// Waits until everything that was written is seen, then checks all of it.
    pub(crate) async fn check(&self) {
        self.catch_up().await;
        let mut world = World::default();
        for version in self.versions() {
            world.take(&version);
        }
    }

    /// How many endpoints a slot had when the application's own Service went to it.
    pub(crate) async fn size_at_take_over(&self, slot: &str) -> usize {
        self.catch_up().await;
        let mut world = World::default();
        for version in self.versions() {
            world.take(&version);
            if world.apex.as_deref() == Some(slot) {
                break;
            }
        }
        world.ready(&format!("web-{slot}"))
    }

    /// A write of its own comes after all others.
    pub(crate) async fn catch_up(&self) {
        for (group, version, kind) in self.kinds.iter().copied() {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk(&gvk);
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
            let list = api.list(&ListParams::default()).await.expect("a list");
            let newest = list.items.iter().filter_map(number_of).max().unwrap_or(0);
            eventually("the observer", || async {
                let seen = self.seen.lock().expect("no panic");
                seen.iter()
                    .any(|version| version.number >= newest && version.kind == kind)
                    || newest == 0
            })
            .await;
        }
    }
}

async fn watch(
    api: Api<DynamicObject>,
    kind: &'static str,
    from: String,
    seen: Arc<Mutex<Vec<Version>>>,
) {
    let params = WatchParams::default().timeout(290);
    let Ok(events) = api.watch(&params, &from).await else {
        return;
    };
    let mut events = std::pin::pin!(events);
    while let Some(Ok(event)) = events.next().await {
        let (object, is_gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            _ => continue,
        };
        let version = Version {
            number: number_of(&object).unwrap_or(0),
            kind,
            name: object.metadata.name.clone().unwrap_or_default(),
            object: (!is_gone).then(|| serde_json::to_value(&object).expect("JSON")),
        };
        seen.lock().expect("no panic").push(version);
    }
}

fn number_of(object: &DynamicObject) -> Option<u64> {
    object.metadata.resource_version.as_ref()?.parse().ok()
}

/// What is known while versions are read in order.
#[derive(Default)]
struct World {
    slices: BTreeMap<String, (String, usize)>,
    selectors: BTreeMap<String, Value>,
    shares: Option<(u64, u64)>,
    apex: Option<String>,
    replicas: usize,
    told: u64,
}

impl World {
    fn take(&mut self, version: &Version) {
        match (version.kind, &version.object) {
            ("EndpointSlice", Some(slice)) => self.endpoints(&version.name, slice),
            ("EndpointSlice", None) => {
                self.slices.remove(&version.name);
            }
            ("VirtualService", Some(routes)) if version.name == "web" => self.routes(routes),
            ("VirtualService", None) => self.shares = None,
            ("Service", Some(service)) => self.service(&version.name, service),
            ("Service", None) => {
                self.selectors.remove(&version.name);
            }
            ("IstioCanaryDeployment", Some(rollout)) => self.rollout(rollout),
            _ => {}
        }
    }

    fn endpoints(&mut self, name: &str, slice: &Value) {
        let service = slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str();
        let endpoints = slice["endpoints"].as_array();
        let ready = endpoints.into_iter().flatten();
        let ready = ready
            .filter(|endpoint| endpoint["conditions"]["ready"] != false)
            .count();
        let entry = (service.unwrap_or_default().to_owned(), ready);
        self.slices.insert(name.to_owned(), entry);
    }

    fn ready(&self, service: &str) -> usize {
        let of_service = self.slices.values().filter(|(of, _)| of == service);
        of_service.map(|(_, ready)| ready).sum()
    }

    /// Weights sum to 100, and no slot gets more without ready endpoints.
    fn routes(&mut self, routes: &Value) {
        let by_operator =
            last_manager(routes).is_some_and(|manager| manager.starts_with("portolan"));
        let shares = shares_of(&routes["spec"]);
        if let Some((a, b)) = shares.filter(|_| by_operator) {
            assert_eq!(a + b, 100, "{routes:#}");
            let (before_a, before_b) = self.shares.unwrap_or((0, 0));
            for (slot, now, before) in [("web-a", a, before_a), ("web-b", b, before_b)] {
                assert!(
                    now <= before || self.ready(slot) > 0,
                    "{slot} gets {now} instead of {before} without ready endpoints"
                );
            }
        }
        self.shares = shares;
    }

    /// Services of slots keep their selectors; the application's own goes to a slot that is ready at full size.
    fn service(&mut self, name: &str, service: &Value) {
        let by_operator =
            last_manager(service).is_some_and(|manager| manager.starts_with("portolan"));
        let selector = service["spec"]["selector"].clone();
        // A Service that was given back selects no slot.
        let slot = selector["portolan.dev/slot"].as_str();
        if let Some(slot) = slot.filter(|_| name == "web" && by_operator) {
            let slot = slot.to_owned();
            if self.apex.as_ref() != Some(&slot) {
                let ready = self.ready(&format!("web-{slot}"));
                assert!(
                    ready >= self.replicas,
                    "the application's Service goes to slot {slot} with {ready} of {} endpoints",
                    self.replicas
                );
            }
            self.apex = Some(slot);
        }
        if (name == "web-a" || name == "web-b") && by_operator {
            let known = self
                .selectors
                .entry(name.to_owned())
                .or_insert_with(|| selector.clone());
            assert_eq!(*known, selector, "{name} changed its selector");
        }
    }

    /// A promotion has a proof, a person or a policy.
    fn rollout(&mut self, rollout: &Value) {
        self.replicas = rollout["spec"]["replicas"].as_u64().unwrap_or(1) as usize;
        let history = rollout["status"]["history"].as_array();
        for record in history.into_iter().flatten() {
            let number = record["number"].as_u64().unwrap_or(0);
            if number <= self.told {
                continue;
            }
            self.told = number;
            if record["reason"] == "Promoted" {
                check_promotion(record);
            }
        }
    }
}

fn check_promotion(record: &Value) {
    let (actor, outcome) = (record["actor"].as_str(), record["outcome"].as_str());
    let is_ordered = actor == Some("token") && matches!(outcome, Some("Promoted" | "Undone"));
    let is_policy = actor == Some("policy") && outcome == Some("PromotedUnproven");
    let evidence = record["evidence"].as_array().cloned().unwrap_or_default();
    let is_enough = |metric: &Value| {
        let promote = metric["lnPromote"].as_f64().unwrap_or(0.0);
        promote >= 20.0_f64.ln() - 0.01
    };
    let is_proven = actor == Some("operator")
        && outcome == Some("Promoted")
        && !evidence.is_empty()
        && evidence.iter().all(is_enough);
    assert!(
        is_ordered || is_policy || is_proven,
        "a promotion without proof, person or policy: {record:#}"
    );
}

/// Who wrote the object last.
fn last_manager(object: &Value) -> Option<&str> {
    let fields = object["metadata"]["managedFields"].as_array()?;
    let newest = fields
        .iter()
        .max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?;
    newest["manager"].as_str()
}
