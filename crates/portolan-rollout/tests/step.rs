//! What happens to a rollout, case by case.

mod world;

use portolan_rollout::{
    Comparison, Effect, GateAnswer, HoldReason, Measurement, Outcome, Phase, Slot, Slots, Time,
    Traffic, TroubleKind, step,
};
use world::{World, spec};

fn hold(world: &World) -> Option<HoldReason> {
    world.status().hold.as_ref().map(|hold| hold.reason)
}

fn outcomes(world: &World) -> Vec<Outcome> {
    world
        .told
        .iter()
        .filter_map(|record| record.outcome)
        .collect()
}

#[test]
fn the_first_revision_serves_when_its_pods_are_ready() {
    let mut world = World::new(spec("1"));
    world.look();
    assert_eq!(
        world.seen.traffic, None,
        "no routes to pods that are not ready"
    );
    assert_eq!(world.seen.apex, None);
    world.run_to(Phase::Stable);
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    assert_eq!(world.seen.apex, Some(Slot::A));
    assert_eq!(world.status().replicas, 4);
    assert_eq!(
        world.status().selector,
        "portolan.dev/rollout=web,portolan.dev/slot=a"
    );
}

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
fn replicas_alone_start_nothing_and_are_applied_at_once() {
    let mut world = World::stable();
    world.spec.replicas = Some(7);
    world.seen.generation += 1;
    world.look();
    assert_eq!(world.phase(), Phase::Stable);
    assert_eq!(world.seen.slots.a.replicas, 7);
}

#[test]
fn an_idle_rollout_writes_nothing() {
    let mut world = World::stable();
    world.run(100);
    let writes = world.writes;
    world.run(10_000);
    assert_eq!(world.writes, writes);
    assert_eq!(world.effects, []);
}

/// The hash of what serves was made by another version of the operator. Nothing changed, so nothing starts.
#[test]
fn an_upgrade_of_the_operator_starts_nothing() {
    let mut world = World::stable();
    let status = serde_json::to_string(world.status()).expect("JSON");
    let revision = world.status().target.clone().expect("a target").to_string();
    let newer = status.replace(&revision, "r0-0123456789abcdef");
    world.status = Some(serde_json::from_str(&newer).expect("a status"));
    world.seen.generation += 1;
    world.run(100);
    assert_eq!(world.phase(), Phase::Stable);
    world.release("2");
    world.run_to(Phase::Preparing);
}

#[test]
fn changed_configuration_starts_a_release_and_is_copied() {
    let mut world = World::stable();
    world.seen.config = Vec::new();
    world.change_config("1");
    world.run_to(Phase::Preparing);
    assert_eq!(world.seen.copies.len(), 1);
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted]);
    world.change_config("1");
    world.run(100);
    assert_eq!(
        world.phase(),
        Phase::Stable,
        "the same content starts nothing"
    );
}

#[test]
fn configuration_that_is_not_tracked_starts_nothing() {
    let mut world = World::stable();
    world.spec.track_config = false;
    world.change_config("1");
    world.run(100);
    assert_eq!(world.phase(), Phase::Stable);
}

#[test]
fn a_newer_revision_takes_the_place_of_a_running_one() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(30);
    world.release("3");
    world.look();
    assert_eq!(
        world.shares(),
        Slots { a: 100, b: 0 },
        "traffic goes home at once"
    );
    assert_eq!(
        world.image_in(Slot::B).as_deref(),
        Some("2"),
        "pods stay until they have answered"
    );
    world.run_to(Phase::Shifting);
    assert_eq!(world.image_in(Slot::B).as_deref(), Some("3"));
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Superseded, Outcome::Promoted]);
}

#[test]
fn going_back_to_the_stable_revision_ends_the_canary_and_starts_nothing() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.release("1");
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Reverted]);
    world.run(1_000);
    assert_eq!(world.phase(), Phase::Stable);
    assert_eq!(world.image_in(Slot::A).as_deref(), Some("1"));
}

#[test]
fn going_back_while_soaking_brings_the_old_revision_back() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Soaking);
    world.release("1");
    world.look();
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted, Outcome::Reverted]);
    assert_eq!(world.seen.apex, Some(Slot::A));
}

