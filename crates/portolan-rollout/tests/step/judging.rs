//! What is measured decides: proof, rollback, or holding.

use portolan_rollout::{HoldReason, Measurement, Outcome, Phase, Slot, Slots, Time, Traffic};

use crate::world::World;
use crate::{hold, outcomes};

#[test]
fn a_healthy_release_is_promoted_by_proof() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    assert_eq!(world.status().weight, 10);
    world.run_to(Phase::Soaking);
    assert_eq!(world.shares(), Slots { a: 5, b: 95 });
    assert_eq!(world.seen.apex, Some(Slot::B));
    world.run_to(Phase::Stable);
    assert_eq!(world.shares(), Slots { a: 0, b: 100 });
    assert_eq!(outcomes(&world), [Outcome::Promoted]);
    assert_eq!(
        world.seen.slots.a.replicas, 4,
        "old pods are kept for a while"
    );
    world.run(400);
    assert_eq!(world.seen.slots.a.replicas, 0);
    insta::assert_snapshot!(world.reasons().join(" "), @"Initialized Preparing Started Raised Inconclusive Promoting Promoted Finished");
}

#[test]
fn a_worse_release_is_rolled_back_with_its_numbers() {
    let mut world = World::stable();
    world.bad.insert("2".to_owned(), 100);
    world.release("2");
    world.run_to(Phase::RolledBack);
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    assert_eq!(world.seen.slots.b.replicas, 0);
    assert_eq!(outcomes(&world), [Outcome::RolledBack]);
    let record = world
        .told
        .iter()
        .find(|record| record.to == Phase::RollingBack)
        .expect("a record");
    assert!(record.message.starts_with("errors: "), "{}", record.message);
    assert!(record.evidence[0].canary.bad > 0);
    let conditions = &world.status().conditions;
    let of = |kind: &str| {
        conditions
            .iter()
            .find(|condition| condition.kind == kind)
            .map(|found| found.status.as_str())
    };
    assert_eq!(
        (of("Ready"), of("Stalled"), of("Reconciling")),
        (Some("False"), Some("True"), None)
    );
}

/// An error rate that both revisions share is not the new one's fault.
#[test]
fn an_incident_of_both_revisions_is_no_reason_to_go_back() {
    let mut world = World::stable();
    world.bad.insert("1".to_owned(), 30);
    world.bad.insert("2".to_owned(), 30);
    world.release("2");
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted]);
}

#[test]
fn no_traffic_holds_and_goes_on_when_it_comes() {
    let mut world = World::stable();
    world.rate = 0;
    world.release("2");
    world.run(3_000);
    assert_eq!(
        (world.phase(), hold(&world)),
        (Phase::Holding, Some(HoldReason::NoTraffic))
    );
    assert_eq!(world.status().weight, 10);
    world.rate = 100;
    world.run_to(Phase::Stable);
}

#[test]
fn metrics_that_cannot_be_read_hold_and_never_roll_back() {
    for answer in [Measurement::Down("refused".to_owned()), Measurement::Slow] {
        let mut world = World::stable();
        world.metrics = Some(answer);
        world.release("2");
        world.run(20_000);
        assert_eq!(
            (world.phase(), hold(&world)),
            (Phase::Holding, Some(HoldReason::NoData))
        );
        world.metrics = None;
        world.run_to(Phase::Stable);
    }
}

/// A query that finds nothing, or divides zero by zero, was answered: there is no traffic.
#[test]
fn an_answer_without_numbers_is_no_traffic() {
    for answer in [Measurement::Nothing, Measurement::NotANumber] {
        let mut world = World::stable();
        world.metrics = Some(answer);
        world.release("2");
        world.run(1_000);
        assert_eq!(hold(&world), Some(HoldReason::NoTraffic));
    }
}

#[test]
fn policies_decide_when_the_time_is_over() {
    use portolan_rollout::Policy;
    let cases = [
        (Policy::Rollback, Phase::RolledBack, Outcome::RolledBack),
        (Policy::Promote, Phase::Stable, Outcome::PromotedUnproven),
    ];
    for (policy, phase, outcome) in cases {
        for answer in [Measurement::Nothing, Measurement::Slow] {
            let mut world = World::stable();
            world.spec.analysis.on_no_traffic = policy;
            world.spec.analysis.on_metrics_down = policy;
            world.metrics = Some(answer);
            world.release("2");
            world.run_to(phase);
            assert_eq!(outcomes(&world), [outcome]);
        }
    }
}

#[test]
fn a_policy_that_promotes_unless_worse_looks_at_the_evidence() {
    use portolan_rollout::Policy;
    for (bad, outcome) in [(1, Outcome::PromotedUnproven), (3, Outcome::RolledBack)] {
        let mut world = World::stable();
        world.spec.analysis.on_inconclusive = Policy::PromoteUnlessWorse;
        world.spec.analysis.false_rollback_rate = 1e-300;
        world.spec.analysis.false_promote_rate = 1e-300;
        world.bad.insert("1".to_owned(), 1);
        world.bad.insert("2".to_owned(), bad);
        world.rate = 1_000;
        world.release("2");
        world.run_until(7_200, |world| !outcomes(world).is_empty());
        assert_eq!(outcomes(&world), [outcome]);
    }
}

