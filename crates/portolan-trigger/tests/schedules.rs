//! Schedules: every slot fires once or by its policy, whatever the clock does.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_trigger::{
    Concurrency, CronSchedule, MissedPolicy, Schedule, ScheduleError, ScheduleSpec, ScheduleState,
    ScheduleStep, SkipReason, WrittenSpan,
};
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn seconds(moment: Timestamp, seconds: i64) -> Timestamp {
    moment
        .checked_add(SignedDuration::from_secs(seconds))
        .expect("a time")
}

fn spec(schedule: &str, zone: &str) -> ScheduleSpec {
    ScheduleSpec {
        schedule: schedule.to_owned(),
        time_zone: Some(zone.to_owned()),
        missed: MissedPolicy::Skip,
        concurrency: Concurrency::Allow,
        deadline: None,
    }
}

fn job(spec: &ScheduleSpec) -> CronSchedule {
    CronSchedule::new("job", spec).expect("a schedule")
}

/// A schedule under a clock, with everything that it fired.
struct Clockwork {
    job: CronSchedule,
    state: ScheduleState,
    fired: Vec<Timestamp>,
}

impl Clockwork {
    fn begin(spec: &ScheduleSpec, now: Timestamp) -> Self {
        let job = job(spec);
        let state = job.begin(now);
        Self {
            job,
            state,
            fired: Vec::new(),
        }
    }

    fn step(&mut self, now: Timestamp, active: &[String]) -> ScheduleStep {
        // What is stored is what is read back.
        let stored = serde_json::to_string(&self.state).expect("a state is JSON");
        let state: ScheduleState = serde_json::from_str(&stored).expect("a state");
        assert_eq!(state, self.state);
        let step = self.job.step(&state, now, active);
        assert_eq!(
            step,
            self.job.step(&state, now, active),
            "a step is a function"
        );
        self.state = step.state.clone();
        self.fired
            .extend(step.firings.iter().map(|firing| firing.slot));
        step
    }

    /// Steps every so many seconds.
    fn run(&mut self, from: Timestamp, until: Timestamp, every: i64) {
        let mut now = from;
        while now <= until {
            self.step(now, &[]);
            now = seconds(now, every);
        }
    }
}

#[test]
fn a_fixed_time_that_a_zone_skips_is_the_first_moment_after_the_gap() {
    let schedule = Schedule::parse("30 2 * * *", Some("Europe/Berlin")).expect("a schedule");
    let slots: Vec<Timestamp> = schedule
        .slots(at("2026-03-27T12:00:00Z"), at("2026-03-30T12:00:00Z"))
        .collect();
    let expected = [
        "2026-03-28T01:30:00Z",
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:30:00Z",
    ];
    assert_eq!(slots, expected.map(at));
}

#[test]
fn a_fixed_time_that_a_zone_has_twice_is_the_first_of_both() {
    let schedule = Schedule::parse("30 2 * * *", Some("Europe/Berlin")).expect("a schedule");
    let slots: Vec<Timestamp> = schedule
        .slots(at("2026-10-24T12:00:00Z"), at("2026-10-26T12:00:00Z"))
        .collect();
    assert_eq!(
        slots,
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"].map(at)
    );
}

/// Fixed times may be several: each is treated as if it stood alone, and two that fall on one moment are one slot.
#[test]
fn several_fixed_times_have_each_one_slot_when_clocks_change() {
    for (expression, day, expected) in [
        (
            "30 2,4 * * *",
            "2026-03-28T23:00:00Z",
            vec!["2026-03-29T01:00:00Z", "2026-03-29T02:30:00Z"],
        ),
        (
            "0 1-4 * * *",
            "2026-03-28T23:00:00Z",
            vec![
                "2026-03-29T00:00:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-29T02:00:00Z",
            ],
        ),
        (
            "30 2,4 * * *",
            "2026-10-24T22:00:00Z",
            vec!["2026-10-25T00:30:00Z", "2026-10-25T03:30:00Z"],
        ),
        (
            "15,45 2 * * 0",
            "2026-03-28T23:00:00Z",
            vec!["2026-03-29T01:00:00Z"],
        ),
    ] {
        let schedule = Schedule::parse(expression, Some("Europe/Berlin")).expect("a schedule");
        let slots: Vec<Timestamp> = schedule
            .slots(at(day), seconds(at(day), 23 * 3600))
            .collect();
        let expected: Vec<Timestamp> = expected.into_iter().map(at).collect();
        assert_eq!(slots, expected, "{expression}");
    }
}

