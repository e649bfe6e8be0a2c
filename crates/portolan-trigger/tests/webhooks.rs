//! Requests from outside: who sent them, whether they were sent before, and which events they are.

use hmac::{Hmac, Mac};
use jiff::{SignedDuration, Timestamp};
use portolan_trigger::{
    FleetSeverity, ReplayMemory, VerifiedDelivery, WebhookKey, WebhookMapping, WebhookMappingSpec,
    WebhookOrigin, WebhookRefusal, WebhookRequest, WebhookVerifier, alertmanager_events,
};
use proptest::prelude::*;
use serde_json::json;
use sha2::Sha256;

const KEY: &[u8] = b"a key of the shop's webhook";
const OTHER: &[u8] = b"another key, as long as it is";

fn now() -> Timestamp {
    Timestamp::from_second(1_795_000_000).expect("a time")
}

fn signed(key: &[u8], timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    format!(
        "sha256={}",
        portolan_digest::hex(&mac.finalize().into_bytes())
    )
}

fn verifier() -> WebhookVerifier {
    let keys = [KEY, OTHER].map(|key| WebhookKey::new(key).expect("a key"));
    WebhookVerifier::new(keys.to_vec())
}

fn verify(
    timestamp: &str,
    signature: &str,
    body: &[u8],
) -> Result<VerifiedDelivery, WebhookRefusal> {
    let request = WebhookRequest {
        timestamp: Some(timestamp),
        signature: Some(signature),
        body,
        ..WebhookRequest::default()
    };
    verifier().verify(&request, now())
}

fn origin() -> WebhookOrigin<'static> {
    WebhookOrigin {
        uid: "hook",
        namespace: "shop",
        delivery: "delivery-1",
        received: now(),
    }
}

#[test]
fn a_signature_with_any_key_of_the_webhook_is_accepted() {
    for key in [KEY, OTHER] {
        let signature = signed(key, "1795000000", b"{}");
        assert!(verify("1795000000", &signature, b"{}").is_ok());
    }
    let foreign = signed(b"a key that nobody gave out", "1795000000", b"{}");
    assert_eq!(
        verify("1795000000", &foreign, b"{}"),
        Err(WebhookRefusal::WrongSignature)
    );
}

#[test]
fn a_signature_holds_for_its_body_and_its_time() {
    let signature = signed(KEY, "1795000000", b"{}");
    assert_eq!(
        verify("1795000000", &signature, b"{ }"),
        Err(WebhookRefusal::WrongSignature)
    );
    assert_eq!(
        verify("1795000001", &signature, b"{}"),
        Err(WebhookRefusal::WrongSignature)
    );
    for (timestamp, is_good) in [
        ("1794999700", true),
        ("1795000300", true),
        ("1794999699", false),
        ("1795000301", false),
        ("yesterday", false),
        ("99999999999999999", false),
    ] {
        let answer = verify(timestamp, &signed(KEY, timestamp, b"{}"), b"{}");
        let expected = Err(WebhookRefusal::Outdated(300));
        assert!(
            if is_good {
                answer.is_ok()
            } else {
                answer == expected
            },
            "{timestamp}"
        );
    }
}

#[test]
fn a_request_that_is_sent_again_is_refused() {
    let signature = signed(KEY, "1795000000", b"{}");
    let delivery = verify("1795000000", &signature, b"{}").expect("verified");
    let upper = verify(
        "1795000000",
        &signature.to_uppercase().replace("SHA256", "sha256"),
        b"{}",
    );
    let mut memory = ReplayMemory::default();
    assert_eq!(memory.admit(&delivery, now()), Ok(()));
    assert_eq!(
        memory.admit(&delivery, now()),
        Err(WebhookRefusal::Replayed)
    );
    assert_eq!(
        memory.admit(&upper.expect("verified"), now()),
        Err(WebhookRefusal::Replayed),
        "in other letters it is the same"
    );
}

/// What is remembered is bounded; when it is full, requests are refused rather than that a replay passes.
#[test]
fn a_full_memory_refuses_and_recovers() {
    let mut memory = ReplayMemory::default();
    let delivery = |number: u32| VerifiedDelivery {
        id: Some(number.to_string()),
        until: now()
            .checked_add(SignedDuration::from_secs(300))
            .expect("a time"),
    };
    for number in 0..10_000 {
        assert_eq!(memory.admit(&delivery(number), now()), Ok(()));
    }
    assert_eq!(
        memory.admit(&delivery(10_000), now()),
        Err(WebhookRefusal::Busy)
    );
    assert_eq!(
        memory.admit(&delivery(0), now()),
        Err(WebhookRefusal::Replayed)
    );
    let later = now()
        .checked_add(SignedDuration::from_secs(301))
        .expect("a time");
    assert_eq!(memory.admit(&delivery(10_000), later), Ok(()));
}

