//! Sets of objects on a real API server: their order, their inventory, what is pruned and what is waited for.

use std::time::Duration;

use portolan_cluster::{
    Access, ApplyOptions, Cluster, Deployed, KeptBecause, Member, MemberError, ObjectSet,
    ObjectSetError, PruneOptions, Pruned, Resource, SetOptions, Stage, WaitOptions,
};
use portolan_testbed::cluster::{
    Cluster as TestCluster, EXIT_CODE, Kubelet, KubeletSetup, PodFault, eventually,
};
use serde_json::{Value, json};

const MANAGER: &str = "portolan-test";

const PRUNING: SetOptions = SetOptions {
    force: false,
    deadline: Duration::from_secs(30),
    replace: false,
    prune: Some(PruneOptions {
        dangerous: false,
        many: false,
    }),
};

/// A namespace of the test's own.
async fn connect(namespace: &str) -> Option<Cluster> {
    let test = TestCluster::shared().await?;
    let access = Access {
        kubeconfig: Some(test.kubeconfig_path()),
        ..Access::default()
    };
    let cluster = Cluster::connect(&access).await.expect("a cluster");
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let kind = Resource::without_namespace("v1", "Namespace", "namespaces");
    let setup = ApplyOptions {
        manager: "setup",
        force: false,
        dry_run: false,
    };
    cluster
        .apply(&kind, &object, setup)
        .await
        .expect("a namespace");
    Some(cluster)
}

fn config_maps() -> Resource {
    Resource::in_namespaces("v1", "ConfigMap", "configmaps")
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn deployment(name: &str, image: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    })
}

/// A definition of a kind that no other test has.
fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.sets.example.com")},
        "spec": {
            "group": "sets.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn custom(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "sets.example.com/v1", "kind": kind, "metadata": {"name": name}})
}

fn failures(deployed: &Deployed) -> Vec<String> {
    let failed = deployed.applied.iter();
    let failed = failed.filter_map(|(member, result)| Some((member, result.as_ref().err()?)));
    failed
        .map(|(member, error)| format!("{member}: {error}"))
        .collect()
}

fn pruned(deployed: &Deployed) -> Vec<(String, &Pruned)> {
    let pruned = deployed.pruned.iter();
    pruned
        .map(|(member, pruned)| (member.name.clone(), pruned))
        .collect()
}