#[test]
fn every_quarter_of_an_hour_comes_in_both_hours_when_clocks_go_back() {
    let schedule = Schedule::parse("*/15 * * * *", Some("Europe/Berlin")).expect("a schedule");
    let count = schedule
        .slots(at("2026-10-24T22:00:00Z"), at("2026-10-25T23:00:00Z"))
        .count();
    assert_eq!(count, 25 * 4, "a day of 25 hours");
}

#[test]
fn what_is_no_schedule_is_refused_with_its_reason() {
    for (expression, zone) in [
        ("61 * * * *", None),
        ("* * * *", None),
        ("0 0 0 1 1 *", None),
        ("", None),
        ("@sometimes", None),
    ] {
        let error = Schedule::parse(expression, zone).expect_err(expression);
        assert!(matches!(error, ScheduleError::Expression { .. }), "{error}");
    }
    assert_eq!(
        Schedule::parse("0 0 30 2 *", None).expect_err("no such day"),
        ScheduleError::Never("0 0 30 2 *".to_owned())
    );
    let zone = Schedule::parse("@daily", Some("Europe/Atlantis")).expect_err("no such zone");
    assert_eq!(zone, ScheduleError::Zone("Europe/Atlantis".to_owned()));
}

#[test]
fn a_week_offline_is_one_run_or_none() {
    for (missed, fired) in [(MissedPolicy::Skip, 0), (MissedPolicy::Once, 1)] {
        let spec = ScheduleSpec {
            missed,
            ..spec("*/10 * * * *", "UTC")
        };
        let mut clock = Clockwork::begin(&spec, at("2026-11-01T00:05:00Z"));
        let step = clock.step(at("2026-11-08T00:05:00Z"), &[]);
        assert_eq!(step.firings.len(), fired, "{missed:?}");
        if fired == 0 {
            assert_eq!(step.skipped.len(), 1);
            assert_eq!(step.skipped[0].reason, SkipReason::Missed);
            assert!(step.skipped[0].is_more, "more than a thousand");
        } else {
            let slot = at("2026-11-08T00:00:00Z");
            assert_eq!(step.firings[0].slot, slot);
            assert_eq!(step.skipped[0].reason, SkipReason::CoveredBy(slot));
        }
        let again = clock.step(at("2026-11-08T00:05:01Z"), &[]);
        assert!(again.firings.is_empty() && again.skipped.is_empty());
    }
}

#[test]
fn a_slot_that_is_made_up_for_too_late_is_skipped() {
    let spec = ScheduleSpec {
        missed: MissedPolicy::Once,
        deadline: Some(WrittenSpan::seconds(3600)),
        ..spec("0 2 * * *", "UTC")
    };
    let mut clock = Clockwork::begin(&spec, at("2026-11-01T00:00:00Z"));
    let step = clock.step(at("2026-11-01T04:00:00Z"), &[]);
    assert!(step.firings.is_empty());
    assert_eq!(step.skipped[0].reason, SkipReason::TooLate);
    let mut clock = Clockwork::begin(&spec, at("2026-11-01T00:00:00Z"));
    let step = clock.step(at("2026-11-01T02:30:00Z"), &[]);
    assert_eq!(step.firings[0].late, Duration::from_mins(30));
}

