//! Runs over many nodes in all kinds of disorder: what must hold at every moment, and that every run comes to an end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use portolan_fleet::{
    BarrierScope, Cancel, GatePlan, GateReply, NodeEnd, NodeEvent, NodeProgress, NodeReport,
    NodeState, Observed, RunEffect, RunEnd, RunPlan, RunState, Stage, UnreachablePolicy, advance,
};
use proptest::prelude::*;

const MINUTE: Duration = Duration::from_mins(1);

/// A plan whose barriers are those of the run (`r`) and of the batch (`b`).
fn plan(nodes: usize, batches: &[usize], barriers: &str, max_failures: usize) -> RunPlan {
    RunPlan {
        nodes: (0..nodes).map(|number| format!("n{number}")).collect(),
        batches: batches.to_vec(),
        barriers: barriers
            .chars()
            .map(|scope| match scope {
                'r' => BarrierScope::Run,
                _ => BarrierScope::Batch,
            })
            .collect(),
        max_failures,
        stops_on_failure: false,
        unreachable: UnreachablePolicy::Fail,
        gate: None,
        throttles: BTreeMap::new(),
        delegates: Vec::new(),
        queue_limit: MINUTE * 10,
        silence_limit: MINUTE * 11,
    }
}

/// A run with agents that do what a test says.
struct World {
    plan: RunPlan,
    state: RunState,
    now: Duration,
    connected: BTreeSet<String>,
    held: BTreeMap<String, String>,
    /// Every dispatch that was made.
    dispatched: Vec<(String, usize)>,
    effects: Vec<RunEffect>,
}

impl World {
    fn new(plan: RunPlan) -> Self {
        Self {
            state: RunState::new(&plan),
            connected: plan.nodes.iter().cloned().collect(),
            plan,
            now: Duration::ZERO,
            held: BTreeMap::new(),
            dispatched: Vec::new(),
            effects: Vec::new(),
        }
    }

    fn observe(&mut self, change: impl FnOnce(&mut Observed)) {
        let mut observed = Observed {
            now: self.now,
            held: self.held.clone(),
            connected: self.connected.clone(),
            ..Observed::default()
        };
        change(&mut observed);
        let before = self.state.clone();
        let (state, effects) = advance(&self.plan, &before, &observed);
        // What was stored may be read again by another server: the same goes in, the same comes out.
        assert_eq!(
            (state.clone(), effects.clone()),
            advance(&self.plan, &before, &observed)
        );
        self.state = state;
        for effect in &effects {
            if let RunEffect::Dispatch { node, phase } = effect {
                self.dispatched.push((node.clone(), *phase));
            }
        }
        self.check(&before, &effects);
        self.effects = effects;
    }

    fn tick(&mut self) {
        self.observe(|_| {});
    }

    fn report(&mut self, node: &str, event: NodeEvent) {
        let phase = match self.state.nodes.get(node) {
            Some(NodeProgress::Working { phase, .. }) => *phase,
            _ => 0,
        };
        let report = NodeReport {
            node: node.to_owned(),
            phase,
            event,
        };
        self.observe(|observed| observed.reports = vec![report]);
    }

    /// Lets a node come to the next barrier, or to its end.
    fn end_phase(&mut self, node: &str, state: NodeState) {
        let phase = match self.state.nodes.get(node) {
            Some(NodeProgress::Working { phase, .. }) => *phase,
            _ => 0,
        };
        let event = if phase < self.plan.barriers.len() {
            NodeEvent::AtBarrier {
                barrier: phase,
                state,
            }
        } else {
            NodeEvent::Ended(state)
        };
        self.report(node, event);
    }

