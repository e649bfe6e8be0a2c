//! The server: the order in which a request is checked, whichever protocol it came in.

mod audit_entries;
mod options;
mod reads;
mod target;
mod user_tokens;
mod writes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use portolan_listen::{Metrics, Readiness};
use portolan_store::{BootClock, Clock, Incarnation, Ownership, ShardLayout, Store, StoreError};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Action};
use crate::agents::{AgentHub, Liveness};
use crate::anchor::{anchored_head, store_anchor};
use crate::audit::AuditLog;
use crate::authorities::Authorities;
use crate::backups::Backups;
use crate::beacons::{BeaconInput, BeaconKeeper};
use crate::blobs::{BlobPeers, ServerBlobs};
use crate::cache::{Cache, CacheFeed};
use crate::controllers::Controllers;
use crate::enrolments::Enrolments;
use crate::error::{ApiError, RefusalReason};
use crate::events::{EventBatches, EventSink, EventWriter, Events, SunkEvents};
use crate::fleet_identity::{Credential, FleetIdentity};
use crate::join_tokens::JoinTokens;
use crate::live::{
    CronController, Deliveries, ReconcileController, TriggerController, VariableController,
};
use crate::membership::{LeaseView, Membership, ServerEntry, ServerName};
use crate::objects::Objects;
use crate::peer::Peers;
use crate::rate::{RateLimits, Rates};
use crate::repositories::Repositories;
use crate::repository_source::SourceOptions;
use crate::runs::{KeptFiles, RunController, RunInput};
use crate::seal::Sealer;
use crate::server_clocks::ServerClocks;
use crate::setup::{self, DataDirectory, FirstStart};
use crate::shared_key;
use crate::shares::{ResultInput, ResultKeeper, ResultWork, ShareInput, ShareKeeper};
use crate::token::{Identity, Tokens};
use crate::upkeep::Upkeep;
use crate::vault::Vault;

use self::options::check_keys;
pub use self::options::{ServerOptions, StartError};
pub(crate) use self::target::Target;
pub(crate) use self::writes::WriteMode;

/// How often the head of the audit log is written to the store.
const ANCHOR_EVERY: Duration = Duration::from_mins(1);

/// How often certificates and authorities are looked at.
const UPKEEP_EVERY: Duration = Duration::from_secs(30);

/// How long the end of a server waits until what it told is written.
const FLUSH_EVENTS: Duration = Duration::from_secs(3);

/// Reports of agents that wait to be looked at; more than these wait with their agents.
const RUN_INPUTS: usize = 4_096;

/// Messages about beacons that wait; each has at most some hundred KiB.
const BEACON_INPUTS: usize = 256;

/// Messages about shares that wait; each has at most a MiB.
const SHARE_INPUTS: usize = 64;

/// Messages about large results that wait; each has at most a MiB.
const RESULT_INPUTS: usize = 64;

/// Requests of one identity when no Config says otherwise.
const RATES: RateLimits = RateLimits {
    per_second: 1_000,
    burst: 2_000,
};

/// The API server.
pub struct ApiServer {
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    /// Where the server tells what happens.
    pub(crate) event_sink: EventSink,
    pub(crate) deliveries: Deliveries,
    pub(crate) cache: Cache,
    pub(crate) tokens: Tokens,
    pub(crate) access: Arc<Access>,
    pub(crate) audit: AuditLog,
    vault: Option<Vault>,
    pub(crate) fleet: FleetIdentity,
    /// The agents that are connected.
    pub(crate) agents: Arc<AgentHub>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
    /// Where agents report what happens in runs.
    pub(crate) run_inputs: mpsc::Sender<RunInput>,
    /// Where agents report what their beacons see.
    pub(crate) beacon_inputs: mpsc::Sender<BeaconInput>,
    /// Where agents give and ask for shares.
    pub(crate) share_inputs: mpsc::Sender<ShareInput>,
    /// Where agents give and ask for large results of steps.
    pub(crate) result_inputs: mpsc::Sender<ResultInput>,
    rates: Arc<Rates>,
    /// How the commits of books are read.
    pub(crate) source: SourceOptions,
    /// The name of this server, which stays with its data directory.
    pub(crate) name: String,
    pub(crate) lease: LeaseView,
    pub(crate) max_level: u64,
    pub(crate) backups: Backups,
    /// Content that is too large for the store.
    pub(crate) blobs: Arc<ServerBlobs>,
    /// Files of books that nodes keep.
    pub(crate) kept_files: Arc<KeptFiles>,
    /// Ended when the server should end.
    pub(crate) ending: CancellationToken,
}

