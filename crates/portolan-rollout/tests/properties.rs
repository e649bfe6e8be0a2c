//! What always holds, whatever happens: releases, tokens, broken pods, edited objects, lost effects, steps of the clock.

mod world;

use portolan_rollout::{
    Actor, Effect, GateAnswer, Measurement, Outcome, Phase, Policy, Record, Revision, Slot, Time,
    Traffic, TroubleKind,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use world::{World, spec};

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    /// Time passes, with a look every ten seconds.
    Wait(u8),
    /// The user asks for an image.
    Release(u8),
    /// A person gives a command.
    Token(u8),
    /// Pods of an image break or work again.
    Break(u8, Option<TroubleKind>),
    /// An image answers so many of a thousand requests badly.
    Bad(u8, u64),
    /// Requests in a second.
    Rate(u64),
    /// What metrics answer instead of counts.
    Metrics(u8),
    /// What gates answer.
    Gate(u8),
    /// Somebody edits or deletes the routes.
    EditRoutes(Option<u8>),
    /// Somebody deletes a slot's Deployment.
    DeleteSlot(bool),
    /// Somebody points the Service elsewhere.
    EditApex(Option<bool>),
    /// Pods of a slot are gone until they start again.
    LosePods(bool),
    /// The clock is set.
    Clock(i64),
    /// The first effects of a look are lost.
    Lose(u8),
    /// `spec.paused`.
    Paused(bool),
    /// `spec.replicas`.
    Replicas(u32),
    /// A tracked Secret changes.
    Config(u8),
    /// Something has to be put right by a person.
    Problem(bool),
    /// Routes are accepted or not.
    Accepted(bool),
}

const COMMANDS: [&str; 7] = [
    "abort", "undo", "pause", "resume", "retry", "promote", "force",
];

fn slot(is_a: bool) -> Slot {
    if is_a { Slot::A } else { Slot::B }
}

fn trouble() -> impl Strategy<Value = Option<TroubleKind>> {
    prop_oneof![
        Just(None),
        Just(Some(TroubleKind::CrashLoop)),
        Just(Some(TroubleKind::NoCapacity)),
        Just(Some(TroubleKind::Other)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1_u8..40).prop_map(Event::Wait),
        4 => (0_u8..4).prop_map(Event::Release),
        4 => (0_u8..7).prop_map(Event::Token),
        1 => ((0_u8..4), trouble()).prop_map(|(image, kind)| Event::Break(image, kind)),
        1 => ((0_u8..4), prop_oneof![Just(0_u64), Just(1), Just(30), Just(900)]).prop_map(|(image, bad)| Event::Bad(image, bad)),
        1 => prop_oneof![Just(0_u64), Just(1), Just(100), Just(5_000)].prop_map(Event::Rate),
        1 => (0_u8..5).prop_map(Event::Metrics),
        1 => (0_u8..3).prop_map(Event::Gate),
        1 => prop::option::of(0_u8..=100).prop_map(Event::EditRoutes),
        1 => any::<bool>().prop_map(Event::DeleteSlot),
        1 => prop::option::of(any::<bool>()).prop_map(Event::EditApex),
        1 => any::<bool>().prop_map(Event::LosePods),
        1 => prop_oneof![Just(-100_000_i64), Just(-61), Just(1), Just(59), Just(3_600), Just(1_000_000)].prop_map(Event::Clock),
        3 => (0_u8..9).prop_map(Event::Lose),
        1 => any::<bool>().prop_map(Event::Paused),
        1 => prop_oneof![Just(0_u32), Just(1), Just(4), Just(9)].prop_map(Event::Replicas),
        1 => (0_u8..3).prop_map(Event::Config),
        1 => any::<bool>().prop_map(Event::Problem),
        1 => any::<bool>().prop_map(Event::Accepted),
    ]
}

fn strategy() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(serde_json::json!({"weights": [10, 50], "stepInterval": "1m", "soak": "2m"})),
        Just(
            serde_json::json!({"steps": [{"weight": 1, "pause": "manual"}, {"weight": 100, "for": "2m"}], "holdback": 0})
        ),
        Just(
            serde_json::json!({"weights": [20], "mirror": 10, "capacity": "shrinkStable", "soak": "0s", "stickySessions": {"cookieName": "c"}})
        ),
        Just(serde_json::json!({"type": "blueGreen", "soak": "1m"})),
        Just(
            serde_json::json!({"type": "abTest", "match": [{"cookie": {"name": "a", "value": "b"}}]})
        ),
    ]
}

