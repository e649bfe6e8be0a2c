//! The decision: examples of each rule, and properties that hold in any history.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_detect::{
    CellName, DOWN_GRACE, FREEZE_LIMIT, FleetLiveness, LivenessChange, LivenessInput,
    LivenessState, MassLossEnd, NodeUid, heartbeat_ttl, step, take_over_grace,
};
use proptest::prelude::*;

fn uid(node: u8) -> NodeUid {
    NodeUid([node; 16])
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A fleet that is stepped whenever something happens or is due.
#[derive(Clone, Default)]
struct Fleet {
    state: FleetLiveness,
    now: Duration,
    changes: Vec<(Duration, LivenessChange)>,
}

impl Fleet {
    /// Nodes of one cell, all heard at second 0.
    fn of(size: u8) -> Self {
        let mut fleet = Self::default();
        for node in 0..size {
            fleet.know(node, Some("a"), LivenessState::Ready);
            fleet.observe(LivenessInput::Heard(uid(node)));
        }
        fleet
    }

    fn know(&mut self, node: u8, cell: Option<&str>, state: LivenessState) {
        self.observe(LivenessInput::Known {
            node: uid(node),
            cell: cell.map(CellName::new),
            state,
        });
    }

    fn observe(&mut self, input: LivenessInput) {
        let state = std::mem::take(&mut self.state);
        let (state, changes) = step(state, &[input], self.now);
        self.state = state;
        self.changes
            .extend(changes.into_iter().map(|change| (self.now, change)));
    }

    fn accuse(&mut self, accuser: u8, accused: &[u8]) {
        self.observe(LivenessInput::Accuses {
            accuser: uid(accuser),
            accused: accused.iter().copied().map(uid).collect(),
        });
    }

    /// Goes on to a moment, at which these nodes are heard; they are heard every 10 s on the way too.
    fn until(&mut self, until: Duration, heard: &[u8]) {
        let mut beat = self.now + seconds(10);
        while self.now < until {
            let due = self.state.next_due(self.now).unwrap_or(until);
            self.now = due.min(beat).min(until);
            let state = std::mem::take(&mut self.state);
            let (state, changes) = step(state, &[], self.now);
            self.state = state;
            self.changes
                .extend(changes.into_iter().map(|change| (self.now, change)));
            if self.now == beat || self.now == until {
                beat = self.now + seconds(10);
                for node in heard {
                    self.observe(LivenessInput::Heard(uid(*node)));
                }
            }
        }
    }

    fn state(&self, node: u8) -> LivenessState {
        self.state.state(uid(node)).expect("it is known")
    }

    fn events(&self) -> Vec<&LivenessChange> {
        let changes = self.changes.iter().map(|(_, change)| change);
        changes
            .filter(|change| !matches!(change, LivenessChange::Node { .. }))
            .collect()
    }
}

#[test]
fn a_node_is_down_when_its_stream_is_silent_and_three_peers_accuse_it() {
    let mut fleet = Fleet::of(5);
    fleet.until(seconds(14), &[1, 2, 3, 4]);
    assert_eq!(fleet.state(0), LivenessState::Ready);
    fleet.until(seconds(15), &[1, 2, 3, 4]);
    assert_eq!(fleet.state(0), LivenessState::LinkLost);
    fleet.accuse(1, &[0]);
    fleet.accuse(2, &[0]);
    fleet.until(seconds(60), &[1, 2, 3, 4]);
    assert_eq!(
        fleet.state(0),
        LivenessState::LinkLost,
        "two are not enough"
    );
    fleet.accuse(3, &[0]);
    assert_eq!(fleet.state(0), LivenessState::Down);
}

#[test]
fn accusers_whose_own_stream_is_lost_do_not_count() {
    let mut fleet = Fleet::of(9);
    for accuser in [1, 2, 3] {
        fleet.accuse(accuser, &[0]);
    }
    fleet.until(seconds(60), &[2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(fleet.state(0), LivenessState::LinkLost);
    fleet.observe(LivenessInput::Heard(uid(1)));
    assert_eq!(fleet.state(0), LivenessState::Down);
}

#[test]
fn a_stream_that_ends_is_waited_for_a_moment() {
    let mut fleet = Fleet::of(1);
    fleet.until(seconds(5), &[0]);
    fleet.observe(LivenessInput::Closed(uid(0)));
    fleet.until(seconds(7), &[]);
    assert_eq!(fleet.state(0), LivenessState::Ready);
    fleet.until(seconds(8), &[]);
    assert_eq!(fleet.state(0), LivenessState::LinkLost);
    fleet.until(seconds(25), &[]);
    assert_eq!(fleet.state(0), LivenessState::LinkLost);
    fleet.until(seconds(26), &[]);
    assert_eq!(fleet.state(0), LivenessState::Down, "21 s after its end");
}

#[test]
fn a_stream_that_the_server_gave_up_was_lost_before() {
    let mut fleet = Fleet::of(1);
    fleet.until(seconds(15), &[]);
    fleet.observe(LivenessInput::Closed(uid(0)));
    fleet.until(seconds(21), &[]);
    assert_eq!(fleet.state(0), LivenessState::Down);
}

#[test]
fn peers_that_accuse_a_node_with_an_open_stream_make_it_suspect() {
    let mut fleet = Fleet::of(4);
    for accuser in [1, 2, 3] {
        assert_eq!(fleet.state(0), LivenessState::Ready);
        fleet.accuse(accuser, &[0]);
    }
    assert_eq!(fleet.state(0), LivenessState::Suspect);
    fleet.accuse(2, &[]);
    assert_eq!(fleet.state(0), LivenessState::Ready);
}

#[test]
fn a_goodbye_is_no_death() {
    let mut fleet = Fleet::of(4);
    fleet.observe(LivenessInput::Left(uid(0)));
    for accuser in [1, 2, 3] {
        fleet.accuse(accuser, &[0]);
    }
    fleet.until(seconds(300), &[1, 2, 3]);
    assert_eq!(fleet.state(0), LivenessState::Left);
    fleet.observe(LivenessInput::Heard(uid(0)));
    assert_ne!(fleet.state(0), LivenessState::Left);
}

#[test]
fn nobody_accuses_nodes_of_another_cell() {
    let mut fleet = Fleet::of(4);
    for stranger in 10..14 {
        fleet.know(stranger, Some("b"), LivenessState::Ready);
        fleet.observe(LivenessInput::Heard(uid(stranger)));
        fleet.accuse(stranger, &[0]);
    }
    assert_eq!(fleet.state(0), LivenessState::Ready);
}

#[test]
fn after_a_take_over_all_nodes_have_a_minute() {
    let mut fleet = Fleet::of(2);
    fleet.now = seconds(100);
    fleet.observe(LivenessInput::TookOver);
    fleet.until(seconds(159), &[1]);
    assert_eq!(fleet.state(0), LivenessState::Ready);
    fleet.until(seconds(161), &[1]);
    assert_eq!(fleet.state(0), LivenessState::Down);
    assert_eq!(take_over_grace(seconds(50)), seconds(100));
}

#[test]
fn what_was_stored_is_not_forgotten_by_a_take_over() {
    let mut fleet = Fleet::default();
    fleet.know(0, None, LivenessState::LinkLost);
    fleet.know(1, None, LivenessState::Down);
    fleet.know(2, None, LivenessState::Left);
    fleet.observe(LivenessInput::TookOver);
    let states = [0, 1, 2].map(|node| fleet.state(node));
    assert_eq!(
        states,
        [
            LivenessState::LinkLost,
            LivenessState::Down,
            LivenessState::Left
        ]
    );
    assert!(fleet.changes.is_empty());
}

#[test]
fn a_third_of_the_nodes_that_do_not_come_back_after_a_take_over_is_a_mass_loss() {
    let mut fleet = Fleet::of(9);
    fleet.observe(LivenessInput::TookOver);
    fleet.until(seconds(100), &[0, 1, 2, 3, 4, 5]);
    assert_eq!(fleet.events().len(), 1, "{:?}", fleet.events());
    assert_eq!(fleet.state(8), LivenessState::LinkLost);
}

#[test]
fn a_mass_loss_is_one_event_and_ends_by_itself() {
    let mut fleet = Fleet::of(10);
    for accuser in 4..10 {
        fleet.accuse(accuser, &[0, 1, 2, 3]);
    }
    let rest: Vec<u8> = (4..10).collect();
    fleet.until(seconds(200), &rest);
    let cell = Some(CellName::new("a"));
    let began = LivenessChange::MassLossBegan {
        cell: cell.clone(),
        lost: 4,
        of: 10,
    };
    assert_eq!(fleet.events(), [&began]);
    assert!(fleet.state.is_in_mass_loss(cell.as_ref()));
    assert_eq!(fleet.state(0), LivenessState::LinkLost);
    let unreachable = fleet.state.unreachable_for(uid(0), fleet.now);
    assert_eq!(
        unreachable,
        Some(seconds(200)),
        "a run that gives up after a time still does"
    );
    fleet.until(seconds(400), &rest);
    let cause = MassLossEnd::TooLong;
    assert_eq!(
        fleet.events(),
        [&began, &LivenessChange::MassLossEnded { cell, cause }]
    );
    assert_eq!(fleet.state(0), LivenessState::Down);
}

#[test]
fn when_a_mass_loss_ends_those_who_are_not_back_yet_have_time_to_come() {
    let mut fleet = Fleet::of(10);
    for accuser in 4..10 {
        fleet.accuse(accuser, &[0, 1, 2, 3]);
    }
    let mut rest: Vec<u8> = (4..10).collect();
    fleet.until(seconds(200), &rest);
    fleet.observe(LivenessInput::Heard(uid(0)));
    assert_eq!(fleet.events().len(), 2, "three of ten are no mass loss");
    assert_eq!(fleet.state(1), LivenessState::LinkLost);
    rest.extend([0, 1, 2]);
    fleet.until(seconds(220), &rest);
    assert_eq!(fleet.state(3), LivenessState::LinkLost);
    fleet.until(seconds(222), &rest);
    assert_eq!(fleet.state(3), LivenessState::Down);
    assert_ne!(fleet.state(1), LivenessState::Down);
}

#[test]
fn three_of_ten_are_no_mass_loss() {
    let mut fleet = Fleet::of(10);
    for accuser in 3..10 {
        fleet.accuse(accuser, &[0, 1, 2]);
    }
    let rest: Vec<u8> = (3..10).collect();
    fleet.until(seconds(22), &rest);
    assert_eq!(fleet.state(0), LivenessState::Down);
    assert!(fleet.events().is_empty(), "{:?}", fleet.events());
}

#[test]
fn small_cells_are_counted_together() {
    let mut fleet = Fleet::default();
    for node in 0..6 {
        fleet.know(
            node,
            Some(["a", "b", "c"][usize::from(node) / 2]),
            LivenessState::Ready,
        );
        fleet.observe(LivenessInput::Heard(uid(node)));
    }
    fleet.until(seconds(60), &[]);
    assert_eq!(fleet.events().len(), 1, "the server has lost its network");
    assert_eq!(fleet.state(5), LivenessState::LinkLost);
}

#[test]
fn heartbeats_of_all_agents_are_at_most_200_a_second() {
    for agents in [0, 1, 1_999, 2_000, 2_001, 10_000, 123_457] {
        let ttl = heartbeat_ttl(agents);
        assert!(ttl >= seconds(10));
        assert!(agents as f64 / ttl.as_secs_f64() <= 200.0, "{agents}");
    }
    assert_eq!(heartbeat_ttl(2_000), seconds(10));
    assert_eq!(heartbeat_ttl(10_000), seconds(50));
}

/// Something that happens to one of the nodes of a history.
#[derive(Debug, Clone)]
enum Happening {
    Passes(u64),
    Heard(u8),
    Closed(u8),
    Left(u8),
    Accuses(u8, Vec<u8>),
    TookOver,
}

const NODES: u8 = 7;

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let node = || 0..NODES;
    let happening = prop_oneof![
        6 => (0..12_000_u64).prop_map(Happening::Passes),
        8 => node().prop_map(Happening::Heard),
        2 => node().prop_map(Happening::Closed),
        1 => node().prop_map(Happening::Left),
        4 => (node(), prop::collection::vec(node(), 0..4)).prop_map(|(who, whom)| Happening::Accuses(who, whom)),
        1 => Just(Happening::TookOver),
    ];
    prop::collection::vec(happening, 1..120)
}

fn input(happening: &Happening) -> Option<LivenessInput> {
    Some(match happening {
        Happening::Passes(_) => return None,
        Happening::Heard(node) => LivenessInput::Heard(uid(*node)),
        Happening::Closed(node) => LivenessInput::Closed(uid(*node)),
        Happening::Left(node) => LivenessInput::Left(uid(*node)),
        Happening::Accuses(who, whom) => LivenessInput::Accuses {
            accuser: uid(*who),
            accused: whom.iter().copied().map(uid).collect(),
        },
        Happening::TookOver => LivenessInput::TookOver,
    })
}

/// What a test knows of a node by itself.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    heard: Duration,
    taken_over: Duration,
}

/// Runs a history, and checks after each step what must hold in all of them.
fn run(size: u8, history: &[Happening]) -> Result<Fleet, TestCaseError> {
    let mut fleet = Fleet::of(size);
    let mut facts: BTreeMap<NodeUid, Facts> = BTreeMap::new();
    let mut accusations: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    for happening in history {
        let before = fleet.changes.len();
        if let Happening::Passes(millis) = happening {
            fleet.until(fleet.now + Duration::from_millis(*millis), &[]);
        }
        match happening {
            Happening::Heard(node) if *node < size => {
                facts.entry(uid(*node)).or_default().heard = fleet.now;
            }
            Happening::Accuses(who, whom) => {
                accusations.insert(*who, whom.clone());
            }
            Happening::Left(who) => {
                accusations.remove(who);
            }
            Happening::TookOver => {
                accusations.clear();
                for node in 0..size {
                    facts.entry(uid(node)).or_default().taken_over = fleet.now;
                }
            }
            _ => {}
        }
        if let Some(input) = input(happening) {
            fleet.observe(input);
        }
        for (at, change) in &fleet.changes[before..] {
            let LivenessChange::Node { node, from, to, .. } = change else {
                continue;
            };
            prop_assert_ne!(from, to);
            if *to == LivenessState::Down {
                let facts = facts.get(node).copied().unwrap_or_default();
                prop_assert!(
                    *at > facts.heard + seconds(10) + DOWN_GRACE,
                    "silent for too short a time"
                );
                let spared = facts.taken_over + seconds(60);
                prop_assert!(
                    facts.taken_over.is_zero() || *at >= spared,
                    "within the grace of a take-over"
                );
                prop_assert_ne!(*from, LivenessState::Left);
            }
        }
        let (again, changes) = step(fleet.state.clone(), &[], fleet.now);
        prop_assert_eq!(&again, &fleet.state, "deciding again decides the same");
        prop_assert!(changes.is_empty());
    }
    Ok(fleet)
}

fn cases() -> ProptestConfig {
    let long = std::env::var_os("PORTOLAN_LONG").is_some();
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if long { 5_000 } else { 300 })
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_history_calls_a_node_down_too_early(size in 1..NODES, history in happenings()) {
        run(size, &history)?;
    }

    /// A history in which one node alone accuses is the same history without it, for all the others.
    #[test]
    fn one_liar_changes_no_state(size in 1..NODES, liar in 0..NODES, history in happenings()) {
        let is_honest = |happening: &&Happening| !matches!(happening, Happening::Accuses(..));
        let honest: Vec<Happening> = history.iter().filter(is_honest).cloned().collect();
        let of_liar = |happening: &&Happening| match happening {
            Happening::Accuses(who, _) => *who == liar,
            _ => true,
        };
        let lying: Vec<Happening> = history.iter().filter(of_liar).cloned().collect();
        let (honest, lying) = (run(size, &honest)?, run(size, &lying)?);
        prop_assert_eq!(honest.changes, lying.changes);
    }

    /// Mass losses are one event each, and hold nobody for longer than the limit.
    #[test]
    fn a_freeze_ends(size in 3..NODES, history in happenings()) {
        let mut fleet = run(size, &history)?;
        fleet.until(fleet.now + FREEZE_LIMIT + seconds(120), &[]);
        prop_assert!(!fleet.state.is_in_mass_loss(Some(&CellName::new("a"))));
        prop_assert!(!fleet.state.is_in_mass_loss(None));
        let (mut began, mut ended) = (0, 0);
        for change in fleet.events() {
            match change {
                LivenessChange::MassLossBegan { lost, of, .. } => {
                    prop_assert!(*lost >= 3 && lost * 10 > of * 3);
                    began += 1;
                }
                _ => ended += 1,
            }
            prop_assert!(began - ended <= 2, "one for a cell, one for the rest");
        }
        let left_or_down = |node| matches!(fleet.state(node), LivenessState::Left | LivenessState::Down);
        prop_assert!((0..size).all(left_or_down), "nothing is heard any more");
    }

    /// A run that gives up on a node after a time does so at the same moment, whatever happens to the other nodes.
    #[test]
    fn how_long_a_node_is_unreachable_does_not_depend_on_others(history in happenings()) {
        let of_first = |happening: &&Happening| match happening {
            Happening::Heard(node) | Happening::Closed(node) | Happening::Left(node) => *node == 0,
            Happening::Passes(_) | Happening::TookOver => true,
            Happening::Accuses(..) => false,
        };
        let alone: Vec<Happening> = history.iter().filter(of_first).cloned().collect();
        let (alone, many) = (run(1, &alone)?, run(NODES, &history)?);
        let unreachable = |fleet: &Fleet| fleet.state.unreachable_for(uid(0), fleet.now);
        prop_assert_eq!(unreachable(&alone), unreachable(&many));
    }
}
