//! What starts a release, and what does not.

use portolan_rollout::{Outcome, Phase, Slot, Slots};

use crate::outcomes;
use crate::world::{World, spec};

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
