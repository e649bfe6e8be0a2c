//! Changes to objects on a real API server: conflicts, old versions, leases, caches and events.

mod proxy;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use portolan_cluster::{
    Access, ApplyOptions, Cache, CacheOptions, CacheState, Cluster, ClusterError, EventRecorder,
    EventType, FieldConflict, Lease, LeaseOptions, News, ObjectVersion, Query, Regarding, Resource,
};
use portolan_testbed::cluster::{Cluster as TestCluster, eventually};
use portolan_testbed::{HttpServer, Reply};
use proxy::Proxy;
use serde_json::{Value, json};

const OURS: ApplyOptions<'_> = ApplyOptions {
    manager: "ours",
    force: false,
    dry_run: false,
};

async fn connect() -> Option<Cluster> {
    let cluster = TestCluster::shared().await?;
    let access = Access {
        kubeconfig: Some(cluster.kubeconfig_path()),
        ..Access::default()
    };
    Some(Cluster::connect(&access).await.expect("a cluster"))
}

fn deployments() -> Resource {
    Resource::in_namespaces("apps/v1", "Deployment", "deployments")
}

fn config_maps() -> Resource {
    Resource::in_namespaces("v1", "ConfigMap", "configmaps")
}

fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

fn config_map(name: &str, content: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "cached"}},
        "data": {"content": content},
    })
}