#[test]
fn a_newer_revision_while_soaking_starts_after_the_old_one_has_answered() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Soaking);
    world.release("3");
    world.look();
    assert_eq!(world.image_in(Slot::A).as_deref(), Some("1"));
    world.run_to(Phase::Shifting);
    assert_eq!(world.image_in(Slot::A).as_deref(), Some("3"));
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted, Outcome::Promoted]);
}

#[test]
fn a_refused_revision_is_tried_again_only_when_asked_to() {
    let mut world = World::stable();
    world.bad.insert("2".to_owned(), 200);
    world.release("2");
    world.run_to(Phase::RolledBack);
    world.run(1_000);
    assert_eq!(world.phase(), Phase::RolledBack);
    world.release("1");
    world.run_to(Phase::Stable);
    world.release("2");
    world.run(1_000);
    assert_eq!(world.phase(), Phase::RolledBack, "it was refused before");
    world.bad.clear();
    world.token("retry", "1");
    world.run_to(Phase::Preparing);
    assert_eq!(world.status().canary.as_ref().expect("a canary").attempt, 2);
    world.run_to(Phase::Stable);
}

#[test]
fn abort_sends_traffic_home_in_one_look_in_every_phase() {
    for phase in [
        Phase::Preparing,
        Phase::Shifting,
        Phase::Promoting,
        Phase::Soaking,
    ] {
        let mut world = World::stable();
        world.release("2");
        world.run_to(phase);
        world.token("abort", "1");
        world.look();
        assert_eq!(world.shares(), Slots { a: 100, b: 0 }, "{phase}");
        world.run_to(Phase::RolledBack);
        assert_eq!(outcomes(&world).last(), Some(&Outcome::Aborted));
        assert_eq!(world.seen.apex, Some(Slot::A));
        world.run(1_000);
        assert_eq!(
            world.phase(),
            Phase::RolledBack,
            "an aborted revision does not start again"
        );
    }
}

#[test]
fn abort_without_a_canary_is_told_and_does_nothing() {
    let mut world = World::stable();
    world.token("abort", "1");
    world.run(30);
    assert_eq!(world.phase(), Phase::Stable);
    assert_eq!(world.reasons().last(), Some(&"TokenIgnored"));
    let told = world.told.len();
    world.run(100);
    assert_eq!(world.told.len(), told, "once");
}

#[test]
fn tokens_of_an_object_that_was_never_seen_are_not_obeyed() {
    let mut world = World::new(spec("1"));
    world.token("force", "old");
    world.run_to(Phase::Stable);
    world.release("2");
    world.run_to(Phase::Shifting);
    assert_eq!(world.status().weight, 10);
}

#[test]
fn force_skips_the_steps_but_not_the_readiness_of_pods() {
    let mut world = World::stable();
    world.bad.insert("2".to_owned(), 500);
    world.release("2");
    world.token("force", "1");
    world.look();
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    world.run_to(Phase::Stable);
    assert_eq!(world.shares(), Slots { a: 0, b: 100 });
    assert_eq!(outcomes(&world), [Outcome::Promoted]);
    let promoted = world
        .told
        .iter()
        .find(|record| record.outcome.is_some())
        .expect("a record");
    assert_eq!(promoted.actor, portolan_rollout::Actor::Token);
}

#[test]
fn promote_ends_the_judging_and_the_soaking() {
    let mut world = World::stable();
    world.rate = 0;
    world.release("2");
    world.run_to(Phase::Holding);
    world.token("promote", "1");
    let before = world.now;
    world.run_to(Phase::Stable);
    assert!(world.now - before < 120, "{} s", world.now - before);
}

#[test]
fn pause_holds_the_weight_until_resume() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.token("pause", "1");
    world.run(5_000);
    assert_eq!(
        (hold(&world), world.status().weight),
        (Some(HoldReason::Paused), 10)
    );
    world.token("resume", "1");
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted]);
}

