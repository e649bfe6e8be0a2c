//! A namespace with an operator, a kubelet and an observer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_client::EventPublisher;
use portolan_cluster::{Access, Cluster, LeaseOptions};
use portolan_operator::{Deadly, Measure, Operator, OperatorOptions};
use portolan_rollout::{API_VERSION, KIND, analysis_crds_yaml, crd_yaml};
use portolan_testbed::cluster::{
    Cluster as TestCluster, ClusterSetup, Kubelet, KubeletSetup, WORKLOADS, definitions, eventually,
};
use portolan_yaml::{Dialect, parse, to_json};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::mesh::Mesh;
use crate::observer::Observer;

/// How long a phase is waited for.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Bed {
    pub(crate) test_cluster: &'static TestCluster,
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    pub(crate) kubelet: Kubelet,
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) observer: Observer,
    operators: Vec<Running>,
}

/// An operator that runs.
pub(crate) struct Running {
    task: JoinHandle<()>,
    cancelled: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    /// Ends it as a signal does.
    pub(crate) async fn stop(mut self) {
        self.cancelled.cancel();
        (&mut self.task).await.expect("it ends in good order");
    }
}

static DEFINED: OnceCell<bool> = OnceCell::const_new();
static NAMESPACES: AtomicUsize = AtomicUsize::new(0);

impl Bed {
    /// A namespace without an operator; `None` if there is no cluster.
    pub(crate) async fn without_operator(name: &str) -> Option<Self> {
        let test_cluster = TestCluster::shared().await?;
        let client = test_cluster.client().await;
        if !*DEFINED.get_or_init(|| define_all(client.clone())).await {
            return None;
        }
        Some(Self::on(test_cluster, name).await)
    }

    /// The same on a cluster of the test's own, which knows nothing but our kinds.
    pub(crate) async fn without_routes(name: &str) -> Option<Self> {
        let setup = ClusterSetup {
            controllers: WORKLOADS,
            rbac: false,
        };
        // It ends with the process of the test.
        let test_cluster: &'static TestCluster =
            Box::leak(Box::new(TestCluster::start(setup).await?));
        let client = test_cluster.client().await;
        define(&client, crd_yaml()).await;
        for text in analysis_crds_yaml() {
            define(&client, text).await;
        }
        Some(Self::on(test_cluster, name).await)
    }

    async fn on(test_cluster: &'static TestCluster, name: &str) -> Self {
        let client = test_cluster.client().await;
        let number = NAMESPACES.fetch_add(1, Ordering::SeqCst);
        let namespace = format!("{name}-{number}");
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        create(&client, "", "v1", "Namespace", &object).await;
        let setup = KubeletSetup {
            nodes: 1,
            ..KubeletSetup::default()
        };
        let kubelet = Kubelet::start(client.clone(), Some(&namespace), setup);
        let observer = Observer::start(client.clone(), &namespace).await;
        let mesh = Mesh::new(client.clone());
        Self {
            test_cluster,
            client,
            namespace,
            kubelet,
            mesh,
            observer,
            operators: Vec::new(),
        }
    }

    /// The same with an operator.
    pub(crate) async fn start(name: &str) -> Option<Self> {
        let mut bed = Self::without_operator(name).await?;
        let running = bed.operator(None, None).await;
        bed.operators.push(running);
        Some(bed)
    }

    /// Starts an operator.
    pub(crate) async fn operator(
        &self,
        lease: Option<LeaseOptions>,
        deadly: Option<Deadly>,
    ) -> Running {
        self.operator_on(self.connect().await, lease, deadly)
    }

    /// A connection of an operator's own.
    pub(crate) async fn connect(&self) -> Cluster {
        let access = Access {
            kubeconfig: Some(self.test_cluster.kubeconfig_path()),
            ..Access::default()
        };
        Cluster::connect(&access).await.expect("a cluster")
    }

    pub(crate) fn operator_on(
        &self,
        cluster: Cluster,
        lease: Option<LeaseOptions>,
        deadly: Option<Deadly>,
    ) -> Running {
        self.operator_with(cluster, Arc::clone(&self.mesh) as _, lease, deadly)
    }

