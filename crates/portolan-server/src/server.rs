//! The server: the order in which a request is checked, whichever protocol it came in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use portolan_kinds::wire::SecretSpec;
use portolan_kinds::{KindDefinition, KindObject, find_kind};
use portolan_listen::Readiness;
use portolan_store::level::NEWEST_LEVEL;
use portolan_store::{BootClock, Clock, Incarnation, ShardLayout, Store, StoreError};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Action};
use crate::anchor::{anchored_head, store_anchor};
use crate::audit::{AuditError, AuditLog};
use crate::authorities::{Authorities, AuthorityError};
use crate::cache::{Cache, CacheFeed};
use crate::clock::{SystemTimeSource, TimeSource, rfc3339};
use crate::controllers::Controllers;
use crate::enrolments::Enrolments;
use crate::error::{ApiError, RefusalReason};
use crate::events::{EventBatches, EventWriter, Events};
use crate::field_selector::ObjectFilter;
use crate::fleet_identity::{Credential, FleetIdentity};
use crate::join_tokens::JoinTokens;
use crate::keys::{ObjectKey, is_event};
use crate::membership::{LeaseView, Membership, ServerEntry, ServerName};
use crate::node_access::{forbidden, sign_event};
use crate::objects::{Author, Deletion, Objects, Preconditions};
use crate::page::{ListQuery, ObjectPage};
use crate::peer::Peers;
use crate::rate::{RateLimits, Rates};
use crate::record::StoredKind;
use crate::repositories::Repositories;
use crate::repository_source::SourceOptions;
use crate::seal::{KeyEncryptionKey, SealError, Sealer};
use crate::setup::{self, DataDirectory, FirstStart};
use crate::shared_key::{self, SharedKeyError};
use crate::token::{Identity, NewToken, Tokens};
use crate::upkeep::Upkeep;
use crate::vault::{Vault, VaultOptions};
use crate::watching::{ObjectWatch, WatchQuery};

/// How often the head of the audit log is written to the store.
const ANCHOR_EVERY: Duration = Duration::from_mins(1);

/// How often certificates and authorities are looked at.
const UPKEEP_EVERY: Duration = Duration::from_secs(30);

/// How long a write of rights waits until they count.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// Requests of one identity when no Config says otherwise.
const RATES: RateLimits = RateLimits {
    per_second: 1_000,
    burst: 2_000,
};

/// How a server is started.
pub struct ServerOptions {
    /// The directory of everything that is not in the store.
    pub data: PathBuf,
    /// The keys that encrypt secrets, the one that seals first; without any, those of the data directory.
    pub secret_keys: Vec<KeyEncryptionKey>,
    /// The clock.
    pub time: Arc<dyn TimeSource>,
    /// Whether repositories may be fetched from `file://` addresses.
    pub local_git: bool,
    /// Where secrets with a `vault` are read from.
    pub vault: Option<VaultOptions>,
    /// Where other servers reach this one, as `https://name:port`; empty for a single server.
    pub address: String,
    /// The highest level of the stored format that is used: lower than the newest while servers of an older release run.
    pub max_level: u64,
}