#[test]
fn soaking_finds_a_late_regression_and_goes_back() {
    let mut world = World::stable();
    world.spec.strategy.soak = portolan_rollout::Span::from_seconds(1_800);
    world.release("2");
    world.run_to(Phase::Soaking);
    world.run(120);
    world.bad.insert("2".to_owned(), 50);
    world.run_to(Phase::RolledBack);
    assert_eq!(outcomes(&world), [Outcome::Promoted, Outcome::RolledBack]);
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
}

/// A step lasts as long as somebody watched it. Restarts and a clock that is set forward make it no shorter.
#[test]
fn time_that_nobody_watched_does_not_count() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.now += 100_000;
    world.look();
    assert!(world.phase().is_stepping());
    assert_eq!(world.status().weight, 10);
    assert!(
        world
            .status()
            .canary
            .as_ref()
            .expect("a canary")
            .run_seconds
            <= 70
    );
}

#[test]
fn what_was_measured_while_the_weight_changed_does_not_count() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.rate = 0;
    world.now += 10;
    world.seen.traffic = Some(Traffic::only(Slot::A));
    world.rate = 1_000_000;
    world.bad.insert("2".to_owned(), 1_000);
    world.look();
    assert!(world.phase().is_stepping());
}

#[test]
fn strategy_and_analysis_are_fixed_when_a_canary_starts() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.spec.strategy.weights = vec![90];
    world.seen.generation += 1;
    world.run_until(500, |world| world.status().weight != 10);
    assert_eq!(world.status().weight, 50);
}

/// A metric that is a number must stay in its range; a few values in a row outside of it are a rollback.
#[test]
fn a_number_out_of_its_range_is_a_rollback() {
    for (value, outcome) in [(5.0, Outcome::Promoted), (50.0, Outcome::RolledBack)] {
        let mut world = World::stable();
        let metrics = serde_json::json!([{"name": "errors", "query": "queue_length", "max": 10, "consecutive": 3}]);
        world.spec.analysis.metrics = serde_json::from_value(metrics).expect("metrics");
        world.release("2");
        for _ in 0..200 {
            world.metrics = Some(Measurement::Value {
                at: Time::from_unix(world.now),
                value,
            });
            world.run(10);
        }
        assert_eq!(outcomes(&world), [outcome]);
    }
}

#[test]
fn settings_that_no_test_has_are_told_and_start_nothing() {
    let mut world = World::stable();
    world.spec.analysis.tolerate.odds = 50.0;
    world.spec.analysis.tolerate.harmful_odds = 60.0;
    world.release("2");
    world.run(100);
    assert_eq!(world.phase(), Phase::Stable);
    let ready = world
        .status()
        .conditions
        .iter()
        .find(|found| found.kind == "Ready")
        .expect("a condition");
    assert_eq!(ready.reason, "InvalidSpec");
    world.spec.analysis = portolan_rollout::Analysis::default();
    world.run_to(Phase::Preparing);
}

/// One interval alone decides nothing, but it is no time for more requests: neither in the first step nor after a proof.
#[test]
fn one_terrible_interval_holds_the_weight_however_short_the_steps_are() {
    for healthy_steps in [0, 3] {
        let mut world = World::stable();
        world.spec.strategy.weights = vec![5, 10, 20, 30, 40, 50];
        world.spec.strategy.step_interval = portolan_rollout::Span::from_seconds(10);
        world.release("2");
        assert!(world.run_until(600, |world| world.status().weight > 0));
        let raised = |world: &World| {
            let reasons = world.reasons().into_iter();
            reasons.filter(|reason| *reason == "Raised").count()
        };
        assert!(world.run_until(600, |world| raised(world) == healthy_steps));
        let weight = world.status().weight;
        world.bad.insert("2".to_owned(), 900);
        world.run_to(Phase::RolledBack);
        assert_eq!(raised(&world), healthy_steps, "{:?}", world.reasons());
        assert_eq!(outcomes(&world), [Outcome::RolledBack]);
        assert!(weight <= 30);
    }
}

/// A change of the weight would make the requests of the interval worthless that are just being counted.
#[test]
fn the_weight_changes_when_the_last_interval_of_a_step_is_counted() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    let seconds = |world: &World| {
        let canary = world.status().canary.as_deref();
        canary.map_or(0, |canary| canary.step_seconds)
    };
    assert!(world.run_until(600, |world| seconds(world) >= 50));
    world.seen.metrics.clear();
    let grows_after = |age: i64| {
        let now = Time::from_unix(world.now + age);
        let (status, _) =
            portolan_rollout::step(&world.spec, world.status.as_ref(), &world.seen, now);
        status.canary.map(|canary| canary.is_growing)
    };
    assert_eq!(grows_after(11), Some(false), "an interval is being counted");
    assert_eq!(grows_after(21), Some(true), "nobody answers");
}