    /// What holds at every moment.
    fn check(&self, before: &RunState, effects: &[RunEffect]) {
        let working: Vec<&String> = self.state.working().collect();
        let batch = RunState::batch_nodes(&self.plan, self.state.batch);
        if !matches!(self.state.stage, Stage::Stopping { .. } | Stage::Ended(_)) {
            assert!(
                working.iter().all(|node| batch.contains(node)),
                "a node outside its batch is at work"
            );
        }
        assert!(working.len() <= self.plan.batches.iter().copied().max().unwrap_or_default());
        for (node, progress) in &before.nodes {
            if matches!(progress, NodeProgress::Done(_)) {
                assert_eq!(self.state.nodes.get(node), Some(progress), "an end changed");
            }
        }
        for effect in effects {
            let RunEffect::Dispatch { phase, .. } = effect else {
                continue;
            };
            let opened = phase.checked_sub(1);
            let is_of_batch =
                opened.is_some_and(|barrier| self.plan.barriers[barrier] == BarrierScope::Batch);
            let is_behind = |progress: &NodeProgress| match progress {
                NodeProgress::Queued => *phase > 0,
                NodeProgress::Working { phase: at, .. } => at < phase,
                NodeProgress::Waiting { barrier, .. } => barrier + 1 < *phase,
                NodeProgress::Done(_) => false,
            };
            let mut waited_for = self.state.nodes.iter();
            assert!(
                !waited_for.any(|(node, progress)| {
                    is_behind(progress) && (!is_of_batch || batch.contains(node))
                }),
                "a barrier opened early"
            );
            assert!(
                before.failures() <= self.plan.max_failures,
                "begun after too many failures"
            );
        }
        for (step, limit) in &self.plan.throttles {
            let holders: Vec<&String> = self.state.permits.holders(step).collect();
            assert!(holders.len() <= *limit as usize, "{step}: {holders:?}");
            assert!(
                holders.iter().all(|node| working.contains(node)),
                "a node that is not at work has a permit"
            );
        }
        if before.first.is_some() {
            assert_eq!(before.first, self.state.first, "another first node");
        }
        if let Stage::Ended(_) = self.state.stage {
            assert!(
                self.state
                    .nodes
                    .values()
                    .all(|progress| matches!(progress, NodeProgress::Done(_)))
            );
        }
    }

    fn end(&self, node: &str) -> Option<NodeEnd> {
        match self.state.nodes.get(node) {
            Some(NodeProgress::Done(end)) => Some(*end),
            _ => None,
        }
    }
}

#[test]
fn batches_follow_each_other() {
    let mut world = World::new(plan(3, &[1, 2], "", 0));
    world.tick();
    assert_eq!(world.dispatched, [("n0".to_owned(), 0)]);
    world.report("n0", NodeEvent::Ended(NodeState::Changed));
    assert_eq!(world.dispatched.len(), 3);
    world.report("n2", NodeEvent::Ended(NodeState::Ok));
    assert_eq!(world.state.stage, Stage::Running);
    world.report("n1", NodeEvent::Ended(NodeState::Ok));
    assert_eq!(world.state.stage, Stage::Ended(RunEnd::Succeeded));
}

#[test]
fn a_barrier_of_the_run_waits_for_every_batch() {
    let mut world = World::new(plan(2, &[1, 1], "r", 0));
    world.tick();
    world.end_phase("n0", NodeState::Ok);
    assert_eq!(
        world.dispatched,
        [("n0".to_owned(), 0), ("n1".to_owned(), 0)]
    );
    world.end_phase("n1", NodeState::Ok);
    assert_eq!(
        world.dispatched.last(),
        Some(&("n0".to_owned(), 1)),
        "one batch after the other again"
    );
    world.report("n0", NodeEvent::Ended(NodeState::Ok));
    world.report("n1", NodeEvent::Ended(NodeState::Ok));
    assert_eq!(world.state.stage, Stage::Ended(RunEnd::Succeeded));
}

#[test]
fn a_barrier_of_the_batch_waits_for_the_batch_alone() {
    let mut world = World::new(plan(3, &[2, 1], "bb", 0));
    world.tick();
    world.end_phase("n0", NodeState::Ok);
    assert_eq!(world.dispatched.len(), 2, "n1 has not come to it");
    world.end_phase("n1", NodeState::Ok);
    let opened = [("n0".to_owned(), 1), ("n1".to_owned(), 1)];
    assert_eq!(world.dispatched[2..], opened);
    // One that skips the block with the next barrier ends; the other one does not wait for it.
    world.report("n0", NodeEvent::Ended(NodeState::Ok));
    world.end_phase("n1", NodeState::Ok);
    assert_eq!(world.dispatched.last(), Some(&("n1".to_owned(), 2)));
    world.end_phase("n1", NodeState::Ok);
    assert_eq!(world.dispatched.last(), Some(&("n2".to_owned(), 0)));
}