#[test]
fn a_paused_canary_is_still_rolled_back() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.token("pause", "1");
    world.run(30);
    world.bad.insert("2".to_owned(), 200);
    world.run_to(Phase::RolledBack);
}

#[test]
fn while_the_spec_is_paused_nothing_goes_forward_and_tokens_are_refused() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.spec.paused = true;
    world.run(1_000);
    world.token("promote", "1");
    world.run(1_000);
    assert_eq!((world.phase(), world.status().weight), (Phase::Holding, 10));
    let refused = |world: &World| {
        world
            .status()
            .conditions
            .iter()
            .any(|found| found.kind == "TokenRefused")
    };
    assert!(refused(&world));
    world.spec.paused = false;
    world.run(20);
    assert!(!refused(&world));
    assert!(
        world.phase().is_stepping(),
        "a refused token is not obeyed later"
    );
    world.spec.paused = true;
    world.token("abort", "1");
    world.run_to(Phase::RolledBack);
}

#[test]
fn undo_within_the_window_is_a_matter_of_one_look() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Stable);
    world.token("undo", "1");
    world.look();
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    world.run_to(Phase::RolledBack);
    assert_eq!(outcomes(&world), [Outcome::Promoted, Outcome::Undone]);
    assert_eq!(world.image_in(Slot::A).as_deref(), Some("1"));
    world.run(1_000);
    assert_eq!(world.phase(), Phase::RolledBack);
}

#[test]
fn undo_after_the_window_starts_the_old_revision_first() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Stable);
    world.run(1_000);
    assert_eq!(world.seen.slots.a.replicas, 0);
    world.token("undo", "1");
    world.look();
    assert_eq!(world.shares(), Slots { a: 0, b: 100 });
    world.run_to(Phase::RolledBack);
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    assert_eq!(world.seen.slots.a.replicas, 4);
}

#[test]
fn a_manual_step_waits_for_a_person() {
    let mut world = World::stable();
    let steps = serde_json::json!({"steps": [{"weight": 10, "pause": "manual"}, {"weight": 50}], "soak": "1m"});
    world.spec.strategy = serde_json::from_value(steps).expect("a strategy");
    world.release("2");
    world.run(10_000);
    assert_eq!(
        (hold(&world), world.status().weight),
        (Some(HoldReason::Manual), 10)
    );
    world.token("resume", "1");
    world.run_to(Phase::Stable);
}

#[test]
fn pods_that_never_get_ready_are_given_up() {
    for kind in [
        TroubleKind::ImagePull,
        TroubleKind::CrashLoop,
        TroubleKind::NoCapacity,
    ] {
        let mut world = World::stable();
        world.broken.insert("2".to_owned(), kind);
        world.release("2");
        world.run(300);
        let reason = if kind == TroubleKind::NoCapacity {
            HoldReason::NoCapacity
        } else {
            HoldReason::NotReady
        };
        assert_eq!(
            (world.phase(), hold(&world)),
            (Phase::Preparing, Some(reason))
        );
        world.run_to(Phase::RolledBack);
        let record = world
            .told
            .iter()
            .find(|record| record.outcome.is_some())
            .expect("a record");
        assert!(
            record.message.contains(&format!("{kind:?}")),
            "{}",
            record.message
        );
    }
}

#[test]
fn pods_that_crash_under_traffic_lose_it_at_once_and_are_rolled_back() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    world.broken.insert("2".to_owned(), TroubleKind::CrashLoop);
    world.settle();
    world.look();
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    world.run_to(Phase::RolledBack);
}

/// The database of both revisions is away: that is not the new one's fault.
#[test]
fn pods_of_both_revisions_that_crash_are_waited_for() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    let before = world.shares();
    for image in ["1", "2"] {
        world
            .broken
            .insert(image.to_owned(), TroubleKind::CrashLoop);
    }
    world.settle();
    world.run(300);
    assert_eq!(
        world.shares(),
        before,
        "nothing is written while nobody is ready"
    );
    assert!(world.phase().is_stepping());
    world.broken.clear();
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted]);
}

