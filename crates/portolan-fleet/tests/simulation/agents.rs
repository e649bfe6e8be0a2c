//! What agents do: steps under a lease, behind barriers and with permits, and reports until they are acknowledged.

use std::time::Duration;

use portolan_fleet::NodeProgress;

use crate::{Happening, LONGEST_STEP, News, Reported, STEPS, ToAgent, ToServer, World};

impl World {
    pub(crate) fn start_agent(&mut self, node: usize) {
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

    pub(crate) fn connect(&mut self, node: usize) {
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

    /// Ends the stream of an agent. The server heard of it until now, and writes that down: a step that the agent began
    /// just before, whose report got lost with the stream, is at work for its whole time-out.
    pub(crate) fn lose_link(&mut self, node: usize) -> bool {
        if self.agents[node].link.take().is_none() {
            return false;
        }
        let name = self.plan.nodes[node].clone();
        if let Some(NodeProgress::Working { heard, .. }) = self.stored.nodes.get_mut(&name) {
            *heard = self.now;
        }
        true
    }

    pub(crate) fn break_link(&mut self, node: usize) {
        if !self.lose_link(node) {
            return;
        }
        let most = if self.random.one_in(8) { 120 } else { 5 };
        let wait = self.random.time(Duration::from_secs(most));
        self.after(wait, Happening::Connects(node));
    }

    pub(crate) fn agent_takes(&mut self, node: usize, message: &ToAgent) {
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
    pub(crate) fn go_on(&mut self, node: usize) {
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

    pub(crate) fn is_first(&self, node: usize) -> bool {
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

    pub(crate) fn send_again(&mut self, node: usize) {
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
}
