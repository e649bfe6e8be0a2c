//! A run over fifty nodes in virtual time: streams break, agents and the server die at any moment, messages get lost with
//! their streams. The decisions of the run and the window of reports are the real ones; what is simulated is the world.
//!
//! Every seed is one history. `PORTOLAN_SEED=N cargo test -p portolan-fleet --test simulation` plays one again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use portolan_fleet::{
    Arrival, BarrierScope, GatePlan, GateReply, NodeEnd, NodeEvent, NodeProgress, NodeReport,
    NodeState, Observed, ReportWindow, RunEffect, RunPlan, RunState, Stage, UnreachablePolicy,
    advance,
};

const NODES: usize = 50;
const STEPS: usize = 6;
/// The name of the step that few nodes take at the same time.
const THROTTLED: &str = "throttled";
const LEASE: Duration = Duration::from_secs(30);
const LONGEST_STEP: Duration = Duration::from_secs(20);
/// Until then things break; afterwards nothing does.
const CHAOS: Duration = Duration::from_mins(8);
const END: Duration = Duration::from_hours(24);

/// Random numbers that are the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn time(&mut self, most: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(most.as_millis()).unwrap_or(1)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A message of an agent arrives, if its stream still stands.
    ToServer {
        node: usize,
        link: u64,
        message: ToServer,
    },
    /// A message of the server arrives, if the stream still stands.
    ToAgent {
        node: usize,
        link: u64,
        message: ToAgent,
    },
    StepEnds {
        node: usize,
        step: usize,
    },
    AgentDies(usize),
    AgentStarts(usize),
    Connects(usize),
    LinkBreaks(usize),
    Lease {
        node: usize,
        link: u64,
    },
    /// The gate is asked; the answer comes to the server that asked, if that still lives.
    GateAnswers {
        question: u32,
        server: u64,
        is_open: bool,
    },
    Approves,
    ServerDies,
    ServerStarts,
    ServerLooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ToServer {
    Held(bool),
    Report {
        session: u64,
        number: u64,
        phase: usize,
        event: Reported,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reported {
    Step,
    Shared,
    Wants,
    Gives,
    AtBarrier(usize),
    Ended(bool),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ToAgent {
    Order(usize),
    Stop,
    News(News),
    Ack { session: u64, number: u64 },
}

/// What a node knows of others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct News {
    has_permit: bool,
    has_result: bool,
    first_passed: usize,
}

#[derive(Default)]
struct Agent {
    is_up: bool,
    link: Option<u64>,
    lease: Duration,
    // On the disk.
    done: BTreeSet<usize>,
    failed: Option<usize>,
    ended: Option<bool>,
    begun: BTreeSet<usize>,
    // In memory.
    is_active: bool,
    is_confirmed: bool,
    is_stopped: bool,
    phase: usize,
    told_barrier: Option<usize>,
    has_told_end: bool,
    news: News,
    has_asked: bool,
    has_given_back: bool,
    has_shared: bool,
    has_skipped_first: bool,
    session: u64,
    last: u64,
    unacknowledged: Vec<(u64, usize, Reported)>,
    /// How often each step was begun.
    executions: [u32; STEPS],
}

struct World {
    seed: u64,
    random: Random,
    now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    order: u64,
    links: u64,
    plan: RunPlan,
    barriers: Vec<Option<usize>>,
    agents: Vec<Agent>,
    is_server_up: bool,
    /// What the store has.
    stored: RunState,
    windows: Vec<ReportWindow>,
    inbox: Vec<NodeReport>,
    /// Whether the store has the result of the first node's step.
    has_result: bool,
    /// The step that runs on the first node alone, and the one that two nodes may take at the same time.
    first_step: Option<usize>,
    throttled: Option<usize>,
    /// What each agent was told over the stream that it has.
    told: Vec<Option<News>>,
    /// Tells the starts of the server apart; the question that this one has asked.
    server: u64,
    asked: Option<u32>,
    reply: Option<GateReply>,
    approved_gate: u32,
    opened: usize,
    is_resumed: bool,
    /// Delivered on each stream in order.
    last_delivery: BTreeMap<u64, Duration>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let is_lockstep = random.one_in(2);
        let run_barrier = 1 + usize::try_from(random.below(4)).unwrap_or(1);
        let mut scopes = Vec::new();
        let barriers = (0..STEPS).map(|step| {
            let scope = match step {
                0 => return None,
                step if step == run_barrier => BarrierScope::Run,
                _ if is_lockstep => BarrierScope::Batch,
                _ => return None,
            };
            scopes.push(scope);
            Some(scopes.len() - 1)
        });
        let barriers = barriers.collect();
        let plan = RunPlan {
            nodes: (0..NODES).map(|node| format!("n{node:02}")).collect(),
            batches: vec![5, 20, 25],
            barriers: scopes,
            max_failures: usize::try_from(random.below(60)).unwrap_or(0),
            stops_on_failure: random.one_in(2),
            unreachable: match random.below(3) {
                0 => UnreachablePolicy::Fail,
                1 => UnreachablePolicy::Skip,
                _ => UnreachablePolicy::Wait(Duration::from_mins(5)),
            },
            gate: random.one_in(2).then(|| GatePlan {
                is_asked: true,
                retries: 2,
                interval: Duration::from_secs(5),
                needs_approval: random.one_in(2),
            }),
            throttles: BTreeMap::from([(THROTTLED.to_owned(), 2)]),
            delegates: Vec::new(),
            queue_limit: Duration::from_mins(10),
            silence_limit: LEASE + LONGEST_STEP,
        };
        let some_step = |random: &mut Random| {
            let step = usize::try_from(random.below(STEPS as u64)).unwrap_or(0);
            random.one_in(2).then_some(step)
        };
        let first_step = some_step(&mut random);
        let throttled = some_step(&mut random).filter(|step| first_step != Some(*step));
        let mut world = Self {
            seed,
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            order: 0,
            links: 0,
            stored: RunState::new(&plan),
            plan,
            barriers,
            agents: (0..NODES).map(|_| Agent::default()).collect(),
            is_server_up: true,
            windows: vec![ReportWindow::default(); NODES],
            inbox: Vec::new(),
            has_result: false,
            first_step,
            throttled,
            told: vec![None; NODES],
            server: 0,
            asked: None,
            reply: None,
            approved_gate: 0,
            opened: 0,
            is_resumed: false,
            last_delivery: BTreeMap::new(),
            random,
        };
        for node in 0..NODES {
            world.start_agent(node);
        }
        world.after(Duration::from_secs(5), Happening::ServerLooks);
        world.after(Duration::from_secs(40), Happening::Approves);
        let server_dies = 30 + world.random.below(120);
        world.after(Duration::from_secs(server_dies), Happening::ServerDies);
        for _ in 0..40 {
            let (when, node) = (world.random.time(CHAOS), world.node());
            world.after(when, Happening::AgentDies(node));
            let (when, node) = (world.random.time(CHAOS), world.node());
            world.after(when, Happening::LinkBreaks(node));
        }
        world
    }

    fn node(&mut self) -> usize {
        usize::try_from(self.random.below(NODES as u64)).unwrap_or(0)
    }

    fn after(&mut self, time: Duration, happening: Happening) {
        self.order += 1;
        self.queue
            .push(Reverse((self.now + time, self.order, happening)));
    }

    fn run(&mut self) {
        while let Some(Reverse((now, _, happening))) = self.queue.pop() {
            self.now = now;
            if now > END {
                break;
            }
            self.happen(happening);
            if matches!(self.stored.stage, Stage::Ended(_)) && now > CHAOS {
                break;
            }
        }
        self.check_end();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::ToServer {
                node,
                link,
                message,
            } => {
                if self.is_server_up && self.agents[node].link == Some(link) {
                    self.server_takes(node, message);
                }
            }
            Happening::ToAgent {
                node,
                link,
                message,
            } => {
                if self.agents[node].is_up && self.agents[node].link == Some(link) {
                    self.agent_takes(node, &message);
                }
            }
            Happening::StepEnds { node, step } => {
                // Commands outlive the agent.
                self.agents[node].done.insert(step);
                self.go_on(node);
            }
            Happening::AgentDies(node) => {
                self.agents[node].is_up = false;
                self.agents[node].link = None;
                let wait = self.random.time(Duration::from_mins(1));
                self.after(wait, Happening::AgentStarts(node));
            }
            Happening::AgentStarts(node) => self.start_agent(node),
            Happening::Connects(node) => self.connect(node),
            Happening::LinkBreaks(node) => self.break_link(node),
            Happening::Lease { node, link } => {
                if self.agents[node].link == Some(link) && self.is_server_up {
                    self.agents[node].lease = self.now + LEASE;
                    self.after(Duration::from_secs(10), Happening::Lease { node, link });
                    self.go_on(node);
                }
            }
            Happening::GateAnswers {
                question,
                server,
                is_open,
            } => {
                if self.is_server_up && self.server == server {
                    let refusal = (!is_open).then(|| "not yet".to_owned());
                    self.reply = Some(GateReply { question, refusal });
                    self.decide();
                }
            }
            Happening::Approves => {
                self.approved_gate = self.stored.gate.number;
                self.after(Duration::from_secs(40), Happening::Approves);
            }
            Happening::ServerDies => {
                self.is_server_up = false;
                self.inbox.clear();
                self.server += 1;
                self.asked = None;
                self.reply = None;
                for node in 0..NODES {
                    self.break_link(node);
                }
                let wait = self.random.time(Duration::from_secs(30));
                self.after(wait, Happening::ServerStarts);
            }
            Happening::ServerStarts => {
                self.is_server_up = true;
                for progress in self.stored.nodes.values_mut() {
                    if let NodeProgress::Working { heard, .. } = progress {
                        *heard = self.now;
                    }
                }
                if self.now < CHAOS {
                    let wait = Duration::from_secs(20) + self.random.time(Duration::from_mins(2));
                    self.after(wait, Happening::ServerDies);
                }
            }
            Happening::ServerLooks => {
                if self.is_server_up {
                    self.is_resumed = matches!(self.stored.stage, Stage::Stalled { .. });
                    self.decide();
                }
                self.after(Duration::from_secs(1), Happening::ServerLooks);
            }
        }
    }

    // === the server ===

    fn server_takes(&mut self, node: usize, message: ToServer) {
        let name = self.plan.nodes[node].clone();
        match message {
            ToServer::Held(is_active) => {
                // A new stream: the agent may be another one, and knows nothing.
                self.told[node] = None;
                match self.stored.nodes.get(&name) {
                    Some(NodeProgress::Working { phase, .. }) => {
                        let phase = *phase;
                        self.send_to_agent(node, ToAgent::Order(phase));
                        self.tell_news(node);
                    }
                    Some(NodeProgress::Done(_)) if is_active => {
                        self.send_to_agent(node, ToAgent::Stop);
                    }
                    _ => {}
                }
            }
            ToServer::Report {
                session,
                number,
                phase,
                event,
            } => {
                let mut window = self.windows[node];
                match window.take(session, number) {
                    Arrival::Again => self.send_to_agent(
                        node,
                        ToAgent::Ack {
                            session,
                            number: window.number,
                        },
                    ),
                    Arrival::Gap => {}
                    Arrival::New => {
                        // The real server collects some; here each report is a decision of its own, and a crash may come
                        // before it is stored.
                        if self.now < CHAOS && self.random.one_in(400) {
                            self.happen(Happening::ServerDies);
                            return;
                        }
                        self.windows[node] = window;
                        let event = match event {
                            Reported::Step => NodeEvent::Alive,
                            Reported::Shared => {
                                self.has_result = true;
                                NodeEvent::Alive
                            }
                            Reported::Wants => NodeEvent::WantsPermit(THROTTLED.to_owned()),
                            Reported::Gives => NodeEvent::GivesPermit(THROTTLED.to_owned()),
                            Reported::AtBarrier(barrier) => NodeEvent::AtBarrier {
                                barrier,
                                state: NodeState::Changed,
                            },
                            Reported::Ended(true) => NodeEvent::Ended(NodeState::Changed),
                            Reported::Ended(false) => NodeEvent::Ended(NodeState::Failed),
                        };
                        self.inbox.push(NodeReport {
                            node: name,
                            phase,
                            event,
                        });
                        self.decide();
                        self.send_to_agent(node, ToAgent::Ack { session, number });
                    }
                }
            }
        }
    }

    fn decide(&mut self) {
        let connected = (0..NODES).filter(|node| self.agents[*node].link.is_some());
        let observed = Observed {
            now: self.now,
            reports: std::mem::take(&mut self.inbox),
            connected: connected
                .map(|node| self.plan.nodes[node].clone())
                .collect(),
            gate: self.reply.take(),
            approved_gate: self.approved_gate,
            resume: std::mem::take(&mut self.is_resumed),
            ..Observed::default()
        };
        let reply = observed.gate.clone();
        let before = self.stored.clone();
        let (state, effects) = advance(&self.plan, &before, &observed);
        for (name, progress) in &before.nodes {
            if matches!(progress, NodeProgress::Done(_)) {
                assert_eq!(
                    state.nodes.get(name),
                    Some(progress),
                    "{}: an end changed",
                    self.replay()
                );
            }
        }
        if reply.is_some_and(|reply| reply.refusal.is_none())
            && state.gate.is_open
            && !before.gate.is_open
        {
            self.opened += 1;
        }
        assert!(
            before.first.is_none() || before.first == state.first,
            "{}: another first node",
            self.replay()
        );
        self.stored = state;
        let dies = !effects.is_empty() && self.now < CHAOS && self.random.one_in(100);
        if dies {
            // Stored, and nothing of it sent.
            self.happen(Happening::ServerDies);
            return;
        }
        for effect in effects {
            match effect {
                RunEffect::Dispatch { node, phase } => {
                    self.send_to_agent(index(&node), ToAgent::Order(phase));
                }
                RunEffect::Stop { node, .. } | RunEffect::Release(node) => {
                    self.send_to_agent(index(&node), ToAgent::Stop);
                }
                RunEffect::AskGate { question } => self.ask_gate(question),
                RunEffect::Reserve(_) | RunEffect::Permit { .. } | RunEffect::Deny(_) => {}
            }
        }
        for node in 0..NODES {
            self.tell_news(node);
        }
    }

    fn ask_gate(&mut self, question: u32) {
        if self.asked == Some(question) {
            return;
        }
        self.asked = Some(question);
        let is_open = self.now > CHAOS || self.random.one_in(2);
        let wait = self.random.time(Duration::from_secs(10));
        let server = self.server;
        let answer = Happening::GateAnswers {
            question,
            server,
            is_open,
        };
        self.after(wait, answer);
    }

    /// Tells a node at work what it should know of others, if that is new.
    fn tell_news(&mut self, node: usize) {
        let name = &self.plan.nodes[node];
        if !matches!(
            self.stored.nodes.get(name),
            Some(NodeProgress::Working { .. })
        ) {
            return;
        }
        let first = self.stored.first.as_ref();
        let first_passed = match first.and_then(|first| self.stored.nodes.get(first)) {
            None | Some(NodeProgress::Queued) => 0,
            Some(NodeProgress::Working { phase, .. }) => *phase,
            Some(NodeProgress::Waiting { barrier, .. }) => barrier + 1,
            Some(NodeProgress::Done(_)) => usize::MAX,
        };
        let news = News {
            has_permit: self.stored.permits.of(name).next().is_some(),
            has_result: self.has_result,
            first_passed,
        };
        if self.told[node] != Some(news) && self.agents[node].link.is_some() {
            self.told[node] = Some(news);
            self.send_to_agent(node, ToAgent::News(news));
        }
    }

    // === agents ===

    fn start_agent(&mut self, node: usize) {
        let session = self.random.next();
        let agent = &mut self.agents[node];
        if agent.is_up {
            return;
        }
        agent.is_up = true;
        agent.is_active = false;
        agent.is_stopped = false;
        agent.phase = 0;
        agent.told_barrier = None;
        agent.has_told_end = false;
        agent.news = News::default();
        agent.has_asked = false;
        agent.has_given_back = false;
        agent.has_shared = false;
        agent.has_skipped_first = false;
        agent.lease = Duration::ZERO;
        agent.session = session;
        agent.last = 0;
        agent.unacknowledged.clear();
        let wait = self.random.time(Duration::from_secs(2));
        self.after(wait, Happening::Connects(node));
    }

    fn connect(&mut self, node: usize) {
        if !self.agents[node].is_up || self.agents[node].link.is_some() {
            return;
        }
        if !self.is_server_up {
            let wait = Duration::from_secs(1) + self.random.time(Duration::from_secs(10));
            self.after(wait, Happening::Connects(node));
            return;
        }
        self.links += 1;
        let link = self.links;
        self.agents[node].link = Some(link);
        // A new stream brings a new lease, and the run may have been given up while there was none.
        self.agents[node].is_confirmed = false;
        self.after(Duration::ZERO, Happening::Lease { node, link });
        let is_active = self.agents[node].is_active;
        self.send_to_server(node, ToServer::Held(is_active));
        self.send_again(node);
    }

    fn break_link(&mut self, node: usize) {
        if self.agents[node].link.take().is_none() {
            return;
        }
        // The server heard of it until now.
        let name = self.plan.nodes[node].clone();
        if let Some(NodeProgress::Working { heard, .. }) = self.stored.nodes.get_mut(&name) {
            *heard = self.now;
        }
        let most = if self.random.one_in(8) { 120 } else { 5 };
        let wait = self.random.time(Duration::from_secs(most));
        self.after(wait, Happening::Connects(node));
    }

    fn agent_takes(&mut self, node: usize, message: &ToAgent) {
        match message {
            ToAgent::Order(phase) => {
                let agent = &mut self.agents[node];
                let was_active = std::mem::replace(&mut agent.is_active, true);
                agent.phase = agent.phase.max(*phase);
                agent.is_confirmed = true;
                if was_active {
                    self.send_again(node);
                }
                self.go_on(node);
            }
            ToAgent::News(news) => {
                self.agents[node].news = *news;
                self.go_on(node);
            }
            ToAgent::Stop => {
                let agent = &mut self.agents[node];
                agent.is_stopped |= agent.is_active;
                self.go_on(node);
            }
            ToAgent::Ack { session, number } => {
                let agent = &mut self.agents[node];
                if *session == agent.session {
                    agent.unacknowledged.retain(|(one, _, _)| one > number);
                }
            }
        }
    }

    /// Takes the next step, if nothing holds the node back.
    fn go_on(&mut self, node: usize) {
        loop {
            let agent = &self.agents[node];
            if !agent.is_up || !agent.is_active || agent.has_told_end {
                return;
            }
            if let Some(good) = agent.ended {
                self.tell_end(node, good);
                return;
            }
            if agent.begun.iter().any(|step| !agent.done.contains(step)) {
                // A command is at work, maybe since before the agent was started.
                return;
            }
            if agent.failed.is_some() {
                self.tell_end(node, false);
                return;
            }
            if self.gives_something(node) {
                continue;
            }
            let agent = &self.agents[node];
            let is_behind = |step: &usize| {
                agent.done.contains(step)
                    || agent.has_skipped_first && self.first_step == Some(*step)
            };
            let Some(step) = (0..STEPS).find(|step| !is_behind(step)) else {
                self.tell_end(node, true);
                return;
            };
            if agent.is_stopped {
                self.tell_end(node, true);
                return;
            }
            if let Some(barrier) = self.barriers[step]
                && agent.phase <= barrier
            {
                if agent.told_barrier != Some(barrier) {
                    self.agents[node].told_barrier = Some(barrier);
                    self.report(node, Reported::AtBarrier(barrier));
                }
                return;
            }
            if agent.lease <= self.now || !agent.is_confirmed {
                return;
            }
            if self.first_step == Some(step) && !self.is_first(node) {
                let passed = self.passed_before(step);
                if !agent.news.has_result && agent.news.first_passed <= passed {
                    return;
                }
                self.agents[node].has_skipped_first = true;
                continue;
            }
            if self.throttled == Some(step) && !agent.news.has_permit {
                if !agent.has_asked {
                    self.agents[node].has_asked = true;
                    self.report(node, Reported::Wants);
                }
                return;
            }
            self.begin(node, step);
        }
    }

    fn is_first(&self, node: usize) -> bool {
        self.stored.first.as_ref() == Some(&self.plan.nodes[node])
    }

    /// How many barriers a node has passed when it takes a step.
    fn passed_before(&self, step: usize) -> usize {
        self.barriers[..=step].iter().flatten().count()
    }

    /// Gives back what a step that has ended needed, and its result to the others.
    fn gives_something(&mut self, node: usize) -> bool {
        let is_first = self.is_first(node);
        let agent = &mut self.agents[node];
        let is_done = |step: Option<usize>| step.is_some_and(|step| agent.done.contains(&step));
        if is_done(self.throttled) && !agent.has_given_back {
            agent.has_given_back = true;
            self.report(node, Reported::Gives);
            return true;
        }
        if is_first && is_done(self.first_step) && !agent.has_shared {
            agent.has_shared = true;
            self.report(node, Reported::Shared);
            return true;
        }
        false
    }

    fn begin(&mut self, node: usize, step: usize) {
        self.check_begin(node, step);
        let fails = self.random.one_in(600);
        let time = self.random.time(LONGEST_STEP);
        let agent = &mut self.agents[node];
        agent.begun.insert(step);
        agent.executions[step] += 1;
        if fails {
            agent.failed = Some(step);
        }
        self.report(node, Reported::Step);
        self.after(time, Happening::StepEnds { node, step });
    }

    fn tell_end(&mut self, node: usize, good: bool) {
        let agent = &mut self.agents[node];
        agent.ended = Some(good);
        agent.has_told_end = true;
        self.report(node, Reported::Ended(good));
    }

    fn report(&mut self, node: usize, event: Reported) {
        let agent = &mut self.agents[node];
        agent.last += 1;
        let (number, phase, session) = (agent.last, agent.phase, agent.session);
        agent.unacknowledged.push((number, phase, event));
        self.send_to_server(
            node,
            ToServer::Report {
                session,
                number,
                phase,
                event,
            },
        );
    }

    fn send_again(&mut self, node: usize) {
        let session = self.agents[node].session;
        for (number, phase, event) in self.agents[node].unacknowledged.clone() {
            self.send_to_server(
                node,
                ToServer::Report {
                    session,
                    number,
                    phase,
                    event,
                },
            );
        }
    }

    // === streams: in order, and lost when they break ===

    fn send_to_server(&mut self, node: usize, message: ToServer) {
        if let Some(link) = self.agents[node].link {
            let at = self.delivery(link);
            self.order += 1;
            let happening = Happening::ToServer {
                node,
                link,
                message,
            };
            self.queue.push(Reverse((at, self.order, happening)));
        }
    }

    fn send_to_agent(&mut self, node: usize, message: ToAgent) {
        if let Some(link) = self.agents[node].link {
            let at = self.delivery(link);
            self.order += 1;
            let happening = Happening::ToAgent {
                node,
                link,
                message,
            };
            self.queue.push(Reverse((at, self.order, happening)));
        }
    }

    fn delivery(&mut self, link: u64) -> Duration {
        let delay = self.random.time(Duration::from_millis(200));
        let last = self.last_delivery.entry(link).or_default();
        *last = (*last).max(self.now + delay);
        *last
    }

    // === what must hold ===

    fn replay(&self) -> String {
        format!(
            "PORTOLAN_SEED={} cargo test -p portolan-fleet --test simulation",
            self.seed
        )
    }

    /// A step begins only where the store says so, behind barriers that everybody who must has come to.
    fn check_begin(&self, node: usize, step: usize) {
        let progress = &self.stored.nodes[&self.plan.nodes[node]];
        let NodeProgress::Working { phase, .. } = progress else {
            unreachable!(
                "{}: n{node} begins step {step} as {progress:?}",
                self.replay()
            );
        };
        let batch = |node: usize| {
            (0..self.plan.batches.len()).find(|batch| {
                RunState::batch_nodes(&self.plan, *batch).contains(&self.plan.nodes[node])
            })
        };
        assert!(
            matches!(self.stored.stage, Stage::Stopping { .. })
                || batch(node) == Some(self.stored.batch),
            "{}: n{node} is not in the current batch",
            self.replay()
        );
        if self.throttled == Some(step) {
            let at_it = |agent: &&Agent| agent.begun.contains(&step) && !agent.done.contains(&step);
            let others = self.agents.iter().filter(at_it).count();
            assert!(others < 2, "{}: {others} nodes are at it", self.replay());
        }
        if self.first_step == Some(step) {
            assert!(
                self.is_first(node),
                "{}: n{node} is not the first",
                self.replay()
            );
        }
        let is_gated = self.plan.gate.is_some() && self.stored.phase == 0;
        assert!(
            !is_gated || batch(node).is_none_or(|batch| self.opened >= batch),
            "{}: n{node} begins behind a gate that is closed",
            self.replay()
        );
        let Some(barrier) = self.barriers[step] else {
            return;
        };
        assert!(
            *phase > barrier,
            "{}: n{node} passes barrier {barrier}",
            self.replay()
        );
        for other in 0..NODES {
            let is_done = matches!(
                self.stored.nodes[&self.plan.nodes[other]],
                NodeProgress::Done(_)
            );
            let is_concerned =
                self.plan.barriers[barrier] == BarrierScope::Run || batch(other) == batch(node);
            let is_behind = |before: usize| {
                let skips = self.first_step == Some(before) && !self.is_first(other);
                skips || self.agents[other].done.contains(&before)
            };
            let has_come = (0..step).all(is_behind);
            assert!(
                is_done || !is_concerned || has_come,
                "{}: n{node} passes barrier {barrier} before n{other}",
                self.replay()
            );
        }
    }

    fn check_end(&self) {
        let is_over = matches!(self.stored.stage, Stage::Ended(_));
        assert!(
            is_over,
            "{}: the run does not end: {:?}",
            self.replay(),
            self.stored
        );
        if let Some(step) = self.first_step {
            let all: u32 = self.agents.iter().map(|agent| agent.executions[step]).sum();
            assert!(
                all <= 1,
                "{}: step {step} was begun {all} times",
                self.replay()
            );
        }
        for (node, agent) in self.agents.iter().enumerate() {
            let most = agent.executions.iter().copied().max().unwrap_or_default();
            assert!(
                most <= 1,
                "{}: a step of n{node} was begun {most} times",
                self.replay()
            );
            let progress = &self.stored.nodes[&self.plan.nodes[node]];
            let NodeProgress::Done(end) = progress else {
                unreachable!("{}: n{node} has no end: {progress:?}", self.replay());
            };
            let was_begun = agent.executions[0] > 0;
            if *end == NodeEnd::NotBegun {
                assert!(!was_begun, "{}: n{node} was begun", self.replay());
            }
        }
    }
}

fn index(node: &str) -> usize {
    node.trim_start_matches('n').parse().unwrap_or_default()
}

#[test]
fn fifty_nodes_keep_their_promises_in_any_history() {
    if let Some(seed) = std::env::var("PORTOLAN_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        World::new(seed).run();
        return;
    }
    let seeds = if std::env::var_os("PORTOLAN_LONG").is_some() {
        2_000
    } else {
        300
    };
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..seeds {
        let mut world = World::new(seed);
        world.run();
        *ends.entry(format!("{:?}", world.stored.stage)).or_default() += 1;
    }
    // Histories that all end alike would try little.
    assert!(ends.len() >= 2, "{ends:?}");
}
