//! When there is no news, nothing is written.

use std::time::Duration;

use portolan_cluster::LeaseOptions;
use serde_json::json;

use crate::bed::{Bed, spec, spec_with};

/// Also for an operator that has just started, and of another version.
async fn an_idle_rollout_costs_no_write_and_a_new_operator_starts_nothing() {
    let Some(mut bed) = Bed::start("idle").await else {
        return;
    };
    let quantities = json!({"template": {"spec": {"containers": [{
        "name": "web", "image": "web:1", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
    }]}}});
    bed.make_stable(spec_with("web:1", &quantities)).await;
    bed.wait("all told", |status| {
        let last = status["history"]
            .as_array()
            .and_then(|history| history.last());
        last.is_some_and(|last| last["number"] == status["delivered"])
    })
    .await;
    bed.stop_operators();
    let before = bed.get().await.expect("the rollout");
    let cluster = bed.connect().await;
    let running = bed.operator_on(cluster.clone(), None, None);
    // Long enough for several looks, each asked for by a change that is no news.
    for number in 0..5 {
        bed.change(json!({"metadata": {"labels": {"look": format!("{number}")}}}))
            .await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let after = bed.get().await.expect("the rollout");
    assert_eq!(before["status"], after["status"]);
    let writes = cluster.writes();
    // A Deployment whose quantities the API server writes differently is applied once, which changes nothing.
    assert!(writes <= 1, "{writes} writes");
    bed.change(json!({"metadata": {"labels": {"look": "again"}}}))
        .await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(cluster.writes(), writes);
    running.stop().await;
    bed.end().await;
}

async fn of_two_operators_one_acts_and_the_other_follows_when_it_ends() {
    let Some(bed) = Bed::without_operator("two").await else {
        return;
    };
    let lease = |holder: &str| LeaseOptions {
        namespace: bed.namespace.clone(),
        name: "operator".to_owned(),
        holder: holder.to_owned(),
        duration: Duration::from_secs(3),
    };
    let (one_cluster, other_cluster) = (bed.connect().await, bed.connect().await);
    let one = bed.operator_on(one_cluster.clone(), Some(lease("one")), None);
    bed.make_stable(spec("web:1")).await;
    let other = bed.operator_on(other_cluster.clone(), Some(lease("other")), None);
    bed.release("web:2").await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    assert!(one_cluster.writes() > 0);
    assert_eq!(other_cluster.writes(), 0, "the second operator wrote");
    one.stop().await;
    bed.release("web:3").await;
    bed.wait("the second promotion", |status| {
        status["phase"] == "Stable" && status["stable"]["slot"] == "a"
    })
    .await;
    assert!(other_cluster.writes() > 0);
    other.stop().await;
    bed.end().await;
}

crate::cases!(
    an_idle_rollout_costs_no_write_and_a_new_operator_starts_nothing,
    of_two_operators_one_acts_and_the_other_follows_when_it_ends
);