#[test]
fn stable_pods_that_are_away_leave_all_requests_to_a_routed_canary() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    world.broken.insert("1".to_owned(), TroubleKind::Other);
    world.settle();
    world.look();
    assert_eq!(world.shares(), Slots { a: 0, b: 100 });
    assert_eq!(hold(&world), Some(HoldReason::StableUnhealthy));
    world.broken.clear();
    world.settle();
    world.run(20);
    assert_eq!(world.shares(), Slots { a: 90, b: 10 });
}

#[test]
fn a_policy_lets_a_healthy_canary_through_when_stable_is_away() {
    let mut world = World::stable();
    world.spec.analysis.on_stable_unhealthy = portolan_rollout::Policy::Promote;
    world.release("2");
    world.run_to(Phase::Shifting);
    world.broken.insert("1".to_owned(), TroubleKind::Other);
    world.run_until(2_000, |world| !outcomes(world).is_empty());
    assert_eq!(outcomes(&world), [Outcome::PromotedUnproven]);
}

#[test]
fn a_gate_that_does_not_agree_holds_and_bad_metrics_still_roll_back() {
    let mut world = World::stable();
    let gates = serde_json::json!([{"before": "start", "webhook": {"url": "https://gate"}}, {"before": "promote", "webhook": {"url": "https://gate"}}]);
    world.spec.gates = serde_json::from_value(gates).expect("gates");
    world.release("2");
    world.run(2_000);
    assert_eq!(
        (world.phase(), hold(&world)),
        (Phase::Preparing, Some(HoldReason::Gate))
    );
    assert!(
        world
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::AskGate { .. }))
    );
    world.gate = Some(GateAnswer::Open);
    world.run_to(Phase::Shifting);
    world.gate = Some(GateAnswer::Closed("not today".to_owned()));
    world.run(2_000);
    assert_eq!(
        (world.phase(), hold(&world)),
        (Phase::Holding, Some(HoldReason::Gate))
    );
    world.bad.insert("2".to_owned(), 300);
    world.run_to(Phase::RolledBack);
}

#[test]
fn edited_and_deleted_objects_are_put_back_with_the_weights_of_the_status() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    world.seen.traffic = Some(Traffic::split(Slot::B, 77));
    world.look();
    assert_eq!(world.shares(), Slots { a: 90, b: 10 });
    world.seen.traffic = None;
    world.look();
    assert_eq!(world.shares(), Slots { a: 90, b: 10 });
    world.seen.apex = None;
    let stable = world.seen.slots.a.revision.clone();
    world.seen.slots.a.revision = None;
    world.seen.slots.a.replicas = 0;
    world.look();
    assert_eq!(world.seen.apex, Some(Slot::A));
    assert_eq!(
        world.seen.slots.a.revision, stable,
        "the stable revision comes back, not the new one"
    );
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

#[test]
fn blue_green_moves_everything_at_once_and_says_that_nothing_is_proven() {
    let mut world = World::stable();
    world.spec.strategy.strategy_type = portolan_rollout::StrategyType::BlueGreen;
    world.spec.strategy.weights.clear();
    world.release("2");
    let mut shares = Vec::new();
    while world.phase() != Phase::Soaking {
        world.run(10);
        shares.push(world.shares().b);
    }
    shares.dedup();
    assert_eq!(shares, [0, 100]);
    assert_eq!(outcomes(&world), [Outcome::PromotedUnproven]);
    assert_eq!(world.status().comparison, Some(Comparison::None));
    world.run_to(Phase::Stable);
}

#[test]
fn an_ab_test_sends_matching_requests_only() {
    let mut world = World::stable();
    let strategy = serde_json::json!({"type": "abTest", "match": [{"headers": {"x-canary": {"exact": "yes"}}}], "stepInterval": "10m"});
    world.spec.strategy = serde_json::from_value(strategy).expect("a strategy");
    world.release("2");
    world.run_to(Phase::Shifting);
    let traffic = world.seen.traffic.expect("routes");
    assert_eq!(
        (traffic.matched, traffic.share(Slot::B)),
        (Some(Slot::B), 0)
    );
    world.run_to(Phase::Stable);
    assert_eq!(
        outcomes(&world),
        [Outcome::Promoted],
        "its own requests prove it"
    );
}

