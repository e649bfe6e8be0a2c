//! One stream to a server, from the first message to its end.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::beacons::{BeaconCursor, NodeBeacons};
use crate::connection::{ConnectError, Connection};
use crate::cron::{CronCursor, NodeCron};
use crate::data::NodeIdentity;
use crate::gossip::NodeGossip;
use crate::lease::{DispatchLease, LeaseRequest};
use crate::program_watch::ProgramWatch;
use crate::runs::{NodeRuns, SharedLease};
use crate::shares::NodeShares;
use crate::wire::agent_message::Message as Ours;
use crate::wire::server_message::Message as Theirs;
use crate::wire::{
    Facts, Goodbye, Hello, LeaseRequest as LeaseMessage, RunsHeld, ServerMessage, Welcome,
};

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// How long the server's first message may take.
const WELCOME_TIME: Duration = Duration::from_secs(20);

/// The fastest that a server may ask for leases to be asked for.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// How many unanswered requests for a lease are taken for a lost stream.
const UNANSWERED: usize = 3;

/// How a stream ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The agent was stopped.
    Stopped,
    /// Another program has taken the place of the agent's.
    Replaced,
    /// The certificate should be renewed; a new stream shows the new one.
    RenewalDue,
    /// The server does not want the agent to come back.
    Dismissed(String),
    /// Another server looks after runs; its address.
    Moved(String),
    /// Something failed; another try may succeed.
    Lost(String),
}

/// What the node does, whatever stream it has.
pub(crate) struct NodeWork<'a> {
    pub(crate) runs: &'a mut NodeRuns,
    pub(crate) alone: &'a AloneWork<'a>,
}

/// What the node does whether a server is there or not.
pub(crate) struct AloneWork<'a> {
    pub(crate) beacons: &'a NodeBeacons,
    pub(crate) cron: &'a NodeCron,
    pub(crate) gossip: &'a NodeGossip,
    pub(crate) shares: &'a Arc<NodeShares>,
}

/// A stream that the server has taken in.
pub(crate) struct Session<'a> {
    connection: Connection,
    welcome: Welcome,
    lease: &'a SharedLease,
    /// Requests that have no answer yet.
    asked: Vec<(u64, LeaseRequest)>,
    number: u64,
}

impl<'a> Session<'a> {
    /// Connects and waits until the server takes the agent in.
    pub(crate) async fn open(
        server: &str,
        identity: &NodeIdentity,
        lease: &'a SharedLease,
    ) -> Result<Self, ConnectError> {
        let hello = Hello {
            protocol: PROTOCOL,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: boot_id(),
        };
        let mut connection = Connection::open(server, identity, Ours::Hello(hello)).await?;
        let first = tokio::time::timeout(WELCOME_TIME, connection.receiver.message()).await;
        let first = first.map_err(|_| refused("the server did not welcome the agent"))?;
        let first = first.map_err(|status| ConnectError::Refused(Box::new(status)))?;
        match first.and_then(|first| first.message) {
            Some(Theirs::Welcome(welcome)) => Ok(Self {
                connection,
                welcome,
                lease,
                asked: Vec::new(),
                number: 0,
            }),
            Some(Theirs::Ending(ending)) if !ending.moved_to.is_empty() => {
                Err(ConnectError::Moved(ending.moved_to))
            }
            Some(Theirs::Ending(ending)) => Err(refused(&ending.reason)),
            _ => Err(refused("the server did not welcome the agent")),
        }
    }

    /// The server's name.
    pub(crate) fn server(&self) -> &str {
        &self.welcome.server
    }

    /// Tells the server about the machine.
    pub(crate) async fn send_facts(&self, facts: Facts) {
        self.connection.sender.send(Ours::Facts(facts)).await;
    }