/// The kinds of a set may be defined by the set itself, in whatever order the objects are given.
#[tokio::test]
async fn objects_are_applied_after_what_they_need() {
    let Some(cluster) = connect("sets-order").await else {
        return;
    };
    let mut set = ObjectSet::new(&cluster, "sets-order", "app", MANAGER);
    let mut inside = config_map("inside");
    inside["metadata"]["namespace"] = json!("sets-order-made");
    let objects = vec![
        custom("Gauge", "one"),
        inside,
        definition("gauges", "Gauge"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sets-order-made"}}),
    ];
    let deployed = set.apply(objects, PRUNING).await.expect("applied");
    assert_eq!(failures(&deployed), Vec::<String>::new());
    let order: Vec<_> = deployed
        .applied
        .iter()
        .map(|(member, _)| member.to_string())
        .collect();
    let expected = [
        "Namespace sets-order-made",
        "CustomResourceDefinition gauges.sets.example.com",
        "ConfigMap sets-order-made/inside",
        "Gauge sets-order/one",
    ];
    assert_eq!(order, expected);
    let inventory = set.inventory().await.expect("an inventory");
    assert_eq!(inventory.members().len(), 4);
    assert!(inventory.members().all(|member| !member.uid.is_empty()));
}

#[tokio::test]
async fn what_is_no_longer_in_a_set_is_pruned_and_nothing_else() {
    let Some(cluster) = connect("sets-prune").await else {
        return;
    };
    let mut set = ObjectSet::new(&cluster, "sets-prune", "app", MANAGER);
    let mut kept = config_map("kept");
    kept["metadata"]["annotations"] = json!({"portolan.dev/prune": "never"});
    let names = ["a", "b", "c", "d", "e", "f", "old", "replaced"];
    let mut objects: Vec<Value> = names.map(config_map).to_vec();
    objects.push(kept);
    objects.push(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }));
    let first = set.apply(objects.clone(), PRUNING).await.expect("applied");
    assert_eq!(failures(&first), Vec::<String>::new());
    cluster
        .apply(
            &config_maps(),
            &in_namespace(config_map("stranger"), "sets-prune"),
            APPLY,
        )
        .await
        .expect("a foreign object");
    // Somebody deletes one and makes another of the same name: it is not ours.
    let old = first
        .applied
        .iter()
        .find(|(member, _)| member.name == "replaced");
    let uid = &old.expect("applied").0.uid;
    let place = ("sets-prune", "replaced");
    cluster
        .delete(&config_maps(), place, uid)
        .await
        .expect("deleted");
    let again = in_namespace(config_map("replaced"), "sets-prune");
    cluster
        .create(&config_maps(), &again, "other")
        .await
        .expect("made");
    objects.retain(|object| {
        let name = object["metadata"]["name"].as_str();
        !["old", "replaced", "kept", "data"].contains(&name.expect("a name"))
    });
    let second = set.apply(objects.clone(), PRUNING).await.expect("applied");
    let found = pruned(&second);
    assert!(matches!(find(&found, "old"), Pruned::Deleted), "{found:?}");
    assert!(
        matches!(find(&found, "replaced"), Pruned::Gone),
        "{found:?}"
    );
    let kept = find(&found, "kept");
    assert!(
        matches!(kept, Pruned::Kept(KeptBecause::Annotation)),
        "{found:?}"
    );
    let claim = find(&found, "data");
    assert!(
        matches!(claim, Pruned::Kept(KeptBecause::Kind)),
        "{found:?}"
    );
    for (name, is_there) in [
        ("old", false),
        ("replaced", true),
        ("kept", true),
        ("stranger", true),
    ] {
        let read = cluster.read(&config_maps(), "sets-prune", name).await;
        assert_eq!(read.expect("an answer").is_some(), is_there, "{name}");
    }
    // What stays is remembered, and goes when it is asked for by name.
    let dangerous = SetOptions {
        prune: Some(PruneOptions {
            dangerous: true,
            many: false,
        }),
        ..PRUNING
    };
    let third = set.apply(objects, dangerous).await.expect("applied");
    assert!(matches!(find(&pruned(&third), "data"), Pruned::Deleted));
}

#[tokio::test]
async fn more_than_half_of_a_set_is_not_pruned_unasked() {
    let Some(cluster) = connect("sets-many").await else {
        return;
    };
    let mut set = ObjectSet::new(&cluster, "sets-many", "app", MANAGER);
    let objects = ["a", "b", "c"].map(config_map).to_vec();
    set.apply(objects, PRUNING).await.expect("applied");
    let one = vec![config_map("a")];
    let deployed = set.apply(one.clone(), PRUNING).await.expect("applied");
    let kept = |(_, pruned): &(Member, Pruned)| matches!(pruned, Pruned::Kept(KeptBecause::Many));
    assert_eq!(deployed.pruned.len(), 2);
    assert!(deployed.pruned.iter().all(kept), "{:?}", deployed.pruned);
    let many = SetOptions {
        prune: Some(PruneOptions {
            dangerous: false,
            many: true,
        }),
        ..PRUNING
    };
    let deployed = set.apply(one, many).await.expect("applied");
    assert!(deployed.pruned.iter().all(|(_, pruned)| pruned.is_gone()));
    let deleted = set.delete(PruneOptions::default()).await.expect("deleted");
    assert!(matches!(find(&pruned(&deleted), "a"), Pruned::Deleted));
    let left = set.inventory().await.expect("an inventory");
    assert_eq!(left.members().len(), 0);
}

