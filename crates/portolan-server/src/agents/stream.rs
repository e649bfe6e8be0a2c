//! The stream of one agent: answers its messages, and ends when its certificate does not count any more.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use portolan_agent::wire::agent_message::Message as Theirs;
use portolan_agent::wire::agent_service_server::AgentService;
use portolan_agent::wire::server_message::Message as Ours;
use portolan_agent::wire::{
    AgentMessage, Ending, GossipNews, Hello, LeaseGrant, ServerMessage, Welcome,
};
use portolan_detect::{MAX_ROSTER, NodeUid, heartbeat_ttl};
use portolan_listen::{BodyRelease, PeerAddress, ResponseTime};
use serde_json::json;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::hub::{AgentHub, Membership};
use crate::beacons::BeaconInput;
use crate::error::ApiError;
use crate::runs::RunInput;
use crate::server::{ApiServer, Caller};
use crate::shares::{ResultInput, ShareInput};
use crate::strict_json;
use crate::token::Identity;

/// The path of the stream.
pub(crate) const AGENT_STREAM: &str = "/portolan.agent.v1alpha.AgentService/Connect";

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// How long the first message may take.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// A lease lasts for so many intervals: two requests may get lost.
const LEASE_INTERVALS: u32 = 3;

/// How much longer than an interval an agent may be silent.
const SILENCE_GRACE: Duration = Duration::from_secs(5);

/// How often the certificate of a silent agent is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a stream may go on; agents connect again.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// The most runs that an agent takes part in.
const MAX_RUNS: usize = 1_000;

/// The longest version of an agent.
const MAX_VERSION: usize = 64;

/// Answers streams of agents.
pub(crate) struct AgentStreams {
    pub(crate) server: Arc<ApiServer>,
}

type Messages = Pin<Box<dyn Stream<Item = Result<ServerMessage, Status>> + Send>>;

#[async_trait]
impl AgentService for AgentStreams {
    type ConnectStream = Messages;

    async fn connect(
        &self,
        request: Request<Streaming<AgentMessage>>,
    ) -> Result<Response<Messages>, Status> {
        let identity = request.extensions().get::<Arc<Identity>>().cloned();
        let identity = identity.ok_or_else(|| Status::unauthenticated("who are you?"))?;
        let Some(node) = identity.node.clone() else {
            return Err(Status::permission_denied("only nodes may connect"));
        };
        if let Some(release) = request.extensions().get::<BodyRelease>() {
            release.release();
        }
        let address = request.extensions().get::<PeerAddress>();
        let address = address
            .map(|address| address.0.to_string())
            .unwrap_or_default();
        let mut incoming = request.into_inner();
        let first = tokio::time::timeout(HELLO_TIME, incoming.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("the agent said nothing"))??;
        let Some(Theirs::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(Status::invalid_argument("the first message must be Hello"));
        };
        check_protocol(&hello)?;
        if let Some(address) = self.server.runs_elsewhere().await {
            let ending = moved(address);
            let last = stream::once(async move { Ok(ending) });
            return Ok(Response::new(Box::pin(last) as Messages));
        }
        let hub: &Arc<AgentHub> = &self.server.agents;
        let version: String = hello.agent_version.chars().take(MAX_VERSION).collect();
        let membership = hub.join(&node, &version);
        let interval = heartbeat_ttl(hub.count());
        let welcome = Welcome {
            server: self.server.name().to_owned(),
            node: node.name.clone(),
            lease_interval_ms: millis(interval),
        };
        let connected = BeaconInput::Connected(node.clone());
        // Nobody listens when the server ends.
        let _ = self.server.beacon_inputs.send(connected).await;
        let agent = ConnectedAgent {
            server: Arc::clone(&self.server),
            identity,
            address,
            incoming,
            membership: Some(membership),
            interval,
            heard: Instant::now(),
            first: Some(Ours::Welcome(welcome)),
        };
        let messages = stream::unfold(agent, |mut agent| async move {
            let message = agent.next().await?;
            Some((message, agent))
        });
        let mut response = Response::new(Box::pin(messages) as Messages);
        response.extensions_mut().insert(ResponseTime(LONGEST));
        Ok(response)
    }
}

