//! Beacons on the agent: when a check tells something, which events are made, and which are kept without a server.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use portolan_trigger::{
    BeaconReading, BeaconState, EdgeSpec, EventFilter, EventFilterSpec, FleetSeverity, SpoolEntry,
    SpoolLedger, SpoolLimits, WrittenSpan,
};
use proptest::prelude::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_795_000_000 + seconds).expect("a time")
}

fn reading(condition: &str) -> BeaconReading {
    BeaconReading {
        condition: condition.to_owned(),
        is_normal: condition == "up",
    }
}

/// What a beacon tells about a row of checks, one a second.
fn told(rule: &EdgeSpec, conditions: &[&str]) -> Vec<(usize, String)> {
    let mut state = BeaconState::default();
    let mut told = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        // It survives a restart.
        let stored = serde_json::to_string(&state).expect("JSON");
        state = serde_json::from_str(&stored).expect("a state");
        let edge = state.read(rule, &reading(condition), at(index as i64));
        told.extend(edge.map(|edge| (index, edge.now)));
    }
    told
}

fn named(told: &[(usize, &str)]) -> Vec<(usize, String)> {
    let told = told.iter();
    told.map(|(index, name)| (*index, (*name).to_owned()))
        .collect()
}

#[test]
fn on_change_tells_changes_and_a_bad_beginning() {
    let rule = EdgeSpec::default();
    assert_eq!(
        told(&rule, &["up", "up", "down", "down", "up"]),
        named(&[(2, "down"), (4, "up")])
    );
    assert_eq!(told(&rule, &["down", "down"]), named(&[(0, "down")]));
    assert_eq!(
        told(&rule, &["up", "unknown"]),
        named(&[(1, "unknown")]),
        "not known is not unchanged"
    );
}

#[test]
fn every_tells_again_although_nothing_changed() {
    let rule = EdgeSpec {
        every: Some(WrittenSpan::seconds(3)),
        ..EdgeSpec::default()
    };
    assert_eq!(
        told(&rule, &["up", "up", "up", "up", "down", "down"]),
        named(&[(3, "up"), (4, "down")])
    );
}

#[test]
fn a_flapping_service_is_told_when_most_checks_agree() {
    let rule = EdgeSpec {
        seen: 3,
        of: 4,
        ..EdgeSpec::default()
    };
    let flapping = [
        "up", "up", "up", "down", "up", "down", "up", "down", "down", "down",
    ];
    assert_eq!(told(&rule, &flapping), named(&[(8, "down")]));
}

#[test]
fn rules_that_could_hold_for_two_conditions_are_refused() {
    let rule = |seen, of| EdgeSpec {
        seen,
        of,
        ..EdgeSpec::default()
    };
    assert!(
        rule(1, 2).fault().is_some()
            && rule(3, 2).fault().is_some()
            && rule(1, 0).fault().is_some()
    );
    assert_eq!(rule(2, 3).fault(), None);
}

#[test]
fn some_events_cannot_be_denied() {
    let spec = EventFilterSpec {
        allow: vec!["run.*".to_owned()],
        deny: vec!["*".to_owned()],
    };
    let filter = EventFilter::new(&spec).expect("a filter");
    assert!(filter.allows("events.dropped") && filter.allows("trigger.tripped"));
    assert!(!filter.allows("run.failed"), "deny stands above allow");
    for pattern in ["", "[a", "a b", "run\\*"] {
        let spec = EventFilterSpec {
            deny: vec![pattern.to_owned()],
            ..EventFilterSpec::default()
        };
        assert!(EventFilter::new(&spec).is_err(), "{pattern}");
    }
}