/// A world that holds every write and every status against the rules.
struct Watched {
    world: World,
    tokens: u32,
    /// Whether a person ever asked for a promotion.
    is_ordered: bool,
    /// The revision that was started and neither promoted nor ended yet.
    started: Option<Revision>,
    /// Whether it was proven not to be harmful when its promotion began.
    is_proven: bool,
}

impl Watched {
    fn new(strategy: serde_json::Value, policy: Policy) -> Self {
        let mut spec = spec("0");
        spec.strategy = serde_json::from_value(strategy).expect("a strategy");
        spec.strategy.max_duration = portolan_rollout::Span::from_seconds(1_800);
        spec.analysis.on_inconclusive = policy;
        spec.analysis.on_no_traffic = policy;
        spec.analysis.on_metrics_down = policy;
        let gates = serde_json::json!([{"before": "start", "webhook": {"url": "https://gate"}}, {"before": "end", "webhook": {"url": "https://gate"}}]);
        spec.gates = serde_json::from_value(gates).expect("gates");
        let mut world = World::new(spec);
        world.gate = Some(GateAnswer::Open);
        Self {
            world,
            tokens: 0,
            is_ordered: false,
            started: None,
            is_proven: false,
        }
    }

    fn happen(&mut self, event: &Event) {
        let world = &mut self.world;
        match event {
            Event::Wait(looks) => {
                for _ in 0..*looks {
                    self.world.now += 10;
                    self.world.settle();
                    self.look(0);
                }
                return;
            }
            Event::Release(image) => world.release(&image.to_string()),
            Event::Token(command) => {
                self.tokens += 1;
                let command = COMMANDS[usize::from(*command) % COMMANDS.len()];
                self.is_ordered |= matches!(command, "promote" | "force" | "undo");
                world.token(command, &self.tokens.to_string());
            }
            Event::Break(image, None) => {
                world.broken.remove(&image.to_string());
            }
            Event::Break(image, Some(kind)) => {
                world.broken.insert(image.to_string(), *kind);
            }
            Event::Bad(image, bad) => {
                world.bad.insert(image.to_string(), *bad);
            }
            Event::Rate(rate) => world.rate = *rate,
            Event::Metrics(answer) => {
                world.metrics = match answer {
                    1 => Some(Measurement::Nothing),
                    2 => Some(Measurement::NotANumber),
                    3 => Some(Measurement::Slow),
                    4 => Some(Measurement::Down("refused".to_owned())),
                    _ => None,
                };
            }
            Event::Gate(answer) => {
                world.seen.gates.clear();
                world.gate = match answer {
                    1 => None,
                    2 => Some(GateAnswer::Closed("no".to_owned())),
                    _ => Some(GateAnswer::Open),
                };
            }
            Event::EditRoutes(share) => {
                world.seen.traffic = share.map(|share| Traffic::split(Slot::B, share));
            }
            Event::DeleteSlot(is_a) => {
                *world.seen.slots.get_mut(slot(*is_a)) = portolan_rollout::ObservedSlot::default();
            }
            Event::EditApex(apex) => world.seen.apex = apex.map(slot),
            Event::LosePods(is_a) => {
                let seen = world.seen.slots.get_mut(slot(*is_a));
                (seen.ready, seen.endpoints) = (0, 0);
            }
            Event::Clock(seconds) => world.now += seconds,
            Event::Lose(lost) => {
                self.look(usize::from(*lost));
                return;
            }
            Event::Paused(is_paused) => world.spec.paused = *is_paused,
            Event::Replicas(replicas) => {
                world.spec.replicas = Some(*replicas);
                world.seen.generation += 1;
            }
            Event::Config(content) => world.change_config(&content.to_string()),
            Event::Problem(is_one) => {
                let problem = portolan_rollout::Problem {
                    reason: "Foreign".to_owned(),
                    message: "somebody else's".to_owned(),
                };
                world.seen.problems = if *is_one { vec![problem] } else { Vec::new() };
            }
            Event::Accepted(are_accepted) => world.seen.routes_accepted = *are_accepted,
        }
        self.look(0);
    }

    fn look(&mut self, lost: usize) {
        let before = self.world.clone();
        self.world.look_losing(lost);
        for record in self.check(&before) {
            self.check_outcome(&record);
        }
    }

