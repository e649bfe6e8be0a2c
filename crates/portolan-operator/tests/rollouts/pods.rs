//! Pods that do not run: no image, never ready, no room, and one among many that is bad.

use portolan_testbed::cluster::PodFault;
use serde_json::json;

use crate::bed::{Bed, record, spec, spec_with};

async fn an_image_that_cannot_be_had_is_rolled_back_with_that_reason() {
    never_runs("no-image", PodFault::ImagePull, "ImagePullBackOff").await;
}

async fn pods_that_run_and_never_get_ready_are_rolled_back() {
    never_runs("never-ready", PodFault::NeverReady, "not ready within 10s").await;
}

async fn never_runs(name: &str, fault: PodFault, reason: &str) {
    let Some(bed) = Bed::start(name).await else {
        return;
    };
    let impatient = json!({"strategy": {"progressDeadline": "10s"}});
    bed.make_stable(spec_with("web:1", &impatient)).await;
    bed.kubelet.fail_image_with("web:2", fault);
    bed.release("web:2").await;
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(message.contains(reason), "{message}");
    bed.reach_shares((100, 0)).await;
    bed.told("RolledBack", reason).await;
    bed.end().await;
}

/// No room is no fault of the revision: it is waited for, and the release goes on when there is some.
async fn a_release_waits_for_room_and_goes_on() {
    let Some(bed) = Bed::start("room").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    bed.kubelet.set_room("web:2", 0);
    bed.release("web:2").await;
    bed.wait("no room", |status| status["hold"]["reason"] == "NoCapacity")
        .await;
    bed.reach_shares((100, 0)).await;
    bed.kubelet.set_room("web:2", 10);
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    bed.end().await;
}

/// A single bad pod of three is replaced once; a second one is the revision's fault.
async fn one_bad_pod_is_replaced_and_a_second_one_rolls_back() {
    let Some(bed) = Bed::start("one-pod").await else {
        return;
    };
    let many = json!({"replicas": 6, "strategy": {"weights": [50], "stepInterval": "3s"}});
    bed.make_stable(spec_with("web:1", &many)).await;
    bed.mesh.fail_pods("web:2", 1, 500);
    bed.release("web:2").await;
    let replaced = bed.happened("OnePod").await;
    let message = replaced["message"].as_str().unwrap_or_default();
    assert!(message.contains("speaks against it"), "{message}");
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    assert!(
        why["message"]
            .as_str()
            .is_some_and(|text| text.contains("requests were bad")),
        "{why:#}"
    );
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

crate::cases!(
    an_image_that_cannot_be_had_is_rolled_back_with_that_reason,
    pods_that_run_and_never_get_ready_are_rolled_back,
    a_release_waits_for_room_and_goes_on,
    one_bad_pod_is_replaced_and_a_second_one_rolls_back,
);