#[test]
fn more_failures_than_allowed_stop_a_run() {
    let mut world = World::new(plan(4, &[2, 2], "", 0));
    world.tick();
    world.report("n0", NodeEvent::Ended(NodeState::Failed));
    assert!(matches!(world.state.stage, Stage::Stopping { .. }));
    assert_eq!(world.end("n1"), None, "nodes at work come to their end");
    world.report("n1", NodeEvent::Ended(NodeState::Changed));
    assert_eq!(world.end("n2"), Some(NodeEnd::NotBegun));
    assert_eq!(world.state.stage, Stage::Ended(RunEnd::Failed));
}

/// A gate that is asked, and asked twice again.
fn asked_gate() -> GatePlan {
    GatePlan {
        is_asked: true,
        retries: 2,
        interval: Duration::from_secs(5),
        needs_approval: false,
    }
}

fn refused(question: u32) -> GateReply {
    GateReply {
        question,
        refusal: Some("503".to_owned()),
    }
}

fn open(question: u32) -> GateReply {
    GateReply {
        question,
        refusal: None,
    }
}

#[test]
fn a_gate_is_asked_and_stalls_a_run_that_can_be_resumed() {
    let mut world = World::new(RunPlan {
        gate: Some(asked_gate()),
        ..plan(2, &[1, 1], "", 0)
    });
    world.tick();
    world.report("n0", NodeEvent::Ended(NodeState::Ok));
    for question in 1..=2 {
        assert_eq!(world.effects.last(), Some(&RunEffect::AskGate { question }));
        world.observe(|observed| observed.gate = Some(refused(question)));
        assert!(world.effects.is_empty(), "not before its interval");
        // An answer that comes twice counts once.
        world.observe(|observed| observed.gate = Some(refused(question)));
        world.now += Duration::from_secs(5);
        world.tick();
    }
    world.observe(|observed| observed.gate = Some(refused(3)));
    let Stage::Stalled { reason } = &world.state.stage else {
        unreachable!("{:?}", world.state.stage);
    };
    assert_eq!(reason, "the gate after batch 1 does not open: 503");
    world.observe(|observed| observed.resume = true);
    assert_eq!(world.effects, [RunEffect::AskGate { question: 4 }]);
    world.observe(|observed| observed.gate = Some(open(3)));
    assert_eq!(
        world.dispatched.len(),
        1,
        "an answer to an earlier question"
    );
    world.observe(|observed| observed.gate = Some(open(4)));
    assert_eq!(world.dispatched.last(), Some(&("n1".to_owned(), 0)));
}

#[test]
fn a_gate_waits_for_an_approval_of_its_own() {
    let mut world = World::new(RunPlan {
        gate: Some(GatePlan {
            is_asked: false,
            needs_approval: true,
            ..asked_gate()
        }),
        ..plan(3, &[1], "", 0)
    });
    world.plan.batches = vec![1, 1, 1];
    world.tick();
    world.report("n0", NodeEvent::Ended(NodeState::Ok));
    assert_eq!(world.state.stage, Stage::Gate);
    world.observe(|observed| observed.approved_gate = 1);
    assert_eq!(world.dispatched.last(), Some(&("n1".to_owned(), 0)));
    world.observe(|observed| {
        observed.approved_gate = 1;
        observed.reports = vec![NodeReport {
            node: "n1".to_owned(),
            phase: 0,
            event: NodeEvent::Ended(NodeState::Ok),
        }];
    });
    assert_eq!(world.dispatched.len(), 2, "the second gate needs another");
    world.observe(|observed| observed.approved_gate = 2);
    assert_eq!(world.dispatched.len(), 3);
}

#[test]
fn the_first_node_is_the_first_that_can_be_reached_and_stays() {
    let mut world = World::new(plan(3, &[3], "", 3));
    world.connected.remove("n0");
    world.tick();
    assert_eq!(world.state.first.as_deref(), Some("n1"));
    world.report("n1", NodeEvent::Ended(NodeState::Failed));
    world.connected.insert("n0".to_owned());
    world.tick();
    assert_eq!(world.state.first.as_deref(), Some("n1"));
    assert!(world.state.has_first_ended());
}