/// The tasks of a server; they end with it.
pub(crate) struct Background {
    liveness: Liveness,
    runs: RunController,
    beacons: mpsc::Receiver<BeaconInput>,
    shares: ShareKeeper,
    results: ResultKeeper,
    feed: CacheFeed,
    events: EventBatches,
    sunk_events: SunkEvents,
    controllers: Controllers,
    repositories: Repositories,
    membership: Membership,
}

/// One request's caller.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    /// Where the request came from, for the audit log.
    pub(crate) address: String,
}

impl ApiServer {
    /// Opens everything, makes what a first start needs, and says what was made.
    ///
    /// # Errors
    /// When the store, the audit log or a key cannot be used.
    pub async fn start(
        store: Store,
        options: ServerOptions,
    ) -> Result<(StartedServer, Option<FirstStart>), StartError> {
        let in_directory = |source| StartError::Files {
            path: options.data.clone(),
            source,
        };
        let files = DataDirectory::open(&options.data).map_err(in_directory)?;
        let (server, _) = files.server_name().map_err(in_directory)?;
        let name = ServerName {
            server: server.clone(),
            process: crate::objects::new_uuid(),
        };
        let process = name.process.clone();
        let incarnation = Arc::new(Incarnation::open(&store).await?);
        let keys = shared_key::agree(&store, &files, options.secret_keys, &server).await?;
        let clock: Arc<dyn Clock> = Arc::new(BootClock);
        let entry = ServerEntry {
            server: server.clone(),
            address: options.address,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            max_level: options.max_level,
            secret_keys: keys.iter().map(|key| key.id().to_owned()).collect(),
            time: options.time.now().as_secs(),
        };
        let membership = Membership::new(
            store.clone(),
            name,
            entry,
            Arc::clone(&clock),
            Arc::clone(&options.time),
        );
        membership.join().await?;
        let layout = ShardLayout::new(1).open(&store).await?;
        let objects = Objects {
            store: store.clone(),
            incarnation: Arc::clone(&incarnation),
            time: Arc::clone(&options.time),
            sealer: Sealer::new(keys).map(Arc::new),
        };
        let time = Arc::clone(&options.time);
        let tokens = Tokens {
            store: store.clone(),
            time: options.time,
        };
        let authorities = Authorities::open(
            store.clone(),
            objects.sealer.clone(),
            Arc::clone(&objects.time),
        );
        let authorities = Arc::new(authorities.await?);
        let known = anchored_head(&store, &server).await?;
        let audit = AuditLog::open(files.directory(), known.as_ref())?;
        let first = setup::prepare(&objects, &tokens, &files).await?;
        let newest = membership.tick_first().await?;
        let clocks = ServerClocks::new(&server, Arc::clone(&time));
        let (cache, feed) = Cache::start(&store, incarnation, clocks, newest).await?;
        check_keys(&objects, &cache)?;
        let (writer, batches) = EventWriter::new(objects.clone(), cache.clone(), layout, &process);
        let events = Events {
            objects: objects.clone(),
            cache: cache.clone(),
            writer,
        };
        let (event_sink, sunk_events) = EventSink::new(events.clone());
        let rates = Arc::new(Rates::new(RATES));
        let access = Arc::new(Access::new(cache.clone()));
        let (owned, told) = watch::channel(None);
        let (runs_owned, agents_owned) = (owned.subscribe(), owned.subscribe());
        let (beacons_owned, liveness_owned) = (owned.subscribe(), owned.subscribe());
        let source = SourceOptions {
            mirrors: files.directory().join("repositories"),
            allow_local: options.local_git,
        };
        let repositories = Repositories {
            objects: objects.clone(),
            cache: cache.clone(),
            access: Arc::clone(&access),
            source: source.clone(),
            owned: told,
        };
        let controllers = Controllers {
            objects: objects.clone(),
            events: events.clone(),
            cache: cache.clone(),
            rates: Arc::clone(&rates),
            default_rates: RATES,
            server: server.clone(),
            lease: membership.view(),
            upkeep: Upkeep::new(clock, options.max_level),
            owned,
        };
        let join_tokens = JoinTokens {
            store: store.clone(),
            time: Arc::clone(&objects.time),
        };
        let enrolments = Enrolments {
            objects: objects.clone(),
            tokens: join_tokens.clone(),
            authorities: Arc::clone(&authorities),
        };
        let peers = Peers::new(
            Arc::clone(&authorities),
            cache.clone(),
            objects.clone(),
            tokens.clone(),
        );
        let blobs = Arc::new(ServerBlobs::new(
            files.blobs()?,
            objects.clone(),
            &server,
            BlobPeers::new(&server, Arc::clone(&authorities)),
        ));
        let agents = Arc::new(AgentHub::default());
        let liveness = Liveness {
            hub: Arc::clone(&agents),
            objects: objects.clone(),
            events: events.clone(),
            cache: cache.clone(),
            server: server.clone(),
            owned: liveness_owned,
        };
        let kept_files = Arc::new(KeptFiles::default());
        let (run_inputs, inputs) = mpsc::channel(RUN_INPUTS);
        let runs = RunController {
            objects: objects.clone(),
            event_sink: event_sink.clone(),
            cache: cache.clone(),
            agents: Arc::clone(&agents),
            kept_files: Arc::clone(&kept_files),
            inputs,
            owned: runs_owned,
        };
        let (beacon_inputs, beacons) = mpsc::channel(BEACON_INPUTS);
        let (share_inputs, wanted_shares) = mpsc::channel(SHARE_INPUTS);
        let (result_inputs, wanted_results) = mpsc::channel(RESULT_INPUTS);
        let results = ResultKeeper {
            work: ResultWork {
                cache: cache.clone(),
                agents: Arc::clone(&agents),
                blobs: Arc::clone(&blobs),
                owned: beacons_owned.clone(),
            },
            inputs: wanted_results,
        };
        let shares = ShareKeeper {
            objects: objects.clone(),
            events: events.clone(),
            cache: cache.clone(),
            agents: Arc::clone(&agents),
            inputs: wanted_shares,
            owned: beacons_owned,
            rewraps: BTreeMap::new(),
        };
        let server = Self {
            agents,
            owned: agents_owned,
            run_inputs,
            beacon_inputs,
            share_inputs,
            result_inputs,
            fleet: FleetIdentity::new(authorities, peers, enrolments, join_tokens),
            access,
            objects,
            events,
            event_sink,
            deliveries: Deliveries::default(),
            cache,
            tokens,
            audit,
            vault: options.vault.map(Vault::new).transpose()?,
            rates,
            source,
            name: server,
            lease: membership.view(),
            max_level: options.max_level,
            backups: Backups::new(store, time, options.backups),
            blobs,
            kept_files,
            ending: CancellationToken::new(),
        };
        let running = StartedServer {
            server: Arc::new(server),
            authority_file: files.authority(),
            background: Background {
                liveness,
                runs,
                beacons,
                shares,
                results,
                feed,
                events: batches,
                sunk_events,
                controllers,
                repositories,
                membership,
            },
        };
        Ok((running, first))
    }

