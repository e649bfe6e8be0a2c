//! Sets, watches and caches on a real API server whose answers are refused, delayed or lost.

mod fault_proxy;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fault_proxy::{Fault, FaultProxy, refusal};
use portolan_cluster::{
    Access, ApplyOptions, Cache, CacheOptions, CacheState, Cluster, ClusterError, Deployed, Event,
    MemberError, ObjectSet, PruneOptions, Query, Resource, SetOptions, WaitOptions, Waited,
};
use portolan_testbed::Request;
use portolan_testbed::cluster::{Cluster as TestCluster, eventually};
use serde_json::{Value, json};

const OURS: ApplyOptions<'_> = ApplyOptions {
    manager: "ours",
    force: false,
    dry_run: false,
};

const PRUNING: SetOptions = SetOptions {
    force: false,
    deadline: Duration::from_secs(30),
    replace: false,
    prune: Some(PruneOptions {
        dangerous: false,
        many: true,
    }),
};

/// The test cluster, and a connection to it in which nothing goes wrong, with a namespace of the test's own.
async fn connect(namespace: &str) -> Option<(&'static TestCluster, Cluster)> {
    let test = TestCluster::shared().await?;
    let access = Access {
        kubeconfig: Some(test.kubeconfig_path()),
        ..Access::default()
    };
    let cluster = Cluster::connect(&access).await.expect("a cluster");
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let kind = Resource::without_namespace("v1", "Namespace", "namespaces");
    let made = cluster.apply(&kind, &object, OURS).await;
    made.expect("a namespace");
    Some((test, cluster))
}

fn config_maps() -> Resource {
    Resource::in_namespaces("v1", "ConfigMap", "configmaps")
}

fn config_map(name: &str, content: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "faults"}},
        "data": {"content": content},
    })
}

