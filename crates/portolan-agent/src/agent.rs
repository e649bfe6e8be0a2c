//! The agent's life: enrol once, then stay connected to a server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::Utf8PathBuf;
use portolan_budget::RetryPolicy;
use portolan_clock::{Clock, WallClock};
use portolan_identity::{CaPin, EnrolClient, EnrolError, Enrolment, JoinToken};
use portolan_modules::Root;
use tokio_util::sync::CancellationToken;

use crate::activity::NodeActivity;
use crate::beacons::NodeBeacons;
use crate::connection::ConnectError;
use crate::cron::NodeCron;
use crate::data::{AgentData, DataError, NodeIdentity};
use crate::fact_report::FactReporter;
use crate::gossip::NodeGossip;
use crate::lease::DispatchLease;
use crate::program_watch::ProgramWatch;
use crate::runs::{NodeRuns, RunSettings};
use crate::session::{AloneWork, Ended, NodeWork, Session};
use crate::shares::NodeShares;
use crate::validity::NodeValidity;

/// How often a key that waits for approval asks again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// How long an agent waits before it connects again. When a server ends, all of its agents lose their streams at the
/// same moment; each waits for a random part of a time that grows with every failure, so they come back one by one.
const RECONNECT: RetryPolicy =
    RetryPolicy::new(Duration::from_secs(1), Duration::from_mins(1)).jitter(100);

/// How an agent is started.
pub struct AgentOptions {
    /// The server's address, such as `https://server:7443`.
    pub server: String,
    /// What the server's authority is known by; needed until the node is enrolled.
    pub ca_pin: Option<CaPin>,
    /// What the node is enrolled with; without it somebody has to approve its key.
    pub join_token: Option<JoinToken>,
    /// The name that the node asks for.
    pub name: String,
    /// The directory that stands for `/`.
    pub root: Arc<Root>,
    /// The program that starts commands as a shim: that of this process.
    pub program: Utf8PathBuf,
    /// Whether it takes single commands that somebody gives to a server. Everybody with the right to do so is root here.
    pub allows_exec: bool,
    /// Whether a `reboot` step below another root directory changes the boot id there, and ends the agent as if its program had
    /// been replaced. Without it, such a step is refused.
    pub fakes_boot: bool,
    /// Whether the agent ends when another program takes that one's place, so that it can be started anew.
    pub ends_when_replaced: bool,
    /// The UDP address at which the agent talks to other agents; `None` if it does not. If it is the unspecified one, others
    /// use the address that the server sees.
    pub gossip: Option<SocketAddr>,
    /// The clock that leases are measured by.
    pub clock: Arc<dyn Clock>,
    /// The date, which schedules that the node keeps follow.
    pub date: Arc<dyn WallClock>,
    /// What is told to people: the state of the connection, and what they have to do.
    pub notify: Box<dyn Fn(AgentNotice) + Send + Sync>,
}

/// What people should know.
#[derive(Debug)]
pub enum AgentNotice {
    /// Somebody has to approve the key with this digest.
    WaitingForApproval(CaPin),
    /// The node is enrolled under this name.
    Enrolled(String),
    /// The agent is connected.
    Connected(String),
    /// The connection was lost, or not made; it is tried again.
    Disconnected(String),
}

