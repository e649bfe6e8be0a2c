//! The promises of failure detection, in virtual time with the real protocol: what is found, how soon, and what is not
//! mistaken for something else. A failing history prints its seed; `PORTOLAN_SEED` runs it again.

mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use portolan_detect::{LivenessChange, LivenessState, MassLossEnd};
use world::{Block, CELL, End, Fate, Micros, SECOND, World};

const MINUTE: Micros = 60 * SECOND;
const HOUR: Micros = 60 * MINUTE;

fn is_long() -> bool {
    std::env::var_os("PORTOLAN_LONG").is_some()
}

/// Runs work for all numbers on two threads.
fn on_two_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let result = work(number);
                    results
                        .lock()
                        .expect("no thread panicked")
                        .push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panicked");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Agents of the fleets that crashes are tried in.
const SIZES: [usize; 8] = [1, 3, 10, 50, 200, 500, 1_000, 2_000];

/// How long it took until each of the crashed nodes was down: one in each cell, on a network that loses 2 %.
fn crash(seed: u64) -> Vec<Micros> {
    let size = SIZES[seed as usize % SIZES.len()];
    let mut world = World::new(seed, size, CELL);
    world.loss = 0.02;
    let mut crashed = Vec::new();
    for first in (0..size).step_by(CELL) {
        let node = world.pick(first as u64..size.min(first + CELL) as u64) as usize;
        let at = world.pick(12 * SECOND..22 * SECOND);
        let fate = if world.chance(0.5) {
            Fate::PowerLoss
        } else {
            Fate::Killed
        };
        world.befalls(node, at, fate);
        crashed.push((node, at));
    }
    world.run(2 * MINUTE, |world| {
        world.count(LivenessState::Down) >= crashed.len()
    });
    let is_crashed = |node| crashed.iter().any(|(crashed, _)| *crashed == node);
    for node in 0..size {
        let is_down = world.state(node) == LivenessState::Down;
        assert!(
            is_crashed(node) || !is_down,
            "PORTOLAN_SEED={seed}: node {node} is called down and runs"
        );
    }
    let took = crashed.iter().map(|(node, at)| {
        let down = world.became(*node, LivenessState::Down, *at);
        down.unwrap_or(2 * MINUTE) - at
    });
    took.collect()
}

#[test]
fn a_crash_is_found_within_25_seconds() {
    if let Some(seed) = std::env::var("PORTOLAN_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        println!("seed {seed}: down after {:?} µs", crash(seed));
        return;
    }
    let seeds = if is_long() { 1_000 } else { 12 };
    let found = on_two_threads(seeds, |seed| crash(seed as u64));
    let found = found.into_iter().enumerate();
    let found = found.flat_map(|(seed, times)| times.into_iter().map(move |time| (time, seed)));
    let mut found: Vec<(Micros, usize)> = found.collect();
    found.sort_unstable();
    let at = |share: usize| found[(found.len() * share / 100).min(found.len() - 1)];
    let (p50, p99, worst) = (at(50), at(99), at(100));
    println!(
        "crashes: {seeds} of 1000 seeds, {} crashes; down after {:.1} s p50, {:.1} s p99, {:.1} s at most",
        found.len(),
        p50.0 as f64 / 1e6,
        p99.0 as f64 / 1e6,
        worst.0 as f64 / 1e6,
    );
    assert!(
        p99.0 <= 25 * SECOND,
        "PORTOLAN_SEED={} takes {} µs",
        p99.1,
        p99.0
    );
    assert!(
        worst.0 <= 40 * SECOND,
        "PORTOLAN_SEED={} takes {} µs",
        worst.1,
        worst.0
    );
}

#[test]
fn a_lost_link_is_shown_within_15_seconds_and_is_no_death() {
    for seed in 0..8 {
        let mut world = World::new(seed, 50, CELL);
        world.loss = 0.02;
        let (start, end) = (30 * SECOND + seed * SECOND, 4 * MINUTE);
        // One direction is enough for a connection to be lost.
        let (from, to) = match seed % 2 {
            0 => (End::Node(7), End::Server),
            _ => (End::Server, End::Node(7)),
        };
        world.blocks.push(Block {
            from,
            to,
            start,
            end,
        });
        world.run(5 * MINUTE, |_| false);
        let shown = world
            .became(7, LivenessState::LinkLost, start)
            .expect("it is shown");
        assert!(
            shown - start <= 15 * SECOND,
            "seed {seed}: {} µs",
            shown - start
        );
        assert_eq!(world.count(LivenessState::Down), 0, "seed {seed}");
        assert_eq!(
            world.state(7),
            LivenessState::Ready,
            "seed {seed}: it is back"
        );
    }
}