#[test]
fn few_nodes_take_a_throttled_step_at_the_same_time() {
    let mut world = World::new(RunPlan {
        throttles: BTreeMap::from([("drain".to_owned(), 1)]),
        ..plan(3, &[3], "", 1)
    });
    world.tick();
    let permit = |node: &str| RunEffect::Permit {
        node: node.to_owned(),
        step: "drain".to_owned(),
    };
    let wants = || NodeEvent::WantsPermit("drain".to_owned());
    world.report("n1", wants());
    assert_eq!(world.effects, [permit("n1")]);
    world.report("n0", wants());
    world.report("n2", wants());
    assert!(world.effects.is_empty());
    // Its agent was started again and asks again.
    world.report("n1", wants());
    assert_eq!(world.effects, [permit("n1")]);
    world.report("n1", NodeEvent::GivesPermit("drain".to_owned()));
    assert_eq!(world.effects, [permit("n0")]);
    world.report("n0", NodeEvent::Ended(NodeState::Failed));
    assert!(world.effects.contains(&permit("n2")));
}

#[test]
fn a_node_that_may_not_be_targeted_any_more_is_not_sent_anything() {
    let mut world = World::new(plan(2, &[1, 1], "r", 2));
    world.tick();
    world.end_phase("n0", NodeState::Ok);
    let denied = BTreeSet::from(["n0".to_owned()]);
    world.observe(|observed| {
        observed.denied = denied.clone();
        observed.reports = vec![NodeReport {
            node: "n1".to_owned(),
            phase: 0,
            event: NodeEvent::AtBarrier {
                barrier: 0,
                state: NodeState::Ok,
            },
        }];
    });
    assert!(world.effects.contains(&RunEffect::Deny("n0".to_owned())));
    assert_eq!(world.end("n0"), Some(NodeEnd::State(NodeState::Failed)));
    assert_eq!(world.dispatched.last(), Some(&("n1".to_owned(), 1)));
}

#[test]
fn nodes_that_take_steps_for_others_are_waited_for() {
    let mut world = World::new(RunPlan {
        delegates: vec!["lb".to_owned()],
        ..plan(1, &[1], "", 0)
    });
    world.held.insert("lb".to_owned(), "other".to_owned());
    world.tick();
    assert!(world.dispatched.is_empty());
    world.held.clear();
    world.tick();
    let reserved = RunEffect::Reserve(vec!["lb".to_owned(), "n0".to_owned()]);
    assert_eq!(world.effects.first(), Some(&reserved));
    assert_eq!(world.dispatched.len(), 1);
}

#[test]
fn a_run_waits_for_nodes_of_another_one_and_stalls() {
    let mut world = World::new(plan(1, &[1], "", 0));
    world.held.insert("n0".to_owned(), "other".to_owned());
    world.tick();
    world.now += MINUTE * 9;
    world.tick();
    assert_eq!(world.state.stage, Stage::Reserving);
    world.now += MINUTE * 2;
    world.tick();
    let Stage::Stalled { reason } = &world.state.stage else {
        unreachable!("stalled")
    };
    assert_eq!(reason, "behind the run other");
    world.held.clear();
    world.observe(|observed| observed.resume = true);
    assert_eq!(world.dispatched.len(), 1);
}

#[test]
fn a_silent_node_is_unknown_only_when_no_step_of_it_can_run() {
    let mut world = World::new(plan(2, &[2], "", 1));
    world.tick();
    world.connected.remove("n0");
    world.now += MINUTE * 10;
    world.tick();
    assert_eq!(
        world.end("n0"),
        None,
        "its lease or a step may still be valid"
    );
    world.now += MINUTE * 2;
    world.tick();
    assert_eq!(world.end("n0"), Some(NodeEnd::State(NodeState::Unknown)));
    world.report("n0", NodeEvent::Ended(NodeState::Ok));
    assert_eq!(
        world.end("n0"),
        Some(NodeEnd::State(NodeState::Unknown)),
        "a late report changes nothing"
    );
    world.report("n1", NodeEvent::Ended(NodeState::Ok));
    assert_eq!(world.state.stage, Stage::Ended(RunEnd::Failed));
}

#[test]
fn nodes_without_a_stream_follow_the_policy() {
    for (policy, expected) in [
        (
            UnreachablePolicy::Fail,
            Some(NodeEnd::State(NodeState::Unreachable)),
        ),
        (
            UnreachablePolicy::Skip,
            Some(NodeEnd::State(NodeState::Skipped)),
        ),
        (UnreachablePolicy::Wait(MINUTE * 20), None),
    ] {
        let mut world = World::new(RunPlan {
            unreachable: policy,
            ..plan(1, &[1], "", 0)
        });
        world.connected.clear();
        world.tick();
        assert_eq!(world.end("n0"), expected);
    }
}

