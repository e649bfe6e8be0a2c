//! Triggers: which events start a run, one run per firing, and why others do not.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use portolan_trigger::{
    Blocked, CauseChain, EventView, Firing, FleetEvent, FleetSeverity, Mismatch, Reaction, Reactor,
    Refusal, RunBudget, Surroundings, Trigger, TriggerMemory, TriggerSpec,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn start() -> Timestamp {
    "2026-11-18T09:00:00Z".parse().expect("a time")
}

fn after(millis: i64) -> Timestamp {
    start()
        .checked_add(SignedDuration::from_millis(millis))
        .expect("a time")
}

fn event(uid: &str, millis: i64) -> FleetEvent {
    FleetEvent {
        uid: uid.to_owned(),
        kind: "beacon.drift".to_owned(),
        namespace: "shop".to_owned(),
        node: Some("web-1".to_owned()),
        severity: FleetSeverity::Warning,
        labels: [("disk".to_owned(), "sda".to_owned())].into(),
        data: serde_json::Map::from_iter([("path".to_owned(), json!("/etc/web.conf"))]),
        time: after(millis),
        received: after(millis),
        causes: CauseChain::default(),
    }
}

fn spec(more: Json) -> TriggerSpec {
    let mut spec = json!({"match": {"types": ["beacon.drift"]}});
    let (Json::Object(spec_map), Json::Object(more)) = (&mut spec, more) else {
        unreachable!("specs are maps");
    };
    spec_map.extend(more);
    serde_json::from_value(spec).expect("a spec")
}

fn trigger(more: Json) -> Trigger {
    Trigger::new("t1", "shop", &spec(more)).expect("a trigger")
}

/// A trigger with what it remembers, what is active and what all triggers may start.
struct Scene {
    trigger: Trigger,
    memory: TriggerMemory,
    budget: RunBudget,
    active: u32,
}

impl Scene {
    fn new(more: Json) -> Self {
        Self {
            trigger: trigger(more),
            memory: TriggerMemory::default(),
            budget: RunBudget::per_minute(1_000),
            active: 0,
        }
    }

    fn observe_at(&mut self, event: &FleetEvent, now: Timestamp) -> Reaction {
        let mut around = Surroundings {
            now,
            active: self.active,
            budget: &mut self.budget,
        };
        let view = EventView::new(event);
        let explained = self.trigger.explain(&self.memory, &view, &around);
        let reaction = self.trigger.observe(&mut self.memory, &view, &mut around);
        let same = match (&explained.reaction, &reaction) {
            // What would be remembered about other groups is not part of an explanation.
            (Reaction::Fired(one), Reaction::Fired(other)) => one.id == other.id,
            (one, other) => one == other,
        };
        assert!(
            same,
            "explained as {:?}, was {reaction:?}",
            explained.reaction
        );
        reaction
    }

    fn observe(&mut self, event: &FleetEvent) -> Reaction {
        self.observe_at(event, event.received)
    }

    fn poll(&mut self, now: Timestamp) -> Option<Reaction> {
        let mut around = Surroundings {
            now,
            active: self.active,
            budget: &mut self.budget,
        };
        self.trigger.poll(&mut self.memory, "[]", &mut around)
    }
}

fn fired(reaction: Reaction) -> Firing {
    match reaction {
        Reaction::Fired(firing) => *firing,
        other => unreachable!("it does not fire: {other}"),
    }
}

#[test]
fn an_event_of_its_type_starts_a_run() {
    let mut scene = Scene::new(json!({}));
    let firing = fired(scene.observe(&event("e1", 0)));
    assert_eq!(firing.count, 1);
    assert_eq!(firing.event.uid, "e1");
    assert_eq!(firing.causes.depth(), 1);
    assert!(firing.causes.has("t1"));
}

#[test]
fn an_event_that_does_not_match_says_why() {
    let mut scene = Scene::new(json!({
        "match": {"types": ["beacon.*"], "when": "event.data.path.startsWith('/etc/') && event.severity != 'info'"}
    }));
    let change = |edit: fn(&mut FleetEvent)| {
        let mut event = event("e", 0);
        edit(&mut event);
        event
    };
    for (event, why) in [
        (
            change(|event| event.kind = "run.failed".to_owned()),
            Mismatch::Type("run.failed".to_owned()),
        ),
        (
            change(|event| event.namespace = "bank".to_owned()),
            Mismatch::Namespace("bank".to_owned()),
        ),
        (
            change(|event| event.severity = FleetSeverity::Info),
            Mismatch::When,
        ),
        (
            change(|event| event.data.clear()),
            Mismatch::Condition("there is no key `path`".to_owned()),
        ),
    ] {
        assert_eq!(scene.observe(&event), Reaction::NoMatch(why));
    }
}