/// Two kinds of trouble for a whole hour: 2 % of packets are lost, and every tenth node stops for 3 s again and again.
#[test]
fn no_node_that_runs_is_called_down_in_an_hour_of_losses_and_stalls() {
    let runs: &[(u64, usize)] = if is_long() {
        &[(1, 100), (2, 500), (3, 500), (4, 50), (5, 10)]
    } else {
        &[(1, 60)]
    };
    let results = on_two_threads(runs.len(), |run| {
        let (seed, size) = runs[run];
        let mut world = World::new(seed, size, CELL);
        world.loss = 0.02;
        for node in (0..size).step_by(10) {
            let at = world.pick(10 * SECOND..20 * SECOND);
            world.befalls(node, at, Fate::KeepsStalling(3 * SECOND));
        }
        world.run(HOUR, |_| false);
        let stalls = world.member(0).counters().stalls;
        assert!(stalls > 200, "seed {seed}: it stalled {stalls} times");
        let [down, suspect, lost] = [
            LivenessState::Down,
            LivenessState::Suspect,
            LivenessState::LinkLost,
        ]
        .map(|state| world.count(state));
        println!(
            "an hour with losses and stalls, {size} nodes: {down} down, {suspect} suspect, {lost} links lost"
        );
        down
    });
    println!("hours: {} of 5", runs.len());
    assert!(results.iter().all(|down| *down == 0), "{results:?}");
}

#[test]
fn idle_members_send_little() {
    for size in [3, 50, CELL] {
        let mut world = World::new(1, size, CELL);
        let sum = |world: &World| {
            let counters = (0..size).map(|node| world.member(node).counters());
            counters.fold((0, 0), |(sent, bytes), next| {
                (sent + next.sent, bytes + next.sent_bytes)
            })
        };
        world.run(MINUTE, |_| false);
        let before = sum(&world);
        world.run(11 * MINUTE, |_| false);
        let after = sum(&world);
        let per_node = |count: u64| count as f64 / 600.0 / size as f64;
        let packets = per_node(after.0 - before.0);
        let bytes = per_node(after.1 - before.1);
        let with_headers = bytes + 28.0 * packets;
        println!(
            "idle, {size} members: {packets:.2} packets/s, {bytes:.0} B/s, {with_headers:.0} B/s with the headers of IP and UDP"
        );
        assert!(packets <= 3.0 && with_headers <= 150.0, "{size} members");
    }
}

#[test]
fn a_node_that_its_peers_do_not_hear_is_suspect_as_long_as_its_stream_is_open() {
    for direction in 0..2 {
        let mut world = World::new(5, 30, CELL);
        let (node, others) = (End::Node(3), End::Nodes(0, 30));
        let (from, to) = if direction == 0 {
            (node, others)
        } else {
            (others, node)
        };
        let (start, end) = (20 * SECOND, 3 * MINUTE);
        world.blocks.push(Block {
            from,
            to,
            start,
            end,
        });
        world.run(3 * MINUTE, |_| false);
        assert_eq!(
            world.state(3),
            LivenessState::Suspect,
            "direction {direction}"
        );
        assert_eq!(world.count(LivenessState::Suspect), 1, "and nobody else");
        world.run(6 * MINUTE, |_| false);
        assert_eq!(
            world.state(3),
            LivenessState::Ready,
            "direction {direction}"
        );
        assert_eq!(world.count(LivenessState::Down), 0);
    }
}

#[test]
fn half_of_a_cell_that_the_other_half_does_not_hear_is_not_down() {
    let mut world = World::new(6, 40, CELL);
    let (from, to) = (End::Nodes(0, 20), End::Nodes(20, 40));
    let (start, end) = (20 * SECOND, 5 * MINUTE);
    world.blocks.push(Block {
        from,
        to,
        start,
        end,
    });
    world.run(15 * MINUTE, |_| false);
    assert_eq!(world.count(LivenessState::Down), 0);
    let states = (0..40).map(|node| world.state(node));
    assert!(
        states
            .into_iter()
            .all(|state| state == LivenessState::Ready),
        "all is well again"
    );
}

#[test]
fn fleets_of_one_two_and_three_nodes_are_watched_too() {
    for size in 1..=3 {
        for seed in 0..20 {
            let mut world = World::new(seed, size, CELL);
            world.loss = 0.02;
            let at = world.pick(15 * SECOND..25 * SECOND);
            world.befalls(0, at, Fate::PowerLoss);
            world.run(at + 25 * SECOND, |_| false);
            assert_eq!(
                world.state(0),
                LivenessState::Down,
                "{size} nodes, seed {seed}"
            );
            assert_eq!(
                world.count(LivenessState::Down),
                1,
                "{size} nodes, seed {seed}"
            );
        }
    }
}

