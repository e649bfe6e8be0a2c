//! `portolan operator` with many rollouts: nothing to do costs nothing, and hundreds of releases at once lose no step.
//!
//! `./test --long` takes 1,000 rollouts and 500 releases, `./test` takes a few.

mod portolan;
mod rollout_bed;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use portolan_testbed::{HttpServer, Reply};
use rollout_bed::{Bed, OperatorProcess};
use serde_json::{Value, json};

/// How much is done.
struct Size {
    rollouts: usize,
    releases: usize,
    /// How long nothing happens.
    idle: Duration,
    /// How long all releases together may take.
    patience: Duration,
}

const LONG: Size = Size {
    rollouts: 1_000,
    releases: 500,
    idle: Duration::from_mins(1),
    patience: Duration::from_mins(30),
};

const SHORT: Size = Size {
    rollouts: 30,
    releases: 15,
    idle: Duration::from_secs(5),
    patience: Duration::from_mins(3),
};

const NAMESPACE: &str = "many";
const STEPS: [&str; 6] = [
    "Preparing",
    "Started",
    "Raised",
    "Promoting",
    "Promoted",
    "Finished",
];

fn rollout(name: &str, counts: &str) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "IstioCanaryDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
            "service": {"port": 80},
            "strategy": {
                "weights": [40, 50], "stepInterval": "5s", "soak": "2s", "rollbackWindow": "1s", "drain": "1s",
                "progressDeadline": "15m",
            },
            "analysis": {"interval": "2s", "warmup": "0s", "metrics": [{"name": "errors", "http": {"url": counts}}]},
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_rollouts_cost_nothing_and_many_releases_at_once_lose_no_step() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let size = if is_long { LONG } else { SHORT };
    let Some(bed) = Bed::start().await else {
        return;
    };
    bed.namespace(NAMESPACE).await;
    let counts = HttpServer::start(|_| {
        Reply::ok(r#"{"canary": {"bad": 0, "total": 4000}, "stable": {"bad": 0, "total": 4000}}"#)
    });
    let names: Vec<String> = (0..size.rollouts)
        .map(|number| format!("app-{number}"))
        .collect();
    let operator = bed.operator(&["--prometheus", &counts.url()]);
    let started = Instant::now();
    let made = names.iter().map(|name| {
        let (bed, object) = (&bed, rollout(name, &counts.url()));
        async move { bed.create(&object).await }
    });
    futures_util::stream::iter(made)
        .buffer_unordered(16)
        .collect::<Vec<()>>()
        .await;
    let all_stable = |items: &[(String, Value)]| {
        let stable = items
            .iter()
            .filter(|(_, status)| status["phase"] == "Stable");
        stable.count() == size.rollouts
    };
    wait_for_all(&bed, size.patience, "all of them serve", all_stable).await;
    let came_up = started.elapsed();
    let idle = measure_idle(&bed, &operator, size.idle).await;

    let started = Instant::now();
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}});
    let released = names[..size.releases].iter().map(|name| {
        let (api, image) = (bed.rollouts(NAMESPACE), image.clone());
        async move {
            let params = PatchParams::default();
            api.patch(name, &params, &Patch::Merge(image))
                .await
                .expect("released");
        }
    });
    futures_util::stream::iter(released)
        .buffer_unordered(16)
        .collect::<Vec<()>>()
        .await;
    let all_over = |items: &[(String, Value)]| {
        let over = items
            .iter()
            .filter(|(_, status)| status["phase"] == "Stable" && status["stable"]["slot"] == "b");
        over.count() == size.releases
    };
    let items = wait_for_all(&bed, size.patience, "all releases are over", all_over).await;
    for (name, status) in &items[..] {
        if status["stable"]["slot"] == "b" {
            assert_steps(name, status);
        } else {
            assert_eq!(
                status["history"].as_array().map(Vec::len),
                Some(1),
                "{name} was not released"
            );
        }
    }
    let memory = operator.memory_mib();
    report(&size, came_up, &idle, started.elapsed(), memory);
    assert!(
        idle.writes.is_empty(),
        "writes without news: {:#?}",
        idle.writes
    );
    assert!(
        idle.core_percent < 1.0,
        "{:.2} % of a core without news",
        idle.core_percent
    );
    assert!(idle.memory_mib <= 100, "{} MiB", idle.memory_mib);
}

#[expect(clippy::print_stderr, reason = "figures for whoever runs it")]
fn report(size: &Size, came_up: Duration, idle: &Idle, took: Duration, memory: u64) {
    eprintln!(
        "{} rollouts came up in {:.0} s; idle for {:.0} s: {} writes, {:.2} % of a core, {} MiB; {} releases at once took {:.0} s, each with all of its steps, {memory} MiB at most",
        size.rollouts,
        came_up.as_secs_f64(),
        size.idle.as_secs_f64(),
        idle.writes.len(),
        idle.core_percent,
        idle.memory_mib,
        size.releases,
        took.as_secs_f64(),
    );
    eprintln!(
        "idle rollouts: {} of {}; releases at once: {} of {}; ./test --long does all",
        size.rollouts, LONG.rollouts, size.releases, LONG.releases
    );
}

