//! The operator dies after a write, and another one goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portolan_operator::{Deadly, Point};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::bed::{Bed, spec_with};

/// What a canary goes through in these tests, on whichever way it ends.
const POINTS: [Point; 12] = [
    Point::Status,
    Point::FinalizerAdded,
    Point::FinalizerRemoved,
    Point::Service,
    Point::DestinationRule,
    Point::Routes,
    Point::Apex,
    Point::RevisionSaved,
    Point::ConfigCopied,
    Point::Slot,
    Point::Scale,
    Point::Told,
];

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

fn rich_spec() -> Value {
    spec_with(
        "web:1",
        &json!({
            "template": {"spec": {"containers": [{
                "name": "web", "image": "web:1", "envFrom": [{"configMapRef": {"name": "settings"}}],
            }]}},
            "service": {"trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"}}},
            "replicas": 3,
        }),
    )
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

async fn canary_with_deaths(name: &str, points: &[Point], is_bad: bool) {
    let Some(bed) = Bed::without_operator(name).await else {
        return;
    };
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": bed.namespace},
        "data": {"colour": "blue"},
    });
    crate::bed::create(&bed.client, "", "v1", "ConfigMap", &settings).await;
    let deaths = Deaths::at(points);
    bed.make(rich_spec()).await;
    let mut lives = live_and_die(&bed, &deaths, |status| status["phase"] == "Stable").await;
    if is_bad {
        bed.mesh.fail("web:2", 300);
    }
    let containers = json!([{"name": "web", "image": "web:2", "envFrom": [{"configMapRef": {"name": "settings"}}]}]);
    bed.change(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
        .await;
    let (phase, slot) = if is_bad {
        ("RolledBack", "a")
    } else {
        ("Stable", "b")
    };
    lives += live_and_die(&bed, &deaths, |status| {
        let told = status["history"]
            .as_array()
            .and_then(|history| history.last());
        let is_told = told.is_some_and(|told| told["number"] == status["delivered"]);
        status["phase"] == phase
            && status["stable"]["slot"] == slot
            && is_told
            && status["keepPreviousUntil"].is_null()
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
    assert_eq!(
        bed.get().await.expect("the rollout")["metadata"]["finalizers"],
        json!(null)
    );
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
    canary_with_deaths("death-promoted", &POINTS, false).await;
}

async fn an_operator_that_dies_after_each_kind_of_write_rolls_back_as_if_it_had_not() {
    let points: Vec<Point> = POINTS.into_iter().collect();
    canary_with_deaths("death-rolled-back", &points, true).await;
}

/// Each death alone, both ways; only when time is no matter, as `./test` says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_death_alone_changes_nothing() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    for (number, point) in POINTS.into_iter().enumerate().filter(|_| is_long) {
        canary_with_deaths(&format!("alone-{number}-p"), &[point], false).await;
        canary_with_deaths(&format!("alone-{number}-r"), &[point], true).await;
    }
}

crate::together!(deaths_change_nothing:
    an_operator_that_dies_after_each_kind_of_write_promotes_as_if_it_had_not,
    an_operator_that_dies_after_each_kind_of_write_rolls_back_as_if_it_had_not);