    /// Keeps the lease and does what the server says, until the stream ends.
    pub(crate) async fn run(
        mut self,
        stop: &CancellationToken,
        renewal: Duration,
        work: &mut NodeWork<'_>,
        program: &mut ProgramWatch,
    ) -> Ended {
        let NodeWork { runs, alone } = work;
        let AloneWork {
            beacons,
            cron,
            gossip,
            shares,
        } = alone;
        let mut cursor = BeaconCursor::default();
        let mut kept = CronCursor::default();
        let mut gossip_news = gossip.subscribe();
        self.tell_runs(runs).await;
        self.report(shares.key_message()).await;
        for message in shares.taken_messages() {
            self.report(message).await;
        }
        let every = Duration::from_millis(u64::from(self.welcome.lease_interval_ms));
        let mut ticks = interval_at(Instant::now(), every.max(MIN_INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let renewal = tokio::time::sleep(renewal);
        tokio::pin!(renewal);
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    self.lease().end();
                    runs.suspend().await;
                    self.connection.sender.send(Ours::Goodbye(Goodbye {})).await;
                    self.drain().await;
                    return Ended::Stopped;
                }
                () = &mut renewal => return Ended::RenewalDue,
                _ = ticks.tick() => {
                    if program.is_replaced() || runs.has_rebooted() {
                        return Ended::Replaced;
                    }
                    if !self.ask_for_lease().await {
                        return Ended::Lost("the server does not answer".to_owned());
                    }
                }
                report = runs.next_report() => self.report(report).await,
                message = beacons.next_message(&mut cursor) => self.report(message).await,
                message = cron.next_message(&mut kept) => self.report(message).await,
                message = shares.next_message() => self.report(message).await,
                news = gossip_news.next() => self.report(Ours::GossipNews(news)).await,
                message = self.connection.receiver.message() => match message {
                    Ok(Some(ServerMessage { message: Some(Theirs::BeaconOrders(orders)) })) => {
                        let needed = beacons.order(orders);
                        for request in runs.fetch_kept(&needed) {
                            self.report(request).await;
                        }
                    }
                    Ok(Some(ServerMessage { message: Some(Theirs::CronOrders(orders)) })) => {
                        let needed = cron.order(orders);
                        for request in runs.fetch_kept(&needed) {
                            self.report(request).await;
                        }
                    }
                    Ok(Some(ServerMessage { message: Some(Theirs::BeaconAck(ack)) })) => {
                        beacons.acknowledge(&ack, &mut cursor);
                    }
                    Ok(Some(ServerMessage { message: Some(Theirs::GossipCell(cell)) })) => {
                        gossip.take_cell(&cell);
                    }
                    Ok(Some(ServerMessage {
                        message: Some(
                            message @ (Theirs::ShareRecipients(_)
                            | Theirs::ShareStored(_)
                            | Theirs::ShareContent(_)
                            | Theirs::ShareRewrap(_)
                            | Theirs::ShareHolders(_)
                            | Theirs::ResultStored(_)
                            | Theirs::ResultContent(_)),
                        ),
                    })) => shares.take(message),
                    Ok(Some(message)) => {
                        if let Some(ended) = self.take(message, runs).await {
                            return ended;
                        }
                    }
                    Ok(None) => return Ended::Lost("the server has ended the stream".to_owned()),
                    Err(status) => return ConnectError::Refused(Box::new(status)).into(),
                },
            }
        }
    }

    /// False when the server has not answered for a while.
    async fn ask_for_lease(&mut self) -> bool {
        if self.asked.len() >= UNANSWERED {
            return false;
        }
        self.number += 1;
        // The lease counts from now, not from when the message is sent.
        let asked = self.lease().ask();
        self.asked.push((self.number, asked));
        let message = LeaseMessage {
            number: self.number,
        };
        self.connection
            .sender
            .send(Ours::LeaseRequest(message))
            .await
    }

    fn lease(&self) -> MutexGuard<'a, DispatchLease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server has to know of runs after a new start of the stream.
    async fn tell_runs(&self, runs: &NodeRuns) {
        let held = RunsHeld { runs: runs.held() };
        self.connection.sender.send(Ours::RunsHeld(held)).await;
        for report in runs.unacknowledged() {
            self.report(report).await;
        }
    }

    async fn report(&self, report: Ours) {
        // A stream that is over is noticed when the next message is read; the report is sent again then.
        self.connection.sender.send(report).await;
    }

    async fn take(&mut self, message: ServerMessage, runs: &mut NodeRuns) -> Option<Ended> {
        match message.message {
            Some(Theirs::LeaseGrant(grant)) => {
                let length = Duration::from_millis(u64::from(grant.length_ms));
                if let Some((_, request)) = self.asked.iter().find(|(one, _)| *one == grant.number)
                {
                    self.lease().grant(*request, length);
                }
                self.asked.retain(|(number, _)| *number > grant.number);
                None
            }
            Some(Theirs::Ending(ending)) if ending.is_final => {
                Some(Ended::Dismissed(ending.reason))
            }
            Some(Theirs::Ending(ending)) if !ending.moved_to.is_empty() => {
                Some(Ended::Moved(ending.moved_to))
            }
            Some(Theirs::Ending(ending)) => Some(Ended::Lost(ending.reason)),
            Some(Theirs::RunOrder(order)) => {
                for report in runs.order(order) {
                    self.report(report).await;
                }
                None
            }
            Some(Theirs::RunStop(stop)) => {
                runs.stop(&stop);
                None
            }
            Some(Theirs::SideOrder(order)) => {
                for report in runs.side(order) {
                    self.report(report).await;
                }
                None
            }
            Some(Theirs::FilePart(part)) => {
                if let Some(request) = runs.file_part(&part) {
                    self.report(request).await;
                }
                None
            }
            Some(Theirs::RunNews(news)) => {
                runs.news(&news);
                None
            }
            Some(Theirs::SideAnswer(answer)) => {
                runs.answer(answer);
                None
            }
            Some(Theirs::RunAck(ack)) => {
                runs.acknowledge(&ack);
                None
            }
            // A newer server may say more.
            _ => None,
        }
    }

    /// Lets the last message arrive: the server ends the stream when it has it.
    async fn drain(&mut self) {
        let ended = async { while let Ok(Some(_)) = self.connection.receiver.message().await {} };
        let _ = tokio::time::timeout(Duration::from_secs(2), ended).await;
    }
}

fn refused(reason: &str) -> ConnectError {
    ConnectError::Refused(Box::new(tonic::Status::unavailable(reason)))
}

/// Tells the starts of this machine apart.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.unwrap_or_default().trim().to_owned()
}