#[test]
fn two_of_three_nodes_that_crash_at_once_are_both_down() {
    let mut world = World::new(3, 3, CELL);
    world.befalls(0, 20 * SECOND, Fate::PowerLoss);
    world.befalls(1, 20 * SECOND, Fate::Killed);
    world.run(45 * SECOND, |_| false);
    let states = [0, 1, 2].map(|node| world.state(node));
    assert_eq!(
        states,
        [
            LivenessState::Down,
            LivenessState::Down,
            LivenessState::Ready
        ]
    );
}

#[test]
fn in_a_fleet_of_three_a_lost_link_is_no_death() {
    let mut world = World::new(4, 3, CELL);
    let (start, end) = (20 * SECOND, 5 * MINUTE);
    let (from, to) = (End::Node(0), End::Server);
    world.blocks.push(Block {
        from,
        to,
        start,
        end,
    });
    world.run(5 * MINUTE, |_| false);
    assert_eq!(world.state(0), LivenessState::LinkLost);
    assert_eq!(world.count(LivenessState::Down), 0);
}

fn mass_losses(world: &World) -> (usize, Vec<MassLossEnd>) {
    let began = |change: &LivenessChange| matches!(change, LivenessChange::MassLossBegan { .. });
    let ended = |change: &LivenessChange| match change {
        LivenessChange::MassLossEnded { cause, .. } => Some(*cause),
        _ => None,
    };
    let changes = || world.changes.iter().map(|(_, change)| change);
    (
        changes().filter(|change| began(change)).count(),
        changes().filter_map(ended).collect(),
    )
}

#[test]
fn many_nodes_that_lose_the_server_at_once_are_one_event_and_nobody_is_down() {
    for seed in 0..5 {
        let mut world = World::new(seed, 100, CELL);
        world.loss = 0.02;
        let (start, end) = (30 * SECOND, 3 * MINUTE);
        // They lose their peers too: a switch has failed.
        let (lost, rest) = (End::Nodes(0, 35), End::Nodes(35, 100));
        for (from, to) in [(lost, End::Server), (lost, rest), (rest, lost)] {
            world.blocks.push(Block {
                from,
                to,
                start,
                end,
            });
        }
        world.run(6 * MINUTE, |_| false);
        assert_eq!(world.count(LivenessState::Down), 0, "seed {seed}");
        assert_eq!(
            mass_losses(&world),
            (1, vec![MassLossEnd::Returned]),
            "seed {seed}"
        );
        let all_ready = (0..100).all(|node| world.state(node) == LivenessState::Ready);
        assert!(all_ready, "seed {seed}");
    }
}

#[test]
fn many_nodes_that_are_really_gone_are_down_in_the_end() {
    let mut world = World::new(9, 20, CELL);
    for node in 0..8 {
        world.befalls(node, 30 * SECOND, Fate::PowerLoss);
    }
    world.run(5 * MINUTE, |_| false);
    assert_eq!(world.count(LivenessState::Down), 0);
    world.run(7 * MINUTE, |_| false);
    assert_eq!(world.count(LivenessState::Down), 8);
    assert_eq!(mass_losses(&world), (1, vec![MassLossEnd::TooLong]));
}

#[test]
fn a_node_that_leaves_is_never_down() {
    let mut world = World::new(10, 30, CELL);
    world.befalls(4, 20 * SECOND, Fate::Leaves);
    world.run(5 * MINUTE, |_| false);
    assert_eq!(world.state(4), LivenessState::Left);
    let states = [
        LivenessState::Down,
        LivenessState::LinkLost,
        LivenessState::Suspect,
    ];
    assert_eq!(states.map(|state| world.count(state)), [0, 0, 0]);
}

#[test]
fn a_node_that_stops_for_longer_than_the_grace_is_down_and_comes_back() {
    let mut world = World::new(11, 30, CELL);
    world.befalls(4, 20 * SECOND, Fate::Stalls(MINUTE));
    world.run(75 * SECOND, |_| false);
    assert_eq!(world.state(4), LivenessState::Down);
    world.run(3 * MINUTE, |_| false);
    assert_eq!(world.state(4), LivenessState::Ready);
    assert_eq!(world.size(), 30);
    let accusers = (0..30).filter(|node| !world.member(*node).report().accused.is_empty());
    assert_eq!(accusers.count(), 0, "all have withdrawn");
}

/// All of a small server's agents in one cell, as large as they get.
#[test]
fn one_cell_can_hold_all_agents_of_a_server() {
    let size = if is_long() { 2_000 } else { 200 };
    println!("one cell: {size} of 2000 members");
    let mut world = World::new(12, size, size);
    world.loss = 0.02;
    world.befalls(17, 15 * SECOND, Fate::PowerLoss);
    world.run(MINUTE, |world| world.count(LivenessState::Down) > 0);
    let down = world
        .became(17, LivenessState::Down, 0)
        .expect("it is found");
    assert!(down - 15 * SECOND <= 25 * SECOND, "{down} µs");
}