#[test]
fn a_slot_behind_an_active_run_waits_is_skipped_or_replaces_it() {
    let active = ["run-1".to_owned()];
    let (begin, slot) = (at("2026-11-01T01:30:00Z"), at("2026-11-01T02:00:10Z"));
    let with = |missed, concurrency| {
        let spec = ScheduleSpec {
            missed,
            concurrency,
            ..spec("0 * * * *", "UTC")
        };
        let mut clock = Clockwork::begin(&spec, begin);
        let step = clock.step(slot, &active);
        (clock, step)
    };
    let (_, step) = with(MissedPolicy::Skip, Concurrency::Forbid);
    assert_eq!(
        step.skipped[0].reason,
        SkipReason::Active("run-1".to_owned())
    );
    let (mut clock, step) = with(MissedPolicy::Once, Concurrency::Forbid);
    assert!(step.firings.is_empty() && step.skipped.is_empty());
    let later = clock.step(at("2026-11-01T02:40:00Z"), &active);
    assert!(later.firings.is_empty());
    let ended = clock.step(at("2026-11-01T02:50:00Z"), &[]);
    assert_eq!(ended.firings[0].id, "job/2026-11-01T02:00:00Z");
    assert!(
        clock
            .step(at("2026-11-01T02:51:00Z"), &[])
            .firings
            .is_empty()
    );
    let (_, step) = with(MissedPolicy::Skip, Concurrency::Replace);
    assert_eq!(step.firings[0].replaces, active);
    let (_, step) = with(MissedPolicy::Skip, Concurrency::Allow);
    assert!(step.firings[0].replaces.is_empty());
}

#[test]
fn a_clock_that_was_a_year_ahead_does_not_stop_the_schedule() {
    for missed in [MissedPolicy::Skip, MissedPolicy::Once] {
        let spec = ScheduleSpec {
            missed,
            ..spec("0 * * * *", "UTC")
        };
        let mut clock = Clockwork::begin(&spec, at("2026-11-01T00:30:00Z"));
        clock.step(at("2027-11-01T00:30:00Z"), &[]);
        clock.fired.clear();
        clock.run(at("2026-11-01T00:31:00Z"), at("2026-11-01T03:31:00Z"), 20);
        assert_eq!(clock.fired.len(), 3, "{missed:?}");
    }
}

#[test]
fn a_changed_schedule_begins_at_its_change() {
    let mut clock = Clockwork::begin(&spec("0 2 * * *", "UTC"), at("2026-11-01T00:00:00Z"));
    clock.run(at("2026-11-01T00:00:00Z"), at("2026-11-01T03:00:00Z"), 30);
    clock.job = job(&ScheduleSpec {
        missed: MissedPolicy::Once,
        ..spec("0 1,2 * * *", "UTC")
    });
    clock.run(at("2026-11-01T03:00:10Z"), at("2026-11-01T12:00:00Z"), 30);
    assert_eq!(clock.fired, [at("2026-11-01T02:00:00Z")]);
}

const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
];

const EXPRESSIONS: [&str; 9] = [
    "*/15 * * * *",
    "30 2 * * *",
    "0 * * * *",
    "0,30 1,2,3 * * *",
    "5 0 * * *",
    "0 3 * * SUN",
    "59 23 L * *",
    "*/7 2 * * *",
    "0 0 * * 1-5",
];

