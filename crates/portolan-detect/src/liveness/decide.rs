//! The decision: from what was observed and the time to the states of all nodes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::record::{FREEZE_LIMIT, Freeze, NodeRecord, take_over_grace};
use super::{CellName, FleetLiveness, LivenessChange, LivenessInput, LivenessState, MassLossEnd};
use crate::uid::NodeUid;

/// The most accusers that are needed.
const ENOUGH_ACCUSERS: usize = 3;

/// Cells of fewer need no accusers, and are counted together with nodes that have no cell.
const SMALLEST_CELL: usize = 3;

/// The fewest nodes that can be a mass loss.
const FEWEST_LOST: usize = 3;

/// Takes observations that were made until `now`, and decides the states of all nodes.
///
/// Returns the changes in a fixed order: ends and beginnings of mass losses by cell, then nodes by uid. Times are those of
/// one clock that never goes back; to be called for every observation or for several at once, and at
/// [`FleetLiveness::next_due`].
pub fn step(
    mut state: FleetLiveness,
    inputs: &[LivenessInput],
    now: Duration,
) -> (FleetLiveness, Vec<LivenessChange>) {
    let mut changes = Vec::new();
    for input in inputs {
        state.observe(input, now, &mut changes);
    }
    let view = View::new(&state.nodes, now);
    let mut mass_losses = Vec::new();
    state.update_freezes(&view, now, &mut mass_losses);
    changes.splice(0..0, mass_losses);
    state.update_nodes(&view, now, &mut changes);
    (state, changes)
}

/// What the nodes of a cell have in common, counted once for all decisions of a step.
struct View {
    /// Nodes of each cell that have not left and are not down.
    present: BTreeMap<CellName, usize>,
    /// Nodes of each cell whose streams are open.
    living: BTreeMap<CellName, usize>,
    /// How many living nodes of the same cell accuse a node.
    accusers: BTreeMap<NodeUid, usize>,
}

impl View {
    fn new(nodes: &BTreeMap<NodeUid, NodeRecord>, now: Duration) -> Self {
        let mut view = Self {
            present: BTreeMap::new(),
            living: BTreeMap::new(),
            accusers: BTreeMap::new(),
        };
        for (uid, record) in nodes {
            let Some(cell) = &record.cell else { continue };
            if record.is_present() {
                add_one(&mut view.present, cell);
            }
            if !record.is_living(now) {
                continue;
            }
            add_one(&mut view.living, cell);
            for accused in record.accuses.iter().filter(|accused| *accused != uid) {
                let is_neighbour = |other: &NodeRecord| other.cell.as_ref() == Some(cell);
                if nodes.get(accused).is_some_and(is_neighbour) {
                    *view.accusers.entry(*accused).or_default() += 1;
                }
            }
        }
        view
    }

    /// How many peers must accuse a node: min(3, living members − 1) with the node itself among the members, or `None`
    /// if its cell is too small for peers to count.
    fn needed(&self, record: &NodeRecord, now: Duration) -> Option<usize> {
        let living = self.living.get(record.cell.as_ref()?).copied();
        let others = living.unwrap_or(0) - usize::from(record.is_living(now));
        (others + 1 >= SMALLEST_CELL).then(|| ENOUGH_ACCUSERS.min(others))
    }

    /// Whom a node's loss is counted with.
    fn group(&self, record: &NodeRecord) -> Option<CellName> {
        let cell = record.cell.clone()?;
        let size = self.present.get(&cell).copied().unwrap_or(0);
        (size >= SMALLEST_CELL).then_some(cell)
    }
}

fn add_one(counts: &mut BTreeMap<CellName, usize>, cell: &CellName) {
    match counts.get_mut(cell) {
        Some(count) => *count += 1,
        None => {
            counts.insert(cell.clone(), 1);
        }
    }
}

/// How many of a group were lost.
struct Losses {
    present: usize,
    lost: usize,
    /// From when on a node must have become overdue to count.
    floor: Duration,
}

impl Losses {
    fn since(floor: Duration) -> Self {
        Self {
            present: 0,
            lost: 0,
            floor,
        }
    }

    /// At least three nodes, and more than 30 %.
    fn is_mass_loss(&self) -> bool {
        self.lost >= FEWEST_LOST && self.lost * 10 > self.present * 3
    }
}

impl FleetLiveness {
    fn observe(&mut self, input: &LivenessInput, now: Duration, changes: &mut Vec<LivenessChange>) {
        let ttl = self.ttl();
        match input {
            LivenessInput::Known { node, cell, state } => match self.nodes.entry(*node) {
                Entry::Occupied(known) => known.into_mut().cell.clone_from(cell),
                Entry::Vacant(place) => {
                    place.insert(NodeRecord::new(cell.clone(), *state, now, ttl));
                }
            },
            LivenessInput::Gone(node) => {
                self.nodes.remove(node);
            }
            LivenessInput::TookOver => self.take_over(now, ttl, changes),
            LivenessInput::Heard(node) => self.heard(*node, now, ttl, changes),
            LivenessInput::Closed(node) => {
                if let Some(record) = self.nodes.get_mut(node)
                    && record.heard.is_some()
                    && record.state != LivenessState::Left
                {
                    record.closed.get_or_insert(now);
                }
            }
            LivenessInput::Left(node) => {
                if let Some(record) = self.nodes.get_mut(node) {
                    record.accuses.clear();
                    change(*node, record, LivenessState::Left, false, changes);
                }
            }
            LivenessInput::Accuses { accuser, accused } => self.accuse(*accuser, accused),
        }
    }