    pub(crate) fn operator_with(
        &self,
        cluster: Cluster,
        measure: Arc<dyn Measure>,
        lease: Option<LeaseOptions>,
        deadly: Option<Deadly>,
    ) -> Running {
        let operator = Operator::new(OperatorOptions {
            cluster,
            namespace: Some(self.namespace.clone()),
            measure,
            publisher: EventPublisher::default(),
            instance: lease
                .as_ref()
                .map_or("test", |lease| lease.holder.as_str())
                .to_owned(),
            lease,
            deadly,
        });
        let cancelled = CancellationToken::new();
        let task = tokio::spawn(operator.run(cancelled.clone()));
        Running { task, cancelled }
    }

    pub(crate) fn stop_operators(&mut self) {
        self.operators.clear();
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &ApiResource::from_gvk(&gvk),
        )
    }

    pub(crate) fn rollouts(&self) -> Api<DynamicObject> {
        self.api("portolan.dev", "v1alpha1", KIND)
    }

    pub(crate) fn routes(&self) -> Api<DynamicObject> {
        self.api("networking.istio.io", "v1", "VirtualService")
    }

    pub(crate) fn services(&self) -> Api<DynamicObject> {
        self.api("", "v1", "Service")
    }

    pub(crate) fn deployments(&self) -> Api<DynamicObject> {
        self.api("apps", "v1", "Deployment")
    }

    /// Makes a rollout `web` of an image.
    pub(crate) async fn make(&self, spec: Value) {
        let object = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "web"}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        self.rollouts()
            .create(&PostParams::default(), &object)
            .await
            .expect("a rollout");
    }

    /// Makes it and waits until it serves.
    pub(crate) async fn make_stable(&self, spec: Value) {
        self.make(spec).await;
        self.reach("Stable").await;
    }

    /// Changes the rollout as a user does.
    pub(crate) async fn change(&self, patch: Value) {
        let params = PatchParams::default();
        self.rollouts()
            .patch("web", &params, &Patch::Merge(patch))
            .await
            .expect("changed");
    }

    pub(crate) async fn release(&self, image: &str) {
        self.change(json!({"spec": {"template": template(image)}}))
            .await;
    }

    pub(crate) async fn token(&self, command: &str) {
        let key = format!("portolan.dev/{command}");
        let text = Instant::now();
        self.change(json!({"metadata": {"annotations": {key: format!("{text:?}")}}}))
            .await;
    }

    pub(crate) async fn get(&self) -> Option<Value> {
        let found = self.rollouts().get_opt("web").await.expect("an answer");
        found.map(|found| serde_json::to_value(found).expect("JSON"))
    }

    pub(crate) async fn status(&self) -> Value {
        let rollout = self.get().await.unwrap_or_default();
        rollout["status"].clone()
    }

    /// Waits until something holds of the status, as the observer sees it: it costs the API server nothing.
    pub(crate) async fn wait(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let newest = self.observer.newest(KIND, "web").unwrap_or_default();
            let status = newest["status"].clone();
            if holds(&status) {
                return status;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "{what} is not reached in {}: {status:#}",
                self.namespace
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn reach(&self, phase: &str) -> Value {
        self.wait(phase, |status| status["phase"] == phase).await
    }

    /// Waits until a record of the history has this reason.
    pub(crate) async fn happened(&self, reason: &str) -> Value {
        let status = self
            .wait(reason, |status| record(status, reason).is_some())
            .await;
        record(&status, reason).expect("just found").clone()
    }

    /// Waits for an event whose reason and note are these.
    pub(crate) async fn told(&self, reason: &str, part: &str) {
        let api = self.api("events.k8s.io", "v1", "Event");
        eventually(&format!("the event {reason}: {part}"), || async {
            let events = api.list(&ListParams::default()).await.expect("events");
            events.items.iter().any(|event| {
                let note = event.data["note"].as_str().unwrap_or_default();
                event.data["reason"] == reason && note.contains(part)
            })
        })
        .await;
    }

    /// The shares of the two slots in the routes.
    pub(crate) async fn shares(&self) -> Option<(u64, u64)> {
        let routes = self.routes().get_opt("web").await.expect("an answer")?;
        shares_of(&routes.data["spec"])
    }

    /// Waits until the routes have these shares: the status is written first, the routes follow.
    pub(crate) async fn reach_shares(&self, shares: (u64, u64)) {
        let have = || async move { self.shares().await == Some(shares) };
        eventually("the shares of the slots", have).await;
    }

    pub(crate) async fn delete(&self) {
        self.rollouts()
            .delete("web", &DeleteParams::default())
            .await
            .expect("deleted");
    }

    /// Ends the operators and checks what the observer has seen.
    pub(crate) async fn end(mut self) {
        self.stop_operators();
        self.observer.check().await;
    }
}

pub(crate) fn record<'a>(status: &'a Value, reason: &str) -> Option<&'a Value> {
    let history = status["history"].as_array()?;
    history
        .iter()
        .rev()
        .find(|record| record["reason"] == reason)
}

