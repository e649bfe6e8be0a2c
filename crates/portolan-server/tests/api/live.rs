//! Schedules, triggers and webhooks, on a server whose clock the tests move. Runs work on no node here: what is
//! looked at is how many there are.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use portolan_server::{ManualTime, SystemTimeSource, TimeSource as _};
use serde_json::{Value, json};

use crate::bed::{Bed, bed, bed_at, eventually};

const SPACE: &str = "/api/v1alpha/namespaces/default";

impl Bed {
    async fn make(&self, plural: &str, kind: &str, name: &str, spec: Value) {
        let object = json!({"apiVersion": "v1alpha", "kind": kind, "metadata": {"name": name}, "spec": spec});
        let (status, body) = self.post(&format!("{SPACE}/{plural}"), object).await;
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
    }

    /// A book for no node at all.
    async fn empty_book(&self, name: &str, inputs: Value) {
        let spec = json!({
            "target": {"all": true, "allowEmpty": true}, "inputs": inputs,
            "steps": [{"name": "note", "print": {"message": "hello"}}],
        });
        self.make("taskbooks", "TaskBook", name, spec).await;
    }

    async fn event(&self, name: &str, kind: &str, data: Value) {
        let spec = json!({"type": kind, "summary": "something happened", "data": data});
        self.make("events", "Event", name, spec).await;
    }

