//! Releases: good ones, bad ones, and ones that nobody can judge.

use portolan_rollout::Measurement;
use portolan_testbed::cluster::eventually;
use serde_json::json;

use crate::bed::{Bed, record, spec, spec_with};

async fn a_healthy_release_is_promoted_step_by_step() {
    let Some(bed) = Bed::start("healthy").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    bed.reach_shares((100, 0)).await;
    bed.release("web:2").await;
    bed.happened("Promoted").await;
    let status = bed.reach("Stable").await;
    assert_eq!(status["stable"]["slot"], "b");
    bed.reach_shares((0, 100)).await;
    let steps: Vec<_> = status["history"]
        .as_array()
        .expect("a history")
        .iter()
        .map(|record| record["reason"].clone())
        .collect();
    for reason in [
        "Initialized",
        "Preparing",
        "Started",
        "Raised",
        "Promoting",
        "Promoted",
        "Finished",
    ] {
        assert!(
            steps.contains(&json!(reason)),
            "{reason} is missing: {steps:?}"
        );
    }
    bed.told("Promoted", "every metric is proven").await;
    // No window overlaps another, but for one whose answer was lost and that was asked for again.
    let windows = bed.mesh.windows();
    assert!(
        windows
            .windows(2)
            .all(|pair| pair[0].1 <= pair[1].0 || pair[0].0 == pair[1].0),
        "{windows:?}"
    );
    let ready = status["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .find(|condition| condition["type"] == "Ready");
    assert_eq!(ready.expect("a condition")["status"], "True");
    // The old pods go when their time is over.
    let deployments = bed.deployments();
    eventually("the old pods", || async {
        let old = deployments.get("web-a").await.expect("the old slot");
        old.data["spec"]["replicas"] == 0
    })
    .await;
    bed.end().await;
}

async fn a_release_with_errors_is_rolled_back_with_its_numbers_and_retried_by_a_token() {
    let Some(bed) = Bed::start("errors").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    bed.mesh.fail("web:2", 200);
    bed.release("web:2").await;
    let status = bed.reach("RolledBack").await;
    bed.reach_shares((100, 0)).await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("errors: ") && message.contains("requests were bad"),
        "{message}"
    );
    bed.told("RolledBack", "requests were bad").await;
    // It is not tried again by itself, and it is when somebody asks for it.
    bed.mesh.fail("web:2", 0);
    bed.token("retry").await;
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    bed.end().await;
}

async fn pods_that_never_get_ready_are_rolled_back_without_any_traffic() {
    let Some(bed) = Bed::start("unready").await else {
        return;
    };
    let impatient = json!({"strategy": {"progressDeadline": "10s"}});
    bed.make_stable(spec_with("web:1", &impatient)).await;
    bed.kubelet.fail_image("web:2");
    bed.release("web:2").await;
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("not ready within 10s") && message.contains("CrashLoopBackOff"),
        "{message}"
    );
    let shares: Vec<_> = bed
        .observer
        .versions()
        .iter()
        .filter(|version| version.kind == "VirtualService")
        .filter_map(|version| crate::bed::shares_of(&version.object.as_ref()?["spec"]))
        .collect();
    assert!(
        shares.iter().all(|shares| *shares == (100, 0)),
        "{shares:?}"
    );
    bed.end().await;
}

async fn a_crash_loop_under_traffic_takes_it_away_and_rolls_back() {
    let Some(bed) = Bed::start("crash").await else {
        return;
    };
    let slow = json!({"strategy": {"stepInterval": "60s", "progressDeadline": "60s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    eventually("traffic", || async { bed.shares().await == Some((90, 10)) }).await;
    bed.kubelet.fail_image("web:2");
    let status = bed.reach("RolledBack").await;
    let why = record(&status, "RolledBack").expect("a record");
    let message = why["message"].as_str().unwrap_or_default();
    assert!(message.contains("CrashLoopBackOff"), "{message}");
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

async fn without_traffic_or_metrics_a_release_holds_and_then_goes_on() {
    let Some(bed) = Bed::start("blind").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    bed.mesh
        .answer(Some(Measurement::Down("connection refused".to_owned())));
    bed.release("web:2").await;
    let held = bed
        .wait("NoData", |status| {
            let message = status["hold"]["message"].as_str().unwrap_or_default();
            status["hold"]["reason"] == "NoData" && message.contains("connection refused")
        })
        .await;
    assert_eq!(held["weight"], 10);
    bed.mesh.answer(Some(Measurement::Nothing));
    let held = bed
        .wait("NoTraffic", |status| {
            status["hold"]["reason"] == "NoTraffic"
        })
        .await;
    assert_eq!(held["weight"], 10);
    bed.mesh.answer(None);
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    bed.end().await;
}

async fn tracked_configuration_is_released_as_a_revision_and_its_content_stays_secret() {
    let Some(bed) = Bed::start("config").await else {
        return;
    };
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": bed.namespace},
            "stringData": {"key": value},
        })
    };
    crate::bed::create(&bed.client, "", "v1", "Secret", &secret("correct-horse-1")).await;
    let uses =
        json!([{"name": "web", "image": "web:1", "envFrom": [{"secretRef": {"name": "keys"}}]}]);
    bed.make_stable(spec_with(
        "web:1",
        &json!({"template": {"spec": {"containers": uses}}}),
    ))
    .await;
    let first = bed.status().await["target"]
        .as_str()
        .expect("a revision")
        .to_owned();
    let deployment = bed.deployments().get("web-a").await.expect("a slot");
    let copy = deployment.data["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"].clone();
    assert_eq!(copy, json!(format!("keys-{first}")));
    let patch = json!({"stringData": {"key": "battery-staple-2"}});
    let secrets = bed.api("", "v1", "Secret");
    secrets
        .patch(
            "keys",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(patch),
        )
        .await
        .expect("changed");
    bed.wait("the promotion", |status| {
        status["phase"] == "Stable" && status["target"] != json!(first)
    })
    .await;
    let old = secrets
        .get(&format!("keys-{first}"))
        .await
        .expect("the copy of the old revision");
    assert_eq!(old.data["immutable"], true);
    // Neither the status nor an event nor a revision tells the content, in whatever encoding.
    let mut told = bed.get().await.expect("the rollout").to_string();
    for (group, version, kind) in [
        ("events.k8s.io", "v1", "Event"),
        ("apps", "v1", "ControllerRevision"),
        ("apps", "v1", "Deployment"),
    ] {
        let all = bed
            .api(group, version, kind)
            .list(&kube::api::ListParams::default())
            .await
            .expect("a list");
        told.push_str(&serde_json::to_string(&all.items).expect("JSON"));
    }
    for hidden in [
        "correct-horse",
        "battery-staple",
        "Y29ycmVjdC1ob3JzZS0x",
        "YmF0dGVyeS1zdGFwbGUtMg",
    ] {
        assert!(!told.contains(hidden), "{hidden} is told");
    }
    bed.end().await;
}

crate::cases!(
    a_healthy_release_is_promoted_step_by_step,
    a_release_with_errors_is_rolled_back_with_its_numbers_and_retried_by_a_token,
    pods_that_never_get_ready_are_rolled_back_without_any_traffic,
    a_crash_loop_under_traffic_takes_it_away_and_rolls_back,
    without_traffic_or_metrics_a_release_holds_and_then_goes_on,
    tracked_configuration_is_released_as_a_revision_and_its_content_stays_secret
);