#[test]
fn size_and_missing_signatures_are_refused_before_anything_is_read() {
    let body = vec![b' '; 300 << 10];
    let request = WebhookRequest {
        body: &body,
        ..WebhookRequest::default()
    };
    let refusal = verifier().verify(&request, now()).expect_err("too large");
    assert_eq!(
        (refusal.status(), refusal),
        (413, WebhookRefusal::TooLarge(256 << 10))
    );
    let refusal = verifier().verify(&WebhookRequest::default(), now());
    assert_eq!(refusal, Err(WebhookRefusal::Unsigned));
    assert!(WebhookKey::new(b"short").is_none());
}

#[test]
fn a_bearer_key_is_accepted_only_where_it_is_allowed() {
    let bearer = WebhookVerifier::new(vec![WebhookKey::bearer(KEY).expect("a key")]);
    let request = |header: &'static str| WebhookRequest {
        authorization: Some(header),
        ..WebhookRequest::default()
    };
    let good = request("Bearer a key of the shop's webhook");
    assert!(bearer.verify(&good, now()).is_ok());
    assert_eq!(
        verifier().verify(&good, now()),
        Err(WebhookRefusal::WrongSignature)
    );
    let wrong = request("Bearer a key of the shop's webhook!");
    assert_eq!(
        bearer.verify(&wrong, now()),
        Err(WebhookRefusal::WrongSignature)
    );
    assert_eq!(
        format!("{:?}", WebhookKey::new(KEY)),
        "Some(WebhookKey([redacted]))"
    );
}

const ALERTS: &str = r#"{
  "receiver": "fleet", "status": "firing", "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 2,
  "groupLabels": {"alertname": "DiskFull"}, "commonLabels": {}, "commonAnnotations": {},
  "externalURL": "http://alertmanager:9093",
  "alerts": [
    {"status": "firing", "labels": {"alertname": "DiskFull", "instance": "web-1:9100", "severity": "critical"},
     "annotations": {"summary": "disk is full"}, "startsAt": "2026-11-18T11:05:00.123Z",
     "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "http://prometheus/graph", "fingerprint": "c6eadffa33fcdf37"},
    {"status": "resolved", "labels": {"alertname": "DiskFull", "node": "web-2", "severity": "warning"},
     "annotations": {}, "startsAt": "2026-11-18T10:00:00Z", "endsAt": "2026-11-18T11:04:00Z",
     "generatorURL": "", "fingerprint": "b0a1"},
    {"status": "odd", "labels": {}}
  ]
}"#;

#[test]
fn each_alert_of_alertmanager_is_one_event() {
    let mapped = alertmanager_events(ALERTS.as_bytes(), origin()).expect("alerts");
    let [firing, resolved] = &mapped.events[..] else {
        panic!("two events");
    };
    assert_eq!(firing.kind, "alert.firing");
    assert_eq!(firing.namespace, "shop");
    assert_eq!(firing.node.as_deref(), Some("web-1"));
    assert_eq!(firing.severity, FleetSeverity::Error);
    assert_eq!(firing.labels["alertname"], "DiskFull");
    assert_eq!(firing.data["annotations"]["summary"], "disk is full");
    assert_eq!(firing.time.to_string(), "2026-11-18T11:05:00.123Z");
    assert_eq!(resolved.kind, "alert.resolved");
    assert_eq!(resolved.node.as_deref(), Some("web-2"));
    assert_eq!(resolved.time.to_string(), "2026-11-18T11:04:00Z");
    assert_eq!((mapped.problems[0].index, mapped.left_out), (2, 2));
}

#[test]
fn an_alert_that_goes_on_is_the_same_event() {
    let first = alertmanager_events(ALERTS.as_bytes(), origin()).expect("alerts");
    let again = WebhookOrigin {
        delivery: "delivery-2",
        received: now()
            .checked_add(SignedDuration::from_hours(4))
            .expect("a time"),
        ..origin()
    };
    let again = alertmanager_events(ALERTS.as_bytes(), again).expect("alerts");
    assert_eq!(first.events[0].uid, again.events[0].uid);
    assert_ne!(first.events[0].uid, first.events[1].uid);
}