    async fn runs(&self) -> Vec<Value> {
        let (_, list) = self.get(&format!("{SPACE}/runs")).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn wait_for_runs(&self, count: usize) -> Vec<Value> {
        eventually(|| async { self.runs().await.len() >= count }).await;
        let runs = self.runs().await;
        assert_eq!(runs.len(), count, "{runs:#?}");
        runs
    }

    async fn events_of(&self, kind: &str) -> Vec<Value> {
        let path = format!("{SPACE}/events?fieldSelector=spec.type%3D{kind}");
        let (_, list) = self.get(&path).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn status(&self, plural: &str, name: &str) -> Value {
        let (_, object) = self.get(&format!("{SPACE}/{plural}/{name}")).await;
        object["status"].clone()
    }
}

fn time(text: &str) -> u64 {
    let moment: jiff::Timestamp = text.parse().expect("a time");
    u64::try_from(moment.as_second()).expect("after 1970")
}

fn slots(runs: &[Value]) -> Vec<String> {
    let slot = |run: &Value| run["spec"]["origin"]["slot"].as_str().map(str::to_owned);
    let mut slots: Vec<String> = runs.iter().filter_map(slot).collect();
    slots.sort();
    slots
}

/// On 29 March 2026 clocks in Berlin go from two to three: the slot of half past two is at three.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_starts_each_slot_once_over_a_change_of_clocks_and_restarts() {
    let clock = Arc::new(ManualTime::new(time("2026-03-28T18:00:00Z")));
    let directory = tempfile::tempdir().expect("a directory");
    let bed = bed_at(directory, Arc::clone(&clock) as _).await;
    bed.empty_book("web", json!({"version": {"type": "string"}}))
        .await;
    for (name, schedule, zone) in [
        ("nightly", "30 2 * * *", "Europe/Berlin"),
        ("often", "30 2,4,6,8 * * *", "UTC"),
    ] {
        let job = json!({
            "schedule": schedule, "timeZone": zone, "missed": "once",
            "books": [{"name": "web", "inputs": {"version": "1.4"}}],
        });
        bed.make("cronjobs", "CronJob", name, job).await;
    }
    let next = || async { bed.status("cronjobs", "nightly").await["nextSlot"].clone() };
    eventually(|| async { next().await == "2026-03-29T01:00:00Z" }).await;
    clock.advance(Duration::from_secs(7 * 3600 + 5));
    let runs = bed.wait_for_runs(1).await;
    assert_eq!(slots(&runs), ["2026-03-29T01:00:00Z"]);
    assert_eq!(runs[0]["spec"]["inputs"]["version"], "1.4");
    assert_eq!(runs[0]["spec"]["requestedBy"], "system:cron");
    eventually(|| async { next().await == "2026-03-30T00:30:00Z" }).await;
    assert_eq!(bed.status("cronjobs", "nightly").await["started"], 1);
    // The server is away for six hours and a bit: one run for the slots in between.
    let directory = bed.stop().await;
    clock.advance(Duration::from_mins(370));
    let bed = bed_at(directory, Arc::clone(&clock) as _).await;
    let runs = bed.wait_for_runs(2).await;
    assert_eq!(
        slots(&runs),
        ["2026-03-29T01:00:00Z", "2026-03-29T06:30:00Z"]
    );
    // Nothing more comes of another start.
    let bed = bed_at(bed.stop().await, Arc::clone(&clock) as _).await;
    clock.advance(Duration::from_secs(80 * 60 + 5));
    let runs = bed.wait_for_runs(3).await;
    assert_eq!(slots(&runs)[2], "2026-03-29T08:30:00Z");
    eventually(|| async { bed.events_of("cron.started").await.len() == 3 }).await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_cannot_start_say_why_and_steps_need_no_book() {
    let clock = Arc::new(ManualTime::new(time("2026-11-18T09:30:00Z")));
    let directory = tempfile::tempdir().expect("a directory");
    let bed = bed_at(directory, Arc::clone(&clock) as _).await;
    let missing = json!({"schedule": "0 * * * *", "books": [{"name": "nothing"}]});
    bed.make("cronjobs", "CronJob", "broken", missing).await;
    let steps = json!({
        "schedule": "0 * * * *", "target": {"all": true, "allowEmpty": true},
        "steps": [{"name": "note", "print": {"message": "hello"}}],
    });
    bed.make("cronjobs", "CronJob", "inline", steps).await;
    let suspended =
        json!({"schedule": "0 * * * *", "suspend": true, "books": [{"name": "nothing"}]});
    bed.make("cronjobs", "CronJob", "asleep", suspended).await;
    clock.advance(Duration::from_secs(30 * 60 + 1));
    let runs = bed.wait_for_runs(1).await;
    assert_eq!(runs[0]["spec"]["book"], "inline");
    eventually(|| async { bed.status("cronjobs", "broken").await["error"].is_string() }).await;
    let broken = bed.status("cronjobs", "broken").await;
    let error = broken["error"].as_str().unwrap_or_default();
    assert!(error.contains("nothing does not exist"), "{broken:#}");
    assert_eq!(broken["lastSlot"], "2026-11-18T10:00:00Z");
    assert_eq!(
        bed.status("cronjobs", "asleep").await["lastSlot"],
        Value::Null
    );
    eventually(|| async { bed.events_of("cron.failed").await.len() == 1 }).await;
    // Slots that nobody could start in time are skipped, and that is told.
    let directory = bed.stop().await;
    clock.advance(Duration::from_mins(190));
    let bed = bed_at(directory, Arc::clone(&clock) as _).await;
    eventually(|| async { bed.status("cronjobs", "inline").await["skipped"].is_string() }).await;
    assert_eq!(bed.runs().await.len(), 1);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firing_is_one_run_and_its_inputs_come_from_the_event() {
    let bed = bed().await;
    bed.empty_book(
        "web",
        json!({"path": {"type": "string"}, "size": {"type": "int"}}),
    )
    .await;
    let spec = json!({
        "match": {"types": ["beacon.drift"], "when": "event.data.size > 1"},
        "groupBy": ["data.path"], "count": 2, "within": "10m", "maxActive": 100,
        "run": {"book": "web", "inputs": {"path": "{{ event.data.path }}", "size": "{{ event.data.size }}"}},
    });
    bed.make("triggers", "Trigger", "restore", spec).await;
    for (name, path, size) in [
        ("e1", "/a", 5),
        ("e2", "/b", 5),
        ("e3", "/a", 1),
        ("e4", "/a", 7),
    ] {
        bed.event(name, "beacon.drift", json!({"path": path, "size": size}))
            .await;
    }
    let runs = bed.wait_for_runs(1).await;
    assert_eq!(runs[0]["spec"]["inputs"], json!({"path": "/a", "size": 7}));
    assert_eq!(runs[0]["spec"]["origin"]["event"], "default/e4");
    assert_eq!(
        runs[0]["spec"]["causes"][0]["run"],
        runs[0]["metadata"]["name"]
    );
    // The events are refused when they come again, and what was counted is known to the next server.
    let (status, _) = bed
        .post(
            &format!("{SPACE}/events"),
            json!({"apiVersion": "v1alpha", "kind": "Event", "metadata": {"name": "e4"}, "spec": {"type": "beacon.drift"}}),
        )
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    eventually(|| async { bed.status("triggers", "restore").await["fired"] == 1 }).await;
    eventually(|| async { bed.events_of("trigger.fired").await.len() == 1 }).await;
    eventually(|| async { bed.events_of("run.ended").await.len() == 1 }).await;
    let ended = bed.events_of("run.ended").await;
    assert_eq!(
        ended[0]["spec"]["causes"], runs[0]["spec"]["causes"],
        "{ended:#?}"
    );
    let bed = crate::bed::bed_in(bed.stop().await).await;
    bed.event("e5", "beacon.drift", json!({"path": "/b", "size": 9}))
        .await;
    let runs = bed.wait_for_runs(2).await;
    assert!(runs.iter().any(|run| run["spec"]["inputs"]["path"] == "/b"));
    let bed = crate::bed::bed_in(bed.stop().await).await;
    bed.event("e6", "beacon.drift", json!({"path": "/c", "size": 9}))
        .await;
    eventually(|| async { bed.status("triggers", "restore").await["fired"] == 2 }).await;
    assert_eq!(bed.runs().await.len(), 2);
    bed.stop().await;
}

/// The run of a trigger ends with an event that the same trigger asks for: it is not fired again by it. One that asks for
/// its own firings on purpose is switched off.
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_sets_itself_off_is_stopped_and_told() {
    let bed = bed().await;
    bed.empty_book("web", json!({})).await;
    let quiet = json!({"match": {"types": ["run.ended", "start"]}, "maxActive": 10, "run": {"book": "web"}});
    bed.make("triggers", "Trigger", "quiet", quiet).await;
    bed.event("begin", "start", json!({})).await;
    bed.wait_for_runs(1).await;
    eventually(|| async { bed.events_of("trigger.suppressed").await.len() == 1 }).await;
    let told = bed.events_of("trigger.suppressed").await;
    assert_eq!(
        told[0]["spec"]["data"]["reason"], "same-trigger",
        "{told:#?}"
    );
    assert_eq!(bed.runs().await.len(), 1);
    assert_eq!(bed.delete(&format!("{SPACE}/triggers/quiet")).await.0, 200);
    let wild = json!({
        "match": {"types": ["run.ended", "start"]}, "allowRepeat": true, "maxDepth": 16, "maxActive": 10,
        "trip": {"burst": 3, "per": "1h"}, "run": {"book": "web"},
    });
    bed.make("triggers", "Trigger", "wild", wild.clone()).await;
    bed.event("again", "start", json!({})).await;
    eventually(|| async { bed.status("triggers", "wild").await["state"] == "tripped" }).await;
    eventually(|| async { bed.events_of("trigger.tripped").await.len() == 1 }).await;
    assert_eq!(bed.runs().await.len(), 4);
    // Somebody switches it on again.
    let (_, mut trigger) = bed.get(&format!("{SPACE}/triggers/wild")).await;
    trigger["spec"]["reset"] = "2026-11-18".into();
    assert_eq!(
        bed.put(&format!("{SPACE}/triggers/wild"), trigger).await.0,
        200
    );
    eventually(|| async { bed.status("triggers", "wild").await["state"] == "ready" }).await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn firings_that_cannot_be_runs_are_told_and_nobody_gets_more_rights_by_them() {
    let bed = bed().await;
    let spec = json!({"match": {"types": ["start"]}, "run": {"book": "gone", "eventNode": true}});
    bed.make("triggers", "Trigger", "broken", spec.clone())
        .await;
    bed.event("begin", "start", json!({})).await;
    eventually(|| async { bed.events_of("trigger.failed").await.len() == 1 }).await;
    let status = bed.status("triggers", "broken").await;
    assert!(
        status["error"]
            .as_str()
            .unwrap_or_default()
            .contains("about no node"),
        "{status:#}"
    );
    // Who may write triggers and may not run the book cannot run it through a trigger.
    let rules = json!([{"verbs": ["*"], "kinds": ["Trigger", "CronJob"]}]);
    let token = bed.user("writer", rules).await;
    let object = json!({"apiVersion": "v1alpha", "kind": "Trigger", "metadata": {"name": "mine"}, "spec": spec});
    let (status, body) = bed
        .ask(&token, "POST", &format!("{SPACE}/triggers"), Some(object))
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body:#}");
    let object = json!({
        "apiVersion": "v1alpha", "kind": "CronJob", "metadata": {"name": "mine"},
        "spec": {"schedule": "@daily", "books": [{"name": "gone"}]},
    });
    let (status, _) = bed
        .ask(&token, "POST", &format!("{SPACE}/cronjobs"), Some(object))
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    // A trigger sees its own namespace only, and its inputs are templates.
    for (path, wrong) in [
        (
            "match",
            json!({"types": ["start"], "namespaces": ["system"]}),
        ),
        ("run", json!({"book": "gone", "inputs": {"a": "{{ event."}})),
    ] {
        let mut object = json!({"apiVersion": "v1alpha", "kind": "Trigger", "metadata": {"name": "wrong"}, "spec": spec});
        object["spec"][path] = wrong;
        let (status, body) = bed.post(&format!("{SPACE}/triggers"), object).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_event_would_do_is_said_and_not_done() {
    let bed = bed().await;
    bed.empty_book("web", json!({"path": {"type": "string"}}))
        .await;
    let run = json!({"book": "web", "inputs": {"path": "{{ event.data.path }}"}});
    let restore = json!({"match": {"types": ["drift"]}, "run": run});
    bed.make("triggers", "Trigger", "restore", restore).await;
    let strict =
        json!({"match": {"types": ["drift"], "when": "event.data.path == '/b'"}, "run": run});
    bed.make("triggers", "Trigger", "strict", strict).await;
    let event = json!({
        "apiVersion": "v1alpha", "kind": "Event", "metadata": {"name": "try", "namespace": "default"},
        "spec": {"type": "drift", "data": {"path": "/a"}},
    });
    eventually(|| async { bed.status("triggers", "strict").await["state"] == "ready" }).await;
    let (status, tests) = bed.post("/api/v1alpha/trigger-tests", event).await;
    assert_eq!(status, StatusCode::OK, "{tests:#}");
    let items = tests["items"].as_array().expect("a list");
    assert_eq!(items[0]["fires"], true, "{tests:#}");
    assert_eq!(items[0]["inputs"], json!({"path": "/a"}));
    assert_eq!(items[1]["fires"], false);
    assert_eq!(items[1]["result"], "`when` is false");
    assert!(bed.runs().await.is_empty());
    bed.event("real", "other", json!({})).await;
    let named = json!({"namespace": "default", "name": "real"});
    let (status, tests) = bed.post("/api/v1alpha/trigger-tests", named).await;
    assert_eq!(status, StatusCode::OK, "{tests:#}");
    assert_eq!(tests["items"][0]["fires"], false);
    bed.stop().await;
}

/// A request that is signed as senders do it.
fn signed(path: &str, key: &str, body: &str, at: u64) -> Request<Body> {
    use hmac::{Hmac, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).expect("a key");
    mac.update(format!("{at}.{body}").as_bytes());
    let signature = portolan_digest::hex(&mac.finalize().into_bytes());
    Request::post(path)
        .header("host", "portolan.test")
        .header("x-portolan-timestamp", at.to_string())
        .header("x-portolan-signature", format!("sha256={signature}"))
        .body(Body::from(body.to_owned()))
        .expect("a request")
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_make_events_of_signed_requests_and_refuse_all_others() {
    const KEY: &str = "0123456789abcdef-key";
    let bed = bed().await;
    bed.make(
        "secrets",
        "Secret",
        "hooks",
        json!({"values": {"first": KEY, "short": "abc"}}),
    )
    .await;
    let mapping = json!({"type": "'ci.' + body.status", "node": "body.host", "labels": {"branch": "body.branch"}});
    let spec = json!({"keys": {"secret": "hooks"}, "mapping": mapping, "maxBytes": 2048});
    bed.make("webhooks", "Webhook", "ci", spec).await;
    let path = format!("{SPACE}/webhooks/ci/deliver");
    let now = SystemTimeSource.now().as_secs();
    let body = r#"{"status": "failed", "host": "web-1", "branch": "main"}"#;
    let cases = [
        (signed(&path, "another-key-of-16-bytes", body, now), 401),
        (signed(&path, "abc", body, now), 401),
        (signed(&path, KEY, body, now - 3_600), 401),
        (signed(&path, KEY, &"x".repeat(4_096), now), 413),
        (signed(&path, KEY, "not json", now), 400),
        (
            signed(&path.replace("/ci/", "/unknown/"), KEY, body, now),
            401,
        ),
        (signed(&path, KEY, body, now), 200),
        (signed(&path, KEY, body, now), 409),
    ];
    for (number, (request, expected)) in cases.into_iter().enumerate() {
        let (status, answer) = bed.send(request).await;
        assert_eq!(status.as_u16(), expected, "{number}: {answer:#}");
    }
    let events = bed.events_of("ci.failed").await;
    assert_eq!(events.len(), 1);
    assert_eq!(
        events[0]["spec"]["source"],
        json!({"kind": "Webhook", "name": "ci", "node": "web-1"})
    );
    // The key is not sent unless that is allowed, and refusals are in the audit log.
    let bearer = |path: &str, body: &str| {
        Request::post(path)
            .header("host", "portolan.test")
            .header("authorization", format!("Bearer {KEY}"))
            .body(Body::from(body.to_owned()))
            .expect("a request")
    };
    assert_eq!(bed.send(bearer(&path, body)).await.0, 401);
    let refused = bed
        .audit()
        .into_iter()
        .filter(|entry| entry["verb"] == "deliver" && entry["status"] == 401);
    assert_eq!(refused.count(), 5);
    // Whoever has no key cannot find out whether there is such a webhook.
    let unsigned = async |path: &str| {
        let request = Request::post(path).header("host", "portolan.test");
        let request = request.body(Body::from("{}")).expect("a request");
        let (status, answer) = bed.send(request).await;
        (status, answer["message"].clone())
    };
    let unknown = path.replace("/ci/", "/unknown/");
    assert_eq!(unsigned(&path).await, unsigned(&unknown).await);
    // What servers tell comes from nobody else.
    let forging = json!({"keys": {"secret": "hooks", "values": ["first"]}, "mapping": {"type": "'run.ended'"}});
    bed.make("webhooks", "Webhook", "forging", forging).await;
    let forged = signed(&path.replace("/ci/", "/forging/"), KEY, body, now);
    let (_, answer) = bed.send(forged).await;
    assert_eq!(answer["events"], json!([]), "{answer:#}");
    let why = answer["problems"][0]["message"]
        .as_str()
        .unwrap_or_default();
    assert!(why.contains("come from servers alone"), "{answer:#}");
    // What Alertmanager sends, again and again, is one event for each alert; labels can be asked for.
    let spec = json!({"format": "alertmanager", "keys": {"secret": "hooks", "values": ["first"]}, "allowBearer": true});
    bed.make("webhooks", "Webhook", "alerts", spec).await;
    bed.empty_book("web", json!({"name": {"type": "string"}}))
        .await;
    let trigger = json!({
        "match": {"types": ["alert.firing"], "when": "event.labels.team == 'shop'"},
        "run": {"book": "web", "inputs": {"name": "{{ event.labels.alertname }}"}},
    });
    bed.make("triggers", "Trigger", "on-alert", trigger).await;
    let alerts = json!({"version": "4", "alerts": [{
        "status": "firing", "labels": {"alertname": "Disk", "severity": "critical", "team": "shop"},
        "annotations": {"summary": "disk is full"}, "startsAt": "2026-11-18T09:00:00Z", "fingerprint": "f1",
    }]});
    let path = format!("{SPACE}/webhooks/alerts/deliver");
    for known in [0, 1, 1] {
        let (status, answer) = bed.send(bearer(&path, &alerts.to_string())).await;
        assert_eq!(
            (status.as_u16(), answer["known"].as_u64()),
            (200, Some(known)),
            "{answer:#}"
        );
    }
    let runs = bed.wait_for_runs(1).await;
    assert_eq!(runs[0]["spec"]["inputs"]["name"], "Disk");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_denied_are_not_made() {
    let bed = bed().await;
    let config = json!({
        "apiVersion": "v1alpha", "kind": "Config", "metadata": {"name": "server"},
        "spec": {"events": {"deny": ["trigger.fired"]}, "triggers": {"runsPerMinute": 2}},
    });
    assert_eq!(bed.post("/api/v1alpha/configs", config).await.0, 201);
    bed.empty_book("web", json!({})).await;
    let spec = json!({
        "match": {"types": ["start"]}, "maxActive": 100, "whenBlocked": "drop", "run": {"book": "web"},
    });
    bed.make("triggers", "Trigger", "all", spec).await;
    eventually(|| async { bed.status("triggers", "all").await["state"] == "ready" }).await;
    for number in 0..4 {
        bed.event(&format!("e{number}"), "start", json!({})).await;
    }
    // All triggers together start two runs a minute; the others are refused, and that is told.
    eventually(|| async { bed.events_of("trigger.suppressed").await.len() == 1 }).await;
    eventually(|| async { bed.events_of("run.ended").await.len() == 2 }).await;
    assert_eq!(bed.runs().await.len(), 2);
    assert!(bed.events_of("trigger.fired").await.is_empty());
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_computed_from_others_and_say_where_they_come_from() {
    let bed = bed().await;
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "v1alpha", "kind": kind, "metadata": {"name": name}, "spec": spec});
    for (path, object) in [
        ("nodes", object("Node", "web-1", json!({}))),
        (
            "nodegroups",
            object("NodeGroup", "web", json!({"nodes": ["web-1"]})),
        ),
        (
            "nodegrants",
            object(
                "NodeGrant",
                "web",
                json!({"groups": ["web"], "namespaces": ["default"]}),
            ),
        ),
        (
            "clustervariables",
            object(
                "ClusterVariable",
                "dns",
                json!({"values": {"host": "a.example"}}),
            ),
        ),
        (
            "clustervariables",
            object(
                "ClusterVariable",
                "unbound",
                json!({"values": {"hidden": 1}}),
            ),
        ),
        (
            "clustervariablesbindings",
            object(
                "ClusterVariablesBinding",
                "dns",
                json!({"variables": ["dns"], "namespaces": ["default"]}),
            ),
        ),
    ] {
        let (status, body) = bed.post(&format!("/api/v1alpha/{path}"), object).await;
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
    }
    let expressions = json!({"url": "'http://' + vars.host + ':' + string(vars.limits.port)"});
    for (name, spec) in [
        (
            "base",
            json!({"values": {"limits": {"port": 80, "files": 10}, "host": "b.example"}}),
        ),
        (
            "more",
            json!({"for": {"node": "web-1"}, "values": {"limits": {"port": 81}}, "merge": "deep"}),
        ),
        ("url", json!({"dynamic": {"expressions": expressions}})),
        (
            "better",
            json!({"values": {"host": "c.example"}, "priority": 5}),
        ),
        (
            "key",
            json!({"dynamic": {"expressions": {"key": "vars.host"}, "sensitive": true}}),
        ),
        (
            "copy",
            json!({"dynamic": {"expressions": {"copy": "vars.key"}}}),
        ),
    ] {
        bed.make("variables", "Variable", name, spec).await;
    }
    let path = format!("{SPACE}/nodes/web-1/variables");
    let find = |list: &Value, key: &str| {
        let items = list["items"].as_array().expect("a list");
        items
            .iter()
            .find(|item| item["key"] == key)
            .cloned()
            .unwrap_or_default()
    };
    eventually(|| async { !find(&bed.get(&path).await.1, "copy").is_null() }).await;
    let (_, list) = bed.get(&path).await;
    assert_eq!(
        find(&list, "url")["value"],
        "http://c.example:81",
        "{list:#}"
    );
    // One that cannot be computed stops only runs that need it; runs get sensitive ones, and show nothing of them.
    let lost = json!({"dynamic": {"expressions": {"lost": "vars.nowhere"}}});
    bed.make("variables", "Variable", "lost", lost).await;
    for (book, used, expected) in [
        ("plain", "url", StatusCode::CREATED),
        ("needs", "lost", StatusCode::BAD_REQUEST),
        ("shows", "key", StatusCode::CREATED),
        ("copies", "copy", StatusCode::CREATED),
    ] {
        let spec = json!({
            "target": {"all": true}, "vars": {used: "nothing"},
            "steps": [{"name": "note", "print": {"message": format!("{{{{ vars.{used} }}}}")}}],
        });
        bed.make("taskbooks", "TaskBook", book, spec).await;
        let path = format!("{SPACE}/taskbooks/{book}/run");
        let (status, answer) = bed.post(&path, json!({})).await;
        assert_eq!(status, expected, "{book}: {answer:#}");
        assert!(!answer.to_string().contains("c.example:81") || book == "plain");
    }
    assert_eq!(
        find(&list, "limits")["value"],
        json!({"port": 81, "files": 10})
    );
    assert_eq!(
        find(&list, "limits")["origins"],
        json!({"files": "Variable base", "port": "Variable more"})
    );
    let host = find(&list, "host");
    assert_eq!(
        host["candidates"][0]["source"], "Variable better",
        "{host:#}"
    );
    assert_eq!(
        host["candidates"][2]["source"],
        "ClusterVariable dns (binding dns)"
    );
    assert!(find(&list, "hidden").is_null());
    // What is computed from a secret is one.
    assert_eq!(
        (
            &find(&list, "copy")["value"],
            &find(&list, "copy")["sensitive"]
        ),
        (&Value::Null, &json!(true))
    );
    // A circle is refused, also through the namespace's own variables; an expression that is none, too.
    for (expressions, message) in [
        (
            json!({"host": "vars.url"}),
            "variables read each other in a circle",
        ),
        (
            json!({"x": "vars."}),
            "`spec.dynamic.expressions.x` cannot be used",
        ),
    ] {
        let wrong = object(
            "Variable",
            "circle",
            json!({"dynamic": {"expressions": expressions}}),
        );
        let (status, body) = bed.post(&format!("{SPACE}/variables"), wrong).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
        assert!(
            body["error"].as_str().unwrap_or_default().contains(message),
            "{body:#}"
        );
    }
    let wrong = object(
        "ClusterVariable",
        "dns",
        json!({"dynamic": {"expressions": {"host": "vars.copy"}}}),
    );
    let (status, body) = bed
        .put("/api/v1alpha/clustervariables/dns?apply=true", wrong)
        .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_book_is_run_when_it_changed_and_to_look_for_drift() {
    let clock = Arc::new(ManualTime::new(time("2026-11-18T09:30:00Z")));
    let directory = tempfile::tempdir().expect("a directory");
    let bed = bed_at(directory, Arc::clone(&clock) as _).await;
    let book = |message: &str| {
        json!({
            "target": {"all": true, "allowEmpty": true},
            "reconcile": {"on": ["commit", "drift"], "every": "20m", "mode": "apply"},
            "steps": [{"name": "note", "print": {"message": message}}],
        })
    };
    bed.make("taskbooks", "TaskBook", "web", book("one")).await;
    let runs = bed.wait_for_runs(1).await;
    assert_eq!(runs[0]["spec"]["origin"]["cause"], "commit");
    assert_eq!(runs[0]["spec"]["requestedBy"], "system:reconcile");
    let is_over = |count: usize| {
        let bed = &bed;
        move || async move {
            let runs = bed.runs().await;
            let over = runs
                .iter()
                .filter(|run| run["status"]["phase"] == "succeeded");
            over.count() == count
        }
    };
    eventually(is_over(1)).await;
    // The same object again is no change; another text is.
    let path = format!("{SPACE}/taskbooks/web");
    let (_, mut stored) = bed.get(&path).await;
    stored["spec"] = book("two");
    let (status, body) = bed.put(&path, stored).await;
    assert_eq!(status, StatusCode::OK, "{body:#}");
    bed.wait_for_runs(2).await;
    eventually(is_over(2)).await;
    // A server that starts anew knows what was dealt with.
    let bed = bed_at(bed.stop().await, Arc::clone(&clock) as _).await;
    clock.advance(Duration::from_mins(21));
    let runs = bed.wait_for_runs(3).await;
    let mut causes: Vec<&str> = runs
        .iter()
        .filter_map(|run| run["spec"]["origin"]["cause"].as_str())
        .collect();
    causes.sort_unstable();
    assert_eq!(causes, ["commit", "commit", "drift"]);
    eventually(|| async { bed.events_of("reconcile.started").await.len() == 3 }).await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_other_inputs_is_another_request() {
    let bed = bed().await;
    bed.empty_book("web", json!({"version": {"type": "string"}}))
        .await;
    let path = format!("{SPACE}/taskbooks/web/run");
    let request = |version: &str| json!({"inputs": {"version": version}, "dedupeKey": "monday"});
    let (status, first) = bed.post(&path, request("1.4")).await;
    assert_eq!(status, StatusCode::CREATED, "{first:#}");
    let (_, again) = bed.post(&path, request("1.4")).await;
    assert_eq!(again["metadata"]["name"], first["metadata"]["name"]);
    let (status, other) = bed.post(&path, request("1.5")).await;
    assert_eq!(status, StatusCode::CONFLICT, "{other:#}");
    bed.stop().await;
}