#[test]
fn a_wrong_spec_names_every_fault() {
    let spec = spec(json!({
        "match": {"types": ["Beacon"], "when": "event.nodee == 1", "namespaces": ["bank"]},
        "count": 3, "groupBy": ["host"], "windows": [{"from": "25:00", "to": "06:00"}],
        "waitForMore": {"quiet": "1m", "max": "10s"}
    }));
    let faults = Trigger::new("t1", "shop", &spec).expect_err("faults");
    let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    let expected = [
        "match.types[0]",
        "match.namespaces[0]",
        "match.when",
        "groupBy[0]",
        "windows[0]",
        "within",
        "waitForMore.max",
    ];
    assert_eq!(fields, expected);
    assert!(
        Trigger::new(
            "t2",
            "system",
            &serde_json::from_value(json!({
                "match": {"types": ["*"], "namespaces": ["*"]}
            }))
            .expect("a spec")
        )
        .is_ok()
    );
}

#[test]
fn three_events_within_a_minute_start_one_run() {
    let mut scene = Scene::new(json!({"count": 3, "within": "1m"}));
    let counted = |have| Reaction::Counted { have, need: 3 };
    assert_eq!(scene.observe(&event("a", 0)), counted(1));
    assert_eq!(scene.observe(&event("b", 50_000)), counted(2));
    assert_eq!(
        scene.observe(&event("c", 100_000)),
        counted(2),
        "the first is too old"
    );
    let firing = fired(scene.observe(&event("d", 105_000)));
    assert_eq!(firing.count, 3);
    assert_eq!(
        scene.observe(&event("e", 106_000)),
        counted(1),
        "the window is used up"
    );
}

