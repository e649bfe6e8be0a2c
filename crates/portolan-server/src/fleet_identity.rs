//! Identities as requests meet them: who asks, join tokens, enrolment, certificates, and the server's own certificate.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use portolan_identity::{
    CaPin, CertificateSubject, RequestedKey, SubjectKind, certificates_to_pem,
};
use portolan_listen::{SharedCertificate, TlsSource};
use portolan_object::NameRule;
use serde_json::{Map, Value, json};

use crate::authorities::Authorities;
use crate::clock::rfc3339;
use crate::enrolments::{EnrolAnswer, EnrolRequest, Enrolments};
use crate::error::{ApiError, RefusalReason};
use crate::join_tokens::{JoinTokens, MAX_LIFE, MAX_USES, NewJoinToken};
use crate::node_access::{NodeScope, forbidden};
use crate::objects::Author;
use crate::peer::{Peers, epoch_of, node_key};
use crate::server::{ApiServer, Caller, StartedServer};
use crate::token::{Identity, NewToken};

/// How often a server gets a new certificate.
const RENEW_SERVER_AFTER: Duration = Duration::from_hours(30 * 24);
/// The longest life of a user's certificate.
const MAX_USER_LIFE: Duration = Duration::from_hours(365 * 24);
/// The most bytes of a node's facts.
const MAX_FACTS: usize = 128 << 10;
/// The most parts of facts.
const MAX_FACT_PARTS: usize = 32;
/// How deep facts may nest.
const MAX_FACTS_DEPTH: usize = 16;

/// What a request proves its identity by.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    Nothing,
    Token(String),
    Certificate(Vec<u8>),
    /// A token and a certificate: one of them could be somebody else's.
    Both,
}

/// Everything about identities.
pub(crate) struct FleetIdentity {
    pub(crate) authorities: Arc<Authorities>,
    pub(crate) peers: Peers,
    pub(crate) enrolments: Enrolments,
    pub(crate) join_tokens: JoinTokens,
    serving: Mutex<Option<Serving>>,
    /// The pin of a certificate that is not ours.
    foreign_pin: Mutex<Option<CaPin>>,
}

/// The server's own certificate, and when to make the next one.
struct Serving {
    names: Vec<String>,
    shared: SharedCertificate,
    /// The authorities that it was made by.
    chain: String,
    issued: Duration,
    authority_file: PathBuf,
}

/// Keeps certificates and authorities current; the running server does it every half minute.
#[derive(Clone)]
pub struct CertificateUpkeep {
    server: Arc<ApiServer>,
}

impl FleetIdentity {
    pub(crate) fn new(
        authorities: Arc<Authorities>,
        peers: Peers,
        enrolments: Enrolments,
        join_tokens: JoinTokens,
    ) -> Self {
        Self {
            authorities,
            peers,
            enrolments,
            join_tokens,
            serving: Mutex::new(None),
            foreign_pin: Mutex::new(None),
        }
    }

    fn pin(&self) -> Result<CaPin, ApiError> {
        if let Some(pin) = *self.foreign_pin.lock() {
            return Ok(pin);
        }
        let pin = self.authorities.current().pin();
        pin.map_err(|error| ApiError::internal(error.to_string()))
    }
}

impl ApiServer {
    /// Who a credential belongs to.
    pub(crate) async fn identify(&self, credential: &Credential) -> Result<Identity, ApiError> {
        let unknown = |message: &str| {
            ApiError::new(
                StatusCode::UNAUTHORIZED,
                RefusalReason::Unauthenticated,
                message,
            )
        };
        match credential {
            Credential::Nothing => {
                let error = unknown("the request has no token and no client certificate");
                Err(error.hint("send `Authorization: Bearer TOKEN`, or use a client certificate"))
            }
            Credential::Both => {
                let error = unknown("the request has a token and a client certificate");
                Err(error.hint("a request has one identity: send one of them"))
            }
            Credential::Token(token) => self.tokens.identify(token).await,
            Credential::Certificate(der) => self.fleet.peers.identify(der).await,
        }
    }

    /// Whether the identity of a stream would still be accepted.
    pub(crate) async fn is_alive(&self, identity: &Identity) -> bool {
        match &identity.certificate {
            Some(certificate) => self.fleet.peers.is_alive(certificate).await,
            // A store that cannot be asked is no reason to cut streams.
            None => self.tokens.is_alive(&identity.token).await.unwrap_or(true),
        }
    }