    /// The name of this server.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the server can answer.
    pub(crate) fn readiness(&self) -> Result<(), String> {
        if !self.audit.is_open() {
            return Err("the audit log cannot be written".to_owned());
        }
        match self.cache.stale() {
            Some(silent) => Err(format!(
                "the store was not heard of for {} s",
                silent.as_secs()
            )),
            None => Ok(()),
        }
    }

    /// Refuses requests while this server may not know what the others wrote.
    fn check_fresh(&self) -> Result<(), ApiError> {
        self.readiness().map_err(|why| {
            ApiError::unavailable(why).hint("ask another server, or this one again later")
        })
    }

    /// Who asks. The rate limit of the identity is counted here.
    pub(crate) async fn authenticate(&self, credential: &Credential) -> Result<Identity, ApiError> {
        self.check_fresh()?;
        let identity = self.identify(credential).await?;
        self.take_rate(&identity.user)?;
        Ok(identity)
    }

    /// Counts a request of somebody; refuses it if there are too many.
    pub(crate) fn take_rate(&self, who: &str) -> Result<(), ApiError> {
        self.rates.take(who).map_err(|wait| {
            let message = format!("user {who} makes too many requests");
            ApiError::new(
                http::StatusCode::TOO_MANY_REQUESTS,
                RefusalReason::TooManyRequests,
                message,
            )
            .details(json!({"retryAfterSeconds": wait.as_secs() + 1}))
        })
    }

