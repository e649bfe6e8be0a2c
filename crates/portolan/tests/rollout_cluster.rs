//! `portolan rollout` on a real cluster: what is read from a status, what is written for the operator, and what comes of it.

mod portolan;
mod rollout_bed;

use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use portolan::portolan;
use portolan_testbed::cluster::eventually;
use portolan_testbed::{Behaviour, HttpServer, Reply};
use rollout_bed::{Bed, OperatorProcess, Traffic};
use serde_json::{Value, json};

/// Its operator is the test, which writes statuses by hand.
const BY_HAND: &str = "by-hand";

fn rollout(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "IstioCanaryDeployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2,
            "service": {"port": 80},
            "template": {"spec": {"containers": [{"name": "app", "image": image}, {"name": "side", "image": "side:1"}]}},
            "strategy": {
                "weights": [50], "stepInterval": "2s", "soak": "2s", "rollbackWindow": "60s", "drain": "1s",
            },
            "analysis": {"interval": "2s", "warmup": "0s"},
        },
    })
}

fn status(phase: &str, outcome: Option<&str>) -> Value {
    let record = json!({
        "number": 1, "at": "2026-01-31T12:00:00Z", "from": "Shifting", "to": phase, "revision": "v1-new", "weight": 0,
        "outcome": outcome, "reason": "Worse", "message": "errors: 30 of 100 requests were bad", "actor": "operator",
        "evidence": [{"name": "errors", "canary": {"total": 100, "bad": 30}, "stable": {"total": 900, "bad": 1}, "lnRollback": 9.0, "lnPromote": -9.0, "excess": 29.0, "countedBy": "destination"}],
    });
    json!({
        "schema": 1, "observedGeneration": 1, "phase": phase, "weight": 0, "target": "v1-new",
        "stable": {"revision": if outcome == Some("Promoted") { "v1-new" } else { "v1-old" }, "slot": "a"},
        "history": [record],
    })
}

