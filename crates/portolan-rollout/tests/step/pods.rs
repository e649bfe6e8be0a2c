//! Pods that fail, are away or are too few.

use portolan_rollout::{HoldReason, Outcome, Phase, Slot, Slots, TroubleKind};

use crate::world::World;
use crate::{hold, outcomes};

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
