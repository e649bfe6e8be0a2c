//! The operator dies after a write, and another one goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use portolan_operator::{Deadly, Point};
use portolan_testbed::{HttpServer, Reply};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::bed::{Bed, create, record, spec_with};

/// A canary that dies at some points on its way. Together they go through all of them.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// A template with configuration, a policy for connections, gates, and more revisions than are kept.
    Template,
    /// A Deployment that stays in its chart, with an autoscaler for each slot.
    Workload,
    /// Three pods of the new revision, one of them bad.
    OnePod,
}

impl Way {
    const ALL: [Self; 3] = [Self::Template, Self::Workload, Self::OnePod];

    /// The points that this way goes through, however it ends.
    fn points(self) -> &'static [Point] {
        match self {
            Self::Template => &[
                Point::Status,
                Point::FinalizerAdded,
                Point::FinalizerRemoved,
                Point::Service,
                Point::DestinationRule,
                Point::Routes,
                Point::Apex,
                Point::RevisionSaved,
                Point::ConfigCopied,
                Point::RevisionDeleted,
                Point::Slot,
                Point::Scale,
                Point::Told,
                Point::GateAsked,
            ],
            Self::Workload => &[Point::Workload, Point::Autoscaler],
            Self::OnePod => &[Point::PodReplaced],
        }
    }
}

/// How long a rollout may take with all of its deaths.
const PATIENCE: Duration = Duration::from_mins(3);

/// Dies once at each of some points.
struct Deaths {
    left: Mutex<BTreeSet<Point>>,
    died: Notify,
}

impl Deaths {
    fn at(points: &[Point]) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(points.iter().copied().collect()),
            died: Notify::new(),
        })
    }

    fn deadly(self: &Arc<Self>) -> Deadly {
        let deaths = Arc::clone(self);
        Arc::new(move |point| {
            let dies = deaths.left.lock().expect("no panic").remove(&point);
            if dies {
                deaths.died.notify_one();
            }
            dies
        })
    }

    fn left(&self) -> BTreeSet<Point> {
        self.left.lock().expect("no panic").clone()
    }
}

/// Runs operators, each until its death, until the rollout has ended.
async fn live_and_die(bed: &Bed, deaths: &Arc<Deaths>, is_over: impl Fn(&Value) -> bool) -> u32 {
    let mut lives = 1;
    let mut operator = bed.operator(None, Some(deaths.deadly())).await;
    let started = Instant::now();
    loop {
        tokio::select! {
            () = deaths.died.notified() => {
                drop(operator);
                lives += 1;
                operator = bed.operator(None, Some(deaths.deadly())).await;
            }
            () = tokio::time::sleep(Duration::from_millis(50)) => {
                let status = bed.status().await;
                if is_over(&status) {
                    drop(operator);
                    return lives;
                }
                assert!(started.elapsed() < PATIENCE, "it never ends: {status:#}");
            }
        }
    }
}

/// The rollout before its release, with what it needs.
async fn prepare(bed: &Bed, way: Way, gate: &HttpServer) {
    match way {
        Way::Template => {
            let settings = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": bed.namespace},
                "data": {"colour": "blue"},
            });
            create(&bed.client, "", "v1", "ConfigMap", &settings).await;
            let gate = |before: &str| json!({"before": before, "webhook": {"url": gate.url()}});
            bed.make(spec_with(
                "web:1",
                &json!({
                    "template": {"spec": {"containers": containers("web:1", true)}},
                    "service": {"trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"}}},
                    "gates": [gate("start"), gate("promote")],
                    "replicas": 3,
                }),
            ))
            .await;
        }
        Way::Workload => {
            let template = json!({"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": containers("web:1", false)}});
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "namespace": bed.namespace},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "shop"}}, "template": template},
            });
            create(&bed.client, "apps", "v1", "Deployment", &deployment).await;
            let mut spec = spec_with(
                "web:1",
                &json!({"workloadRef": {"name": "shop"}, "autoscaling": {"minReplicas": 2, "maxReplicas": 4}}),
            );
            let fields = spec.as_object_mut().expect("an object");
            fields.remove("template");
            fields.remove("replicas");
            bed.make(spec).await;
        }
        Way::OnePod => {
            let many = json!({"replicas": 6, "strategy": {"weights": [50], "stepInterval": "3s"}});
            bed.make(spec_with("web:1", &many)).await;
        }
    }
}

