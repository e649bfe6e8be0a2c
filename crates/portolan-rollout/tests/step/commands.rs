//! What people ask for: tokens, pauses, gates.

use portolan_rollout::{Effect, GateAnswer, HoldReason, Outcome, Phase, Slot, Slots};

use crate::world::{World, spec};
use crate::{hold, outcomes};

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