impl ServerOptions {
    /// The usual options for a data directory.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            secret_keys: Vec::new(),
            time: Arc::new(SystemTimeSource),
            local_git: false,
            vault: None,
            address: String::new(),
            max_level: NEWEST_LEVEL,
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store.
    #[error("the store cannot be used: {0}")]
    Store(#[from] StoreError),
    /// The audit log.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A file of the data directory.
    #[error("cannot use the data directory `{path}`")]
    Files {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The address or the authorities of Vault.
    #[error("Vault cannot be used")]
    Vault(#[from] portolan_http::HttpError),
    /// There are secrets that this server could never open.
    #[error("{count} secrets are sealed with keys that this server does not have: {keys}")]
    WrongKey {
        /// How many.
        count: usize,
        /// The names of the keys.
        keys: String,
    },
    /// The certificate authority of the fleet.
    #[error("the certificate authority of the fleet cannot be used: {0}")]
    Authority(String),
    /// The keys for secrets are not those of the other servers.
    #[error(transparent)]
    SharedKey(#[from] SharedKeyError),
    /// What every store must have could not be made.
    #[error("the store cannot be prepared: {0}")]
    Prepare(#[from] ApiError),
}

impl From<AuthorityError> for StartError {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Api(error) => Self::Prepare(error),
            AuthorityError::Seal(SealError::UnknownKey(keys)) => Self::WrongKey { count: 1, keys },
            error => Self::Authority(error.to_string()),
        }
    }
}

/// The API server.
pub struct ApiServer {
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    pub(crate) cache: Cache,
    pub(crate) tokens: Tokens,
    pub(crate) access: Arc<Access>,
    pub(crate) audit: AuditLog,
    vault: Option<Vault>,
    pub(crate) fleet: FleetIdentity,
    rates: Arc<Rates>,
    /// The name of this server, which stays with its data directory.
    pub(crate) name: String,
    pub(crate) lease: LeaseView,
    pub(crate) max_level: u64,
    /// Ended when the server should end.
    pub(crate) ending: CancellationToken,
}

/// The tasks of a server; they end with it.
pub(crate) struct Background {
    feed: CacheFeed,
    events: EventBatches,
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

/// What a request is about, as its path says it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) kind: &'static KindDefinition,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
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
        let membership = Membership::new(store.clone(), name, entry, Arc::clone(&clock));
        membership.join().await?;
        let layout = ShardLayout::new(1).open(&store).await?;
        let objects = Objects {
            store: store.clone(),
            incarnation: Arc::clone(&incarnation),
            time: Arc::clone(&options.time),
            sealer: Sealer::new(keys).map(Arc::new),
        };
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
        let (cache, feed) = Cache::start(&store, incarnation, &server, newest).await?;
        check_keys(&objects, &cache).await?;
        let (writer, batches) = EventWriter::new(objects.clone(), cache.clone(), layout, &process);
        let events = Events {
            objects: objects.clone(),
            cache: cache.clone(),
            writer,
        };
        let rates = Arc::new(Rates::new(RATES));
        let access = Arc::new(Access::new(cache.clone()));
        let (owned, told) = watch::channel(None);
        let repositories = Repositories {
            objects: objects.clone(),
            cache: cache.clone(),
            access: Arc::clone(&access),
            source: SourceOptions {
                mirrors: files.directory().join("repositories"),
                allow_local: options.local_git,
            },
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
        let server = Self {
            fleet: FleetIdentity::new(authorities, peers, enrolments, join_tokens),
            access,
            objects,
            events,
            cache,
            tokens,
            audit,
            vault: options.vault.map(Vault::new).transpose()?,
            rates,
            name: server,
            lease: membership.view(),
            max_level: options.max_level,
            ending: CancellationToken::new(),
        };
        let running = StartedServer {
            server: Arc::new(server),
            authority_file: files.authority(),
            background: Background {
                feed,
                events: batches,
                controllers,
                repositories,
                membership,
            },
        };
        Ok((running, first))
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
        self.rates.take(&identity.user).map_err(|wait| {
            let message = format!("user {} makes too many requests", identity.user);
            ApiError::new(
                http::StatusCode::TOO_MANY_REQUESTS,
                RefusalReason::TooManyRequests,
                message,
            )
            .details(json!({"retryAfterSeconds": wait.as_secs() + 1}))
        })?;
        Ok(identity)
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

    /// Writes a refusal to the audit log.
    pub(crate) async fn refuse(
        &self,
        caller: &Caller,
        verb: &str,
        target: &Target,
        error: ApiError,
    ) -> ApiError {
        self.record(caller, verb, target, Err(&error))
            .await
            .err()
            .unwrap_or(error)
    }

    /// Writes what was done, or why not, to the audit log.
    pub(crate) async fn record(
        &self,
        caller: &Caller,
        verb: &str,
        target: &Target,
        result: Result<Option<&str>, &ApiError>,
    ) -> Result<(), ApiError> {
        let about =
            json!({"kind": target.kind.name, "namespace": target.namespace, "name": target.name});
        self.record_about(caller, verb, about, result).await
    }

    pub(crate) async fn record_about(
        &self,
        caller: &Caller,
        verb: &str,
        about: Value,
        result: Result<Option<&str>, &ApiError>,
    ) -> Result<(), ApiError> {
        let mut entry = about;
        entry["time"] = rfc3339(self.objects.time.now()).into();
        entry["server"] = self.name.as_str().into();
        entry["user"] = caller.identity.user.as_str().into();
        entry["token"] = caller.identity.token.as_str().into();
        entry["address"] = caller.address.as_str().into();
        entry["verb"] = verb.into();
        match result {
            Ok(version) => {
                entry["status"] = 200.into();
                entry["resourceVersion"] = version.into();
            }
            Err(error) => {
                entry["status"] = error.status.as_u16().into();
                entry["reason"] = format!("{:?}", error.reason).into();
            }
        }
        if self.audit.write(entry).await {
            return Ok(());
        }
        Err(ApiError::internal("the audit log cannot be written"))
    }

    /// Writes a refused login to the audit log.
    pub(crate) async fn record_stranger(&self, address: &str, path: &str, error: &ApiError) {
        let entry = json!({
            "time": rfc3339(self.objects.time.now()), "server": self.name, "address": address, "path": path,
            "status": error.status.as_u16(), "reason": format!("{:?}", error.reason),
        });
        self.audit.write(entry).await;
    }

    /// Returns an object; with `reveal`, a Secret with its values.
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        target: &Target,
        reveal: bool,
    ) -> Result<KindObject, ApiError> {
        self.check_visible(caller, target).await?;
        let found = self.find(target).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        if !reveal {
            return Ok(found.object);
        }
        // Whatever becomes of it, that it was asked for is in the log.
        self.record(caller, "read-secret", target, Ok(None)).await?;
        let values = match found.object.spec.get("vault") {
            Some(_) => self.read_vault(&found.object).await?,
            None => self.objects.open_values(&found)?,
        };
        let mut object = found.object;
        object.spec["values"] = Value::Object(values);
        Ok(object)
    }

    /// Reads the object that a request is about.
    pub(crate) async fn find(&self, target: &Target) -> Result<Option<StoredKind>, ApiError> {
        let key = target.key()?;
        match (&target.namespace, &target.name) {
            (Some(namespace), Some(name)) if is_event(target.kind) => {
                self.events.get(namespace, name).await
            }
            _ => self.objects.get(&key).await,
        }
    }

    /// Refuses a node what does not concern it, whether it exists or not.
    pub(crate) async fn check_visible(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Result<(), ApiError> {
        let (Some(scope), Some(node)) = (self.scope_of(caller), &caller.identity.node) else {
            return Ok(());
        };
        let found = self.find(target).await?;
        if found.is_some_and(|found| scope.sees(&found.object)) {
            return Ok(());
        }
        let error = forbidden(node, "read what is not bound to it");
        Err(self.refuse(caller, "get", target, error).await)
    }

    /// The values of a Secret that are in Vault, below the prefix of its namespace.
    async fn read_vault(&self, secret: &KindObject) -> Result<Map<String, Value>, ApiError> {
        let Some(vault) = &self.vault else {
            return Err(ApiError::unavailable("this server knows no Vault"));
        };
        let spec: SecretSpec = secret
            .typed_spec()
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let source = spec.vault.unwrap_or_default();
        let namespace = secret.namespace().unwrap_or_default();
        let kind = find_kind("Namespace").ok_or_else(|| ApiError::internal("no kind Namespace"))?;
        let found = self
            .objects
            .get(&ObjectKey::new(kind, None, namespace))
            .await?;
        let prefix =
            found.and_then(|found| found.object.spec["vaultPrefix"].as_str().map(str::to_owned));
        let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) else {
            let message = format!(
                "namespace {namespace} has no `vaultPrefix`, below which its secrets are in Vault"
            );
            return Err(ApiError::conflict(RefusalReason::Conflict, message));
        };
        vault.read(&prefix, source.path(), &source.keys).await
    }

    /// Returns a page of objects.
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<ObjectPage, ApiError> {
        if is_event(query.kind) {
            return self.events.list(query).await;
        }
        self.objects.list(query).await
    }

    /// Follows objects: from a revision, or from the objects that exist.
    pub(crate) async fn watch(
        &self,
        query: WatchQuery,
        version: Option<&str>,
    ) -> Result<ObjectWatch, ApiError> {
        if let Some(version) = version {
            let revision = self.objects.revision(version)?;
            if revision > self.cache.revision() {
                let current = self.objects.store.status().await?.revision;
                if revision > current {
                    return Err(StoreError::Future {
                        asked: revision,
                        current,
                    }
                    .into());
                }
            }
            return Ok(ObjectWatch::after(self.cache.clone(), query, revision));
        }
        let mut list = ListQuery {
            kind: query.kind,
            namespace: query.namespace.clone(),
            filter: query.filter.clone(),
            limit: crate::page::MAX_OBJECTS,
            resume: None,
        };
        let mut objects = Vec::new();
        loop {
            let page = self.list(&list).await?;
            objects.extend(page.objects.into_iter().map(|stored| stored.object));
            if page.next.is_none() {
                return Ok(ObjectWatch::initial(
                    self.cache.clone(),
                    query,
                    objects,
                    page.revision,
                ));
            }
            list.resume = page.next;
        }
    }

    /// Creates, replaces or applies an object, after what it asks for was authorised.
    pub(crate) async fn write(
        &self,
        caller: &Caller,
        target: &Target,
        how: WriteMode,
        object: KindObject,
        is_dry_run: bool,
    ) -> Result<KindObject, ApiError> {
        let result = self
            .write_object(caller, target, how, object, is_dry_run)
            .await;
        if is_dry_run && result.is_ok() {
            return result;
        }
        let version = result
            .as_ref()
            .map(|object| object.metadata.resource_version.as_deref());
        self.record(caller, how.verb(), target, version).await?;
        result
    }

    async fn write_object(
        &self,
        caller: &Caller,
        target: &Target,
        how: WriteMode,
        object: KindObject,
        is_dry_run: bool,
    ) -> Result<KindObject, ApiError> {
        if is_event(object.kind) && how != WriteMode::Create {
            let message = "an event cannot be changed";
            return Err(ApiError::new(
                http::StatusCode::METHOD_NOT_ALLOWED,
                RefusalReason::BadRequest,
                message,
            ));
        }
        self.access.check_escalation(&caller.identity, &object)?;
        let mut object = object;
        if let (Some(node), Some(scope)) = (&caller.identity.node, self.scope_of(caller)) {
            sign_event(node, &scope, &mut object)?;
        }
        let may = |verb: &str| {
            let action = Action {
                verb,
                kind: target.kind.name,
                namespace: target.namespace.as_deref(),
                name: Some(object.name()),
            };
            self.access.check(&caller.identity, &action)
        };
        let author = Author {
            name: caller.identity.user.clone(),
            is_dry_run,
            reads_secrets: may("read-secret").is_ok(),
            ..Author::default()
        };
        let stored = match how {
            WriteMode::Create if is_event(object.kind) => {
                self.events.create(object, &author).await?
            }
            WriteMode::Create => self.objects.create(object, &author).await?,
            WriteMode::Update => self.objects.update(object, &author).await?,
            WriteMode::Apply => {
                if self
                    .objects
                    .get(&crate::objects::key_of(&object))
                    .await?
                    .is_none()
                {
                    may("create")?;
                }
                self.objects.apply(object, &author).await?
            }
        };
        // Rights come from the cache: who made a role can bind it with the next request.
        if !is_dry_run && stored.object.kind.spec.starts_with("Role") {
            self.cache.wait_for(stored.revision(), CACHE_WAIT).await;
        }
        Ok(stored.object)
    }

    /// Deletes an object.
    pub(crate) async fn delete(
        &self,
        caller: &Caller,
        target: &Target,
        preconditions: &Preconditions,
        is_dry_run: bool,
    ) -> Result<(Deletion, usize), ApiError> {
        let author = Author {
            name: caller.identity.user.clone(),
            is_dry_run,
            ..Author::default()
        };
        let result = self.delete_target(target, preconditions, &author).await;
        if is_dry_run && result.is_ok() {
            return result.map(|deletion| {
                let dependents = self.dependents(&deletion.object);
                (deletion, dependents)
            });
        }
        let recorded = result.as_ref().map(|_| None);
        self.record(caller, "delete", target, recorded).await?;
        result.map(|deletion| {
            let dependents = self.dependents(&deletion.object);
            (deletion, dependents)
        })
    }

    async fn delete_target(
        &self,
        target: &Target,
        preconditions: &Preconditions,
        author: &Author,
    ) -> Result<Deletion, ApiError> {
        let key = target.key()?;
        match (&target.namespace, &target.name) {
            (Some(namespace), Some(name)) if is_event(target.kind) => {
                let events = &self.events;
                events.delete(namespace, name, preconditions, author).await
            }
            _ => {
                let objects = &self.objects;
                objects
                    .delete(&key, &target.shown(), preconditions, author)
                    .await
            }
        }
    }

    /// How many objects go with one: the content of a namespace, and what it owns.
    fn dependents(&self, object: &KindObject) -> usize {
        let is_namespace = object.kind.name == "Namespace";
        let all = self.cache.all();
        let depends = |other: &&Arc<KindObject>| {
            let in_it = is_namespace && other.namespace() == Some(object.name());
            let mut owners = other.metadata.owners.iter();
            in_it || owners.any(|owner| owner.uuid == object.metadata.uuid)
        };
        all.iter().filter(depends).count()
    }

    /// Makes a token for a user whose rights the caller has.
    pub(crate) async fn create_token(
        &self,
        caller: &Caller,
        new: NewToken,
    ) -> Result<Value, ApiError> {
        let about = json!({"kind": "Token", "name": new.user});
        if let Err(error) =
            self.access
                .check_impersonation(&caller.identity, &new.user, &new.groups)
        {
            self.record_about(caller, "create", about, Err(&error))
                .await?;
            return Err(error);
        }
        let (user, life) = (new.user.clone(), new.life);
        let (id, text) = self.tokens.create(new).await?;
        self.record_about(caller, "create", about, Ok(None)).await?;
        let expires = life.map(|life| rfc3339(self.objects.time.now() + life));
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Token", "id": id, "user": user, "expires": expires,
            "token": text.as_str(),
        }))
    }