#[test]
fn a_cancelled_run_ends_with_what_is_at_work() {
    let mut world = World::new(plan(3, &[2, 1], "r", 0));
    world.tick();
    world.end_phase("n0", NodeState::Changed);
    world.observe(|observed| observed.cancel = Some(Cancel::Drain));
    assert_eq!(world.end("n0"), Some(NodeEnd::State(NodeState::Changed)));
    assert_eq!(world.end("n2"), Some(NodeEnd::NotBegun));
    assert!(world.effects.contains(&RunEffect::Stop {
        node: "n1".to_owned(),
        how: Cancel::Drain
    }));
    world.end_phase("n1", NodeState::Ok);
    assert_eq!(world.state.stage, Stage::Ended(RunEnd::Cancelled));
}

/// Something that happens: which node, what, how much time passes.
type Happening = (usize, u8, u64);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        if std::env::var_os("PORTOLAN_LONG").is_some() { 20_000 } else { 500 }
    ))]

    /// Whatever happens in whatever order, what `World::check` says holds, and once nodes answer, the run ends.
    #[test]
    fn every_run_keeps_its_promises_and_ends(
        sizes in prop::collection::vec(1usize..4, 1..4),
        barriers in "[br]{0,3}",
        max_failures in 0usize..3,
        policy in 0u8..3,
        has_gate in any::<bool>(),
        needs_approval in any::<bool>(),
        happenings in prop::collection::vec((0usize..12, 0u8..14, 0u64..400), 0..80),
    ) {
        let nodes = sizes.iter().sum();
        let mut world = World::new(RunPlan {
            gate: has_gate.then(|| GatePlan { needs_approval, ..asked_gate() }),
            throttles: BTreeMap::from([("s".to_owned(), 2)]),
            unreachable: match policy {
                0 => UnreachablePolicy::Fail,
                1 => UnreachablePolicy::Skip,
                _ => UnreachablePolicy::Wait(MINUTE * 15),
            },
            stops_on_failure: policy == 1,
            ..plan(nodes, &sizes, &barriers, max_failures)
        });
        for happening in happenings {
            happen(&mut world, nodes, happening);
        }
        // From here on everything answers.
        world.held.clear();
        world.connected = world.plan.nodes.iter().cloned().collect();
        for _ in 0..(nodes + 1) * (barriers.len() + 2) * 4 {
            let working: Vec<String> = world.state.working().cloned().collect();
            for node in working {
                world.end_phase(&node, NodeState::Ok);
            }
            let asks = matches!(world.state.stage, Stage::Gate);
            let question = world.state.gate.question;
            world.now += Duration::from_secs(5);
            world.observe(|observed| {
                observed.resume = !asks;
                observed.approved_gate = u32::MAX;
                observed.gate = asks.then(|| open(question));
            });
        }
        prop_assert!(matches!(world.state.stage, Stage::Ended(_)), "{:?}", world.state);
        let mut seen = BTreeSet::new();
        for dispatch in &world.dispatched {
            prop_assert!(seen.insert(dispatch.clone()), "{dispatch:?} twice");
        }
    }
}

fn happen(world: &mut World, nodes: usize, (node, what, seconds): Happening) {
    let name = format!("n{}", node % nodes);
    world.now += Duration::from_secs(seconds);
    match what {
        0..=2 => world.end_phase(&name, NodeState::Ok),
        3 => world.report(&name, NodeEvent::Ended(NodeState::Failed)),
        4 => world.report(&name, NodeEvent::Ended(NodeState::Changed)),
        5 => world.report(&name, NodeEvent::Alive),
        6 => {
            world.connected.remove(&name);
            world.tick();
        }
        7 => {
            world.connected.insert(name);
            world.tick();
        }
        8 => {
            world.held.insert(name, "other".to_owned());
            world.tick();
        }
        9 => {
            world.held.clear();
            world.observe(|observed| observed.resume = true);
        }
        10 => {
            let question = world.state.gate.question;
            let answer = if seconds % 2 == 0 { open } else { refused };
            world.observe(|observed| observed.gate = Some(answer(question)));
        }
        11 => world.report(&name, NodeEvent::WantsPermit("s".to_owned())),
        12 => world.report(&name, NodeEvent::GivesPermit("s".to_owned())),
        _ if seconds < 20 => world.observe(|observed| observed.cancel = Some(Cancel::Drain)),
        _ => world.tick(),
    }
}