/// A refused object must not cost others their deployment, nor old objects their life.
#[tokio::test]
async fn an_object_that_fails_keeps_the_rest_and_stops_pruning() {
    let Some(cluster) = connect("sets-failure").await else {
        return;
    };
    let mut set = ObjectSet::new(&cluster, "sets-failure", "app", MANAGER);
    let objects = ["a", "b", "c"].map(config_map).to_vec();
    set.apply(objects, PRUNING).await.expect("applied");
    let objects = vec![
        config_map("a"),
        config_map("b"),
        config_map("Not a name"),
        custom("Unheard", "x"),
        config_map("d"),
    ];
    let deployed = set.apply(objects, PRUNING).await.expect("applied");
    let failed = failures(&deployed);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(deployed.pruned.is_empty());
    let unserved = deployed
        .applied
        .iter()
        .find(|(member, _)| member.kind == "Unheard");
    let (_, Err(error @ MemberError::Unserved { .. })) = unserved.expect("a result") else {
        panic!("{unserved:?}")
    };
    assert_eq!(
        error.to_string(),
        "the cluster does not serve `Unheard` of `sets.example.com/v1`"
    );
    for name in ["c", "d"] {
        let read = cluster.read(&config_maps(), "sets-failure", name).await;
        assert!(read.expect("an answer").is_some(), "{name}");
    }
    let twice = vec![config_map("a"), config_map("a")];
    let refused = set.apply(twice, PRUNING).await;
    assert!(
        matches!(refused, Err(ObjectSetError::Twice(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn objects_are_waited_for_until_they_are_current_or_failed() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let Some(cluster) = connect("sets-wait").await else {
        return;
    };
    let kubelet = Kubelet::start(
        test.client().await,
        Some("sets-wait"),
        KubeletSetup::default(),
    );
    kubelet.fail_image_with("broken:1", PodFault::NeverReady);
    let mut set = ObjectSet::new(&cluster, "sets-wait", "app", MANAGER);
    let objects = vec![
        deployment("good", "web:1"),
        deployment("bad", "broken:1"),
        config_map("plain"),
    ];
    let deployed = set.apply(objects, PRUNING).await.expect("applied");
    assert_eq!(failures(&deployed), Vec::<String>::new());
    let members: Vec<Member> = deployed
        .applied
        .into_iter()
        .map(|(member, _)| member)
        .collect();
    let options = WaitOptions {
        timeout: Duration::from_mins(1),
        fail_fast: false,
    };
    let mut heard = Vec::new();
    let waited = set
        .wait(&members, options, |waited| heard.push(waited.clone()))
        .await;
    let waited = waited.expect("an answer");
    let stage = |name: &str| {
        let found = waited.iter().find(|waited| waited.member.name == name);
        let status = found.and_then(|found| found.status.as_ref());
        status.map(|status| status.stage)
    };
    assert_eq!(stage("plain"), Some(Stage::Current));
    assert_eq!(stage("good"), Some(Stage::Current));
    assert_eq!(stage("bad"), Some(Stage::Failed));
    // Every change of status was told, and the last word is the result.
    for waited in &waited {
        let last = heard
            .iter()
            .rev()
            .find(|heard| heard.member == waited.member);
        assert_eq!(last, Some(waited));
    }
    // What never comes is waited for no longer than asked.
    let absent = Member {
        name: "absent".to_owned(),
        ..members.first().expect("a member").clone()
    };
    let short = WaitOptions {
        timeout: Duration::from_millis(300),
        fail_fast: true,
    };
    let waited = set.wait(&[absent], short, |_| {}).await.expect("an answer");
    assert!(waited.iter().all(|waited| waited.status.is_none()));
}

/// Eight processes that apply one set, each with an object of its own: whoever writes last must not forget the others.
#[tokio::test]
async fn members_of_applies_at_the_same_time_are_all_remembered() {
    let Some(cluster) = connect("sets-race").await else {
        return;
    };
    let keeping = SetOptions {
        prune: None,
        ..PRUNING
    };
    let applies = (0..8).map(|number| {
        let cluster = cluster.clone();
        async move {
            let mut set = ObjectSet::new(&cluster, "sets-race", "app", MANAGER);
            let objects = vec![config_map("common"), config_map(&format!("own-{number}"))];
            set.apply(objects, keeping).await.expect("applied")
        }
    });
    for deployed in futures_util::future::join_all(applies).await {
        assert_eq!(failures(&deployed), Vec::<String>::new());
    }
    let mut set = ObjectSet::new(&cluster, "sets-race", "app", MANAGER);
    let inventory = set.inventory().await.expect("an inventory");
    assert_eq!(inventory.members().len(), 9, "{inventory:?}");
    assert!(inventory.members().all(|member| !member.uid.is_empty()));
    // Nothing is left of a set that is deleted, its inventory neither.
    set.delete(PruneOptions::default()).await.expect("deleted");
    let left = cluster.read(&config_maps(), "sets-race", "app").await;
    assert_eq!(left.expect("an answer"), None);
}

fn job(name: &str, image: &str, code: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"annotations": {EXIT_CODE: code}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "run", "image": image}]},
        }},
    })
}