    /// The tokens of the caller; all of them for who may do everything.
    pub(crate) async fn list_tokens(&self, caller: &Caller) -> Result<Value, ApiError> {
        let is_admin = self.is_admin(caller);
        let tokens = self.tokens.list().await?.into_iter();
        let shown = tokens.filter(|(_, token)| is_admin || token.user == caller.identity.user);
        let items: Vec<Value> = shown
            .map(|(id, token)| {
                let expires = (token.expires > 0).then(|| rfc3339(Duration::from_secs(token.expires)));
                json!({
                    "id": id, "user": token.user, "groups": token.groups, "expires": expires,
                    "created": rfc3339(Duration::from_secs(token.created)), "description": token.description,
                })
            })
            .collect();
        Ok(json!({"apiVersion": portolan_kinds::VERSION, "kind": "TokenList", "items": items}))
    }

    /// Ends a token of the caller's own, or of anybody for who may do everything.
    pub(crate) async fn delete_token(&self, caller: &Caller, id: &str) -> Result<(), ApiError> {
        let tokens = self.tokens.list().await?;
        let found = tokens.iter().find(|(one, _)| one == id);
        let is_theirs = found.is_some_and(|(_, token)| token.user == caller.identity.user);
        // Whether a token of somebody else exists is nobody's business.
        if found.is_none() || !(is_theirs || self.is_admin(caller)) {
            return Err(ApiError::not_found(&format!("token {id}")));
        }
        self.tokens.delete(id).await?;
        let about = json!({"kind": "Token", "name": id});
        self.record_about(caller, "delete", about, Ok(None)).await
    }