fn containers(image: &str, uses_settings: bool) -> Value {
    let mut container = json!({"name": "web", "image": image});
    if uses_settings {
        container["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    }
    json!([container])
}

/// Releases the second image, good or bad.
async fn release(bed: &Bed, way: Way, is_bad: bool) {
    if is_bad {
        bed.mesh.fail("web:2", 300);
    }
    match way {
        Way::Template => {
            fill_with_revisions(bed).await;
            let containers = containers("web:2", true);
            bed.change(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
                .await;
        }
        Way::Workload => {
            let patch =
                json!({"spec": {"template": {"spec": {"containers": containers("web:2", false)}}}});
            let params = PatchParams::default();
            let deployments = bed.deployments();
            deployments
                .patch("shop", &params, &Patch::Strategic(patch))
                .await
                .expect("changed");
        }
        Way::OnePod => {
            bed.mesh.fail_pods("web:2", 1, 500);
            bed.release("web:2").await;
        }
    }
}

/// Adds as many old revisions as are kept, so that one has to go.
async fn fill_with_revisions(bed: &Bed) {
    let api = bed.api("apps", "v1", "ControllerRevision");
    let kept = api.list(&ListParams::default()).await.expect("revisions");
    let known = serde_json::to_value(&kept.items[0]).expect("JSON");
    for number in 0..10 {
        let revision = format!("r1-{number:016x}");
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": format!("web-{revision}"), "namespace": bed.namespace,
                "labels": known["metadata"]["labels"], "ownerReferences": known["metadata"]["ownerReferences"],
            },
            "revision": number,
            "data": {"revision": revision, "template": known["data"]["template"]},
        });
        create(&bed.client, "apps", "v1", "ControllerRevision", &object).await;
    }
}

async fn canary_with_deaths(name: &str, way: Way, points: &[Point], is_bad: bool) {
    let Some(bed) = Bed::without_operator(name).await else {
        return;
    };
    let gate = HttpServer::start(|_| Reply::ok("yes"));
    let deaths = Deaths::at(points);
    prepare(&bed, way, &gate).await;
    // The Deployment in its chart gives way after that, once: an operator that is stopped in between would miss its death.
    let is_held = || !deaths.left().contains(&Point::Workload);
    let mut lives = live_and_die(&bed, &deaths, |status| {
        status["phase"] == "Stable" && is_held()
    })
    .await;
    release(&bed, way, is_bad).await;
    let (phase, slot) = if is_bad {
        ("RolledBack", "a")
    } else {
        ("Stable", "b")
    };
    lives += live_and_die(&bed, &deaths, |status| {
        if matches!(way, Way::OnePod) && record(status, "OnePod").is_some() && !is_bad {
            // The pod that took the bad one's place is good.
            bed.mesh.fail_pods("web:2", 0, 0);
        }
        let told = status["history"]
            .as_array()
            .and_then(|history| history.last());
        let is_told = told.is_some_and(|told| told["number"] == status["delivered"]);
        status["phase"] == phase
            && status["stable"]["slot"] == slot
            && is_told
            && status["keepPreviousUntil"].is_null()
            && deaths.left().is_empty()
    })
    .await
        - 1;
    let left = deaths.left();
    assert!(left.is_empty(), "never died at {left:?}");
    assert_eq!(
        lives as usize,
        points.len() + 1,
        "one life for each death, and the last"
    );
    let shares = if is_bad { (100, 0) } else { (0, 100) };
    bed.reach_shares(shares).await;
    if !matches!(way, Way::Workload) {
        assert_eq!(
            bed.get().await.expect("the rollout")["metadata"]["finalizers"],
            json!(null)
        );
    }
    let status = bed.status().await;
    let ends = status["history"]
        .as_array()
        .expect("a history")
        .iter()
        .filter(|record| !record["outcome"].is_null())
        .count();
    assert_eq!(ends, 1, "it ends once: {status:#}");
    bed.end().await;
}