#[test]
fn a_mirror_comes_before_the_first_weight_and_is_judged() {
    let mut world = World::stable();
    world.spec.strategy.mirror = 20;
    world.bad.insert("2".to_owned(), 100);
    world.release("2");
    world.run_to(Phase::Shifting);
    let traffic = world.seen.traffic.expect("routes");
    assert_eq!(
        (
            traffic.mirror.map(|mirror| mirror.percent),
            traffic.share(Slot::B)
        ),
        (Some(20), 0)
    );
    world.run_to(Phase::RolledBack);
    assert!(
        world.told.iter().all(|record| record.weight == 0),
        "no client saw it"
    );
}

#[test]
fn sticky_sessions_follow_the_canary_and_end_with_it() {
    let mut world = World::stable();
    let sticky = serde_json::json!({"cookieName": "web"});
    world.spec.strategy.sticky_sessions = serde_json::from_value(sticky).expect("sticky sessions");
    world.release("2");
    world.run_to(Phase::Shifting);
    assert_eq!(
        world.seen.traffic.and_then(|traffic| traffic.sticky),
        Some(Slot::B)
    );
    world.run_to(Phase::Stable);
    assert_eq!(world.seen.traffic.and_then(|traffic| traffic.sticky), None);
}

#[test]
fn weight_waits_for_the_pods_of_its_step() {
    let mut world = World::stable();
    world.spec.replicas = Some(10);
    world.seen.generation += 1;
    world.run(30);
    world.release("2");
    world.run_to(Phase::Shifting);
    assert_eq!(world.seen.slots.b.replicas, 2);
    world.run_until(1_000, |world| world.status().weight == 50);
    assert_eq!(world.seen.slots.b.replicas, 6);
    assert_eq!(world.seen.slots.a.replicas, 10);
}

#[test]
fn the_stable_slot_shrinks_only_if_it_may() {
    let mut world = World::stable();
    world.spec.strategy.capacity = portolan_rollout::Capacity::ShrinkStable;
    world.spec.replicas = Some(10);
    world.seen.generation += 1;
    world.run(30);
    world.release("2");
    world.run_until(1_000, |world| world.status().weight == 50);
    world.run(20);
    assert_eq!(world.seen.slots.a.replicas, 6);
    world.token("abort", "1");
    world.run(20);
    assert_eq!(world.seen.slots.a.replicas, 10);
}

#[test]
fn an_object_that_is_deleted_sends_traffic_home_first() {
    let mut world = World::stable();
    assert!(!world.seen.has_finalizer);
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    assert!(world.seen.has_finalizer);
    world.seen.deletion = Some(portolan_rollout::Deletion {
        since: Time::from_unix(world.now),
        with_namespace: false,
    });
    world.look();
    assert_eq!(world.shares(), Slots { a: 100, b: 0 });
    assert!(world.seen.has_finalizer, "not before the routes say so");
    world.look();
    assert!(!world.seen.has_finalizer);
}

#[test]
fn a_deletion_never_waits_for_ever() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    world.seen.slots.a.endpoints = 0;
    world.seen.deletion = Some(portolan_rollout::Deletion {
        since: Time::from_unix(world.now - 60),
        with_namespace: false,
    });
    world.look();
    assert!(!world.seen.has_finalizer);
}

#[test]
fn a_referred_deployment_gives_way_and_gets_its_pods_back() {
    let mut spec = spec("1");
    spec.workload_ref = Some(portolan_rollout::WorkloadRef {
        kind: None,
        name: "web".to_owned(),
    });
    spec.replicas = None;
    let mut world = World::new(spec);
    world.seen.workload = Some(portolan_rollout::Workload {
        generation: 1,
        replicas: 3,
        ready: 3,
    });
    world.look();
    let workload = |world: &World| world.seen.workload.clone().expect("a Deployment").replicas;
    assert_eq!(workload(&world), 3, "not before its successor serves");
    world.run_to(Phase::Stable);
    world.run(20);
    assert_eq!((workload(&world), world.seen.slots.a.replicas), (0, 3));
    assert!(world.seen.has_finalizer);
    world.seen.deletion = Some(portolan_rollout::Deletion {
        since: Time::from_unix(world.now),
        with_namespace: false,
    });
    world.look();
    world.look();
    assert_eq!(workload(&world), 3);
    assert!(!world.seen.has_finalizer);
}

