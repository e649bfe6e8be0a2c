//! What people ask for while a release is on its way.

use portolan_testbed::HttpServer;
use portolan_testbed::Reply;
use portolan_testbed::cluster::eventually;
use serde_json::{Value, json};

use crate::bed::{Bed, record, spec, spec_with};

/// Steps so long that the test decides when they end.
fn slow() -> Value {
    json!({"strategy": {"stepInterval": "60s", "progressDeadline": "60s"}})
}

async fn a_newer_release_takes_the_place_of_one_on_its_way_and_a_revert_ends_it() {
    let Some(bed) = Bed::start("newer").await else {
        return;
    };
    bed.make_stable(spec_with("web:1", &slow())).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    bed.release("web:3").await;
    bed.happened("Superseded").await;
    bed.wait("the next start", |status| {
        status["phase"] == "Shifting"
            && record(status, "Started").is_some_and(|started| {
                started["number"].as_u64()
                    > record(status, "Superseded").and_then(|record| record["number"].as_u64())
            })
    })
    .await;
    let image = |deployment: &kube::api::DynamicObject| {
        deployment.data["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(
        image(&bed.deployments().get("web-b").await.expect("a slot")),
        "web:3"
    );
    bed.release("web:1").await;
    bed.happened("Reverted").await;
    bed.reach("Stable").await;
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

async fn force_promotes_a_release_on_its_way_and_undo_takes_it_back() {
    let Some(bed) = Bed::start("force").await else {
        return;
    };
    let kept = json!({"strategy": {"stepInterval": "60s", "progressDeadline": "60s", "rollbackWindow": "60s"}});
    bed.make_stable(spec_with("web:1", &kept)).await;
    bed.mesh.fail("web:2", 500);
    bed.mesh
        .answer(Some(portolan_rollout::Measurement::Nothing));
    bed.release("web:2").await;
    bed.happened("Started").await;
    bed.token("force").await;
    let promoted = bed.happened("Promoted").await;
    assert_eq!(promoted["actor"], "token");
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    bed.token("undo").await;
    bed.wait("the way back", |status| {
        status["phase"] == "RolledBack" && status["stable"]["slot"] == "a"
    })
    .await;
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

async fn a_change_of_replicas_scales_and_starts_nothing() {
    let Some(bed) = Bed::start("replicas").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    let before = bed.status().await["history"].clone();
    bed.change(json!({"spec": {"replicas": 3}})).await;
    bed.wait("three pods", |status| status["replicas"] == 3)
        .await;
    let after = bed.status().await;
    assert_eq!(after["history"], before);
    assert_eq!(after["phase"], "Stable");
    bed.end().await;
}

/// A rollout whose steps and soak last until the test ends them.
async fn bed_for_abort(name: &str) -> Option<Bed> {
    let bed = Bed::start(name).await?;
    let kept =
        json!({"strategy": {"stepInterval": "60s", "soak": "60s", "progressDeadline": "60s"}});
    bed.make_stable(spec_with("web:1", &kept)).await;
    Some(bed)
}

async fn abort_and_end(bed: Bed) {
    bed.token("abort").await;
    bed.happened("Aborted").await;
    bed.reach("RolledBack").await;
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

async fn abort_goes_back_while_pods_start() {
    let Some(bed) = bed_for_abort("abort-start").await else {
        return;
    };
    bed.kubelet.fail_image("web:2");
    bed.release("web:2").await;
    bed.reach("Preparing").await;
    abort_and_end(bed).await;
}

async fn abort_goes_back_from_a_step_and_is_told_when_there_is_nothing_to_go_back_from() {
    let Some(bed) = bed_for_abort("abort-step").await else {
        return;
    };
    bed.release("web:2").await;
    bed.happened("Started").await;
    bed.token("abort").await;
    bed.happened("Aborted").await;
    bed.reach("RolledBack").await;
    bed.token("abort").await;
    bed.told("TokenIgnored", "no new revision is on its way")
        .await;
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

async fn abort_goes_back_while_the_release_is_held() {
    let Some(bed) = bed_for_abort("abort-held").await else {
        return;
    };
    bed.release("web:2").await;
    bed.happened("Started").await;
    bed.token("pause").await;
    bed.reach("Holding").await;
    abort_and_end(bed).await;
}

/// While it grows to full size: half of its pods find no room.
async fn abort_goes_back_from_a_promotion() {
    let Some(bed) = bed_for_abort("abort-promotion").await else {
        return;
    };
    bed.change(json!({"spec": {"replicas": 4}})).await;
    bed.wait("four pods", |status| status["replicas"] == 4)
        .await;
    bed.kubelet.set_room("web:2", 2);
    bed.release("web:2").await;
    bed.happened("Started").await;
    bed.token("promote").await;
    bed.wait("no room for all", |status| {
        status["phase"] == "Promoting" && status["hold"]["reason"] == "NoCapacity"
    })
    .await;
    abort_and_end(bed).await;
}

/// After the promotion, while it is watched.
async fn abort_goes_back_from_the_soak() {
    let Some(bed) = bed_for_abort("abort-soak").await else {
        return;
    };
    bed.change(json!({"spec": {"strategy": {"stepInterval": "1s"}}}))
        .await;
    bed.release("web:2").await;
    bed.reach("Soaking").await;
    abort_and_end(bed).await;
}

/// A gate that hangs holds the release; one that agrees lets it go on.
async fn a_gate_that_hangs_holds_and_people_are_told() {
    let Some(bed) = Bed::start("gate").await else {
        return;
    };
    let opens = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_open = std::sync::Arc::clone(&opens);
    let gate = HttpServer::start(move |_| {
        if !is_open.load(std::sync::atomic::Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
        Reply::ok("yes")
    });
    let people = HttpServer::start(|_| Reply::ok("ok"));
    let url = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "slack", "namespace": bed.namespace}, "stringData": {"url": format!("{}/services/T0/B0/secret-path", people.url())}});
    crate::bed::create(&bed.client, "", "v1", "Secret", &url).await;
    let fields = json!({
        "gates": [{"before": "start", "webhook": {"url": gate.url(), "timeout": "1s"}}],
        "notifications": [
            {"type": "slack", "urlFrom": {"name": "slack", "key": "url"}, "phases": ["Soaking"]},
            {"type": "webhook", "url": format!("{}/all", people.url())},
            {"type": "teams", "urlFrom": {"name": "slack", "key": "missing"}, "phases": ["Soaking"]},
        ],
    });
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.release("web:2").await;
    let held = bed
        .wait("the gate", |status| {
            status["hold"]["reason"] == "Gate"
                && status["hold"]["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("no answer within"))
        })
        .await;
    assert_eq!(held["phase"], "Preparing");
    bed.reach_shares((100, 0)).await;
    opens.store(true, std::sync::atomic::Ordering::SeqCst);
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    eventually("the messages", || async {
        let requests = people.requests();
        let slack = requests
            .iter()
            .filter(|request| request.target.starts_with("/services/"))
            .count();
        slack == 1 && requests.iter().any(|request| request.target == "/all")
    })
    .await;
    bed.told("NotificationFailed", "Secret slack has no key missing")
        .await;
    let all = bed
        .api("events.k8s.io", "v1", "Event")
        .list(&kube::api::ListParams::default())
        .await
        .expect("events");
    let told = serde_json::to_string(&all.items).expect("JSON") + &bed.status().await.to_string();
    assert!(!told.contains("secret-path"), "the address is told");
    bed.end().await;
}

crate::cases!(
    a_newer_release_takes_the_place_of_one_on_its_way_and_a_revert_ends_it,
    force_promotes_a_release_on_its_way_and_undo_takes_it_back,
    a_change_of_replicas_scales_and_starts_nothing,
    abort_goes_back_while_pods_start,
    abort_goes_back_from_a_step_and_is_told_when_there_is_nothing_to_go_back_from,
    abort_goes_back_while_the_release_is_held,
    abort_goes_back_from_a_promotion,
    abort_goes_back_from_the_soak,
    a_gate_that_hangs_holds_and_people_are_told
);