/// How an agent ended in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// It was stopped.
    Stopped,
    /// Its program was replaced: the new one should go on. All runs stand before their next steps.
    Replaced,
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its data directory.
    #[error(transparent)]
    Data(#[from] DataError),
    /// It cannot enrol.
    #[error(transparent)]
    Enrol(#[from] EnrolError),
    /// It is not enrolled, and does not know which server to trust.
    #[error("the node is not enrolled, and there is no pin of the server's authority")]
    NoPin,
    /// The server does not want it any more.
    #[error("the server has dismissed the agent: {0}")]
    Dismissed(String),
}

/// An agent.
pub struct Agent {
    data: AgentData,
    options: AgentOptions,
}

impl Agent {
    /// An agent with its data directory.
    pub fn new(data: AgentData, options: AgentOptions) -> Self {
        Self { data, options }
    }

    /// Enrols if that was not done, and stays connected until it is stopped.
    ///
    /// # Errors
    /// When it cannot enrol, or the server has dismissed it. A server that cannot be reached is no error.
    pub async fn run(self, stop: CancellationToken) -> Result<AgentEnd, AgentError> {
        let program_watch = self.program_watch();
        let Some(identity) = self.enrolled(&stop).await? else {
            return Ok(AgentEnd::Stopped);
        };
        let root = &self.options.root;
        let files = RunSettings::open_files(&self.data)?;
        let touched = self.data.directory().join("touched.json");
        let activity = Arc::new(NodeActivity::open(touched));
        let beacons = NodeBeacons::open(
            &self.data,
            Arc::clone(root),
            Arc::clone(&files),
            Arc::clone(&activity),
        )?;
        let beacons = Arc::new(beacons);
        let shares = Arc::new(NodeShares::open(&self.data, Arc::clone(&beacons))?);
        let settings = RunSettings::open(
            &self.data,
            Arc::clone(root),
            self.options.program.as_str(),
            (files, activity),
            &shares,
        )?;
        if self.options.allows_exec {
            settings.allow_exec();
        }
        if self.options.fakes_boot {
            settings.fake_boot();
        }
        let settings = Arc::new(settings);
        let date = Arc::clone(&self.options.date);
        let validity = Arc::new(NodeValidity::new(date, identity.enrolled.expires));
        beacons.set_expiry(identity.enrolled.expires);
        let cron = NodeCron::open(&self.data, &settings, &validity, &beacons)?;
        let node = identity.enrolled.node_uid.clone();
        let gossip = NodeGossip::open(&self.data, &node, self.options.gossip).await?;
        let alone = AloneWork {
            beacons: &beacons,
            cron: &cron,
            gossip: &gossip,
            shares: &shares,
        };
        let connected = async {
            let ended = self.stay_connected(&stop, identity, program_watch, &alone, &settings);
            let ended = ended.await;
            gossip.leave().await;
            ended
        };
        // Beacons are watched, schedules are kept and peers are heard, whether a server is there or not.
        tokio::select! {
            ended = Box::pin(connected) => ended,
            never = Box::pin(beacons.watch()) => match never {},
            never = Box::pin(gossip.run()) => match never {},
            never = Box::pin(cron.keep()) => match never {},
        }
    }

    async fn stay_connected(
        &self,
        stop: &CancellationToken,
        mut identity: NodeIdentity,
        mut program_watch: ProgramWatch,
        alone: &AloneWork<'_>,
        settings: &Arc<RunSettings>,
    ) -> Result<AgentEnd, AgentError> {
        let lease = DispatchLease::new(Arc::clone(&self.options.clock));
        let lease = Arc::new(Mutex::new(lease));
        let mut runs = NodeRuns::open(&self.data, settings, Arc::clone(&lease))?;
        let root = Arc::clone(&self.options.root);
        runs.tell_facts(FactReporter::new(root, Arc::clone(&self.options.clock)));
        let mut reconnect = RECONNECT.backoff();
        let mut moved_to: Option<String> = None;
        while !stop.is_cancelled() {
            self.renew_if_due(&mut identity).await?;
            alone.beacons.set_expiry(identity.enrolled.expires);
            alone.cron.set_expiry(identity.enrolled.expires);
            alone.shares.set_identity(&identity);
            // A server that was named by another one is tried once; if it is gone, the known one is asked again.
            let moved = moved_to.take();
            let server = moved.as_deref().unwrap_or(&self.options.server);
            let opened = Session::open(server, &identity, &lease);
            let ended = match opened.await {
                Ok(session) => {
                    reconnect.reset();
                    alone.gossip.connected(Some(server));
                    (self.options.notify)(AgentNotice::Connected(session.server().to_owned()));
                    session.send_facts(runs.facts_at_once().await).await;
                    let renewal = renewal_wait(&identity);
                    let mut work = NodeWork {
                        runs: &mut runs,
                        alone,
                    };
                    session
                        .run(stop, renewal, &mut work, &mut program_watch)
                        .await
                }
                Err(ConnectError::Moved(server)) if moved.is_none() => Ended::Moved(server),
                Err(error) => Ended::Lost(describe(&error)),
            };
            match ended {
                Ended::Stopped => break,
                Ended::Replaced => {
                    runs.suspend().await;
                    return Ok(AgentEnd::Replaced);
                }
                Ended::RenewalDue => moved_to = moved,
                Ended::Moved(server) => moved_to = Some(server),
                Ended::Dismissed(reason) => return Err(AgentError::Dismissed(reason)),
                Ended::Lost(reason) => {
                    alone.gossip.connected(None);
                    // After the known server, one that peers have named is tried; its certificate decides.
                    if moved.is_none() {
                        moved_to = alone.gossip.server_hint(&self.options.server);
                    }
                    (self.options.notify)(AgentNotice::Disconnected(reason));
                    let wait = reconnect.next_random_wait(rand::random());
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
        runs.suspend().await;
        Ok(AgentEnd::Stopped)
    }

    fn program_watch(&self) -> ProgramWatch {
        if self.options.ends_when_replaced {
            ProgramWatch::new(&self.options.program)
        } else {
            ProgramWatch::none()
        }
    }

    /// Who the node is; asks the server if nobody knows yet. `None` when it was stopped meanwhile.
    async fn enrolled(&self, stop: &CancellationToken) -> Result<Option<NodeIdentity>, AgentError> {
        if let Some(identity) = self.data.identity()? {
            return Ok(Some(identity));
        }
        let pin = self.options.ca_pin.ok_or(AgentError::NoPin)?;
        let client = EnrolClient::new(&self.options.server);
        let mut reconnect = RECONNECT.backoff();
        let mut is_told = false;
        loop {
            let key = self.data.next_key()?;
            let token = self.options.join_token.as_ref();
            let asked = client.enrol(pin, token, &self.options.name, &key);
            let wait = match asked.await {
                Ok(Enrolment::Enrolled(enrolled)) => {
                    (self.options.notify)(AgentNotice::Enrolled(enrolled.name.clone()));
                    let identity = NodeIdentity { key, enrolled };
                    self.data.keep_identity(&identity)?;
                    return Ok(Some(identity));
                }
                Ok(Enrolment::Pending { fingerprint }) => {
                    if !is_told {
                        (self.options.notify)(AgentNotice::WaitingForApproval(fingerprint));
                        is_told = true;
                    }
                    ASK_AGAIN
                }
                Err(error @ (EnrolError::Unreachable { .. } | EnrolError::TooSlow { .. })) => {
                    (self.options.notify)(AgentNotice::Disconnected(describe(&error)));
                    reconnect.next_random_wait(rand::random())
                }
                Err(error) => return Err(error.into()),
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(None),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Replaces the certificate at half its life. A server that cannot be reached is asked again later.
    async fn renew_if_due(&self, identity: &mut NodeIdentity) -> Result<(), AgentError> {
        if !renewal_wait(identity).is_zero() {
            return Ok(());
        }
        let new_key = self.data.next_key()?;
        let client = EnrolClient::new(&self.options.server);
        match client
            .renew(&identity.enrolled, &identity.key, &new_key)
            .await
        {
            Ok(enrolled) => {
                *identity = NodeIdentity {
                    key: new_key,
                    enrolled,
                };
                self.data.keep_identity(identity)?;
            }
            Err(error) => {
                tracing::warn!(
                    error = describe(&error),
                    "the certificate cannot be renewed yet"
                );
            }
        }
        Ok(())
    }
}

/// The time until the certificate should be renewed. A clock that is wrong only makes this early or late.
fn renewal_wait(identity: &NodeIdentity) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or(Duration::ZERO);
    identity.enrolled.renew_at.saturating_sub(now)
}

/// An error with its causes, on one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl From<ConnectError> for Ended {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Moved(server) => Self::Moved(server),
            error => Self::Lost(describe(&error)),
        }
    }
}
