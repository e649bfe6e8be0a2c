//! Finds the cycle that a new wait would close.
//!
//! The search goes forward from the unit that is waited for (to the units that each unit waits for) and backward from
//! the waiting unit (to the units that wait for each), one step each in turn. If one direction has no more units,
//! there is no cycle. So the cost is that of the smaller direction; in usual graphs one of them is empty.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Graph, Stage, UnitId};

/// The way from one of `starts` to `goal` along what holds units up, both ends included.
pub(super) fn path(graph: &Graph, starts: &[UnitId], goal: UnitId) -> Option<Vec<UnitId>> {
    let mut came_from: HashMap<UnitId, Option<UnitId>> =
        starts.iter().map(|start| (*start, None)).collect();
    let mut forward: VecDeque<UnitId> = starts.iter().copied().collect();
    let mut seen_backward = HashSet::from([goal]);
    let mut backward = vec![goal];
    let mut is_proven = starts.contains(&goal);
    loop {
        if came_from.contains_key(&goal) {
            return Some(walk_back(&came_from, goal));
        }
        let at = forward.pop_front()?;
        for next in held_up_by(graph, at) {
            came_from.entry(next).or_insert_with(|| {
                forward.push_back(next);
                Some(at)
            });
        }
        if is_proven {
            continue;
        }
        let at = backward.pop()?;
        for next in holding_up(graph, at) {
            is_proven |= starts.contains(&next);
            if seen_backward.insert(next) {
                backward.push(next);
            }
        }
    }
}

fn walk_back(came_from: &HashMap<UnitId, Option<UnitId>>, goal: UnitId) -> Vec<UnitId> {
    let step = |id: &UnitId| came_from.get(id).copied().flatten();
    let mut way: Vec<_> = std::iter::successors(Some(goal), step).collect();
    way.reverse();
    way
}

/// What a unit waits for: its needs before it starts, outputs while it runs.
fn held_up_by(graph: &Graph, id: UnitId) -> Vec<UnitId> {
    let node = &graph.nodes[id];
    match &node.stage {
        Stage::Absent | Stage::Dormant(_) | Stage::Waiting { .. } => node.needs.clone(),
        Stage::Running { .. } => node.waits.iter().map(|wait| wait.on).collect(),
        Stage::Ready { .. } | Stage::Ended(_) => Vec::new(),
    }
}

/// Who waits for a unit.
fn holding_up(graph: &Graph, id: UnitId) -> impl Iterator<Item = UnitId> {
    let node = &graph.nodes[id];
    node.needed_by
        .iter()
        .copied()
        .chain(node.waiters.iter().map(|waiter| waiter.from))
}
