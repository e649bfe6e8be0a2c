//! Releases judged by a real Prometheus that scrapes the metrics of a mesh, whose requests follow the routes of the cluster.

use std::sync::Arc;

use portolan_prometheus::{Prometheus as Server, ServerSettings};
use portolan_testbed::cluster::Follower;
use portolan_testbed::{Behaviour, Mesh, MeshSetup, Prometheus, PrometheusSetup};
use serde_json::{Value, json};

use crate::bed::{Bed, Running, record, spec_with};

/// A bed whose measurements are real.
struct Measured {
    bed: Bed,
    mesh: Arc<Mesh>,
    prometheus: Prometheus,
    _follower: Follower,
    _operator: Running,
}

impl Measured {
    async fn start(name: &str) -> Option<Self> {
        let bed = Bed::without_operator(name).await?;
        let setup = MeshSetup {
            rate: 2_000.0,
            ..MeshSetup::default()
        };
        let mesh = Arc::new(Mesh::start(setup));
        let setup = PrometheusSetup {
            targets_urls: vec![mesh.targets_url()],
            ..PrometheusSetup::default()
        };
        let prometheus = tokio::task::spawn_blocking(move || Prometheus::start(&setup));
        let prometheus = prometheus.await.expect("no panic")?;
        let follower = Follower::start(bed.client.clone(), &[&bed.namespace], Arc::clone(&mesh));
        let server = Server::new(ServerSettings::new(prometheus.url())).expect("a server");
        let operator = bed.operator_with(bed.connect().await, Arc::new(server), None, None);
        Some(Self {
            bed,
            mesh,
            prometheus,
            _follower: follower,
            _operator: operator,
        })
    }
}

fn failing(errors: f64) -> Behaviour {
    Behaviour {
        errors,
        ..Behaviour::default()
    }
}

fn fields() -> Value {
    json!({
        "strategy": {"weights": [50], "stepInterval": "2s", "soak": "2s"},
        "analysis": {"interval": "2s"},
    })
}

async fn real_measurements_promote_and_roll_back() {
    let Some(measured) = Measured::start("measured").await else {
        return;
    };
    let (bed, mesh) = (&measured.bed, &measured.mesh);
    for image in ["web:1", "web:2"] {
        mesh.set_behaviour(image, failing(0.002));
    }
    mesh.set_behaviour("web:3", failing(0.2));
    bed.make_stable(spec_with("web:1", &fields())).await;

    bed.release("web:2").await;
    let promoted = bed.happened("Promoted").await;
    assert_eq!(
        promoted["evidence"][0]["countedBy"], "source",
        "{promoted:#}"
    );
    let status = bed.reach("Stable").await;
    assert_eq!(status["stable"]["slot"], "b");

    bed.release("web:3").await;
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(message.contains("requests were bad"), "{message}");
    measured.bed.end().await;
}

/// A server that does not answer says nothing about a revision: it holds, and goes on when there are answers again.
async fn a_release_holds_while_prometheus_is_down_and_then_goes_on() {
    let Some(mut measured) = Measured::start("down").await else {
        return;
    };
    measured
        .bed
        .make_stable(spec_with("web:1", &fields()))
        .await;
    measured.prometheus.stop();
    let bed = &measured.bed;
    bed.release("web:2").await;
    let held = bed
        .wait("NoData", |status| status["hold"]["reason"] == "NoData")
        .await;
    assert_eq!(held["weight"], 50);
    measured.prometheus.start_again();
    let bed = &measured.bed;
    bed.wait("the promotion", |status| {
        status["phase"] == "Stable" && status["stable"]["slot"] == "b"
    })
    .await;
    measured.bed.end().await;
}

/// What hits both revisions is no fault of the new one; what stops reaching them is no fault either.
async fn an_incident_on_both_and_a_time_without_requests_are_not_blamed_on_the_new_revision() {
    let Some(measured) = Measured::start("incident").await else {
        return;
    };
    let (bed, mesh) = (&measured.bed, &measured.mesh);
    mesh.set_behaviour("web:1", failing(0.002));
    mesh.set_behaviour("web:2", failing(0.002));
    let mut fields = fields();
    fields["strategy"]["weights"] = json!([10, 50]);
    bed.make_stable(spec_with("web:1", &fields)).await;
    mesh.change(|setup| setup.incident = 0.3);
    bed.release("web:2").await;
    bed.happened("Started").await;
    // Two intervals with it, and it ends while the release is on its way.
    bed.wait("requests of the incident", |status| {
        let seen = &status["canary"]["metrics"]["errors"]["evidence"]["canaryBad"];
        seen.as_u64().is_some_and(|bad| bad > 50)
    })
    .await;
    mesh.change(|setup| (setup.incident, setup.rate) = (0.0, 0.0));
    let held = bed
        .wait("NoTraffic", |status| {
            matches!(
                status["hold"]["reason"].as_str(),
                Some("NoTraffic" | "Inconclusive")
            ) && status["phase"] == "Holding"
        })
        .await;
    assert!(held["weight"].as_u64().is_some_and(|weight| weight <= 50));
    mesh.change(|setup| setup.rate = 2_000.0);
    bed.happened("Promoted").await;
    let status = bed.reach("Stable").await;
    assert!(record(&status, "RolledBack").is_none(), "{status:#}");
    measured.bed.end().await;
}

async fn a_slower_revision_is_rolled_back_and_one_as_fast_is_not() {
    let Some(measured) = Measured::start("latency").await else {
        return;
    };
    let (bed, mesh) = (&measured.bed, &measured.mesh);
    let slow = |slow: f64| Behaviour {
        slow,
        ..Behaviour::default()
    };
    mesh.set_behaviour("web:1", slow(0.02));
    mesh.set_behaviour("web:2", slow(0.3));
    mesh.set_behaviour("web:3", slow(0.02));
    let mut fields = fields();
    fields["analysis"]["metrics"] = json!([
        {"name": "slow", "builtin": "istio-latency", "over": "500ms"},
        {"name": "errors", "builtin": "istio-requests"},
    ]);
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.release("web:2").await;
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("slow: "), "{message}");
    bed.release("web:3").await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    measured.bed.end().await;
}

crate::cases!(
    real_measurements_promote_and_roll_back,
    a_release_holds_while_prometheus_is_down_and_then_goes_on,
    an_incident_on_both_and_a_time_without_requests_are_not_blamed_on_the_new_revision,
    a_slower_revision_is_rolled_back_and_one_as_fast_is_not,
);