/// When the clocks of these zones change, in 2026.
const CHANGES: [&str; 7] = [
    "2026-03-08T07:00:00Z",
    "2026-03-29T01:00:00Z",
    "2026-04-04T15:00:00Z",
    "2026-10-03T15:30:00Z",
    "2026-10-25T01:00:00Z",
    "2026-11-01T06:00:00Z",
    "2026-12-31T23:00:00Z",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Somebody who looks often enough fires every slot, once and in time, over every change of the clocks.
    #[test]
    fn every_slot_fires_once_over_changes_of_the_clocks(
        zone in proptest::sample::select(&ZONES[..]),
        expression in proptest::sample::select(&EXPRESSIONS[..]),
        change in proptest::sample::select(&CHANGES[..]),
        every in 40_i64..60,
    ) {
        let begin = seconds(at(change), -4 * 3600);
        let end = seconds(begin, 8 * 3600);
        let mut clock = Clockwork::begin(&spec(expression, zone), begin);
        // A run of done slots is one range, so what is stored does not grow.
        clock.run(begin, end, every);
        let expected: Vec<Timestamp> = clock.job.schedule().slots(begin, end).collect();
        prop_assert_eq!(&clock.fired[..], &expected[..clock.fired.len()]);
        prop_assert!(expected.len() - clock.fired.len() <= 1);
        prop_assert!(serde_json::to_string(&clock.state).expect("JSON").len() < 400);
    }

    /// Slots found backward are slots found forward.
    #[test]
    fn the_last_slot_is_the_last_of_all_slots(
        zone in proptest::sample::select(&ZONES[..]),
        expression in proptest::sample::select(&EXPRESSIONS[..]),
        change in proptest::sample::select(&CHANGES[..]),
        offset in 0_i64..172_800,
    ) {
        let schedule = Schedule::parse(expression, Some(zone)).expect("a schedule");
        let until = seconds(at(change), offset);
        let after = seconds(until, -40 * 86_400);
        prop_assert_eq!(schedule.last_slot(after, until), schedule.slots(after, until).last());
    }

    /// However the clock jumps, stands or goes back: no slot fires twice, none fires before its time, and each step of
    /// a clock that goes on as it should fires what is due.
    #[test]
    fn no_slot_fires_twice_whatever_the_clock_does(
        zone in proptest::sample::select(&ZONES[..]),
        expression in proptest::sample::select(&EXPRESSIONS[..]),
        missed in proptest::sample::select(&[MissedPolicy::Skip, MissedPolicy::Once][..]),
        concurrency in proptest::sample::select(
            &[Concurrency::Forbid, Concurrency::Allow, Concurrency::Replace][..]
        ),
        jumps in proptest::collection::vec(
            prop_oneof![4 => 1_i64..90, 2 => -7_200_i64..7_200, 1 => -700_000_i64..700_000],
            1..100,
        ),
        busy in proptest::collection::vec(any::<bool>(), 100),
    ) {
        let spec = ScheduleSpec { missed, concurrency, ..spec(expression, zone) };
        let mut now = at("2026-10-24T12:00:00Z");
        let mut clock = Clockwork::begin(&spec, now);
        let mut latest = now;
        for (jump, busy) in jumps.into_iter().zip(busy) {
            now = seconds(now, jump);
            latest = latest.max(now);
            let active: Vec<String> = busy.then(|| "run".to_owned()).into_iter().collect();
            let step = clock.step(now, &active);
            for firing in &step.firings {
                prop_assert!(firing.slot <= latest, "not before its time");
                let is_slot = clock.job.schedule().slots(seconds(firing.slot, -1), firing.slot).count();
                prop_assert_eq!(is_slot, 1, "{} is a slot", firing.slot);
            }
            if concurrency == Concurrency::Forbid {
                prop_assert!(step.firings.len() + active.len() <= 1, "one at a time");
            }
            if let Some(next) = step.next {
                prop_assert!(next > now);
            }
            prop_assert!(serde_json::to_string(&clock.state).expect("JSON").len() < 4_000);
        }
        let once: BTreeSet<Timestamp> = clock.fired.iter().copied().collect();
        prop_assert_eq!(once.len(), clock.fired.len(), "each slot once");
    }

    /// Away for any time: none under `skip` beside what is in time, at most one under `once`.
    #[test]
    fn a_time_away_is_made_up_for_once_at_most(
        zone in proptest::sample::select(&ZONES[..]),
        expression in proptest::sample::select(&EXPRESSIONS[..]),
        away in 61_i64..2_000_000,
        missed in proptest::sample::select(&[MissedPolicy::Skip, MissedPolicy::Once][..]),
    ) {
        let begin = at("2026-10-20T12:00:00Z");
        let spec = ScheduleSpec { missed, ..spec(expression, zone) };
        let mut clock = Clockwork::begin(&spec, begin);
        let now = seconds(begin, away);
        let step = clock.step(now, &[]);
        let all: Vec<Timestamp> = clock.job.schedule().slots(begin, now).collect();
        let in_time = all.iter().filter(|slot| **slot >= seconds(now, -60)).count();
        let expected = match missed {
            MissedPolicy::Skip => in_time,
            MissedPolicy::Once => in_time.max(usize::from(!all.is_empty())),
        };
        prop_assert_eq!(step.firings.len(), expected);
        if missed == MissedPolicy::Once && let Some(firing) = step.firings.last() {
            prop_assert_eq!(Some(&firing.slot), all.last());
        }
    }
}
