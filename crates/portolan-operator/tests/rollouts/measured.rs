//! Releases judged by a real Prometheus that scrapes the metrics of a mesh, whose requests follow the routes of the cluster.

use std::sync::Arc;

use portolan_prometheus::{Prometheus as Server, ServerSettings};
use portolan_testbed::cluster::Follower;
use portolan_testbed::{Behaviour, Mesh, MeshSetup, Prometheus, PrometheusSetup};
use serde_json::json;

use crate::bed::{Bed, record, spec_with};

fn failing(errors: f64) -> Behaviour {
    Behaviour {
        errors,
        ..Behaviour::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_measurements_promote_hold_and_roll_back() {
    let Some(bed) = Bed::without_operator("measured").await else {
        return;
    };
    let setup = MeshSetup {
        rate: 2_000.0,
        ..MeshSetup::default()
    };
    let mesh = Arc::new(Mesh::start(setup));
    let targets_url = Some(mesh.targets_url());
    let setup = PrometheusSetup {
        targets_url,
        ..PrometheusSetup::default()
    };
    let Some(mut prometheus) = Prometheus::start(&setup) else {
        return;
    };
    let _follower = Follower::start(bed.client.clone(), &bed.namespace, Arc::clone(&mesh));
    let server = Server::new(ServerSettings::new(prometheus.url())).expect("a server");
    let cluster = bed.connect().await;
    let _operator = bed.operator_with(cluster, Arc::new(server), None, None);
    let fields = json!({
        "strategy": {"weights": [50], "stepInterval": "2s", "soak": "2s"},
        "analysis": {"interval": "2s"},
    });
    for image in ["web:1", "web:2", "web:4"] {
        mesh.set_behaviour(image, failing(0.002));
    }
    mesh.set_behaviour("web:3", failing(0.2));
    bed.make_stable(spec_with("web:1", &fields)).await;

    bed.release("web:2").await;
    bed.happened("Promoted").await;
    let status = bed.reach("Stable").await;
    assert_eq!(status["stable"]["slot"], "b");

    bed.release("web:3").await;
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(message.contains("requests were bad"), "{message}");

    prometheus.stop();
    bed.release("web:4").await;
    bed.wait("NoData", |status| status["hold"]["reason"] == "NoData")
        .await;
    prometheus.start_again();
    bed.wait("the second promotion", |status| {
        status["phase"] == "Stable" && status["stable"]["slot"] == "a"
    })
    .await;
    bed.end().await;
}