#[tokio::test]
async fn a_conflict_names_the_other_manager_and_force_takes_the_field() {
    let Some(cluster) = connect().await else {
        return;
    };
    let kind = deployments();
    cluster
        .apply(&kind, &deployment("shared", 1), OURS)
        .await
        .expect("applied");
    let patch = json!({"spec": {"replicas": 5}});
    let place = ("default", "shared");
    cluster
        .merge(&kind, place, &patch, "kubectl-edit")
        .await
        .expect("patched");
    let refused = cluster.apply(&kind, &deployment("shared", 1), OURS).await;
    let Err(error @ ClusterError::Conflict { .. }) = refused else {
        panic!("{refused:?}")
    };
    let text = error.to_string();
    assert!(
        text.starts_with("`kubectl-edit` has .spec.replicas of "),
        "{text}"
    );
    let ClusterError::Conflict { conflicts, .. } = error else {
        panic!("{error}")
    };
    let expected = FieldConflict {
        manager: "kubectl-edit".to_owned(),
        field: ".spec.replicas".to_owned(),
    };
    assert_eq!(conflicts, [expected]);
    let forced = ApplyOptions {
        force: true,
        ..OURS
    };
    let after = cluster
        .apply(&kind, &deployment("shared", 1), forced)
        .await
        .expect("forced");
    assert_eq!(after["spec"]["replicas"], 1);
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_keeps_nothing() {
    let Some(cluster) = connect().await else {
        return;
    };
    let kind = deployments();
    let tried = ApplyOptions {
        dry_run: true,
        ..OURS
    };
    cluster
        .apply(&kind, &deployment("tried", 1), tried)
        .await
        .expect("valid");
    let found = cluster
        .read(&kind, "default", "tried")
        .await
        .expect("an answer");
    assert_eq!(found, None);
    let mut wrong = deployment("tried", 1);
    wrong["spec"]["template"]["spec"]["containers"][0]["imgae"] = json!("typo");
    let error = cluster
        .apply(&kind, &wrong, tried)
        .await
        .expect_err("a refusal");
    let refusal = error.refusal().expect("a refusal");
    assert!(refusal.contains("imgae"), "{refusal}");
    wrong = deployment("tried", 1);
    wrong["spec"]["template"]["spec"]["containers"] = json!([]);
    let error = cluster
        .apply(&kind, &wrong, tried)
        .await
        .expect_err("a refusal");
    assert!(error.refusal().is_some(), "{error}");
}

#[tokio::test]
async fn a_status_is_only_written_to_the_version_that_was_read() {
    let Some(cluster) = connect().await else {
        return;
    };
    let kind = deployments();
    let made = cluster
        .apply(&kind, &deployment("watched", 0), OURS)
        .await
        .expect("applied");
    let version = made["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let at = ObjectVersion {
        namespace: "default",
        name: "watched",
        resource_version: version,
    };
    let place = ("default", "watched");
    let patch = json!({"metadata": {"labels": {"changed": "yes"}}});
    cluster
        .merge(&kind, place, &patch, "other")
        .await
        .expect("patched");
    let status = json!({"observedGeneration": 7});
    let late = cluster.replace_status(&kind, &at, &status, "ours").await;
    assert!(
        matches!(late, Err(ClusterError::Outdated { .. })),
        "{late:?}"
    );
    let late = cluster
        .replace_finalizers(&kind, &at, &["example.com/x".to_owned()], "ours")
        .await;
    assert!(
        matches!(late, Err(ClusterError::Outdated { .. })),
        "{late:?}"
    );
}

#[tokio::test]
async fn only_the_object_that_was_meant_is_deleted() {
    let Some(cluster) = connect().await else {
        return;
    };
    let kind = config_maps();
    let object = config_map("meant", "1");
    let made = cluster.create(&kind, &object, "ours").await.expect("made");
    let again = cluster.create(&kind, &object, "ours").await;
    assert!(
        matches!(again, Err(ClusterError::Exists { .. })),
        "{again:?}"
    );
    let place = ("default", "meant");
    assert!(
        !cluster
            .delete(&kind, place, "another-uid")
            .await
            .expect("an answer")
    );
    let uid = made["metadata"]["uid"].as_str().expect("a uid");
    assert!(cluster.delete(&kind, place, uid).await.expect("an answer"));
    assert!(!cluster.delete(&kind, place, uid).await.expect("an answer"));
}

fn lease(cluster: &Cluster, name: &str, holder: &str, duration: Duration) -> Lease {
    let options = LeaseOptions {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        holder: holder.to_owned(),
        duration,
    };
    Lease::new(cluster, options)
}

#[tokio::test]
async fn a_released_lease_is_taken_at_once() {
    let Some(cluster) = connect().await else {
        return;
    };
    let long = Duration::from_secs(5);
    let (one, other) = (
        lease(&cluster, "released", "one", long),
        lease(&cluster, "released", "other", long),
    );
    one.acquire(|error| panic!("{error}")).await;
    let waiting = other.acquire(|error| panic!("{error}"));
    tokio::pin!(waiting);
    tokio::select! {
        () = one.keep() => panic!("the lease is lost"),
        () = &mut waiting => panic!("two hold the lease"),
        () = tokio::time::sleep(Duration::from_secs(2)) => {}
    }
    assert!(one.is_held() && !other.is_held());
    one.release().await.expect("released");
    let released = Instant::now();
    waiting.await;
    assert!(!one.is_held() && other.is_held());
    assert!(released.elapsed() < long, "{:?}", released.elapsed());
}

/// A holder that is gone does not renew; whoever lost the lease knows it before another one has it.
#[tokio::test]
async fn a_lease_that_nobody_renews_is_taken_over_and_the_old_holder_loses_it() {
    let Some(cluster) = connect().await else {
        return;
    };
    let short = Duration::from_secs(1);
    let (one, other) = (
        lease(&cluster, "left", "one", short),
        lease(&cluster, "left", "other", short),
    );
    one.acquire(|error| panic!("{error}")).await;
    let taken = Instant::now();
    other.acquire(|error| panic!("{error}")).await;
    assert!(taken.elapsed() >= short, "{:?}", taken.elapsed());
    // It comes back from wherever it was.
    one.keep().await;
    assert!(!one.is_held());
    one.release().await.expect("nothing to release");
    assert!(other.is_held());
}

fn cached(cluster_labels: &str) -> CacheOptions {
    CacheOptions {
        labels: cluster_labels.to_owned(),
        group: |object| Some(object.metadata.labels.as_ref()?.get("app")?.clone()),
        ..CacheOptions::default()
    }
}

fn content(cache: &Cache, name: &str) -> Option<String> {
    let object = cache.get("default", name)?;
    Some(object.data["data"]["content"].as_str()?.to_owned())
}

/// Connections are cut while objects change: nothing is missed, and who asks is told of every change.
#[tokio::test]
async fn a_cache_survives_lost_connections() {
    let Some(test_cluster) = TestCluster::shared().await else {
        return;
    };
    let direct = connect().await.expect("a cluster");
    let proxy = Proxy::start(test_cluster.url()).await;
    let kubeconfig = test_cluster
        .kubeconfig()
        .replace(test_cluster.url(), &proxy.url());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig).expect("a file");
    let access = Access {
        kubeconfig: Some(path),
        ..Access::default()
    };
    let through_proxy = Cluster::connect(&access).await.expect("a cluster");
    let kind = config_maps();
    direct
        .apply(&kind, &config_map("kept", "1"), OURS)
        .await
        .expect("applied");
    let cache = Cache::new(kind.clone(), cached("app=cached"));
    let seen = Mutex::new(Vec::new());
    let follow = cache.follow(&through_proxy, |object| {
        seen.lock()
            .expect("no panic")
            .push(object.metadata.name.clone().unwrap_or_default());
    });
    let test = async {
        eventually("the first list", || async {
            content(&cache, "kept").as_deref() == Some("1")
        })
        .await;
        assert_eq!(cache.state(), CacheState::Current);
        proxy.cut();
        direct
            .apply(&kind, &config_map("kept", "2"), OURS)
            .await
            .expect("applied");
        let made = direct
            .apply(&kind, &config_map("late", "1"), OURS)
            .await
            .expect("applied");
        eventually("the change", || async {
            content(&cache, "kept").as_deref() == Some("2")
        })
        .await;
        eventually("the new one", || async {
            cache.group("default", "cached").len() >= 2
        })
        .await;
        proxy.refuse();
        let uid = made["metadata"]["uid"].as_str().expect("a uid");
        direct
            .delete(&kind, ("default", "late"), uid)
            .await
            .expect("deleted");
        proxy.admit();
        eventually("the deletion", || async {
            content(&cache, "late").is_none()
        })
        .await;
        let seen = seen.lock().expect("no panic");
        assert!(
            seen.iter().filter(|name| *name == "late").count() >= 2,
            "{seen:?}"
        );
    };
    tokio::select! {
        never = follow => match never {},
        () = test => {}
    }
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

#[tokio::test]
async fn a_kind_that_is_defined_later_is_found_and_one_that_goes_is_forgotten() {
    let Some(cluster) = connect().await else {
        return;
    };
    let things = Resource::in_namespaces("example.com/v1", "Thing", "things");
    let definitions = Resource::without_namespace(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    let cache = Cache::new(things.clone(), CacheOptions::default());
    let test = async {
        eventually("no definition", || async {
            cache.state() == CacheState::NotServed
        })
        .await;
        assert!(cache.is_filled() && cache.is_empty());
        let made = cluster
            .apply(&definitions, &definition(), OURS)
            .await
            .expect("defined");
        eventually("the definition", || async {
            cluster.serves(&things).await.expect("an answer")
        })
        .await;
        let thing = json!({
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "one", "namespace": "default"},
        });
        eventually("the thing", || async {
            cluster.apply(&things, &thing, OURS).await.is_ok()
        })
        .await;
        eventually("the object", || async {
            cache.get("default", "one").is_some()
        })
        .await;
        let uid = made["metadata"]["uid"].as_str().expect("a uid");
        let place = ("", "things.example.com");
        cluster
            .delete(&definitions, place, uid)
            .await
            .expect("deleted");
        eventually("the end", || async { cache.is_empty() }).await;
    };
    tokio::select! {
        never = cache.follow(&cluster, |_| {}) => match never {},
        () = test => {}
    }
}

/// A watch from a state that the server has forgotten begins with a new list.
#[tokio::test]
async fn a_cache_lists_again_when_its_state_is_forgotten() {
    let server = HttpServer::start(|request| {
        let list = |version: &str, content: &str| {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "kept", "namespace": "default", "resourceVersion": version},
                "data": {"content": content},
            });
            let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": [object]});
            Reply::ok(list.to_string()).header("content-type", "application/json")
        };
        let target = request.target.as_str();
        if target == "/api/v1" {
            let served = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["list", "watch"]},
            ]});
            return Reply::ok(served.to_string()).header("content-type", "application/json");
        }
        if !target.contains("watch=") {
            let is_first = !LISTED.swap(true, std::sync::atomic::Ordering::SeqCst);
            return if is_first {
                list("7", "old")
            } else {
                list("9", "new")
            };
        }
        let gone = json!({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
            "reason": "Expired", "message": "too old resource version",
        }});
        Reply::ok(format!("{gone}\n")).header("content-type", "application/json")
    });
    static LISTED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let config = portolan_cluster::kube::Config::new(server.url().parse().expect("an address"));
    let client = portolan_cluster::kube::Client::try_from(config).expect("a client");
    let cluster = Cluster::from_client(client, &server.url());
    let cache = Cache::new(config_maps(), CacheOptions::default());
    let test = eventually("the new list", || async {
        content(&cache, "kept").as_deref() == Some("new")
    });
    tokio::select! {
        never = cache.follow(&cluster, |_| {}) => match never {},
        () = test => {}
    }
}

#[tokio::test]
async fn what_is_said_again_is_one_event_with_a_count() {
    let Some(cluster) = connect().await else {
        return;
    };
    let recorder = EventRecorder::new(&cluster, "portolan.dev/test", "test-1");
    let regarding = Regarding {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "default".to_owned(),
        name: "told".to_owned(),
        uid: "1".to_owned(),
    };
    let news = |note: &str| News {
        event_type: EventType::Warning,
        reason: "Said".to_owned(),
        action: "Say".to_owned(),
        note: note.to_owned(),
    };
    for _ in 0..3 {
        recorder
            .tell(&regarding, &news("once"))
            .await
            .expect("told");
    }
    let long = "ä".repeat(2_000);
    recorder.tell(&regarding, &news(&long)).await.expect("told");
    let mut found = Vec::new();
    let query = Query {
        path: "/apis/events.k8s.io/v1/namespaces/default/events".to_owned(),
        ..Query::default()
    };
    cluster
        .list_whole(&query, |event| found.push(event))
        .await
        .expect("a list");
    found.retain(|event| event["regarding"]["name"] == "told");
    let mut counts: Vec<_> = found
        .iter()
        .map(|event| event["series"]["count"].as_u64())
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [None, Some(3)]);
}