#[tokio::test]
async fn fields_that_cannot_be_changed_are_named_and_finished_jobs_replaced() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let Some(cluster) = connect("sets-immutable").await else {
        return;
    };
    let _kubelet = Kubelet::start(
        test.client().await,
        Some("sets-immutable"),
        KubeletSetup::default(),
    );
    let mut set = ObjectSet::new(&cluster, "sets-immutable", "app", MANAGER);
    let first = vec![deployment("web", "web:1"), job("migrate", "migrate:1", "0")];
    let deployed = set.apply(first, PRUNING).await.expect("applied");
    assert_eq!(failures(&deployed), Vec::<String>::new());
    let jobs = Resource::in_namespaces("batch/v1", "Job", "jobs");
    let read_job = async || {
        let job = cluster.read(&jobs, "sets-immutable", "migrate").await;
        job.expect("an answer").expect("a Job")
    };
    eventually("the Job is done", || async {
        read_job().await["status"]["succeeded"] == 1
    })
    .await;
    let old = read_job().await["metadata"]["uid"].clone();
    let mut other = deployment("web", "web:1");
    for part in [
        "/spec/selector/matchLabels",
        "/spec/template/metadata/labels",
    ] {
        *other.pointer_mut(part).expect("labels") = json!({"app": "other"});
    }
    let second = vec![other.clone(), job("migrate", "migrate:2", "0")];
    let deployed = set.apply(second, PRUNING).await.expect("applied");
    assert_eq!(
        failures(&deployed),
        ["Deployment sets-immutable/web: spec.selector cannot be changed"]
    );
    let new = read_job().await;
    assert_ne!(new["metadata"]["uid"], old, "the finished Job was replaced");
    let image = &new["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "migrate:2");
    let replacing = SetOptions {
        replace: true,
        ..PRUNING
    };
    let deployed = set.apply(vec![other], replacing).await.expect("applied");
    assert_eq!(failures(&deployed), Vec::<String>::new());
}

/// Deployments report a failure minutes later; their pods know at once.
#[tokio::test]
async fn a_pod_that_cannot_start_ends_the_wait_with_what_it_said() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let Some(cluster) = connect("sets-stuck").await else {
        return;
    };
    let kubelet = Kubelet::start(
        test.client().await,
        Some("sets-stuck"),
        KubeletSetup::default(),
    );
    kubelet.fail_image_with("crashing:1", PodFault::CrashLoop);
    kubelet.fail_image_with("absent:1", PodFault::ImagePull);
    let mut set = ObjectSet::new(&cluster, "sets-stuck", "app", MANAGER);
    let mut objects = vec![
        deployment("crashing", "crashing:1"),
        deployment("absent", "absent:1"),
        deployment("healed", "crashing:1"),
    ];
    for object in &mut objects {
        object["spec"]["progressDeadlineSeconds"] = json!(3600);
    }
    set.apply(objects.clone(), PRUNING).await.expect("applied");
    // A new revision of one: the pods of the old one still crash, which must not count.
    objects[2]["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:1");
    let deployed = set.apply(objects, PRUNING).await.expect("applied");
    let members: Vec<Member> = deployed
        .applied
        .into_iter()
        .map(|(member, _)| member)
        .collect();
    let options = WaitOptions {
        timeout: Duration::from_mins(3),
        fail_fast: false,
    };
    let waited = set
        .wait(&members, options, |_| {})
        .await
        .expect("an answer");
    let state = |name: &str| {
        let found = waited.iter().find(|waited| waited.member.name == name);
        found.expect("waited for").state()
    };
    assert!(
        state("crashing").contains("is stuck: CrashLoopBackOff"),
        "{}",
        state("crashing")
    );
    assert!(
        state("absent").contains("is stuck: ImagePullBackOff"),
        "{}",
        state("absent")
    );
    assert_eq!(state("healed"), "");
}

const APPLY: ApplyOptions<'_> = ApplyOptions {
    manager: "stranger",
    force: false,
    dry_run: false,
};

fn in_namespace(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

fn find<'p>(pruned: &[(String, &'p Pruned)], name: &str) -> &'p Pruned {
    let found = pruned.iter().find(|(found, _)| found == name);
    found.expect("a result").1
}
