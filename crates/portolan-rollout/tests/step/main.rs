//! What happens to a rollout, case by case.

mod commands;
mod judging;
mod objects;
mod pods;
mod revisions;
mod traffic;
#[path = "../world/mod.rs"]
mod world;

use portolan_rollout::{HoldReason, Outcome};
use world::World;

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