    /// Whether the next message of a stream may be sent, from what is in memory.
    pub(crate) fn may_go_on(&self, identity: &Identity) -> bool {
        let certificate = identity.certificate.as_ref();
        certificate.is_none_or(|certificate| self.fleet.peers.may_go_on(certificate))
    }

    /// What a node may see; `None` for everybody else.
    pub(crate) fn scope_of(&self, caller: &Caller) -> Option<NodeScope> {
        let node = caller.identity.node.clone()?;
        Some(NodeScope::new(node, self.cache.clone()))
    }

    /// Answers an agent that wants to be a node.
    pub(crate) async fn enrol(&self, asked: &EnrolRequest) -> Result<EnrolAnswer, ApiError> {
        let answer = self.fleet.enrolments.enrol(asked).await;
        let who = Caller {
            identity: Identity {
                user: "system:unauthenticated".to_owned(),
                token: asked
                    .proof
                    .as_ref()
                    .map(|(id, _)| id.clone())
                    .unwrap_or_default(),
                ..Identity::default()
            },
            address: asked.address.clone(),
        };
        let about = json!({"kind": "Node", "name": asked.name});
        let result = answer.as_ref().map(|_| None);
        self.record_about(&who, "enrol", about, result).await?;
        answer
    }

    /// A certificate for a new key of the node that asks.
    pub(crate) async fn renew(&self, caller: &Caller, request: &str) -> Result<Value, ApiError> {
        let (Some(certificate), Some(node)) = (&caller.identity.certificate, &caller.identity.node)
        else {
            let message = "only a node with a certificate can renew it";
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                RefusalReason::Forbidden,
                message,
            ));
        };
        let answer = self.fleet.enrolments.renew(certificate, request).await;
        let about = json!({"kind": "Node", "name": node.name});
        let result = answer.as_ref().map(|_| None);
        self.record_about(caller, "renew", about, result).await?;
        answer
    }

    /// Makes a waiting request a node.
    pub(crate) async fn approve(
        &self,
        caller: &Caller,
        fingerprint: &CaPin,
    ) -> Result<Value, ApiError> {
        self.require(caller, "approve", "Node").await?;
        let author = author(caller);
        let answer = self.fleet.enrolments.approve(fingerprint, &author).await;
        let about = json!({"kind": "Node", "name": fingerprint.to_string()});
        let result = answer.as_ref().map(|_| None);
        self.record_about(caller, "approve", about, result).await?;
        let mut answer = answer?;
        // The certificate is for its node.
        if let Some(fields) = answer.as_object_mut() {
            fields.remove("certificate");
            fields.remove("authorities");
        }
        Ok(answer)
    }

    /// Forgets a waiting request.
    pub(crate) async fn deny(
        &self,
        caller: &Caller,
        fingerprint: &CaPin,
    ) -> Result<Value, ApiError> {
        self.require(caller, "approve", "Node").await?;
        let name = self.fleet.enrolments.deny(fingerprint).await;
        let about = json!({"kind": "Node", "name": fingerprint.to_string()});
        self.record_about(caller, "deny", about, name.as_ref().map(|_| None))
            .await?;
        Ok(json!({"apiVersion": portolan_kinds::VERSION, "kind": "Deleted", "name": name?}))
    }

    /// Requests that wait for approval.
    pub(crate) async fn waiting(&self, caller: &Caller) -> Result<Value, ApiError> {
        self.require(caller, "approve", "Node").await?;
        let items = self.fleet.enrolments.waiting().await?;
        Ok(json!({"apiVersion": portolan_kinds::VERSION, "kind": "EnrolmentList", "items": items}))
    }

    /// Makes all certificates of a node useless.
    pub(crate) async fn revoke(&self, caller: &Caller, name: &str) -> Result<Value, ApiError> {
        self.require(caller, "approve", "Node").await?;
        let epoch = self.fleet.enrolments.revoke(name, &author(caller)).await;
        let about = json!({"kind": "Node", "name": name});
        self.record_about(caller, "revoke", about, epoch.as_ref().map(|_| None))
            .await?;
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Revocation", "name": name, "epoch": epoch?,
        }))
    }

    /// Writes what an agent reports about its own node.
    pub(crate) async fn report_node(
        &self,
        caller: &Caller,
        name: &str,
        body: &Value,
    ) -> Result<Value, ApiError> {
        let reported = self.write_report(caller, name, body).await;
        let about = json!({"kind": "Node", "name": name});
        let result = reported.as_ref().map(|_| None);
        self.record_about(caller, "report", about, result).await?;
        reported
    }

    async fn write_report(
        &self,
        caller: &Caller,
        name: &str,
        body: &Value,
    ) -> Result<Value, ApiError> {
        let Some(node) = &caller.identity.node else {
            let message = "the status of a node is written by its agent only";
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                RefusalReason::Forbidden,
                message,
            ));
        };
        if node.name != name {
            return Err(forbidden(node, "report about another node"));
        }
        let mut report = read_report(body)?;
        // No clock of another machine counts: the agent says how long ago, and the server knows when it heard that.
        if let Some(Value::Object(ages)) = report.remove("factAges") {
            let now = self.objects.time.now();
            let at = ages.iter().filter_map(|(part, age)| {
                let age = Duration::from_secs(age.as_u64()?);
                Some((part.clone(), rfc3339(now.saturating_sub(age)).into()))
            });
            report.insert("factsAt".to_owned(), Value::Object(at.collect()));
        }
        let epoch = caller
            .identity
            .certificate
            .as_ref()
            .map(|one| one.subject.epoch);
        let changed = self
            .objects
            .change_status(&node_key(name)?, &author(caller), |stored| {
                if stored.metadata.uuid.as_deref() != Some(node.uid.as_str())
                    || Some(epoch_of(stored)) != epoch
                {
                    return Err(forbidden(node, "report with a revoked certificate"));
                }
                let mut status = stored.status.clone();
                for (key, value) in &report {
                    status[key] = value.clone();
                }
                Ok(status)
            })
            .await?;
        let stored = changed.ok_or_else(|| ApiError::not_found(&format!("Node {name}")))?;
        Ok(stored.object.to_json())
    }

    /// Makes a join token.
    pub(crate) async fn create_join_token(
        &self,
        caller: &Caller,
        body: &Value,
    ) -> Result<Value, ApiError> {
        self.require(caller, "create", "Node").await?;
        let new = read_join_token(body, &caller.identity.user)?;
        let loaded = self.fleet.authorities.current();
        let made = self.fleet.join_tokens.create(&loaded.fleet, new).await?;
        let (id, text, stored) = made;
        let about = json!({"kind": "JoinToken", "name": id});
        self.record_about(caller, "create", about, Ok(None)).await?;
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "JoinToken", "id": id,
            "token": text.as_str(), "caPin": self.fleet.pin()?.to_string(), "fleet": loaded.fleet,
            "uses": stored.uses, "expires": rfc3339(Duration::from_secs(stored.expires)),
            "namePattern": stored.name_pattern, "labels": stored.labels,
        }))
    }

    /// The join tokens, without their secrets.
    pub(crate) async fn list_join_tokens(&self, caller: &Caller) -> Result<Value, ApiError> {
        self.require(caller, "create", "Node").await?;
        let all = self.fleet.join_tokens.list().await?;
        let items: Vec<Value> = all
            .into_iter()
            .map(|(id, token)| {
                json!({
                    "id": id, "uses": token.uses, "namePattern": token.name_pattern, "labels": token.labels,
                    "expires": rfc3339(Duration::from_secs(token.expires)),
                    "created": rfc3339(Duration::from_secs(token.created)), "createdBy": token.created_by,
                })
            })
            .collect();
        Ok(json!({"apiVersion": portolan_kinds::VERSION, "kind": "JoinTokenList", "items": items}))
    }

    /// Ends a join token.
    pub(crate) async fn delete_join_token(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Value, ApiError> {
        self.require(caller, "create", "Node").await?;
        if !self.fleet.join_tokens.delete(id).await? {
            return Err(ApiError::not_found(&format!("join token {id}")));
        }
        let about = json!({"kind": "JoinToken", "name": id});
        self.record_about(caller, "delete", about, Ok(None)).await?;
        Ok(json!({"apiVersion": portolan_kinds::VERSION, "kind": "Deleted"}))
    }

    /// Makes a client certificate for a user whose rights the caller has.
    pub(crate) async fn create_certificate(
        &self,
        caller: &Caller,
        new: NewToken,
        request: &str,
    ) -> Result<Value, ApiError> {
        let about = json!({"kind": "Certificate", "name": new.user});
        let allowed = self
            .access
            .check_impersonation(&caller.identity, &new.user, &new.groups);
        if let Err(error) = allowed {
            self.record_about(caller, "create", about, Err(&error))
                .await?;
            return Err(error);
        }
        let key = RequestedKey::read(request)
            .map_err(|error| ApiError::bad_request(format!("`csr`: {error}")))?;
        let life = new.life.unwrap_or(MAX_USER_LIFE).min(MAX_USER_LIFE);
        let user = new.user.clone();
        let new = NewToken {
            life: Some(life),
            ..new
        };
        let id = self.tokens.create_certificate(new, &key).await?;
        let (loaded, now) = (
            self.fleet.authorities.current(),
            self.fleet.authorities.now(),
        );
        let subject = CertificateSubject {
            fleet: loaded.fleet.clone(),
            kind: SubjectKind::User,
            id: id.clone(),
            epoch: 1,
        };
        let issued = loaded
            .signer()
            .issue_client(&key, &subject, &user, now, life);
        let issued = issued.map_err(|error| ApiError::bad_request(error.to_string()))?;
        self.record_about(caller, "create", about, Ok(None)).await?;
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Certificate", "id": id, "user": user,
            "expires": rfc3339(now + life), "certificate": certificates_to_pem(&[issued]),
            "authorities": loaded.bundle(),
        }))
    }

    /// The certificates of the authorities, which are no secret.
    pub(crate) fn authorities(&self) -> Result<Value, ApiError> {
        let loaded = self.fleet.authorities.current();
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Authorities", "fleet": loaded.fleet,
            "caPin": self.fleet.pin()?.to_string(), "authorities": loaded.bundle(),
            "expires": rfc3339(loaded.expires()),
        }))
    }

    /// Makes the next authority now.
    pub(crate) async fn rotate(&self, caller: &Caller) -> Result<Value, ApiError> {
        self.require(caller, "*", "*").await?;
        let rotated = if self.fleet.authorities.current().is_next_announced {
            let message = "the next authority exists already, and signs when everybody knows it";
            Err(ApiError::conflict(RefusalReason::Conflict, message))
        } else {
            let rotated = self.fleet.authorities.refresh(true).await;
            rotated.map_err(|error| ApiError::internal(error.to_string()))
        };
        let about = json!({"kind": "Authorities"});
        self.record_about(caller, "rotate", about, rotated.as_ref().map(|()| None))
            .await?;
        rotated?;
        self.authorities()
    }

    /// Whether the caller may do something with all objects of a kind.
    async fn require(&self, caller: &Caller, verb: &str, kind: &str) -> Result<(), ApiError> {
        let action = crate::access::Action {
            verb,
            kind,
            namespace: None,
            name: None,
        };
        match self.access.check(&caller.identity, &action) {
            Ok(_) => Ok(()),
            Err(error) => {
                let about = json!({"kind": kind});
                self.record_about(caller, verb, about, Err(&error)).await?;
                Err(error)
            }
        }
    }

    /// One round of upkeep: authorities, the server's certificate, old requests.
    async fn renew_certificates(&self) -> Result<(), ApiError> {
        let refreshed = self.fleet.authorities.refresh(false).await;
        refreshed.map_err(|error| ApiError::internal(error.to_string()))?;
        self.renew_serving()?;
        self.fleet.enrolments.forget_old().await
    }

    fn renew_serving(&self) -> Result<(), ApiError> {
        let (loaded, now) = (
            self.fleet.authorities.current(),
            self.fleet.authorities.now(),
        );
        let mut serving = self.fleet.serving.lock();
        let Some(serving) = serving.as_mut() else {
            return Ok(());
        };
        let is_old = now.saturating_sub(serving.issued) >= RENEW_SERVER_AFTER;
        if serving.chain == loaded.chain() && !is_old {
            return Ok(());
        }
        let wrong = |error: portolan_identity::IdentityError| ApiError::internal(error.to_string());
        let issued = loaded.issue_server(&serving.names, now).map_err(wrong)?;
        serving.shared.set(&issued.certificate, &issued.key);
        loaded.chain().clone_into(&mut serving.chain);
        serving.issued = now;
        write_bundle(&serving.authority_file, &loaded.bundle())
    }
}