fn mapping(spec: serde_json::Value) -> WebhookMapping {
    let spec: WebhookMappingSpec = serde_json::from_value(spec).expect("a spec");
    WebhookMapping::new(&spec).expect("a mapping")
}

#[test]
fn a_body_becomes_events_by_expressions() {
    let mapping = mapping(json!({
        "each": "body.builds", "when": "item.status != 'running'", "type": "'ci.' + item.status",
        "severity": "item.status == 'failed' ? 'error' : 'info'", "node": "item.host", "time": "item.at",
        "id": "item.number", "labels": {"branch": "item.branch"}, "data": "{'log': item.log}"
    }));
    let build = |status: &str, number: u32| {
        json!({"status": status, "number": number, "host": "ci-1", "branch": "main",
               "at": "2026-11-18T11:06:00Z", "log": "http://ci/1"})
    };
    let body = json!({"builds": [build("failed", 1), build("running", 2), build("passed", 3), {"status": "failed"}]});
    let mapped = mapping
        .events(body.to_string().as_bytes(), origin())
        .expect("events");
    let kinds: Vec<&str> = mapped
        .events
        .iter()
        .map(|event| event.kind.as_str())
        .collect();
    assert_eq!(kinds, ["ci.failed", "ci.passed"]);
    assert_eq!(mapped.events[0].severity, FleetSeverity::Error);
    assert_eq!(mapped.events[0].data["log"], "http://ci/1");
    assert_eq!(mapped.problems[0].index, 3);
    let other = WebhookOrigin {
        delivery: "delivery-2",
        ..origin()
    };
    let again = mapping
        .events(body.to_string().as_bytes(), other)
        .expect("events");
    assert_eq!(
        again.events[0].uid, mapped.events[0].uid,
        "the same build is the same event"
    );
}

#[test]
fn without_an_id_each_delivery_is_an_event_of_its_own() {
    let mapping = mapping(json!({"type": "'deploy.done'"}));
    let uid = |delivery: &str| {
        let origin = WebhookOrigin {
            delivery,
            ..origin()
        };
        mapping.events(b"{}", origin).expect("events").events[0]
            .uid
            .clone()
    };
    assert_eq!(uid("1"), uid("1"));
    assert_ne!(uid("1"), uid("2"));
}

#[test]
fn a_wrong_mapping_names_every_fault() {
    let spec: WebhookMappingSpec = serde_json::from_value(json!({
        "type": "1 +", "each": "item.builds", "severity": "true", "labels": {"a": "nothing.b"}
    }))
    .expect("a spec");
    let faults = WebhookMapping::new(&spec).expect_err("faults");
    let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["type", "each", "severity", "labels.a"]);
}

#[test]
fn what_is_too_much_is_left_out_and_told() {
    let mapping = mapping(json!({"each": "body", "type": "'a.b'", "data": "{'text': item}"}));
    let items = vec!["x".repeat(9_000); 3];
    let mapped = mapping
        .events(json!(items).to_string().as_bytes(), origin())
        .expect("events");
    assert!(mapped.events[0].data.contains_key("leftOutBytes"));
    let many = vec![1; 1_200];
    let mapped = mapping
        .events(json!(many).to_string().as_bytes(), origin())
        .expect("events");
    assert_eq!((mapped.events.len(), mapped.left_out), (1_000, 200));
}

proptest! {
    /// No change of a signed request passes.
    #[test]
    fn a_request_that_was_changed_is_refused(
        body in proptest::collection::vec(any::<u8>(), 1..200),
        place in 0_usize..200,
        bit in 0_u8..8,
    ) {
        let signature = signed(KEY, "1795000000", &body);
        prop_assert!(verify("1795000000", &signature, &body).is_ok());
        let mut changed = body.clone();
        let place = place % changed.len();
        changed[place] ^= 1 << bit;
        prop_assert_eq!(verify("1795000000", &signature, &changed), Err(WebhookRefusal::WrongSignature));
    }

    /// Whatever the body is, reading it ends with events or a reason.
    #[test]
    fn any_body_is_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = alertmanager_events(&body, origin());
        let mapping = mapping(json!({"type": "'a.' + string(body.a)"}));
        let _ = mapping.events(&body, origin());
    }
}