fn check_protocol(hello: &Hello) -> Result<(), Status> {
    if hello.protocol == PROTOCOL {
        return Ok(());
    }
    let message = format!(
        "the agent speaks version {} of the protocol, and this server version {PROTOCOL}",
        hello.protocol
    );
    Err(Status::failed_precondition(message))
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// An agent whose stream is open.
struct ConnectedAgent {
    server: Arc<ApiServer>,
    identity: Arc<Identity>,
    /// Where the agent is, for the audit log.
    address: String,
    incoming: Streaming<AgentMessage>,
    /// `None` when the stream is over.
    membership: Option<Membership>,
    interval: Duration,
    /// When the agent said something.
    heard: Instant,
    first: Option<Ours>,
}

impl ConnectedAgent {
    /// The next message to the agent; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Result<ServerMessage, Status>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(message(first)));
        }
        loop {
            let membership = self.membership.as_mut()?;
            let cut = membership.cut.clone();
            let received = tokio::select! {
                received = self.incoming.message() => Some(received),
                Some(outgoing) = membership.outgoing.recv() => {
                    if self.server.may_go_on(&self.identity) {
                        return Some(Ok(message(outgoing)));
                    }
                    None
                }
                () = cut.cancelled() => return Some(Ok(self.end("the agent has to connect again"))),
                () = self.server.ending.cancelled() => return Some(Ok(self.end("the server ends"))),
                () = tokio::time::sleep(LOOK) => None,
            };
            if !self.server.may_go_on(&self.identity) {
                return Some(Ok(self.end("the certificate does not count any more")));
            }
            let Some(received) = received else {
                if !self.server.owns_runs()
                    && let Some(address) = self.server.runs_elsewhere().await
                {
                    self.membership = None;
                    return Some(Ok(moved(address)));
                }
                if self.heard.elapsed() > self.interval + SILENCE_GRACE {
                    return Some(Ok(self.end("nothing was heard of the agent")));
                }
                continue;
            };
            // The stream broke, or the agent has closed it.
            let received = received.ok().flatten()?;
            self.heard = Instant::now();
            if self.membership.as_mut()?.heard().is_err() {
                return Some(Ok(self.end("two agents use this certificate")));
            }
            match received.message {
                Some(Theirs::LeaseRequest(request)) => {
                    let grant = LeaseGrant {
                        number: request.number,
                        length_ms: millis(self.interval * LEASE_INTERVALS),
                    };
                    return Some(Ok(message(Ours::LeaseGrant(grant))));
                }
                Some(Theirs::Facts(facts)) => {
                    if let Err(error) = self.keep_facts(&facts.values, &facts.ages).await {
                        tracing::warn!(%error, "facts of a node cannot be kept");
                    }
                }
                Some(Theirs::RunsHeld(held)) => {
                    let runs = held.runs.into_iter().take(MAX_RUNS).collect();
                    let node = self.node()?;
                    self.tell_runs(RunInput::Connected { node, runs }).await;
                }
                Some(Theirs::RunReport(report)) => {
                    let node = self.node()?;
                    let report = Box::new(report);
                    self.tell_runs(RunInput::Reported { node, report }).await;
                }
                Some(Theirs::FileRequest(request)) => {
                    let node = self.node()?;
                    self.tell_runs(RunInput::FileAsked { node, request }).await;
                }
                Some(Theirs::SideRequest(request)) => {
                    let node = self.node()?;
                    self.tell_runs(RunInput::SideAsked { node, request }).await;
                }
                Some(Theirs::SideReport(report)) => {
                    let node = self.node()?;
                    self.tell_runs(RunInput::SideDone { node, report }).await;
                }
                Some(Theirs::BeaconEvents(events)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_beacons(BeaconInput::Told(node, events)).await;
                }
                Some(Theirs::BeaconStates(states)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_beacons(BeaconInput::Seen(node, states)).await;
                }
                Some(Theirs::CronStates(states)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_beacons(BeaconInput::Kept(node, states)).await;
                }
                Some(Theirs::ShareKey(key)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_shares(ShareInput::Key(node, key)).await;
                }
                Some(Theirs::ShareOffer(offer)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_shares(ShareInput::Offered(node, offer)).await;
                }
                Some(Theirs::SharePut(put)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_shares(ShareInput::Put(node, put)).await;
                }
                Some(Theirs::ShareWant(want)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_shares(ShareInput::Wanted(node, want)).await;
                }
                Some(Theirs::ShareTaken(taken)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_shares(ShareInput::Taken(node, taken)).await;
                }
                Some(Theirs::ShareCheck(check)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_shares(ShareInput::Checked(node, check)).await;
                }
                Some(Theirs::ResultOffer(offer)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_results(ResultInput::Offered(node, offer));
                }
                Some(Theirs::ResultPut(put)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_results(ResultInput::Put(node, put));
                }
                Some(Theirs::ResultWant(want)) => {
                    let node = self.identity.node.clone()?;
                    self.tell_results(ResultInput::Wanted(node, want));
                }
                Some(Theirs::GossipNews(news)) => self.take_gossip(&news),
                Some(Theirs::Goodbye(_)) => {
                    self.membership.take()?.leave();
                    return None;
                }
                // A newer agent may say more.
                _ => {}
            }
        }
    }

    /// Writes facts into the status of the Node, as if the agent had sent them by HTTP.
    async fn keep_facts(&self, values: &[u8], ages: &[u8]) -> Result<(), ApiError> {
        let read = |text: &[u8]| {
            let read = strict_json::parse(std::str::from_utf8(text).unwrap_or_default());
            read.map_err(|_| ApiError::bad_request("facts must be JSON"))
        };
        let values = read(values)?;
        // Agents of an earlier version do not say it.
        let ages = if ages.is_empty() {
            json!({})
        } else {
            read(ages)?
        };
        let caller = Caller {
            identity: (*self.identity).clone(),
            address: self.address.clone(),
        };
        let name = self.identity.node.as_ref().map(|node| node.name.clone());
        let name = name.unwrap_or_default();
        let report = json!({"facts": values, "factAges": ages});
        self.server.report_node(&caller, &name, &report).await?;
        Ok(())
    }

    /// What the node's gossip member says. Its address is that of the stream, unless it names one.
    fn take_gossip(&self, news: &GossipNews) {
        let Some(membership) = &self.membership else {
            return;
        };
        let Ok(mut place) = news.address.parse::<SocketAddr>() else {
            return;
        };
        if place.ip().is_unspecified()
            && let Ok(seen) = self.address.parse::<IpAddr>()
        {
            place.set_ip(seen.to_canonical());
        }
        let accused = news.accused.iter().take(MAX_ROSTER);
        let accused = accused.filter_map(|uid| uid.parse::<NodeUid>().ok());
        membership.gossip((place, news.generation), accused.collect());
    }

    /// The uuid of the node, by its certificate.
    fn node(&self) -> Option<String> {
        Some(self.identity.node.as_ref()?.uid.clone())
    }

    async fn tell_runs(&self, input: RunInput) {
        // Nobody listens when the server ends; the agent says it again to the next one.
        let _ = self.server.run_inputs.send(input).await;
    }

    async fn tell_beacons(&self, input: BeaconInput) {
        // As for runs.
        let _ = self.server.beacon_inputs.send(input).await;
    }

    async fn tell_shares(&self, input: ShareInput) {
        // As for runs.
        let _ = self.server.share_inputs.send(input).await;
    }

    fn tell_results(&self, input: ResultInput) {
        // Each may wait for another server, and leases must not wait for that: the agent asks again.
        let _ = self.server.result_inputs.try_send(input);
    }

    /// The last message.
    fn end(&mut self, reason: &str) -> ServerMessage {
        self.membership = None;
        message(Ours::Ending(Ending {
            reason: reason.to_owned(),
            is_final: false,
            moved_to: String::new(),
        }))
    }
}

/// Sends an agent to the server that looks after runs.
fn moved(address: String) -> ServerMessage {
    message(Ours::Ending(Ending {
        reason: "another server looks after runs".to_owned(),
        is_final: false,
        moved_to: address,
    }))
}

fn message(message: Ours) -> ServerMessage {
    ServerMessage {
        message: Some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A downgrade is refused, and the agent prints why.
    #[test]
    fn another_version_of_the_protocol_is_refused_and_both_are_named() {
        let hello = |protocol| Hello {
            protocol,
            ..Hello::default()
        };
        assert!(check_protocol(&hello(PROTOCOL)).is_ok());
        for other in [0, PROTOCOL + 1] {
            let refused = check_protocol(&hello(other)).expect_err("refused");
            assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
            let both =
                format!("version {other} of the protocol, and this server version {PROTOCOL}");
            assert!(refused.message().contains(&both), "{}", refused.message());
        }
    }
}