    /// The rules. That a write adds no traffic to a slot without endpoints is checked where it is written.
    fn check(&self, before: &World) -> Vec<Record> {
        let (world, seen) = (&self.world, &before.seen);
        let status = world.status();
        if let Some(traffic) = status.traffic {
            assert_eq!(traffic.shares.a + traffic.shares.b, 100);
            for slot in Slot::BOTH {
                // A slot that lost its endpoints has no share after one look, if the other one can take it.
                let other = slot.other();
                let is_dead = seen.slots.get(slot).endpoints == 0 && traffic.share(slot) > 0;
                let can_take = seen.slots.get(other).endpoints > 0 && traffic.share(other) > 0;
                assert!(
                    !(is_dead && can_take),
                    "slot {slot} has a share and no endpoints"
                );
            }
        }
        for effect in &world.effects {
            match effect {
                Effect::ApplySlot { slot, revision, .. } => {
                    let runs = seen.slots.get(*slot);
                    let is_other = runs.revision.as_ref().is_some_and(|runs| runs != revision);
                    let is_reached = seen.traffic.is_some_and(|traffic| traffic.reaches(*slot));
                    let is_first = before.phase() == Phase::Initializing;
                    assert!(
                        !(is_other && is_reached) || is_first || runs.endpoints == 0,
                        "slot {slot} changes under traffic"
                    );
                }
                Effect::PointApex { slot } => {
                    let ready = seen.slots.get(*slot).endpoints;
                    // A Service that was edited is put back, whatever the pods do.
                    let is_put_back =
                        before.status.as_ref().and_then(|status| status.apex) == Some(*slot);
                    assert!(
                        is_put_back || ready >= world.spec.wanted_replicas().max(1),
                        "the Service follows to a slot that is not ready"
                    );
                }
                _ => {}
            }
        }
        assert!(status.history.len() <= 20 && status.tried.len() <= 10);
        assert!(
            status
                .history
                .is_sorted_by(|one, next| one.number < next.number)
        );
        let known = before
            .status
            .as_ref()
            .and_then(|status| status.history.last())
            .map_or(0, |record| record.number);
        assert_eq!(
            status.canary.is_some(),
            status.phase.is_running(),
            "{}",
            status.phase
        );
        let news = status.history.iter().filter(|record| record.number > known);
        news.cloned().collect()
    }

    /// Nothing is promoted without proof, a person or a policy.
    fn check_outcome(&mut self, record: &Record) {
        if record.reason == "Preparing" {
            self.started.clone_from(&record.revision);
            self.is_proven = false;
        }
        if record.reason == "Promoting" && record.actor == Actor::Operator {
            // A line that was crossed once is proof, whatever is measured on the way to the promotion.
            let line = (1.0_f64 / 0.05).ln();
            let mut metrics = record.evidence.iter();
            assert!(
                metrics.all(|metric| metric.ln_promote >= line),
                "{record:?}"
            );
            self.is_proven = true;
        }
        let is_promoted = matches!(
            record.outcome,
            Some(Outcome::Promoted | Outcome::PromotedUnproven)
        );
        if is_promoted && record.reason == "Promoted" {
            assert_eq!(
                self.started.take(),
                record.revision,
                "one promotion for one start"
            );
        }
        match record.outcome {
            Some(Outcome::Promoted) if record.actor == Actor::Token => assert!(self.is_ordered),
            Some(Outcome::Promoted) => {
                assert!(self.is_proven || record.evidence.is_empty(), "{record:?}");
            }
            Some(Outcome::PromotedUnproven) => {
                assert!(matches!(record.actor, Actor::Policy | Actor::Spec));
            }
            _ => {}
        }
    }

    /// Everything works again.
    fn be_fair(&mut self) {
        let world = &mut self.world;
        world.broken.clear();
        world.bad.clear();
        world.rate = 100;
        world.metrics = None;
        world.gate = Some(GateAnswer::Open);
        world.seen.gates.clear();
        world.seen.problems.clear();
        world.seen.routes_accepted = true;
        world.spec.paused = false;
        if world.spec.replicas == Some(0) {
            world.spec.replicas = Some(1);
            world.seen.generation += 1;
        }
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Hold),
        Just(Policy::Rollback),
        Just(Policy::Promote),
        Just(Policy::PromoteUnlessWorse)
    ]
}