pub(crate) fn shares_of(spec: &Value) -> Option<(u64, u64)> {
    let routes = spec["http"].as_array()?;
    let route = routes.iter().find(|route| {
        !route["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("portolan-"))
    })?;
    let destinations = route["route"].as_array()?;
    let share = |end: &str| {
        let of_slot = destinations.iter().filter(|entry| {
            entry["destination"]["host"]
                .as_str()
                .is_some_and(|host| host.ends_with(end))
        });
        of_slot.filter_map(|entry| entry["weight"].as_u64()).sum()
    };
    let shares = (share("-a"), share("-b"));
    // Routes of a user lead past the slots before the rollout and after it.
    (shares != (0, 0)).then_some(shares)
}

pub(crate) fn template(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "web", "image": image}]}})
}

/// A spec whose every time is short.
pub(crate) fn spec(image: &str) -> Value {
    json!({
        "replicas": 2,
        "template": template(image),
        "service": {"port": 80},
        "strategy": {
            "weights": [10, 50], "stepInterval": "1s", "soak": "1s", "rollbackWindow": "1s", "drain": "1s",
            "progressDeadline": "60s",
        },
        "analysis": {"interval": "1s", "warmup": "0s"},
    })
}

/// The same with some fields changed.
pub(crate) fn spec_with(image: &str, fields: &Value) -> Value {
    let mut spec = spec(image);
    merge(&mut spec, fields);
    spec
}

fn merge(into: &mut Value, fields: &Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (key, value) in fields {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value.clone(),
    }
}

async fn define_all(client: kube::Client) -> bool {
    let mut texts = vec![crd_yaml().to_owned()];
    texts.extend(analysis_crds_yaml().map(str::to_owned));
    for name in ["istio", "gateway-api"] {
        let Some(text) = definitions(name) else {
            return false;
        };
        texts.push(text);
    }
    for text in texts {
        define(&client, &text).await;
    }
    true
}

/// Defines kinds that tests need, and waits until they are served.
pub(crate) async fn define(client: &kube::Client, text: &str) {
    const NEEDED: [&str; 3] = ["VirtualService", "DestinationRule", "HTTPRoute"];
    for document in parse(text, Dialect::Helm).expect("YAML") {
        let document = to_json(&document).expect("JSON");
        let definition: Value = serde_json::from_str(&document).expect("JSON");
        let kind = definition["spec"]["names"]["kind"]
            .as_str()
            .unwrap_or_default();
        let is_ours = definition["spec"]["group"] == "portolan.dev";
        if !is_ours && !NEEDED.contains(&kind) {
            continue;
        }
        let name = definition["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned();
        create(
            client,
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            &definition,
        )
        .await;
        let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
        eventually(&name, || async {
            let definition = api.get(&name).await.expect("the definition");
            let conditions = definition.data["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|condition| {
                condition["type"] == "Established" && condition["status"] == "True"
            })
        })
        .await;
    }
}

pub(crate) async fn create(
    client: &kube::Client,
    group: &str,
    version: &str,
    kind: &str,
    object: &Value,
) {
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
}