impl StartedServer {
    /// The server's certificate by the authority of the fleet, for clients that call it by these names. It is renewed
    /// while the server runs; clients trust the file `ca.pem` of the data directory.
    ///
    /// # Errors
    /// When it cannot be made, or the file cannot be written.
    pub fn tls(&self, names: Vec<String>) -> Result<TlsSource, ApiError> {
        let fleet = &self.server.fleet;
        let (loaded, now) = (fleet.authorities.current(), fleet.authorities.now());
        let issued = loaded.issue_server(&names, now);
        let issued = issued.map_err(|error| ApiError::internal(error.to_string()))?;
        write_bundle(&self.authority_file, &loaded.bundle())?;
        let shared = SharedCertificate::new(&issued.certificate, &issued.key);
        *fleet.serving.lock() = Some(Serving {
            names,
            shared: shared.clone(),
            chain: loaded.chain().to_owned(),
            issued: now,
            authority_file: self.authority_file.clone(),
        });
        Ok(TlsSource::Shared(shared))
    }

    /// Tells agents to know the server by this key, when it shows a certificate of somebody else.
    pub(crate) fn set_pin(&self, pin: CaPin) {
        *self.server.fleet.foreign_pin.lock() = Some(pin);
    }

    /// Keeps certificates current, for programs that do not call [`Self::run`], and for tests with another clock.
    pub fn certificates(&self) -> CertificateUpkeep {
        CertificateUpkeep {
            server: Arc::clone(&self.server),
        }
    }
}