/// A hundred runs that are always the same; with `PORTOLAN_LONG` thousands that never are.
fn runs() -> ProptestConfig {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    ProptestConfig {
        cases: if is_long { 5_000 } else { 100 },
        rng_seed: if is_long {
            RngSeed::Random
        } else {
            RngSeed::Fixed(1)
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(runs())]

    #[test]
    fn the_rules_hold_whatever_happens(strategy in strategy(), policy in policy(), events in prop::collection::vec(event(), 1..60)) {
        let mut watched = Watched::new(strategy, policy);
        for event in &events {
            watched.happen(event);
        }
    }

    /// However it got there: once everything works, a rollout ends, and what it ends with is whole.
    #[test]
    fn every_rollout_ends(strategy in strategy(), policy in policy(), events in prop::collection::vec(event(), 1..40)) {
        let mut watched = Watched::new(strategy, policy);
        for event in &events {
            watched.happen(event);
        }
        watched.be_fair();
        let is_over = |world: &World| matches!(world.phase(), Phase::Stable | Phase::RolledBack);
        // Steps that wait for a person, and pauses, need one.
        for text in 0..600 {
            watched.world.token("resume", &format!("fair-{text}"));
            watched.happen(&Event::Wait(10));
            if is_over(&watched.world) {
                break;
            }
        }
        watched.happen(&Event::Wait(100));
        let world = &watched.world;
        prop_assert!(is_over(world), "{:#?}", world.status());
        let status = world.status();
        let stable = status.stable.clone().expect("a stable revision");
        prop_assert_eq!(world.seen.traffic, Some(Traffic::only(stable.slot)));
        prop_assert_eq!(world.seen.apex, Some(stable.slot));
        prop_assert_eq!(world.seen.slots.get(stable.slot).revision.as_ref(), Some(&stable.revision));
        prop_assert!(world.seen.slots.get(stable.slot).endpoints > 0);
        if status.phase == Phase::Stable {
            prop_assert_eq!(status.target.as_ref(), Some(&stable.revision));
        }
    }

    /// Without metrics nothing rises, nothing is promoted and nothing is rolled back.
    #[test]
    fn a_blind_rollout_stays_where_it_is(answer in 3_u8..5, waits in prop::collection::vec((1_u8..40, -100_i64..100_000), 1..20)) {
        let mut watched = Watched::new(serde_json::json!({"weights": [10, 50], "stepInterval": "10s", "minRequests": 0}), Policy::Hold);
        watched.happen(&Event::Wait(20));
        watched.happen(&Event::Metrics(answer));
        watched.happen(&Event::Release(1));
        for (looks, clock) in waits {
            watched.happen(&Event::Wait(looks));
            watched.happen(&Event::Clock(clock));
            let status = watched.world.status();
            prop_assert!(status.weight <= 10);
            prop_assert!(matches!(status.phase, Phase::Preparing | Phase::Shifting | Phase::Holding));
        }
    }
}

/// Runs a release to its end. The first `lost` effects of look `lost_at` are not done. Returns the world and how many
/// effects each look had.
fn run_losing(bad: u64, lost_at: usize, lost: usize) -> (World, Vec<usize>) {
    let mut world = World::stable();
    let seconds = portolan_rollout::Span::from_seconds;
    world.spec.strategy.weights = vec![20, 50];
    world.spec.strategy.step_interval = seconds(20);
    world.spec.strategy.soak = seconds(20);
    world.spec.strategy.rollback_window = seconds(30);
    world.spec.strategy.drain = seconds(10);
    world.rate = 500;
    world.bad.insert("2".to_owned(), bad);
    world.release("2");
    let mut effects = Vec::new();
    for look in 0..60 {
        world.look_losing(if look == lost_at { lost } else { 0 });
        effects.push(world.effects.len());
        world.settle();
        world.now += 10;
    }
    (world, effects)
}

/// An operator that dies between any two effects of any look changes nothing about the end.
#[test]
fn every_lost_prefix_of_effects_ends_the_same() {
    let end = |world: &World| {
        let slots =
            Slot::BOTH.map(|slot| (world.image_in(slot), world.seen.slots.get(slot).replicas));
        let outcome = world.told.iter().rev().find_map(|record| record.outcome);
        let told: Vec<String> = world
            .told
            .iter()
            .map(|record| record.reason.clone())
            .collect();
        (
            world.phase(),
            outcome,
            world.seen.traffic,
            world.seen.apex,
            slots,
            told,
        )
    };
    let cases = [
        (0, Phase::Stable, Outcome::Promoted),
        (200, Phase::RolledBack, Outcome::RolledBack),
    ];
    for (bad, phase, outcome) in cases {
        let (whole, effects) = run_losing(bad, usize::MAX, 0);
        let whole = end(&whole);
        assert_eq!((whole.0, whole.1), (phase, Some(outcome)));
        for (look, effects) in effects.into_iter().enumerate() {
            for lost in 1..=effects {
                let (world, _) = run_losing(bad, look, lost);
                assert_eq!(end(&world), whole, "{lost} effects of look {look} are lost");
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_stops_nothing_for_ever() {
    let mut world = World::stable();
    world.release("2");
    world.run_to(Phase::Shifting);
    world.now -= 1_000_000;
    world.run_to(Phase::Stable);
    assert!(
        world
            .status()
            .history
            .last()
            .is_some_and(|record| record.at < Time::from_unix(1_000_000))
    );
}