fn in_namespace(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

fn failures(deployed: &Deployed) -> Vec<String> {
    let failed = deployed.applied.iter();
    let failed = failed.filter_map(|(member, result)| Some((member, result.as_ref().err()?)));
    failed
        .map(|(member, error)| format!("{member}: {error}"))
        .collect()
}

/// A watch that the server ends after a second: the proxy gives an answer as a whole.
fn short_watch(target: &str) -> String {
    format!("{}&timeoutSeconds=1", without(target, "timeoutSeconds"))
}

/// The same watch from a state that the server has forgotten.
fn from_first_state(target: &str) -> String {
    format!("{}&resourceVersion=1", without(target, "resourceVersion"))
}

fn without(target: &str, name: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let kept = query
        .split('&')
        .filter(|part| part.split('=').next() != Some(name));
    format!("{path}?{}", kept.collect::<Vec<_>>().join("&"))
}

/// Decides by the first time that a method and path are seen.
fn once_each(fault: impl Fn() -> Fault) -> impl Fn(&Request, u32) -> Fault {
    let seen = Mutex::new(BTreeSet::new());
    move |request, _| {
        let key = (request.method.clone(), request.path().to_owned());
        let is_first = seen.lock().expect("no panic").insert(key);
        if is_first { fault() } else { Fault::None }
    }
}

async fn names_in(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let mut query = config_maps().query(Some(namespace));
    "app=faults".clone_into(&mut query.labels);
    let mut names = Vec::new();
    let listed = cluster.list_whole(&query, |object| {
        names.push(
            object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
    });
    listed.await.expect("a list");
    names
}

/// Applies, prunes and deletes a set through a proxy, and looks at the result without it.
async fn check_set(namespace: &str, fault: impl Fn() -> Fault + Send + Sync + 'static) {
    let Some((test, direct)) = connect(namespace).await else {
        return;
    };
    let proxy = FaultProxy::start(test, once_each(fault)).await;
    let cluster = proxy.cluster();
    let mut set = ObjectSet::new(&cluster, namespace, "app", "ours");
    let objects = ["a", "b", "c"].map(|name| config_map(name, "1"));
    let deployed = set.apply(objects.to_vec(), PRUNING).await.expect("applied");
    assert_eq!(failures(&deployed), [""; 0]);
    assert!(proxy.faults() >= 4, "{}", proxy.faults());
    assert_eq!(names_in(&direct, namespace).await, ["a", "b", "c"]);
    let members = deployed.applied.iter().map(|(member, _)| member.clone());
    let members: Vec<_> = members.collect();
    let options = WaitOptions {
        timeout: Duration::from_secs(30),
        fail_fast: true,
    };
    let waited = set.wait(&members, options, |_| {}).await.expect("waited");
    assert!(waited.iter().all(Waited::is_current), "{waited:?}");
    let deployed = set
        .apply(objects[..1].to_vec(), PRUNING)
        .await
        .expect("applied");
    assert!(
        deployed.pruned.iter().all(|(_, pruned)| pruned.is_gone()),
        "{:?}",
        deployed.pruned
    );
    assert_eq!(names_in(&direct, namespace).await, ["a"]);
    let inventory = set.inventory().await.expect("an inventory");
    assert_eq!(inventory.members().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_applied_and_pruned_by_a_server_that_throttles() {
    let busy = || Fault::Answer(refusal(429, "TooManyRequests").header("retry-after", "0"));
    check_set("faults-throttled", busy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_applied_and_pruned_while_every_first_connection_breaks() {
    check_set("faults-broken", || {
        Fault::Answer(refusal(200, "Cut").cut_after(0))
    })
    .await;
}

/// What was carried out is carried out again, and that must not be told as a failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_applied_and_pruned_while_every_first_answer_is_lost() {
    check_set("faults-lost", || Fault::LostAnswer).await;
}

/// A conflict is told of its object, the others are applied, and nothing is pruned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_somebody_else_changes_is_a_conflict_of_its_own() {
    let namespace = "faults-conflict";
    let Some((_, cluster)) = connect(namespace).await else {
        return;
    };
    let mut set = ObjectSet::new(&cluster, namespace, "app", "ours");
    let objects = ["a", "b", "c"].map(|name| config_map(name, "1"));
    set.apply(objects.to_vec(), PRUNING).await.expect("applied");
    let patch = json!({"data": {"content": "theirs"}});
    let kind = config_maps();
    let patched = cluster.merge(&kind, (namespace, "b"), &patch, "kubectl-edit");
    patched.await.expect("patched");
    let changed = vec![config_map("a", "2"), config_map("b", "2")];
    let deployed = set.apply(changed.clone(), PRUNING).await.expect("applied");
    let [(_, a), (_, b)] = deployed.applied.as_slice() else {
        panic!("{deployed:?}");
    };
    assert!(a.is_ok());
    let Err(MemberError::Cluster(ClusterError::Conflict { conflicts, .. })) = b else {
        panic!("{b:?}");
    };
    assert_eq!(conflicts[0].manager, "kubectl-edit");
    assert!(deployed.pruned.is_empty());
    assert_eq!(names_in(&cluster, namespace).await, ["a", "b", "c"]);
    let forced = SetOptions {
        force: true,
        ..PRUNING
    };
    let deployed = set.apply(changed, forced).await.expect("applied");
    assert_eq!(failures(&deployed), [""; 0]);
    assert_eq!(names_in(&cluster, namespace).await, ["a", "b"]);
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.faults.example.com")},
        "spec": {
            "group": "faults.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Defines a kind that no other test has, and waits until its objects are taken.
async fn define(cluster: &Cluster, namespace: &str, plural: &str, kind: &str) -> Resource {
    let definitions = Resource::without_namespace(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    let definition = definition(plural, kind);
    let defined = cluster.apply(&definitions, &definition, OURS).await;
    defined.expect("defined");
    let resource = Resource::in_namespaces("faults.example.com/v1", kind, plural);
    let first = custom(kind, "first", namespace);
    eventually("the kind", || async {
        cluster.apply(&resource, &first, OURS).await.is_ok()
    })
    .await;
    resource
}

fn custom(kind: &str, name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "faults.example.com/v1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    })
}

/// A set does not wait for a kind that others define; the same set is whole once they have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_whose_kind_is_defined_later_is_applied_by_the_same_set() {
    let namespace = "faults-later";
    let Some((_, cluster)) = connect(namespace).await else {
        return;
    };
    let mut set = ObjectSet::new(&cluster, namespace, "app", "ours");
    let objects = vec![
        json!({"apiVersion": "faults.example.com/v1", "kind": "Dial", "metadata": {"name": "one"}}),
        config_map("a", "1"),
    ];
    let deployed = set.apply(objects.clone(), PRUNING).await.expect("applied");
    let message = "Dial one: the cluster does not serve `Dial` of `faults.example.com/v1`";
    assert_eq!(failures(&deployed), [message]);
    assert_eq!(names_in(&cluster, namespace).await, ["a"]);
    define(&cluster, namespace, "dials", "Dial").await;
    let deployed = set.apply(objects, PRUNING).await.expect("applied");
    assert_eq!(failures(&deployed), [""; 0]);
}

/// A server knows the states of a kind from its definition on, and says so of an earlier one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_from_a_state_that_the_server_does_not_know_is_told_as_such() {
    let namespace = "faults-gone";
    let Some((_, cluster)) = connect(namespace).await else {
        return;
    };
    let gauges = define(&cluster, namespace, "gauges", "Gauge").await;
    let query = gauges.query(Some(namespace));
    let gone = match cluster.watch(&query, "1").await {
        Ok(mut watch) => watch.next().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(matches!(gone, Err(ClusterError::Gone { .. })), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_refused_says_why_and_one_that_ends_can_be_gone_on_with() {
    let namespace = "faults-watch";
    let Some((test, direct)) = connect(namespace).await else {
        return;
    };
    let proxy = FaultProxy::start(test, move |request, number| match number {
        0 => Fault::Answer(refusal(429, "TooManyRequests")),
        1 => Fault::Answer(refusal(410, "Expired")),
        _ if request.target.contains("watch=") => Fault::Target(short_watch(&request.target)),
        _ => Fault::None,
    })
    .await;
    let cluster = proxy.cluster();
    let query = config_maps().query(Some(namespace));
    let busy = cluster.watch(&query, "").await.map(drop);
    assert!(
        matches!(busy, Err(ClusterError::Status { code: 429, .. })),
        "{busy:?}"
    );
    let gone = cluster.watch(&query, "").await.map(drop);
    assert!(matches!(gone, Err(ClusterError::Gone { .. })), "{gone:?}");

    let whole = Query {
        labels: "app=faults".to_owned(),
        ..query
    };
    let kind = config_maps();
    let first = direct
        .apply(&kind, &in_namespace(config_map("a", "1"), namespace), OURS)
        .await;
    let first = first.expect("applied");
    let version = first["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    for name in ["b", "c"] {
        let object = in_namespace(config_map(name, "1"), namespace);
        direct.apply(&kind, &object, OURS).await.expect("applied");
    }
    let mut watch = cluster.watch(&whole, version).await.expect("a watch");
    let mut seen = Vec::new();
    while let Some(Event::Changed(metadata)) = watch.next().await.expect("an event") {
        seen.push(metadata.name);
    }
    assert_eq!(seen, ["b", "c"]);
    let object = in_namespace(config_map("d", "1"), namespace);
    direct.apply(&kind, &object, OURS).await.expect("applied");
    let mut watch = cluster
        .watch(&whole, watch.resource_version())
        .await
        .expect("a watch");
    let Some(Event::Changed(metadata)) = watch.next().await.expect("an event") else {
        panic!("no event");
    };
    assert_eq!(metadata.name, "d");
}

/// A throttled list, a refused watch and a watch from a state that the real server does not know: the cache says that it
/// has trouble, and becomes current all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_becomes_current_behind_a_server_that_throttles_and_forgets() {
    let namespace = "faults-cache";
    let Some((test, direct)) = connect(namespace).await else {
        return;
    };
    let levels = define(&direct, namespace, "levels", "Level").await;
    let (watches, lists) = (AtomicU32::new(0), AtomicU32::new(0));
    let proxy = FaultProxy::start(test, move |request, _| {
        if request.target.contains("watch=") {
            let target = short_watch(&request.target);
            return match watches.fetch_add(1, Ordering::SeqCst) {
                0 => Fault::Answer(refusal(429, "TooManyRequests")),
                1 => Fault::Target(from_first_state(&target)),
                _ => Fault::Target(target),
            };
        }
        let is_list = request.path().ends_with("/levels");
        if is_list && lists.fetch_add(1, Ordering::SeqCst) == 0 {
            return Fault::Answer(refusal(429, "TooManyRequests"));
        }
        Fault::None
    })
    .await;
    let cluster = proxy.cluster();
    let options = CacheOptions {
        namespace: Some(namespace.to_owned()),
        ..CacheOptions::default()
    };
    let cache = Cache::new(levels.clone(), options);
    let has = |name: &str| cache.get(namespace, name).is_some();
    let make = async |name: &str| {
        let object = custom("Level", name, namespace);
        direct.apply(&levels, &object, OURS).await.expect("applied");
    };
    let test = async {
        eventually("trouble", || async {
            matches!(cache.state(), CacheState::Failing(_))
        })
        .await;
        eventually("the list", || async { has("first") }).await;
        make("second").await;
        eventually("the new one", || async { has("second") }).await;
        // A list, and three watches: refused, from an unknown state, and as it should be.
        eventually("all faults", || async { proxy.faults() >= 4 }).await;
        make("third").await;
        eventually("the last one", || async { has("third") }).await;
        assert_eq!(cache.state(), CacheState::Current);
    };
    tokio::select! {
        never = cache.follow(&cluster, |_| {}) => match never {},
        () = test => {}
    }
}