    fn take_over(&mut self, now: Duration, ttl: Duration, changes: &mut Vec<LivenessChange>) {
        for record in self.nodes.values_mut() {
            record.known = now;
            record.heard = None;
            record.closed = None;
            record.ttl = ttl;
            record.spared_until = now + take_over_grace(ttl);
            record.accuses.clear();
        }
        for (cell, _) in std::mem::take(&mut self.freezes) {
            let cause = MassLossEnd::TookOver;
            changes.push(LivenessChange::MassLossEnded { cell, cause });
        }
    }

    /// A stream that is open ends every doubt but that of the peers.
    fn heard(
        &mut self,
        node: NodeUid,
        now: Duration,
        ttl: Duration,
        changes: &mut Vec<LivenessChange>,
    ) {
        let Some(record) = self.nodes.get_mut(&node) else {
            return;
        };
        record.heard = Some(now);
        record.closed = None;
        record.ttl = ttl;
        record.returning_until = Duration::ZERO;
        if !record.is_present() {
            change(node, record, LivenessState::Ready, false, changes);
        }
    }

    /// What a node says of nodes that nobody knows is dropped, so it cannot say more than there are nodes.
    fn accuse(&mut self, accuser: NodeUid, accused: &[NodeUid]) {
        let known = accused.iter().filter(|node| self.nodes.contains_key(*node));
        let known: BTreeSet<NodeUid> = known.copied().collect();
        if let Some(record) = self.nodes.get_mut(&accuser)
            && record.state != LivenessState::Left
        {
            record.accuses = known;
        }
    }

    fn update_freezes(&mut self, view: &View, now: Duration, changes: &mut Vec<LivenessChange>) {
        let mut groups: BTreeMap<Option<CellName>, Losses> = BTreeMap::new();
        for record in self.nodes.values().filter(|record| record.is_present()) {
            let group = view.group(record);
            let freeze = self.freezes.get(&group);
            let window_start = now.saturating_sub(record.mass_loss_window());
            let floor = freeze.map_or(window_start, |freeze| freeze.floor);
            let losses = groups.entry(group).or_insert_with(|| Losses::since(floor));
            losses.present += 1;
            losses.floor = losses.floor.min(floor);
            if record.is_overdue(now) && record.overdue_at() >= floor {
                losses.lost += 1;
            }
        }
        let mut returned = Vec::new();
        self.freezes.retain(|group, freeze| {
            let goes_on = groups.get(group).is_some_and(Losses::is_mass_loss);
            let cause = match (goes_on, now >= freeze.since + FREEZE_LIMIT) {
                (true, false) => return true,
                (true, true) => MassLossEnd::TooLong,
                (false, _) => MassLossEnd::Returned,
            };
            let cell = group.clone();
            changes.push(LivenessChange::MassLossEnded { cell, cause });
            if cause == MassLossEnd::Returned {
                returned.push(group.clone());
            }
            if let Some(losses) = groups.get_mut(group) {
                losses.lost = 0;
            }
            false
        });
        // Nodes come back one after the other: those that are not back yet get the time that a lost node has.
        for record in self.nodes.values_mut() {
            if !returned.is_empty() && returned.contains(&view.group(record)) {
                record.returning_until = now + record.mass_loss_window();
            }
        }
        for (cell, losses) in groups {
            if !losses.is_mass_loss() || self.freezes.contains_key(&cell) {
                continue;
            }
            changes.push(LivenessChange::MassLossBegan {
                cell: cell.clone(),
                lost: losses.lost,
                of: losses.present,
            });
            let floor = losses.floor;
            self.freezes.insert(cell, Freeze { since: now, floor });
        }
    }

    fn update_nodes(&mut self, view: &View, now: Duration, changes: &mut Vec<LivenessChange>) {
        for (uid, record) in &mut self.nodes {
            let is_frozen = self.freezes.contains_key(&view.group(record));
            let accusers = view.accusers.get(uid).copied().unwrap_or(0);
            let needed = view.needed(record, now);
            let to = next_state(record, needed, accusers, is_frozen, now);
            change(*uid, record, to, is_frozen, changes);
        }
    }
}

/// The state of one node. `needed` is `None` if its cell is too small for its peers to count.
fn next_state(
    record: &NodeRecord,
    needed: Option<usize>,
    accusers: usize,
    is_frozen: bool,
    now: Duration,
) -> LivenessState {
    match record.state {
        LivenessState::Left | LivenessState::Down => record.state,
        stored if !record.is_link_lost(now) => match (record.heard, needed) {
            (None, _) => stored,
            (Some(_), Some(needed)) if accusers >= needed => LivenessState::Suspect,
            (Some(_), _) => LivenessState::Ready,
        },
        _ => {
            let is_accused = needed.is_none_or(|needed| accusers >= needed);
            if is_accused && !is_frozen && now >= record.down_at() {
                LivenessState::Down
            } else {
                LivenessState::LinkLost
            }
        }
    }
}

fn change(
    node: NodeUid,
    record: &mut NodeRecord,
    to: LivenessState,
    is_in_mass_loss: bool,
    changes: &mut Vec<LivenessChange>,
) {
    let from = std::mem::replace(&mut record.state, to);
    if from != to {
        changes.push(LivenessChange::Node {
            node,
            from,
            to,
            is_in_mass_loss,
        });
    }
}