/// Every step happened, once and in order.
fn assert_steps(name: &str, status: &Value) {
    let history = status["history"].as_array().expect("a history");
    let reasons: Vec<&str> = history
        .iter()
        .filter_map(|record| record["reason"].as_str())
        .filter(|reason| STEPS.contains(reason))
        .collect();
    assert_eq!(reasons, STEPS, "{name}: {status:#}");
}

async fn wait_for_all(
    bed: &Bed,
    patience: Duration,
    what: &str,
    is_over: impl Fn(&[(String, Value)]) -> bool,
) -> Vec<(String, Value)> {
    let started = Instant::now();
    loop {
        let list = bed.rollouts(NAMESPACE).list(&ListParams::default()).await;
        let list = list.map(|list| list.items).unwrap_or_default().into_iter();
        let items: Vec<(String, Value)> = list
            .map(|item| {
                (
                    item.metadata.name.unwrap_or_default(),
                    item.data["status"].clone(),
                )
            })
            .collect();
        if is_over(&items) {
            return items;
        }
        let phases = || {
            let mut phases = BTreeMap::<String, usize>::new();
            for (_, status) in &items {
                let phase = format!("{} {}", status["phase"], status["hold"]["reason"]);
                *phases.entry(phase).or_default() += 1;
            }
            phases
        };
        assert!(
            started.elapsed() < patience,
            "not reached in time: {what}; {:#?}",
            phases()
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// What an operator cost while nothing happened.
struct Idle {
    /// Requests that the API server counted, by their labels.
    writes: Vec<String>,
    core_percent: f64,
    memory_mib: u64,
}

/// Waits until nobody writes any more, then measures for some time.
async fn measure_idle(bed: &Bed, operator: &OperatorProcess, idle: Duration) -> Idle {
    let started = Instant::now();
    let mut before = writes(bed).await;
    loop {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = writes(bed).await;
        if now == before {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_mins(5),
            "there is no end of writes"
        );
        before = now;
    }
    let cpu = operator.cpu_seconds();
    tokio::time::sleep(idle).await;
    Idle {
        writes: changed(&before, &writes(bed).await),
        core_percent: (operator.cpu_seconds() - cpu) / idle.as_secs_f64() * 100.0,
        memory_mib: operator.memory_mib(),
    }
}

/// All requests that the API server counted as writes, those that changed nothing included. The lease is the price of
/// having two operators, and not a rollout's; Endpoints and addresses are what the API server looks after itself, and it
/// writes events about that, so events are counted by who wrote them.
async fn writes(bed: &Bed) -> BTreeMap<String, u64> {
    let request = http::Request::get("/metrics")
        .body(Vec::new())
        .expect("a request");
    let text = bed.client.request_text(request).await.expect("metrics");
    let counted = text.lines().filter(|line| {
        let is_write = ["POST", "PUT", "PATCH", "APPLY", "DELETE"]
            .iter()
            .any(|verb| line.contains(&format!("verb=\"{verb}\"")));
        line.starts_with("apiserver_request_total{")
            && is_write
            && ["leases", "endpoints", "ipaddresses", "events"]
                .iter()
                .all(|resource| !line.contains(&format!("resource=\"{resource}\"")))
    });
    let values = counted.filter_map(|line| {
        let (labels, value) = line.rsplit_once(' ')?;
        Some((labels.to_owned(), value.parse::<f64>().ok()? as u64))
    });
    let mut counted: BTreeMap<String, u64> = values.collect();
    counted.insert("events of the operator".to_owned(), events(bed).await);
    counted
}

/// How often the operator has written an event, or written it again.
async fn events(bed: &Bed) -> u64 {
    let api = bed.api(("events.k8s.io", "v1", "Event"), NAMESPACE);
    let listed = api.list(&ListParams::default()).await.expect("a list");
    let controller = |event: &DynamicObject| event.data["reportingController"].clone();
    let own = listed.items.iter().filter(|event| {
        let controller = controller(event);
        controller
            .as_str()
            .is_some_and(|name| name.contains("portolan"))
    });
    own.map(|event| 1 + event.data["series"]["count"].as_u64().unwrap_or(0))
        .sum()
}

fn changed(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let grown = after
        .iter()
        .filter(|(labels, count)| before.get(*labels) != Some(count));
    grown.map(|(labels, _)| labels.clone()).collect()
}

impl OperatorProcess {
    fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let fields: Vec<&str> = stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .split(' ')
            .collect();
        let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / 100.0
    }

    fn memory_mib(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("a number") / 1_024
    }
}