    fn is_admin(&self, caller: &Caller) -> bool {
        let everything = Action {
            verb: "*",
            kind: "*",
            namespace: None,
            name: None,
        };
        self.access.check(&caller.identity, &everything).is_ok()
    }

    async fn anchor(&self) -> Result<(), StoreError> {
        store_anchor(&self.objects.store, &self.name, &self.audit.head()).await
    }
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Create,
    Update,
    Apply,
}

impl WriteMode {
    /// The right that it needs.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update | Self::Apply => "update",
        }
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
        tasks.spawn(self.background.feed.run());
        tasks.spawn(self.background.events.run());
        tasks.spawn(self.background.controllers.run());
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
        // Controllers stop before the shard is given up.
        tasks.shutdown().await;
        if let Err(error) = membership.leave().await {
            tracing::warn!(%error, "the lease of this server cannot be given up");
        }
        failure
    }
}

impl Target {
    /// The key of the one object.
    pub(crate) fn key(&self) -> Result<ObjectKey, ApiError> {
        let name = self.name.as_deref();
        let name = name.ok_or_else(|| ApiError::bad_request("the path must name an object"))?;
        if self.kind.is_namespaced && self.namespace.is_none() {
            let message = format!("{} {name} needs a namespace", self.kind.name);
            return Err(ApiError::bad_request(message));
        }
        Ok(ObjectKey::new(self.kind, self.namespace.as_deref(), name))
    }

