//! Who is told what.

use portolan_rollout::{
    Actor, Capacity, NotificationForm, Outcome, Phase, Record, Spec, Time, notification_body,
    peak_replicas, recipients,
};
use serde_json::json;

fn record(to: Phase) -> Record {
    Record {
        number: 1,
        at: Time::from_unix(0),
        from: Phase::RollingBack,
        to,
        revision: None,
        weight: 0,
        outcome: Some(Outcome::RolledBack),
        reason: "RolledBack".to_owned(),
        message: "errors: 28 of 3120 requests were bad".to_owned(),
        actor: Actor::Operator,
        evidence: Vec::new(),
    }
}

#[test]
fn those_who_named_a_phase_are_told_about_it_alone() {
    let spec = json!({
        "template": {}, "service": {"port": 80},
        "notifications": [
            {"type": "slack", "url": "https://all"},
            {"type": "teams", "url": "https://bad", "phases": ["RolledBack"]},
        ],
    });
    let spec: Spec = serde_json::from_value(spec).expect("a spec");
    let told = |phase| recipients(&spec, &record(phase)).len();
    assert_eq!((told(Phase::RolledBack), told(Phase::Stable)), (2, 1));
}

#[test]
fn every_form_says_what_happened_and_why() {
    let record = record(Phase::RolledBack);
    let text = "shop/web is RolledBack (RolledBack): errors: 28 of 3120 requests were bad";
    let slack = notification_body(NotificationForm::Slack, "shop", "web", &record);
    assert_eq!(slack, json!({"text": text}));
    let webhook = notification_body(NotificationForm::Webhook, "shop", "web", &record);
    assert_eq!(webhook["record"]["outcome"], "RolledBack");
    let teams = notification_body(NotificationForm::Teams, "shop", "web", &record);
    assert_eq!(
        teams.pointer("/attachments/0/content/body/0/text"),
        Some(&json!(text))
    );
}

#[test]
fn the_peak_is_what_both_revisions_need_at_once() {
    let json = json!({"replicas": 10, "service": {"port": 80}, "template": {}});
    let mut spec: Spec = serde_json::from_value(json).expect("a spec");
    assert_eq!(peak_replicas(&spec), 20);
    spec.strategy.capacity = Capacity::ShrinkStable;
    assert_eq!(peak_replicas(&spec), 16);
    spec.replicas = Some(1);
    assert_eq!(peak_replicas(&spec), 2);
}
