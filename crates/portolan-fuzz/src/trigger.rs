//! What starts runs from outside: bodies of webhooks, and the specs and expressions that say what they mean.

use jiff::Timestamp;
use portolan_trigger::{
    CronSchedule, EventView, FleetEvent, RunBudget, Schedule, ScheduleSpec, Surroundings, Trigger,
    TriggerMemory, TriggerSpec, WebhookKey, WebhookMapping, WebhookOrigin, WebhookRequest,
    WebhookVerifier, alertmanager_events,
};

use crate::{Target, texts};

const ORIGIN: WebhookOrigin<'static> = WebhookOrigin {
    uid: "hook",
    namespace: "shop",
    delivery: "1",
    received: Timestamp::UNIX_EPOCH,
};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "alertmanager",
        about: "what Alertmanager sends",
        run: |bytes| {
            let Ok(mapped) = alertmanager_events(bytes, ORIGIN) else {
                return false;
            };
            assert!(mapped.events.len() <= 1_000, "events are bounded");
            for event in &mapped.events {
                assert_eq!(event.namespace, "shop", "no sender chooses the namespace");
            }
            true
        },
        seeds: || {
            texts(&[
                r#"{"version": "4", "alerts": [{"status": "firing", "labels": {"instance": "web-1:9100", "severity": "critical"}, "startsAt": "2026-11-18T11:05:00Z", "endsAt": "0001-01-01T00:00:00Z"}]}"#,
                r#"{"alerts": [{"status": "resolved", "labels": {"node": "../.."}, "endsAt": "9999-12-31T23:59:59Z"}], "truncatedAlerts": 18446744073709551615}"#,
                r#"{"alerts": [{"status": 1}]}"#,
            ])
        },
    },
    Target {
        name: "cron-expression",
        about: "a schedule and its slots",
        run: cron_expression,
        seeds: || {
            texts(&[
                "30 2 * * 1-5",
                "*/7 * L * *",
                "0 0 29 2 +MON",
                "@hourly",
                "0 0 31W 2 5#5",
                r#"{"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "missed": "once", "deadline": "1h"}"#,
            ])
        },
    },
    Target {
        name: "fleet-event",
        about: "an event as it is stored, shown to a trigger",
        run: fleet_event,
        seeds: || {
            texts(&[
                r#"{"uid": "1", "type": "beacon.drift", "namespace": "shop", "node": "web-1", "severity": "error", "labels": {"a": "b"}, "data": {"path": "/etc"}, "time": "2026-11-18T09:00:00Z", "received": "2026-11-18T09:00:01Z", "causes": [{"trigger": "t", "run": "r"}]}"#,
                r#"{"uid": "", "type": "", "namespace": "shop", "time": "-009999-01-02T00:00:00Z", "received": "9999-12-30T00:00:00Z"}"#,
            ])
        },
    },
    Target {
        name: "trigger-spec",
        about: "the spec of a trigger",
        run: |bytes| {
            serde_json::from_slice::<TriggerSpec>(bytes)
                .is_ok_and(|spec| Trigger::new("uid", "shop", &spec).is_ok())
        },
        seeds: || {
            texts(&[
                r#"{"match": {"types": ["beacon.*"], "when": "event.data.path.startsWith('/etc')"}, "groupBy": ["node", "data.a.b"], "count": 3, "within": "5m", "waitForMore": {"quiet": "10s", "max": "1m"}, "cooldown": "1h", "windows": [{"days": ["sat"], "from": "22:00", "to": "24:00", "timeZone": "Asia/Kathmandu"}]}"#,
                r#"{"match": {"types": ["*"]}, "count": 4294967295, "within": "106751d"}"#,
                r#"{"match": {"types": [".*"], "when": "((((("}}"#,
            ])
        },
    },
    Target {
        name: "webhook-body",
        about: "a body and the expressions that make events of it, with a zero byte between them",
        run: webhook_body,
        seeds: || {
            texts(&[
                "{\"each\": \"body.a\", \"type\": \"'ci.' + item.b\", \"data\": \"{'c': item}\"}\0{\"a\": [{\"b\": \"failed\"}]}",
                "{\"type\": \"body\"}\0\"a.b\"",
                "{\"each\": \"body\", \"type\": \"'a'\", \"id\": \"item\"}\0[1, 1, 1e400]",
            ])
        },
    },
    Target {
        name: "webhook-headers",
        about: "time and signature of a request, on two lines",
        run: webhook_headers,
        seeds: || {
            texts(&[
                "0\nsha256=67f763bd86951d3146a3a42ab0a1f10cf3c2ada2ba69a48501872230e0df57cc",
                "1795000000\nsha256=0000000000000000000000000000000000000000000000000000000000000000",
                "-9223372036854775808\nsha256=",
                "\nsha256=é00000000000000000000000000000000000000000000000000000000000000",
            ])
        },
    },
];

fn cron_expression(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    if let Ok(spec) = serde_json::from_str::<ScheduleSpec>(text) {
        let Ok(job) = CronSchedule::new("job", &spec) else {
            return false;
        };
        let state = job.begin(Timestamp::UNIX_EPOCH);
        let week = Timestamp::from_second(7 * 86_400).unwrap_or_default();
        assert!(
            job.step(&state, week, &[]).firings.len() <= 2,
            "a minute has few slots"
        );
        return true;
    }
    let Ok(schedule) = Schedule::parse(text, Some("Europe/Berlin")) else {
        return false;
    };
    let mut last = Timestamp::UNIX_EPOCH;
    for _ in 0..20 {
        let Some(next) = schedule.next_after(last) else {
            break;
        };
        assert!(next > last, "slots go forward");
        last = next;
    }
    true
}

fn fleet_event(bytes: &[u8]) -> bool {
    let Ok(event) = serde_json::from_slice::<FleetEvent>(bytes) else {
        return false;
    };
    let spec = r#"{"match": {"types": ["*"], "when": "event.data.size() < 3 || event.labels.a == 'b'"},
        "groupBy": ["node", "labels.a", "data.path"], "count": 2, "within": "1m", "cooldown": "10m"}"#;
    let spec: Result<TriggerSpec, _> = serde_json::from_str(spec);
    let trigger = spec
        .ok()
        .and_then(|spec| Trigger::new("uid", "shop", &spec).ok());
    let (Some(trigger), mut budget) = (trigger, RunBudget::per_minute(10)) else {
        return false;
    };
    let mut memory = TriggerMemory::default();
    let mut around = Surroundings {
        now: event.received,
        active: 0,
        budget: &mut budget,
    };
    let view = EventView::new(&event);
    let _ = trigger.explain(&memory, &view, &around).to_string();
    let _ = trigger.observe(&mut memory, &view, &mut around);
    true
}

fn webhook_body(bytes: &[u8]) -> bool {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (spec, body) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let Ok(spec) = serde_json::from_slice(spec) else {
        return false;
    };
    let mapped = WebhookMapping::new(&spec)
        .ok()
        .and_then(|mapping| mapping.events(body, ORIGIN).ok());
    mapped.is_some_and(|mapped| !mapped.events.is_empty())
}

fn webhook_headers(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let (timestamp, signature) = text.split_once('\n').unwrap_or((text, ""));
    let keys = WebhookKey::bearer(b"0123456789abcdef");
    let verifier = WebhookVerifier::new(keys.into_iter().collect());
    let request = WebhookRequest {
        timestamp: Some(timestamp),
        signature: Some(signature),
        body: b"{}",
        ..WebhookRequest::default()
    };
    verifier.verify(&request, Timestamp::UNIX_EPOCH).is_ok()
}