    /// The target as people name it.
    pub(crate) fn shown(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        match &self.namespace {
            Some(namespace) if self.kind.is_namespaced => {
                format!("{} {namespace}/{name}", self.kind.name)
            }
            _ => format!("{} {name}", self.kind.name),
        }
    }

    /// Reads the selectors of a request for this target.
    pub(crate) fn filter(&self, labels: &str, fields: &str) -> Result<ObjectFilter, ApiError> {
        ObjectFilter::read(self.kind, labels, fields)
    }
}

/// Refuses to start without the keys of secrets that exist.
async fn check_keys(objects: &Objects, cache: &Cache) -> Result<(), StartError> {
    let Some(kind) = find_kind("Secret") else {
        return Ok(());
    };
    let mut unknown = std::collections::BTreeMap::new();
    for secret in cache.objects(kind, None) {
        let found = objects.get(&crate::objects::key_of(&secret)).await?;
        if let Some(sealed) = found.and_then(|found| found.sealed)
            && !objects
                .sealer
                .as_ref()
                .is_some_and(|sealer| sealer.has(&sealed.key_id))
        {
            *unknown.entry(sealed.key_id).or_insert(0_usize) += 1;
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    Err(StartError::WrongKey {
        count: unknown.values().sum(),
        keys: unknown.into_keys().collect::<Vec<_>>().join(", "),
    })
}
