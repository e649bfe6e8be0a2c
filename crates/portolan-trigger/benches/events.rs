//! How many events a second meet their triggers: 1,000 triggers, ten or all of them candidates, one in a hundred matching.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use portolan_trigger::{
    CauseChain, FleetEvent, FleetSeverity, Reactor, RunBudget, Trigger, TriggerMemory, TriggerSpec,
};
use serde_json::json;

const TRIGGERS: usize = 1_000;
const EVENTS: usize = 1_000;

/// Triggers in groups of one type; each asks for one value of a hundred.
fn reactor(candidates: usize) -> Reactor {
    let mut reactor = Reactor::new(RunBudget::per_minute(1_000_000));
    for number in 0..TRIGGERS {
        let spec: TriggerSpec = serde_json::from_value(json!({
            "match": {
                "types": [format!("beacon.type-{}", number / candidates)],
                "when": format!(
                    "event.severity != 'info' && event.data.value == {} && event.data.path.startsWith('/etc/')",
                    number % 100
                ),
            },
            "groupBy": ["node"], "count": 3, "within": "1m", "maxActive": 1000,
            "trip": {"burst": 10_000, "per": "1s"},
        }))
        .expect("a spec");
        let trigger = Trigger::new(&format!("trigger-{number}"), "shop", &spec);
        reactor.insert(trigger.expect("a trigger"), TriggerMemory::default());
    }
    reactor
}

fn events(candidates: usize) -> Vec<FleetEvent> {
    let types = TRIGGERS / candidates;
    let made = (0..EVENTS).map(|number| FleetEvent {
        uid: number.to_string(),
        kind: format!("beacon.type-{}", number % types),
        namespace: "shop".to_owned(),
        node: Some(format!("node-{}", number % 50)),
        severity: FleetSeverity::Warning,
        labels: [
            ("zone".to_owned(), "a".to_owned()),
            ("rack".to_owned(), "17".to_owned()),
        ]
        .into(),
        data: serde_json::Map::from_iter([
            ("path".to_owned(), json!("/etc/web/web.conf")),
            ("value".to_owned(), json!(number * 7 % 100)),
            (
                "digest".to_owned(),
                json!("sha256:0123456789abcdef0123456789abcdef"),
            ),
        ]),
        time: Timestamp::UNIX_EPOCH,
        received: Timestamp::UNIX_EPOCH,
        causes: CauseChain::default(),
    });
    made.collect()
}

fn observe(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("events");
    group.throughput(Throughput::Elements(EVENTS as u64));
    group.sample_size(10);
    for candidates in [10, 100, 1_000] {
        let mut reactor = reactor(candidates);
        let mut events = events(candidates);
        let mut now: Timestamp = "2026-11-18T09:00:00Z".parse().expect("a time");
        let mut round = 0_u64;
        group.bench_function(
            format!("{candidates} candidates of {TRIGGERS} triggers"),
            |bencher| {
                bencher.iter(|| {
                    round += 1;
                    let mut reports = 0;
                    for (number, event) in events.iter_mut().enumerate() {
                        // A tenth of a millisecond between two events.
                        now = now
                            .checked_add(SignedDuration::from_micros(100))
                            .expect("a time");
                        event.uid = format!("{round}-{number}");
                        event.time = now;
                        event.received = now;
                        reports += reactor.observe(event, now, &|_| 0).len();
                    }
                    reports
                });
            },
        );
        let counts = reactor.counts();
        assert!(
            counts.broken_conditions == 0 && counts.fired > 0,
            "{counts:?}"
        );
    }
    group.finish();
}

criterion_group!(benches, observe);
criterion_main!(benches);