async fn write_status(bed: &Bed, status: &Value) {
    let api = bed.rollouts(BY_HAND);
    let params = PatchParams::default();
    // What is not named goes.
    let empty = json!({"status": null});
    api.patch_status("web", &params, &Patch::Merge(empty))
        .await
        .expect("emptied");
    let patch = json!({"status": status});
    api.patch_status("web", &params, &Patch::Merge(patch))
        .await
        .expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_commands_do_on_a_real_cluster_what_they_say() {
    let Some(bed) = Bed::start().await else {
        return;
    };
    for name in [BY_HAND, "shop"] {
        bed.namespace(name).await;
    }
    bed.create(&rollout(BY_HAND, "web", "web:1")).await;
    the_exit_code_says_whether_the_newest_revision_made_it(&bed).await;
    rollouts_are_listed_shown_and_explained(&bed).await;
    commands_are_tokens_and_never_change_the_spec(&bed).await;
    images_are_set_and_pods_started_again(&bed).await;
    a_rollout_that_cannot_be_read_does_not_hide_the_others(&bed).await;

    let Some(traffic) = Traffic::start(&bed, &["shop"], 8_000.0) else {
        return;
    };
    let url = traffic.prometheus.url();
    let operator = bed.operator(&["--prometheus", &url, "--namespace", "shop"]);
    a_release_is_followed_from_the_terminal(&bed, &traffic).await;
    content_of_secrets_is_told_nowhere(&bed, &operator).await;
    a_deployment_is_adopted_and_released_again_without_an_outage(&bed).await;
}

/// The API server accepts any nesting in a pod template; readers end at some depth.
async fn a_rollout_that_cannot_be_read_does_not_hide_the_others(bed: &Bed) {
    let nested = format!("{}1{}", "{\"a\":".repeat(300), "}".repeat(300));
    let body = rollout(BY_HAND, "deep", "web:1").to_string();
    let body = body.replacen("\"image\":", &format!("\"deep\":{nested},\"image\":"), 1);
    let path = format!("/apis/portolan.dev/v1alpha1/namespaces/{BY_HAND}/istiocanarydeployments");
    let request = http::Request::post(&path).header("content-type", "application/json");
    let request = request.body(body.into_bytes()).expect("a request");
    bed.client.request_text(request).await.expect("created");

    let answer = bed.rollout(&["list", "-n", BY_HAND]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stdout.contains("web"), "{answer}");
    let told = "by-hand/deep is not listed: its fields are nested too deep to be read";
    assert!(answer.stderr.contains(told), "{answer}");

    let request = http::Request::delete(format!("{path}/deep"));
    let request = request.body(Vec::new()).expect("a request");
    bed.client.request_text(request).await.expect("deleted");
}

async fn the_exit_code_says_whether_the_newest_revision_made_it(bed: &Bed) {
    let run = |args: &[&str]| bed.rollout(&[args, &["-n", BY_HAND]].concat());
    write_status(bed, &status("Stable", Some("Promoted"))).await;
    let answer = run(&["status", "web", "--wait", "-o", "json"]);
    assert_eq!(answer.code, 0, "{answer}");
    let told: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(
        (&told["kind"], &told["reason"]),
        (&json!("RolloutStatus"), &json!("Stable"))
    );

    write_status(bed, &status("RolledBack", Some("RolledBack"))).await;
    let answer = bed.rollout(&["status", "by-hand/web"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("RolledBack"), "{answer}");
    assert!(
        answer
            .stdout
            .contains("errors: 30 of 100 requests were bad"),
        "{answer}"
    );

    write_status(bed, &status("Shifting", None)).await;
    assert_eq!(run(&["status", "web"]).code, 0);
    let answer = run(&["status", "web", "--wait", "--timeout", "1"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("not decided after 1 seconds"),
        "{answer}"
    );

    let mut newer = status("Stable", Some("Promoted"));
    newer["schema"] = json!(99);
    write_status(bed, &newer).await;
    let answer = run(&["status", "web"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("a newer operator wrote it"),
        "{answer}"
    );
    let answer = run(&["status", "nobody"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer
            .stderr
            .contains("there is no IstioCanaryDeployment `nobody` in namespace `by-hand`"),
        "{answer}"
    );
}

async fn rollouts_are_listed_shown_and_explained(bed: &Bed) {
    let run = |args: &[&str]| bed.rollout(&[args, &["-n", BY_HAND]].concat());
    write_status(bed, &status("RolledBack", Some("RolledBack"))).await;
    let listed = bed.rollout(&["list", "-A"]);
    assert_eq!(listed.code, 0, "{listed}");
    assert!(
        listed.stdout.contains(BY_HAND) && listed.stdout.contains("RolledBack"),
        "{listed}"
    );
    let names = run(&["list", "-o", "name"]);
    assert_eq!(names.stdout, "istiocanarydeployment.portolan.dev/web\n");
    let history = run(&["history", "web"]);
    assert!(
        history.stdout.contains("v1-new")
            && history.stdout.contains("30 bad of 100")
            && history.stdout.contains("(reporter \"destination\")"),
        "{history}"
    );
    let tree = run(&["get", "web"]);
    assert_eq!(tree.code, 0, "{tree}");
    assert!(tree.stdout.starts_with("by-hand/web  RolledBack"), "{tree}");
    let explained = run(&["explain", "web"]);
    assert!(
        explained.stdout.contains("stable is v1-old in slot a"),
        "{explained}"
    );
}

async fn commands_are_tokens_and_never_change_the_spec(bed: &Bed) {
    let api = bed.rollouts(BY_HAND);
    write_status(bed, &status("Shifting", None)).await;
    let before = api.get("web").await.expect("the rollout");
    for command in [
        "promote", "abort", "retry", "pause", "resume", "force", "undo",
    ] {
        let answer = bed.rollout(&[command, "by-hand/web", "--token", "once"]);
        assert_eq!(answer.code, 0, "{answer}");
        let now = api.get("web").await.expect("the rollout");
        let annotations = now.metadata.annotations.unwrap_or_default();
        let token = annotations.get(&format!("portolan.dev/{command}"));
        assert_eq!(token.map(String::as_str), Some("once"), "{command}");
    }
    let after = api.get("web").await.expect("the rollout");
    assert_eq!(before.metadata.generation, after.metadata.generation);
    let answer = bed.rollout(&["release", "by-hand/web"]);
    assert_eq!(answer.code, 2, "a rollout is in progress: {answer}");
}

async fn images_are_set_and_pods_started_again(bed: &Bed) {
    let api = bed.rollouts(BY_HAND);
    write_status(bed, &status("Stable", Some("Promoted"))).await;
    let answer = bed.rollout(&["set", "image", "by-hand/web", "app=web:2"]);
    assert_eq!(answer.code, 0, "{answer}");
    let now = api.get("web").await.expect("the rollout");
    let containers =
        json!([{"name": "app", "image": "web:2"}, {"name": "side", "image": "side:1"}]);
    assert_eq!(
        now.data["spec"]["template"]["spec"]["containers"],
        containers
    );
    let wrong = bed.rollout(&["set", "image", "by-hand/web", "other=web:2"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert_eq!(bed.rollout(&["restart", "by-hand/web"]).code, 0);
    let restarted = api.get("web").await.expect("the rollout");
    assert!(restarted.metadata.generation > now.metadata.generation);
}

async fn a_release_is_followed_from_the_terminal(bed: &Bed, traffic: &Traffic) {
    let url = traffic.prometheus.url();
    for image in ["web:1", "web:2"] {
        let fine = Behaviour {
            errors: 0.002,
            ..Behaviour::default()
        };
        traffic.mesh.set_behaviour(image, fine);
    }
    let broken = Behaviour {
        errors: 0.3,
        ..Behaviour::default()
    };
    traffic.mesh.set_behaviour("web:3", broken);
    bed.create(&rollout("shop", "web", "web:1")).await;
    bed.wait(("shop", "web"), "Stable", |status| {
        status["phase"] == "Stable"
    })
    .await;

    // A good one: seen on its way, explained with numbers, and waited for.
    let set = bed.rollout(&["set", "image", "shop/web", "app=web:2"]);
    assert_eq!(set.code, 0, "{set}");
    bed.wait(("shop", "web"), "requests", |status| {
        let counted = status["canary"]["metrics"]["errors"]["evidence"]["canaryTotal"].as_u64();
        counted.is_some_and(|counted| counted > 0)
    })
    .await;
    assert_eq!(bed.rollout(&["pause", "shop/web"]).code, 0);
    // On a busy machine scrapes are missed now and then.
    let query = ["query", "shop/web", "--prometheus", &url, "--over", "5s"];
    let started = std::time::Instant::now();
    let queried = loop {
        let queried = bed.rollout(&query);
        if queried.code == 0 && queried.stdout.contains("`source`") {
            break queried;
        }
        assert!(started.elapsed().as_secs() < 60, "{queried}");
    };
    assert!(
        queried.stdout.contains("counted by reporter `source`"),
        "{queried}"
    );
    let explained = bed.rollout(&["explain", "shop/web"]);
    assert!(
        explained.stdout.contains("evidence for a rollback"),
        "{explained}"
    );
    assert!(
        explained
            .stdout
            .contains("counted by callers and gateways (reporter \"source\")"),
        "{explained}"
    );
    assert_eq!(bed.rollout(&["resume", "shop/web"]).code, 0);
    let ended = bed.rollout(&["status", "shop/web", "--wait", "--timeout", "90"]);
    assert_eq!(ended.code, 0, "{ended}");
    let history = bed.rollout(&["history", "shop/web", "-o", "json"]);
    let history: Value = serde_json::from_str(&history.stdout).expect("JSON");
    let reasons: Vec<&Value> = history["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["reason"])
        .collect();
    assert!(reasons.contains(&&json!("Promoted")), "{reasons:?}");
    let at = |reason: &str| {
        let items = history["items"].as_array().expect("items").iter();
        let mut found = items.filter(|item| item["reason"] == reason);
        found
            .next_back()
            .and_then(|item| item["at"].as_str())
            .expect("a time")
            .to_owned()
    };
    let replayed = bed.rollout(&[
        "replay",
        "shop/web",
        "--from",
        &at("Started"),
        "--to",
        &at("Promoted"),
        "--prometheus",
        &url,
    ]);
    // On a busy machine some intervals have no scrapes: then it says so, ends with 2, and may have too few for a proof.
    let is_proven = replayed.stdout.contains("errors: promote after");
    let is_whole = !replayed.stdout.contains("could not be read");
    assert_eq!(replayed.code, if is_whole { 0 } else { 2 }, "{replayed}");
    assert!(is_proven || !is_whole, "{replayed}");

    // A bad one: the exit code says so, and the reason has numbers.
    assert_eq!(
        bed.rollout(&["set", "image", "shop/web", "app=web:3"]).code,
        0
    );
    let ended = bed.rollout(&["status", "shop/web", "--wait", "--timeout", "90"]);
    assert_eq!(ended.code, 1, "{ended}");
    assert!(ended.stdout.contains("requests were bad"), "{ended}");
    let tree = bed.rollout(&["get", "shop/web"]);
    assert!(tree.stdout.starts_with("shop/web  RolledBack"), "{tree}");

    // People: paused, resumed and aborted.
    traffic.mesh.set_behaviour("web:3", Behaviour::default());
    assert_eq!(bed.rollout(&["retry", "shop/web"]).code, 0);
    bed.wait(("shop", "web"), "Shifting", |status| {
        status["phase"] == "Shifting"
    })
    .await;
    assert_eq!(bed.rollout(&["pause", "shop/web"]).code, 0);
    bed.wait(("shop", "web"), "Paused", |status| {
        status["hold"]["reason"] == "Paused"
    })
    .await;
    let paused = bed.rollout(&["explain", "shop/web"]);
    assert!(paused.stdout.contains("it waits (Paused)"), "{paused}");
    assert_eq!(bed.rollout(&["abort", "shop/web"]).code, 0);
    bed.wait(("shop", "web"), "RolledBack", |status| {
        status["phase"] == "RolledBack"
    })
    .await;
    assert_eq!(bed.rollout(&["force", "shop/web"]).code, 0);
    let forced = bed.rollout(&["status", "shop/web", "--wait", "--timeout", "90"]);
    assert_eq!(forced.code, 0, "{forced}");
    assert_eq!(bed.rollout(&["undo", "shop/web"]).code, 0);
    bed.wait(("shop", "web"), "the revision before", |status| {
        status["phase"] == "RolledBack" && status["hold"].is_null()
    })
    .await;
}

/// A Secret that pods use is released as a revision and rolled back; nobody is told what is in it, in whatever encoding.
async fn content_of_secrets_is_told_nowhere(bed: &Bed, operator: &OperatorProcess) {
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "shop"},
            "stringData": {"key": value, "settings.yaml": format!("nested:\n  password: {value}-nested\n")},
        })
    };
    bed.create(&secret("correct-horse-1")).await;
    let people = HttpServer::start(|_| Reply::ok("ok"));
    let hook = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook", "namespace": "shop"},
        "stringData": {"url": format!("{}/hooks/tr0ub4dor", people.url())},
    });
    bed.create(&hook).await;
    let mut vault = rollout("shop", "vault", "web:1");
    vault["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"secretRef": {"name": "keys"}}]);
    vault["spec"]["notifications"] =
        json!([{"type": "slack", "urlFrom": {"name": "hook", "key": "url"}}]);
    bed.create(&vault).await;
    bed.wait(("shop", "vault"), "Stable", |status| {
        status["phase"] == "Stable"
    })
    .await;
    let params = PatchParams::default();
    let secrets = bed.api(("", "v1", "Secret"), "shop");
    let changed = json!({"stringData": {"key": "battery-staple-2"}});
    secrets
        .patch("keys", &params, &Patch::Merge(changed))
        .await
        .expect("changed");
    bed.wait(("shop", "vault"), "the new content", |status| {
        status["stable"]["slot"] == "b"
    })
    .await;
    // A template that the API server refuses is told with its error, and with no value.
    let wrong = json!({"spec": {"template": {"spec": {"containers": [{"name": "Bad_Name", "image": "web:1", "env": [{"name": "A", "value": "hunter2-in-the-template"}]}]}}}});
    bed.rollouts("shop")
        .patch("vault", &params, &Patch::Merge(wrong))
        .await
        .expect("changed");
    bed.wait(("shop", "vault"), "the refusal", |status| {
        status.to_string().contains("InvalidTemplate")
    })
    .await;
    eventually("messages", || async { people.requests().len() >= 3 }).await;

    let mut told = operator.log();
    assert!(
        told.contains("vault"),
        "the log tells of it: {} bytes",
        told.len()
    );
    for (group, version, kind) in [
        ("events.k8s.io", "v1", "Event"),
        ("apps", "v1", "ControllerRevision"),
        ("apps", "v1", "Deployment"),
    ] {
        let all = bed
            .api((group, version, kind), "shop")
            .list(&ListParams::default())
            .await
            .expect("a list");
        told.push_str(&serde_json::to_string(&all.items).expect("JSON"));
    }
    told.push_str(&bed.status("shop", "vault").await.to_string());
    for request in people.requests() {
        told.push_str(&String::from_utf8_lossy(&request.body));
    }
    for command in ["get", "explain", "history", "status"] {
        let answer = bed.rollout(&[command, "shop/vault"]);
        told.push_str(&answer.to_string());
    }
    for hidden in [
        "correct-horse",
        "battery-staple",
        "tr0ub4dor",
        "Y29ycmVjdC1ob3JzZS",
        "YmF0dGVyeS1zdGFwbGUt",
        "dHIwdWI0ZG9y",
    ] {
        let at = told.find(hidden);
        let around = at.map(|at| told.get(at.saturating_sub(200)..at + 60));
        assert!(at.is_none(), "{hidden} is told: {around:?}");
    }
    let status = bed.status("shop", "vault").await.to_string();
    assert!(!status.contains("hunter2-in-the-template"), "{status}");
}

/// The steps that `adopt` prints, done as they say; then the rollout lets go, and the application runs on.
async fn a_deployment_is_adopted_and_released_again_without_an_outage(bed: &Bed) {
    let labels = json!({"app": "api"});
    bed.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "api", "image": "api:1"}]},
        }},
    }))
    .await;
    bed.create(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "api-web", "namespace": "shop"},
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 8080}]},
    }))
    .await;
    let slices = bed.api(("discovery.k8s.io", "v1", "EndpointSlice"), "shop");
    let endpoints = async || {
        let params = ListParams::default().labels("kubernetes.io/service-name=api-web");
        let found = slices.list(&params).await.expect("slices");
        let ready = |slice: &DynamicObject| {
            let endpoints = slice.data["endpoints"].as_array();
            let ready = endpoints.into_iter().flatten();
            ready
                .filter(|one| one["conditions"]["ready"] == true)
                .count()
        };
        found.items.iter().map(ready).sum::<usize>()
    };
    eventually("its endpoints", || async { endpoints().await == 3 }).await;
    let adopted = bed.rollout(&["adopt", "deployment/api", "-n", "shop"]);
    assert_eq!(adopted.code, 0, "{adopted}");
    assert!(
        adopted.stdout.contains("# 1. apply this object")
            && adopted.stdout.contains("name: api-web")
            && adopted.stdout.contains("port: 8080"),
        "it has the name and the port of the Service: {adopted}"
    );
    let wrong = bed.rollout(&["adopt", "statefulset/api", "-n", "shop"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    bed.apply(&adopted.stdout).await;
    let mut least = 3;
    loop {
        least = least.min(endpoints().await);
        let status = bed.status("shop", "api-web").await;
        if status["phase"] == "Stable" {
            break;
        }
        assert_ne!(status["phase"], "RolledBack", "{status:#}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(least > 0, "the Service had no endpoints for a while");

    let released = bed.rollout(&["release", "shop/api-web"]);
    assert_eq!(released.code, 0, "{released}");
    eventually("the rollout is gone", || async {
        bed.rollouts("shop")
            .get_opt("api-web")
            .await
            .expect("an answer")
            .is_none()
    })
    .await;
    // Kubernetes takes the owner away from what stays; nothing of it is deleted.
    let service = bed.api(("", "v1", "Service"), "shop");
    eventually("no owner", || async {
        let service = service.get("api-web").await.expect("the Service stays");
        service
            .metadata
            .owner_references
            .unwrap_or_default()
            .is_empty()
    })
    .await;
    assert!(endpoints().await > 0);
}

/// Without a cluster, the error says where one was looked for.
#[test]
fn a_cluster_that_is_not_there_is_told() {
    let answer = portolan(&["rollout", "list", "--kubeconfig", "/nowhere/kubeconfig"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("/nowhere/kubeconfig"), "{answer}");
}
