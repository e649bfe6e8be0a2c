//! Objects that others edit or delete, and statuses that are not ours.

use portolan_rollout::{Effect, HoldReason, Phase, Slot, Slots, Time, Traffic, step};

use crate::hold;
use crate::world::{World, spec};

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
fn routes_of_the_user_are_given_back_whenever_an_object_is_deleted() {
    let mut spec = spec("1");
    spec.virtual_service_ref = Some(portolan_rollout::VirtualServiceRef {
        name: "shop".to_owned(),
        routes: Vec::new(),
    });
    let mut world = World::new(spec);
    world.run_to(Phase::Stable);
    world.run(20);
    assert!(world.seen.has_finalizer, "they stay when the object goes");
    world.seen.deletion = Some(portolan_rollout::Deletion {
        since: Time::from_unix(world.now),
        with_namespace: false,
    });
    let (_, effects) = step(
        &world.spec,
        Some(world.status()),
        &world.seen,
        Time::from_unix(world.now),
    );
    assert_eq!(effects, [Effect::ReturnRoutes, Effect::RemoveFinalizer]);
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