#[test]
fn a_problem_stops_what_is_new_and_not_what_protects() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.run(20);
    world.seen.problems = vec![portolan_rollout::Problem {
        reason: "InvalidTemplate".to_owned(),
        message: "unknown field".to_owned(),
    }];
    world.run(1_000);
    assert_eq!(
        (hold(&world), world.status().weight),
        (Some(HoldReason::Problem), 10)
    );
    world.bad.insert("2".to_owned(), 300);
    world.run_to(Phase::RolledBack);
}

#[test]
fn a_status_of_a_newer_version_is_left_alone() {
    let mut world = World::stable();
    let mut newer = world.status().clone();
    newer.schema = 2;
    world.release("2");
    let (after, effects) = step(
        &world.spec,
        Some(&newer),
        &world.seen,
        Time::from_unix(world.now),
    );
    assert_eq!(after, newer);
    assert_eq!(effects, [Effect::ReportNewerStatus { schema: 2 }]);
}

#[test]
fn an_application_of_zero_pods_changes_without_a_canary() {
    let mut world = World::stable();
    world.spec.replicas = Some(0);
    world.seen.generation += 1;
    world.run(30);
    world.release("2");
    world.run(60);
    assert_eq!(world.phase(), Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::PromotedUnproven]);
    world.spec.replicas = Some(4);
    world.seen.generation += 1;
    world.run(60);
    assert_eq!(world.image_in(Slot::A).as_deref(), Some("2"));
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

/// What speaks against the new revision comes from one pod of four. That pod is replaced once; a second one is no chance.
#[test]
fn one_bad_pod_is_replaced_once() {
    let bad_release = || {
        let mut world = World::stable();
        world.spec.strategy.weights = vec![20, 50];
        world.bad.insert("2".to_owned(), 200);
        world.one_bad_pod = Some((4, "first".to_owned()));
        world.release("2");
        world.run_to(Phase::Shifting);
        world.seen.slots.b.pods.insert("first".to_owned());
        world.run_until(2_000, |world| world.reasons().contains(&"OnePod"));
        world
    };
    let mut world = bad_release();
    assert_eq!(world.status().weight, 20);
    assert!(world.seen.slots.b.pods.is_empty(), "the pod is deleted");
    world.bad.clear();
    world.run_to(Phase::Stable);
    assert_eq!(outcomes(&world), [Outcome::Promoted]);

    let mut world = bad_release();
    world.one_bad_pod = Some((4, "second".to_owned()));
    world.run_to(Phase::RolledBack);
    assert_eq!(outcomes(&world), [Outcome::RolledBack]);
}

#[test]
fn a_stable_application_without_ready_pods_is_not_ready() {
    let mut world = World::stable();
    world.seen.slots.a.endpoints = 0;
    world.look();
    let ready = world
        .status()
        .conditions
        .iter()
        .find(|found| found.kind == "Ready")
        .expect("a condition");
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "NotAvailable")
    );
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

/// Nobody else gets requests like those of an A/B test. What was promised of its own requests judges it.
#[test]
fn an_ab_test_is_rolled_back_by_its_promise() {
    let mut world = World::stable();
    let strategy =
        serde_json::json!({"type": "abTest", "match": [{"headers": {"x": {"exact": "y"}}}]});
    world.spec.strategy = serde_json::from_value(strategy).expect("a strategy");
    let metrics = serde_json::json!([{"name": "errors", "builtin": "istio-requests", "slo": 0.01}]);
    world.spec.analysis.metrics = serde_json::from_value(metrics).expect("metrics");
    world.bad.insert("2".to_owned(), 100);
    world.release("2");
    world.run_to(Phase::RolledBack);
    assert_eq!(outcomes(&world), [Outcome::RolledBack]);
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