impl CertificateUpkeep {
    /// Does what is due.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn round(&self) -> Result<(), ApiError> {
        self.server.renew_certificates().await
    }
}

fn write_bundle(path: &std::path::Path, bundle: &str) -> Result<(), ApiError> {
    if std::fs::read_to_string(path).is_ok_and(|current| current == bundle) {
        return Ok(());
    }
    crate::setup::write_private(path, bundle.as_bytes())
        .map_err(|error| ApiError::internal(format!("cannot write `{}`: {error}", path.display())))
}

fn author(caller: &Caller) -> Author {
    Author {
        name: caller.identity.user.clone(),
        ..Author::default()
    }
}

/// What an agent may say about its node.
fn read_report(body: &Value) -> Result<Map<String, Value>, ApiError> {
    let mut report = Map::new();
    for (key, value) in body.as_object().into_iter().flatten() {
        let is_fine = match (key.as_str(), value) {
            ("state", Value::String(state)) => matches!(state.as_str(), "ready" | "left"),
            ("agentVersion", Value::String(version)) => version.len() <= 64,
            ("facts", Value::Object(_)) => {
                value.to_string().len() <= MAX_FACTS && depth(value) <= MAX_FACTS_DEPTH
            }
            ("factAges", Value::Object(ages)) => {
                ages.len() <= MAX_FACT_PARTS && ages.values().all(Value::is_u64)
            }
            _ => false,
        };
        if !is_fine {
            let message = format!("`{key}` cannot be reported so");
            return Err(ApiError::bad_request(message).hint(format!(
                "`state` is ready or left, `agentVersion` has up to 64 bytes, `facts` up to {MAX_FACTS} bytes and {MAX_FACTS_DEPTH} levels"
            )));
        }
        report.insert(key.clone(), value.clone());
    }
    Ok(report)
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

fn read_join_token(body: &Value, user: &str) -> Result<NewJoinToken, ApiError> {
    let text = |key: &str| {
        body.get(key)
            .and_then(Value::as_str)
            .filter(|one| !one.is_empty())
    };
    let uses = match body.get("uses") {
        None | Some(Value::Null) => Some(1),
        Some(uses) => uses.as_u64().and_then(|uses| u32::try_from(uses).ok()),
    };
    let uses = uses
        .filter(|uses| (1..=MAX_USES).contains(uses))
        .ok_or_else(|| {
            ApiError::bad_request(format!("`uses` must be a number from 1 to {MAX_USES}"))
        })?;
    let life = match text("life") {
        None => crate::join_tokens::DEFAULT_LIFE,
        Some(life) => portolan_kinds::read_span(life)
            .map_err(|why| ApiError::bad_request(format!("`life` {why}")))?,
    };
    if life > MAX_LIFE || life.is_zero() {
        return Err(ApiError::bad_request("`life` is at most 90 days"));
    }
    let name_pattern = text("namePattern").unwrap_or("*").to_owned();
    if name_pattern.len() > 253 {
        return Err(ApiError::bad_request("`namePattern` is too long"));
    }
    let mut labels = BTreeMap::new();
    let given = body.get("labels").and_then(Value::as_object);
    for (key, value) in given.into_iter().flatten() {
        let name = key.rsplit('/').next().unwrap_or_default();
        let Some(value) = value.as_str().filter(|value| value.len() <= 63) else {
            return Err(ApiError::bad_request(format!("label `{key}` is not valid")));
        };
        if key.len() > 253 || !NameRule::Subdomain.fits(&name.to_ascii_lowercase()) {
            return Err(ApiError::bad_request(format!("label `{key}` is not valid")));
        }
        labels.insert(key.clone(), value.to_owned());
    }
    Ok(NewJoinToken {
        uses,
        life,
        name_pattern,
        labels,
        created_by: user.to_owned(),
    })
}
