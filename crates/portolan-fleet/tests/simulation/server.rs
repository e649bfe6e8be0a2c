//! What the server does with what it hears: the decisions are the real ones, stored before anything is sent.

use std::time::Duration;

use portolan_fleet::{
    Arrival, NodeEvent, NodeProgress, NodeReport, NodeState, Observed, RunEffect, advance,
};

use crate::{CHAOS, Happening, NODES, News, Reported, THROTTLED, ToAgent, ToServer, World, index};

impl World {
    pub(crate) fn server_takes(&mut self, node: usize, message: ToServer) {
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

    pub(crate) fn decide(&mut self) {
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
    pub(crate) fn tell_news(&mut self, node: usize) {
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
}