#[test]
fn groups_are_counted_apart() {
    let mut scene = Scene::new(
        json!({"count": 2, "within": "1m", "groupBy": ["node", "labels.disk", "data.path"]}),
    );
    let mut other = event("b", 1_000);
    other.node = Some("web-2".to_owned());
    scene.observe(&event("a", 0));
    assert!(matches!(
        scene.observe(&other),
        Reaction::Counted { have: 1, .. }
    ));
    let firing = fired(scene.observe(&event("c", 2_000)));
    assert_eq!(firing.group, r#"["web-1","sda","/etc/web.conf"]"#);
}

#[test]
fn an_event_that_its_node_sends_late_counts_within_five_seconds_only() {
    let mut scene = Scene::new(json!({"count": 3, "within": "1m"}));
    let late = |uid: &str, by: i64| FleetEvent {
        time: after(60_000 - by),
        received: after(60_000),
        ..event(uid, 0)
    };
    scene.observe(&event("a", 60_000));
    assert!(matches!(
        scene.observe(&late("b", 4_900)),
        Reaction::Counted { have: 2, .. }
    ));
    assert_eq!(
        scene.observe(&late("c", 6_000)),
        Reaction::Refused(Refusal::TooLate(1_000))
    );
}

/// The clocks of nodes differ; what one node sends is not late because the clock of another is ahead.
#[test]
fn a_node_whose_clock_is_behind_is_counted() {
    let mut scene = Scene::new(json!({"count": 3, "within": "1m"}));
    let of = |uid: &str, node: &str, skew: i64, millis: i64| FleetEvent {
        node: Some(node.to_owned()),
        time: after(millis + skew),
        received: after(millis),
        ..event(uid, 0)
    };
    scene.observe(&of("a", "ahead", 240_000, 0));
    scene.observe(&of("b", "behind", -240_000, 1_000));
    scene.observe(&of("c", "behind", -240_000, 2_000));
    fired(scene.observe(&of("d", "behind", -240_000, 3_000)));
}

#[test]
fn a_burst_makes_one_run_when_it_is_over() {
    let mut scene = Scene::new(json!({"waitForMore": {"quiet": "10s", "max": "30s"}}));
    for second in [0, 8, 16, 24] {
        let reaction = scene.observe(&event(&second.to_string(), second * 1_000));
        assert!(matches!(reaction, Reaction::Waiting { .. }), "{reaction}");
    }
    assert_eq!(
        scene.poll(after(29_000)),
        Some(Reaction::Waiting {
            until: after(30_000)
        }),
        "no longer than `max`"
    );
    let firing = fired(scene.poll(after(30_000)).expect("it waits"));
    assert_eq!((firing.count, firing.event.uid.as_str()), (4, "24"));
    assert_eq!(scene.poll(after(60_000)), None);
}

#[test]
fn a_clock_that_goes_back_does_not_make_a_burst_wait_longer() {
    let mut scene = Scene::new(json!({"waitForMore": {"quiet": "10s", "max": "30s"}}));
    scene.observe(&event("a", 86_400_000));
    assert_eq!(
        scene.poll(after(0)),
        Some(Reaction::Waiting {
            until: after(10_000)
        })
    );
    fired(scene.poll(after(10_000)).expect("it waits"));
}

#[test]
fn a_group_that_fired_cools_down() {
    let mut scene = Scene::new(json!({"cooldown": "10m"}));
    fired(scene.observe(&event("a", 0)));
    assert_eq!(
        scene.observe(&event("b", 599_000)),
        Reaction::Refused(Refusal::Cooldown(after(600_000)))
    );
    fired(scene.observe(&event("c", 600_000)));
}

#[test]
fn a_firing_behind_active_runs_is_held_once_or_dropped() {
    let mut scene = Scene::new(json!({"maxActive": 1}));
    scene.active = 1;
    for uid in ["a", "b", "c"] {
        assert_eq!(
            scene.observe(&event(uid, 0)),
            Reaction::Held(Blocked::Active(1))
        );
    }
    scene.active = 0;
    let firing = fired(scene.poll(after(5_000)).expect("it is held"));
    assert_eq!((firing.count, firing.event.uid.as_str()), (3, "c"));
    assert_eq!(scene.poll(after(6_000)), None);
    let mut scene = Scene::new(json!({"maxActive": 1, "whenBlocked": "drop"}));
    scene.active = 1;
    assert_eq!(
        scene.observe(&event("a", 0)),
        Reaction::Refused(Refusal::Blocked(Blocked::Active(1)))
    );
}

#[test]
fn outside_its_times_a_firing_is_held() {
    let mut scene = Scene::new(json!({
        "windows": [{"days": ["wed"], "from": "22:00", "to": "06:00", "timeZone": "Europe/Berlin"}]
    }));
    assert_eq!(
        scene.observe(&event("a", 0)),
        Reaction::Held(Blocked::Closed)
    );
    let evening = "2026-11-18T21:00:00Z".parse().expect("a time");
    fired(scene.poll(evening).expect("it is held"));
}

#[test]
fn it_fires_no_more_often_than_it_may_in_an_hour() {
    let mut scene = Scene::new(json!({"perHour": 2}));
    fired(scene.observe(&event("a", 0)));
    fired(scene.observe(&event("b", 1_000)));
    assert_eq!(
        scene.observe(&event("c", 2_000)),
        Reaction::Refused(Refusal::PerHour {
            most: 2,
            until: after(3_600_000)
        })
    );
    fired(scene.observe(&event("d", 3_600_000)));
}

#[test]
fn a_trigger_that_fires_too_often_is_switched_off_with_one_alert() {
    let mut scene = Scene::new(json!({"trip": {"burst": 3, "per": "10m", "reset": "1h"}}));
    for uid in ["a", "b", "c"] {
        fired(scene.observe(&event(uid, 0)));
    }
    let Reaction::Tripped(alert) = scene.observe(&event("d", 1_000)) else {
        panic!("it is switched off");
    };
    assert_eq!((alert.burst, alert.until), (3, Some(after(3_601_000))));
    for uid in ["e", "f"] {
        let reaction = scene.observe(&event(uid, 1_200_000));
        assert!(
            matches!(reaction, Reaction::Refused(Refusal::Tripped { .. })),
            "one alert"
        );
    }
    assert_eq!(
        scene.memory.ledger().trip().map(|trip| trip.refused),
        Some(3)
    );
    fired(scene.observe(&event("g", 3_601_000)));
}

#[test]
fn a_trigger_without_a_time_is_switched_on_by_hand() {
    let mut scene = Scene::new(json!({"trip": {"burst": 1, "per": "1s"}}));
    fired(scene.observe(&event("a", 0)));
    assert!(matches!(
        scene.observe(&event("b", 0)),
        Reaction::Tripped(_)
    ));
    assert!(matches!(
        scene.observe(&event("c", 86_400_000)),
        Reaction::Refused(_)
    ));
    scene.memory.reset();
    fired(scene.observe(&event("d", 86_400_001)));
}

#[test]
fn a_run_does_not_start_itself_again() {
    let mut scene = Scene::new(json!({}));
    let own = FleetEvent {
        causes: CauseChain::default().with("t1", "run-1"),
        ..event("a", 0)
    };
    assert_eq!(scene.observe(&own), Reaction::Refused(Refusal::SameTrigger));
    let deep = ["t2", "t3", "t4", "t5"]
        .iter()
        .fold(CauseChain::default(), |chain, uid| chain.with(uid, "run"));
    let deep = FleetEvent {
        causes: deep,
        ..event("b", 0)
    };
    assert_eq!(
        scene.observe(&deep),
        Reaction::Refused(Refusal::TooDeep { depth: 5, most: 4 })
    );
}

/// A circle of triggers, each set off by the run of the one before: it ends, whatever its length.
#[test]
fn a_circle_of_triggers_ends() {
    for length in 1..8_usize {
        let mut triggers: Vec<(Trigger, TriggerMemory)> = (0..length)
            .map(|number| {
                let spec = spec(json!({}));
                let trigger = Trigger::new(&format!("t{number}"), "shop", &spec);
                (trigger.expect("a trigger"), TriggerMemory::default())
            })
            .collect();
        let mut budget = RunBudget::per_minute(1_000);
        let (mut runs, mut causes) = (0, CauseChain::default());
        for turn in 0..100_usize {
            let event = FleetEvent {
                causes: causes.clone(),
                ..event(&turn.to_string(), turn as i64)
            };
            let (trigger, memory) = &mut triggers[turn % length];
            let mut around = Surroundings {
                now: event.received,
                active: 0,
                budget: &mut budget,
            };
            match trigger.observe(memory, &EventView::new(&event), &mut around) {
                Reaction::Fired(firing) => causes = firing.causes,
                Reaction::Refused(_) => break,
                other => panic!("{other}"),
            }
            runs += 1;
        }
        assert_eq!(runs, length.min(4), "a circle of {length}");
    }
}

/// A beacon that the run itself sets off, without a chain of causes: the limit of the trigger stops it.
#[test]
fn a_loop_that_hides_its_cause_is_switched_off() {
    let mut scene = Scene::new(json!({}));
    let (mut runs, mut alerts) = (0, 0);
    for turn in 0..1_000 {
        match scene.observe(&event(&turn.to_string(), turn * 3_000)) {
            Reaction::Fired(_) => runs += 1,
            Reaction::Tripped(_) => alerts += 1,
            _ => {}
        }
    }
    assert_eq!(alerts, 1, "told once");
    assert!(runs < 30, "{runs} runs");
}

#[test]
fn too_many_groups_are_counted_and_told() {
    let mut scene = Scene::new(json!({
        "groupBy": ["data.path"], "maxGroups": 10, "count": 2, "within": "1m", "trip": {"burst": 1000}
    }));
    let of = |number: i64, millis: i64| {
        let mut event = event(&format!("{number}-{millis}"), millis);
        event.data.insert("path".to_owned(), json!(number));
        event
    };
    for number in 0..10 {
        assert!(matches!(
            scene.observe(&of(number, number)),
            Reaction::Counted { .. }
        ));
    }
    assert_eq!(
        scene.observe(&of(10, 20)),
        Reaction::Refused(Refusal::TooManyGroups(10))
    );
    assert_eq!(scene.memory.ledger().overflow(), 1);
    assert!(
        matches!(scene.observe(&of(3, 30)), Reaction::Fired(_)),
        "known groups go on"
    );
    let later = of(11, 3_600_000);
    assert!(
        matches!(scene.observe(&later), Reaction::Counted { .. }),
        "idle groups are forgotten"
    );
    assert!(scene.memory.group_count() < 10);
}

#[test]
fn all_triggers_together_start_no_more_than_the_budget() {
    let mut reactor = Reactor::new(RunBudget::per_minute(5));
    for number in 0..8 {
        let trigger = Trigger::new(&format!("t{number}"), "shop", &spec(json!({})));
        reactor.insert(trigger.expect("a trigger"), TriggerMemory::default());
    }
    let reports = reactor.observe(&event("a", 0), after(0), &|_| 0);
    let held = |reports: &[portolan_trigger::TriggerReport]| {
        let is_held = |reaction: &Reaction| matches!(reaction, Reaction::Held(Blocked::Budget(5)));
        reports
            .iter()
            .filter(|report| is_held(&report.reaction))
            .count()
    };
    assert_eq!(
        (reports.len(), held(&reports), reactor.held_count()),
        (8, 3, 3)
    );
    assert!(reactor.tick(after(59_000), &|_| 0).is_empty());
    assert_eq!(reactor.tick(after(60_000), &|_| 0).len(), 3, "none is lost");
    assert_eq!(reactor.counts().fired, 8);
}

#[test]
fn a_clock_that_goes_back_does_not_make_the_reactor_wait_longer() {
    let mut reactor = Reactor::new(RunBudget::per_minute(5));
    let wait = json!({"waitForMore": {"quiet": "10s", "max": "30s"}});
    reactor.insert(trigger(wait), TriggerMemory::default());
    reactor.observe(&event("a", 3_600_000), after(3_600_000), &|_| 0);
    assert!(reactor.tick(after(3_600_001), &|_| 0).is_empty());
    assert!(reactor.tick(after(0), &|_| 0).is_empty());
    assert_eq!(reactor.next_due(), Some(after(10_000)));
    assert_eq!(reactor.tick(after(10_000), &|_| 0).len(), 1);
}

/// A trigger that was removed and added again with what it remembered goes on where it was.
#[test]
fn a_firing_that_waited_when_it_was_stored_is_not_lost() {
    let mut reactor = Reactor::new(RunBudget::per_minute(5));
    let wait = || trigger(json!({"waitForMore": {"quiet": "10s", "max": "30s"}}));
    reactor.insert(wait(), TriggerMemory::default());
    reactor.observe(&event("a", 0), after(0), &|_| 0);
    let memory = reactor.remove("t1").expect("a trigger");
    assert!(reactor.tick(after(60_000), &|_| 0).is_empty());
    reactor.insert(wait(), memory);
    assert!(reactor.tick(after(9_000), &|_| 0).is_empty());
    assert_eq!(reactor.tick(after(10_000), &|_| 0).len(), 1);
}

#[test]
fn an_event_meets_the_triggers_that_ask_for_it_only() {
    let mut reactor = Reactor::new(RunBudget::per_minute(100));
    for (uid, namespace, types, namespaces) in [
        ("exact", "shop", "beacon.drift", None),
        ("below", "shop", "beacon.*", None),
        ("all", "shop", "*", None),
        ("other type", "shop", "beacon.disk", None),
        ("other namespace", "bank", "beacon.drift", None),
        ("system", "system", "beacon.*", Some("*")),
    ] {
        let mut of = spec(json!({"match": {"types": [types]}}));
        of.matches.namespaces = namespaces.map(str::to_owned).into_iter().collect();
        let trigger = Trigger::new(uid, namespace, &of).expect("a trigger");
        reactor.insert(trigger, TriggerMemory::default());
    }
    let reports = reactor.observe(&event("a", 0), after(0), &|_| 0);
    let seen: BTreeSet<&str> = reports
        .iter()
        .map(|report| report.trigger.as_str())
        .collect();
    assert_eq!(seen, ["exact", "below", "all", "system"].into());
    assert_eq!(reactor.counts().candidates, 4);
    reactor.remove("all");
    assert_eq!(reactor.explain(&event("b", 0), after(0), &|_| 0).len(), 3);
}

/// A number of events in any order and delivered several times, seen by servers that take over from each other: the
/// firings have the same names, so each starts one run.
fn names_of(scene: &mut Scene, events: &[FleetEvent]) -> Vec<String> {
    let mut names = Vec::new();
    for event in events {
        if let Reaction::Fired(firing) = scene.observe(event) {
            names.push(firing.id);
        }
    }
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Events that come three times make the firings that they make when they come once.
    #[test]
    fn duplicates_make_no_further_firing(
        gaps in proptest::collection::vec(0_i64..40_000, 1..60),
        count in 1_u32..5,
        lag in 1_usize..4,
    ) {
        let mut at = 0;
        let events: Vec<FleetEvent> = gaps.iter().enumerate().map(|(index, gap)| {
            at += gap;
            event(&index.to_string(), at)
        }).collect();
        let spec = json!({"count": count, "within": "1m", "trip": {"burst": 1000}});
        let once = names_of(&mut Scene::new(spec.clone()), &events);
        let mut thrice = Vec::new();
        for (index, event) in events.iter().enumerate() {
            thrice.push(event.clone());
            thrice.push(event.clone());
            // A third time later, as an agent that connects again sends it.
            if let Some(old) = index.checked_sub(lag) {
                let received = event.received;
                thrice.push(FleetEvent { received, ..events[old].clone() });
            }
        }
        prop_assert_eq!(names_of(&mut Scene::new(spec), &thrice), once);
    }

    /// A server that is killed after any event is followed by one that has the last checkpoint and sees all events
    /// again: together they start the runs that one would have started, each once.
    #[test]
    fn a_server_that_takes_over_starts_no_run_twice_and_loses_none(
        gaps in proptest::collection::vec(0_i64..40_000, 1..40),
        count in 1_u32..4,
        killed in 0_usize..40,
        is_stored in any::<bool>(),
    ) {
        let mut at = 0;
        let events: Vec<FleetEvent> = gaps.iter().enumerate().map(|(index, gap)| {
            at += gap;
            event(&index.to_string(), at)
        }).collect();
        let spec = json!({"count": count, "within": "1m", "trip": {"burst": 1000}});
        let expected = names_of(&mut Scene::new(spec.clone()), &events);
        let mut first = Scene::new(spec.clone());
        let mut runs: BTreeSet<String> = BTreeSet::new();
        let mut stored = None;
        let before = &events[..killed.min(events.len())];
        for (index, event) in before.iter().enumerate() {
            if let Reaction::Fired(firing) = first.observe(event) {
                // The last firing may have been lost: killed between the firing and its run.
                if is_stored || index + 1 < before.len() {
                    let text = serde_json::to_string(&firing.checkpoint).expect("JSON");
                    stored = Some(serde_json::from_str::<portolan_trigger::Checkpoint>(&text).expect("a checkpoint"));
                    runs.insert(firing.id);
                }
            }
        }
        let mut second = Scene::new(spec);
        if let Some(stored) = stored {
            second.memory = TriggerMemory::restore(stored.ledger, [(stored.group, stored.window)]);
        }
        for name in names_of(&mut second, &events) {
            runs.insert(name);
        }
        prop_assert_eq!(runs, expected.into_iter().collect::<BTreeSet<_>>());
    }

    /// Against the rule in its plainest form: it fires when, among the events since the last firing, there are as many
    /// as needed in one span.
    #[test]
    fn events_in_order_are_counted_as_the_plain_rule_counts(
        gaps in proptest::collection::vec(0_i64..30_000, 1..120),
        count in 1_usize..6,
        within in 1_i64..60,
    ) {
        let spec = json!({"count": count, "within": format!("{within}s"), "trip": {"burst": 10_000}});
        let mut scene = Scene::new(spec);
        let (mut at, mut since): (i64, Vec<i64>) = (0, Vec::new());
        for (index, gap) in gaps.iter().enumerate() {
            at += gap;
            since.push(at);
            let inside = since.iter().filter(|time| at - **time <= within * 1_000).count();
            let is_full = inside >= count;
            if is_full {
                since.clear();
            }
            let reaction = scene.observe(&event(&index.to_string(), at));
            prop_assert_eq!(matches!(reaction, Reaction::Fired(_)), is_full, "{:?}", reaction);
        }
    }

    /// What is remembered is bounded, whatever comes.
    #[test]
    fn what_is_remembered_is_small(
        events in proptest::collection::vec((0_i64..600_000, -400_000_i64..400_000, 0_u8..40), 1..400),
        count in 2_u32..5,
    ) {
        let spec = json!({"count": count, "within": "1s", "groupBy": ["severity"]});
        let mut scene = Scene::new(spec);
        for (index, (millis, skew, node)) in events.iter().enumerate() {
            let event = FleetEvent {
                node: Some(format!("node-{node}")),
                time: after(millis + skew),
                received: after(*millis),
                ..event(&index.to_string(), 0)
            };
            if let Reaction::Fired(firing) = scene.observe(&event) {
                let stored = serde_json::to_string(&firing.checkpoint).expect("JSON");
                prop_assert!(stored.len() < 12_000, "{} bytes", stored.len());
            }
        }
    }
}