    /// Whether the caller may do something with the target, from the path alone. Refusals are in the audit log.
    pub(crate) async fn authorise(
        &self,
        caller: &Caller,
        verb: &str,
        target: &Target,
    ) -> Result<(), ApiError> {
        let action = Action {
            verb,
            kind: target.kind.name,
            namespace: target
                .namespace
                .as_deref()
                .filter(|_| target.kind.is_namespaced),
            name: target.name.as_deref(),
        };
        match self.access.check(&caller.identity, &action) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refuse(caller, verb, target, error).await),
        }
    }

    async fn anchor(&self) -> Result<(), StoreError> {
        store_anchor(&self.objects.store, &self.name, &self.audit.head()).await
    }
}

/// A started server.
pub struct StartedServer {
    pub(crate) server: Arc<ApiServer>,
    /// Where clients find the authorities.
    pub(crate) authority_file: PathBuf,
    background: Background,
}

impl StartedServer {
    /// The routes of the server, for `portolan_listen::serve`.
    pub fn router(&self, hosts: Vec<String>) -> Router {
        crate::http::router(Arc::clone(&self.server), hosts)
    }

    /// What `/metrics` says, besides what the listener counts.
    pub fn metrics(&self) -> Metrics {
        let metrics = Metrics::default();
        let server = Arc::clone(&self.server);
        metrics.add_text(Box::new(move || server.metrics()));
        metrics
    }

    /// What `/readyz` says.
    pub fn readiness(&self) -> Readiness {
        let server = Arc::clone(&self.server);
        Arc::new(move || server.readiness())
    }

    /// Does the work between requests until it is cancelled; then watches are ended with a bookmark. Returns why it ended by
    /// itself, if it did.
    pub async fn run(self, cancelled: CancellationToken) -> Option<String> {
        let mut tasks = JoinSet::new();
        let upkeep = self.certificates();
        tasks.spawn(self.background.liveness.run());
        tasks.spawn(self.background.runs.run());
        let beacons = BeaconKeeper {
            server: Arc::clone(&self.server),
            inputs: self.background.beacons,
            owned: self.server.owned.clone(),
        };
        tasks.spawn(beacons.run());
        tasks.spawn(self.background.shares.run());
        tasks.spawn(self.background.results.run());
        tasks.spawn(self.background.feed.run());
        tasks.spawn(self.background.events.run());
        tasks.spawn(self.background.sunk_events.run());
        let cron = CronController {
            server: Arc::clone(&self.server),
            owned: self.server.owned.clone(),
        };
        tasks.spawn(cron.run());
        let reconcile = ReconcileController {
            server: Arc::clone(&self.server),
            owned: self.server.owned.clone(),
        };
        tasks.spawn(reconcile.run());
        let variables = VariableController {
            server: Arc::clone(&self.server),
            owned: self.server.owned.clone(),
        };
        tasks.spawn(variables.run());
        let triggers = TriggerController {
            server: Arc::clone(&self.server),
            owned: self.server.owned.clone(),
        };
        tasks.spawn(triggers.run());
        tasks.spawn(self.background.controllers.run());
        tasks.spawn(self.server.backups.clone().run());
        tasks.spawn(Arc::clone(&self.server.blobs).run());
        tasks.spawn(self.background.repositories.run());
        let server = Arc::clone(&self.server);
        tasks.spawn(async move {
            loop {
                if let Err(error) = server.anchor().await {
                    tracing::warn!(%error, "the head of the audit log cannot be stored");
                }
                tokio::time::sleep(ANCHOR_EVERY).await;
            }
        });
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP_EVERY).await;
                if let Err(error) = upkeep.round().await {
                    tracing::warn!(%error, "certificates cannot be kept current");
                }
            }
        });
        let membership = self.background.membership;
        let failure = tokio::select! {
            () = cancelled.cancelled() => None,
            why = membership.run() => Some(why),
            Some(ended) = tasks.join_next() => {
                tracing::error!(?ended, "a task of the server has died");
                Some("a task of the server has died".to_owned())
            }
        };
        self.server.ending.cancel();
        if let Err(error) = self.server.anchor().await {
            tracing::warn!(%error, "the head of the audit log cannot be stored");
        }
        cancelled.cancel();
        self.server.event_sink.flush(FLUSH_EVENTS).await;
        // Controllers stop before the shard is given up.
        tasks.shutdown().await;
        if let Err(error) = membership.leave().await {
            tracing::warn!(%error, "the lease of this server cannot be given up");
        }
        failure
    }
}