#[test]
fn a_full_spool_drops_ten_thousand_and_first_of_the_least_severe() {
    let mut spool = SpoolLedger::new(SpoolLimits::default());
    let entry = |seq, severity| SpoolEntry {
        seq,
        severity,
        bytes: 100,
    };
    for seq in 0..10_000 {
        assert!(spool.add(entry(seq, FleetSeverity::Error)).is_empty());
    }
    let info = entry(10_000, FleetSeverity::Info);
    assert_eq!(
        spool.add(info),
        [info],
        "nothing that is kept is less severe"
    );
    let error = spool.add(entry(10_001, FleetSeverity::Error));
    assert_eq!(error, [entry(0, FleetSeverity::Error)]);
    let loss = spool.loss();
    assert_eq!((loss.info, loss.error, loss.events()), (1, 1, 2));
    spool.told(loss);
    assert_eq!(spool.loss().events(), 0);
    spool.delivered(9_999);
    assert_eq!((spool.len(), spool.bytes()), (1, 100));
}

proptest! {
    /// Whatever comes: the limits hold, nothing is lost without being counted, and nothing more severe is dropped while
    /// something less severe is kept.
    #[test]
    fn a_spool_is_bounded_and_counts_what_it_drops(
        entries in proptest::collection::vec((0_u8..3, 1_u64..400), 1..300),
        delivered in 0_u64..300,
    ) {
        let limits = SpoolLimits { events: 40, bytes: 5_000 };
        let mut spool = SpoolLedger::new(limits);
        let mut kept: BTreeMap<u64, SpoolEntry> = BTreeMap::new();
        let mut dropped_count = 0;
        for (seq, (severity, bytes)) in entries.iter().enumerate() {
            let severity = [FleetSeverity::Info, FleetSeverity::Warning, FleetSeverity::Error][usize::from(*severity)];
            let entry = SpoolEntry { seq: seq as u64, severity, bytes: *bytes };
            kept.insert(entry.seq, entry);
            for dropped in spool.add(entry) {
                kept.remove(&dropped.seq);
                dropped_count += 1;
                let least = kept.values().map(|entry| entry.severity).min();
                prop_assert!(least.is_none_or(|least| least >= dropped.severity));
                let older = kept.values().filter(|entry| entry.severity == dropped.severity && entry.seq < dropped.seq);
                prop_assert_eq!(older.count(), 0, "the oldest first");
            }
            prop_assert!(spool.len() <= limits.events && spool.bytes() <= limits.bytes);
            prop_assert_eq!(spool.len(), kept.len());
            prop_assert_eq!(spool.bytes(), kept.values().map(|entry| entry.bytes).sum::<u64>());
        }
        prop_assert_eq!(spool.loss().events(), dropped_count);
        spool.delivered(delivered);
        kept.retain(|seq, _| *seq > delivered);
        prop_assert_eq!(spool.len(), kept.len());
    }

    /// Between two things that are told as changes the condition differs, and what is told was seen often enough.
    #[test]
    fn what_is_told_was_seen_in_n_of_m(
        checks in proptest::collection::vec(0_u8..3, 1..200),
        of in 1_u32..6,
        extra in 0_u32..6,
    ) {
        let rule = EdgeSpec { every: None, seen: (of / 2 + 1 + extra).min(of), of };
        prop_assume!(rule.fault().is_none());
        let names = ["up", "down", "unknown"];
        let row: Vec<&str> = checks.iter().map(|check| names[usize::from(*check)]).collect();
        let told = told(&rule, &row);
        for pair in told.windows(2) {
            prop_assert_ne!(&pair[0].1, &pair[1].1);
        }
        for (index, condition) in told {
            let first = (index + 1).saturating_sub(of as usize);
            let seen = row[first..=index].iter().filter(|one| **one == condition).count();
            prop_assert!(seen >= rule.seen as usize);
        }
    }
}

#[test]
fn a_clock_that_goes_back_does_not_silence_a_beacon() {
    let rule = EdgeSpec {
        every: Some(WrittenSpan::seconds(60)),
        ..EdgeSpec::default()
    };
    let mut state = BeaconState::default();
    state.read(&rule, &reading("down"), at(0));
    let back = at(0)
        .checked_sub(SignedDuration::from_hours(24))
        .expect("a time");
    assert!(state.read(&rule, &reading("down"), back).is_none());
    let soon = back
        .checked_add(SignedDuration::from_secs(60))
        .expect("a time");
    assert!(state.read(&rule, &reading("down"), soon).is_some());
}