async fn an_operator_that_dies_after_each_kind_of_write_promotes_as_if_it_had_not() {
    canary_with_deaths("death-p", Way::Template, Way::Template.points(), false).await;
}

async fn an_operator_that_dies_after_each_kind_of_write_rolls_back_as_if_it_had_not() {
    canary_with_deaths("death-r", Way::Template, Way::Template.points(), true).await;
}

async fn an_operator_of_a_deployment_in_a_chart_dies_and_promotes_all_the_same() {
    canary_with_deaths(
        "death-workload-p",
        Way::Workload,
        Way::Workload.points(),
        false,
    )
    .await;
}

async fn an_operator_of_a_deployment_in_a_chart_dies_and_rolls_back_all_the_same() {
    canary_with_deaths(
        "death-workload-r",
        Way::Workload,
        Way::Workload.points(),
        true,
    )
    .await;
}

async fn an_operator_that_dies_while_it_replaces_a_pod_promotes_all_the_same() {
    canary_with_deaths("death-pod-p", Way::OnePod, Way::OnePod.points(), false).await;
}

async fn an_operator_that_dies_while_it_replaces_a_pod_rolls_back_all_the_same() {
    canary_with_deaths("death-pod-r", Way::OnePod, Way::OnePod.points(), true).await;
}

/// A new kind of write must be one that some canary above dies at.
async fn the_deaths_are_at_every_point_that_there_is() {
    let tried: BTreeSet<Point> = Way::ALL
        .iter()
        .flat_map(|way| way.points())
        .copied()
        .collect();
    assert_eq!(tried, BTreeSet::from(Point::ALL));
}

/// Each death alone, both ways, three at a time; only when time is no matter, as `./test` says.
#[expect(clippy::print_stdout, reason = "a count of what was done")]
async fn each_death_alone_changes_nothing() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let alone = Way::ALL
        .into_iter()
        .flat_map(|way| way.points().iter().map(move |point| (way, *point)))
        .flat_map(|(way, point)| [(way, point, false), (way, point, true)]);
    let alone: Vec<_> = alone.enumerate().collect();
    let total = alone.len();
    let asked = if is_long { total } else { 0 };
    let runs = alone
        .into_iter()
        .take(asked)
        .map(|(number, (way, point, is_bad))| async move {
            canary_with_deaths(&format!("alone-{number}"), way, &[point], is_bad).await;
            println!(
                "died alone at {point:?} ({way:?}, {}): same end",
                if is_bad { "rolled back" } else { "promoted" }
            );
        });
    futures_util::stream::iter(runs)
        .buffer_unordered(3)
        .collect::<Vec<()>>()
        .await;
    println!("deaths of the operator alone: {asked} of {total}");
}

crate::cases!(
    an_operator_that_dies_after_each_kind_of_write_promotes_as_if_it_had_not,
    an_operator_that_dies_after_each_kind_of_write_rolls_back_as_if_it_had_not,
    an_operator_of_a_deployment_in_a_chart_dies_and_promotes_all_the_same,
    an_operator_of_a_deployment_in_a_chart_dies_and_rolls_back_all_the_same,
    an_operator_that_dies_while_it_replaces_a_pod_promotes_all_the_same,
    an_operator_that_dies_while_it_replaces_a_pod_rolls_back_all_the_same,
    the_deaths_are_at_every_point_that_there_is,
    each_death_alone_changes_nothing,
);
