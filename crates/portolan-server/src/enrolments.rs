//! How nodes come into the fleet, keep their certificates, and are thrown out.
//!
//! ```text
//! key + join token ──────────────▶ Node, certificate
//! key alone, or a name that another key has ──▶ pending ──approve──▶ Node, certificate
//! certificate ──renew──▶ certificate for a new key
//! revoke: the epoch of the Node rises, and certificates with lower ones are refused
//! ```
//!
//! A request is known by its key: sent again it gets the same answer, so an agent that lost the answer asks again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use portolan_identity::{
    CaPin, CertificateSubject, ClientCertificate, EnrolProof, JoinTokenKey, RequestedKey,
    SubjectKind, certificates_from_pem, certificates_to_pem,
};
use portolan_kinds::wire::{StoredEnrolment, StoredJoinToken};
use portolan_kinds::{KindObject, find_kind};
use portolan_object::NameRule;
use portolan_store::{Compare, Record, Span, Transaction};
use prost::Message as _;
use serde_json::{Value, json};

use crate::authorities::{Authorities, Loaded};
use crate::clock::rfc3339;
use crate::error::{ApiError, RefusalReason};
use crate::join_tokens::{JoinTokens, fits_pattern};
use crate::keys;
use crate::objects::{Author, Objects};
use crate::peer::{epoch_of, node_key};

/// How long a node's certificate is valid.
pub(crate) const NODE_LIFE: Duration = Duration::from_hours(7 * 24);
/// Requests that may wait for approval; more are refused.
const MAX_PENDING: usize = 1_000;
/// How long a request waits for approval.
const PENDING_LIFE: Duration = Duration::from_hours(7 * 24);
/// How often a step that lost a race is done again.
const ATTEMPTS: usize = 8;

/// Enrols nodes.
pub(crate) struct Enrolments {
    pub(crate) objects: Objects,
    pub(crate) tokens: JoinTokens,
    pub(crate) authorities: Arc<Authorities>,
}

/// A request to be a node.
#[derive(Debug, Clone)]
pub(crate) struct EnrolRequest {
    pub(crate) name: String,
    /// The signing request, in PEM format.
    pub(crate) request: String,
    /// The id of a join token, and its signature.
    pub(crate) proof: Option<(String, Vec<u8>)>,
    /// The secret of the connection.
    pub(crate) exporter: Option<[u8; 32]>,
    pub(crate) address: String,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EnrolAnswer {
    /// The node with its certificate, as JSON.
    Enrolled(Value),
    /// Somebody has to approve it.
    Pending(Value),
}

impl Enrolments {
    /// Answers a request to be a node.
    pub(crate) async fn enrol(&self, asked: &EnrolRequest) -> Result<EnrolAnswer, ApiError> {
        let key = RequestedKey::read(&asked.request)
            .map_err(|error| ApiError::bad_request(format!("`csr`: {error}")))?;
        if !NameRule::Subdomain.fits(&asked.name) {
            let message = format!("`name` {}", NameRule::Subdomain);
            return Err(ApiError::bad_request(message));
        }
        for _ in 0..ATTEMPTS {
            // Whoever has the key of an answered request gets the answer again, whatever became of the token.
            if let Some((_, stored)) = self.find(&key.fingerprint()).await? {
                return self.repeat(&stored, asked).await;
            }
            let token = self.check_token(asked, &key).await?;
            let name_is_taken = self.objects.get(&node_key(&asked.name)?).await?.is_some();
            let answer = match token {
                Some((id, record, stored)) if !name_is_taken => {
                    self.admit(asked, &key, (&id, &record, stored)).await?
                }
                token => {
                    let labels = token.map(|(_, _, stored)| stored.labels);
                    self.wait_for_approval(asked, &key, labels.unwrap_or_default())
                        .await?
                }
            };
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        Err(ApiError::unavailable("the join token changes all the time"))
    }

    /// Checks the signature of a join token, and that it still works.
    async fn check_token(
        &self,
        asked: &EnrolRequest,
        key: &RequestedKey,
    ) -> Result<Option<(String, Record, StoredJoinToken)>, ApiError> {
        let Some((id, signature)) = &asked.proof else {
            return Ok(None);
        };
        let exporter = asked.exporter.as_ref().ok_or_else(|| {
            ApiError::bad_request("a join token works over TLS 1.3 to the server itself only")
        })?;
        let (record, stored) = self.tokens.find(id).await?.ok_or_else(refused_token)?;
        let loaded = self.authorities.current();
        let proof = EnrolProof {
            exporter,
            key: key.fingerprint(),
            fleet: &loaded.fleet,
        };
        let public = JoinTokenKey::read(&stored.public_key).map_err(|_| refused_token())?;
        let is_spent = stored.uses == 0 || self.authorities.now().as_secs() >= stored.expires;
        if !public.has_signed(&proof, signature) || is_spent {
            return Err(refused_token());
        }
        if !fits_pattern(&stored.name_pattern, &asked.name) {
            let message = format!(
                "the join token is for nodes called `{}`",
                stored.name_pattern
            );
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                RefusalReason::Forbidden,
                message,
            ));
        }
        Ok(Some((id.clone(), record, stored)))
    }

    /// Creates the node, takes one use of the token and keeps the answer, all in one transaction; `None` if something
    /// changed meanwhile.
    async fn admit(
        &self,
        asked: &EnrolRequest,
        key: &RequestedKey,
        (id, record, mut token): (&str, &Record, StoredJoinToken),
    ) -> Result<Option<EnrolAnswer>, ApiError> {
        token.uses = token.uses.saturating_sub(1);
        let spend = Transaction::new()
            .when(Compare::unchanged(
                keys::join_token(id),
                record.mod_revision,
            ))
            .put(keys::join_token(id), token.encode_to_vec());
        let stored = StoredEnrolment {
            name: asked.name.clone(),
            request: asked.request.clone(),
            requested: self.authorities.now().as_secs(),
            address: asked.address.clone(),
            labels: token.labels.clone(),
            ..StoredEnrolment::default()
        };
        let author = Author {
            name: format!("join-token:{id}"),
            ..Author::default()
        };
        let added = self.add_node(key, stored, 0, spend, &author).await?;
        Ok(added.map(|stored| EnrolAnswer::Enrolled(self.answer(&stored))))
    }

    /// Creates a node with its certificate; `None` if something changed meanwhile.
    async fn add_node(
        &self,
        key: &RequestedKey,
        mut stored: StoredEnrolment,
        revision: u64,
        transaction: Transaction,
        author: &Author,
    ) -> Result<Option<StoredEnrolment>, ApiError> {
        let kind = find_kind("Node").ok_or_else(|| ApiError::internal("no kind Node"))?;
        let mut node = KindObject::new(kind, &stored.name, None, json!({}));
        node.metadata.labels = stored.labels.clone().into_iter().collect();
        let (expires, epoch) = (self.authorities.now() + NODE_LIFE, 1);
        node.status = json!({
            "state": "enrolled", "epoch": epoch, "certificateExpires": rfc3339(expires),
            "keyDigest": key.fingerprint().to_string(),
        });
        let created = self.objects.prepare_creation(node, author).await?;
        let (creation, created) = created;
        let uid = created.object.metadata.uuid.clone().unwrap_or_default();
        stored.certificate = self.issue(key, &stored.name, &uid, epoch)?;
        stored.uid = uid;
        let record_key = keys::enrolment(&key.fingerprint().to_hex());
        let transaction = creation
            .and(transaction)
            .when(Compare::unchanged(record_key.clone(), revision))
            .put(record_key, stored.encode_to_vec());
        let committed = self.objects.commit_object(transaction, created, author);
        Ok(committed.await?.map(|_| stored))
    }

    async fn wait_for_approval(
        &self,
        asked: &EnrolRequest,
        key: &RequestedKey,
        labels: BTreeMap<String, String>,
    ) -> Result<Option<EnrolAnswer>, ApiError> {
        let all = self.list().await?;
        let waiting = all.iter().filter(|(_, one)| one.uid.is_empty()).count();
        if waiting >= MAX_PENDING {
            let message = format!("{MAX_PENDING} requests wait for approval already");
            return Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                RefusalReason::TooManyRequests,
                message,
            ));
        }
        let stored = StoredEnrolment {
            name: asked.name.clone(),
            request: asked.request.clone(),
            requested: self.authorities.now().as_secs(),
            address: asked.address.clone(),
            labels,
            ..StoredEnrolment::default()
        };
        let key = keys::enrolment(&key.fingerprint().to_hex());
        let create = Transaction::create(key, stored.encode_to_vec());
        let outcome = self.objects.store.commit(create).await?;
        Ok(outcome
            .succeeded
            .then(|| EnrolAnswer::Pending(pending(&stored))))
    }

    /// The answer that a key got before.
    async fn repeat(
        &self,
        stored: &StoredEnrolment,
        asked: &EnrolRequest,
    ) -> Result<EnrolAnswer, ApiError> {
        if stored.name != asked.name {
            let message = format!("this key has asked to be node {} before", stored.name);
            return Err(ApiError::conflict(RefusalReason::Conflict, message));
        }
        if stored.uid.is_empty() {
            return Ok(EnrolAnswer::Pending(pending(stored)));
        }
        let node = self.objects.get(&node_key(&stored.name)?).await?;
        let first = certificates_from_pem(&stored.certificate);
        let first = first.ok().and_then(|chain| chain.into_iter().next());
        let certificate = first.and_then(|der| ClientCertificate::read_unchecked(&der).ok());
        let is_good = node.zip(certificate).is_some_and(|(node, certificate)| {
            node.object.metadata.uuid.as_deref() == Some(stored.uid.as_str())
                && certificate.subject.epoch == epoch_of(&node.object)
                && certificate.is_valid_at(self.authorities.now())
        });
        if is_good {
            return Ok(EnrolAnswer::Enrolled(self.answer(stored)));
        }
        let message = "the certificate of this key has ended or was revoked";
        let error = ApiError::new(StatusCode::FORBIDDEN, RefusalReason::Forbidden, message);
        Err(error.hint("enrol with a new key"))
    }

    /// Makes a waiting request a node. A node that has the name now is deleted: the new key gets nothing of it.
    pub(crate) async fn approve(
        &self,
        fingerprint: &CaPin,
        author: &Author,
    ) -> Result<Value, ApiError> {
        for _ in 0..ATTEMPTS {
            let found = self.find(fingerprint).await?;
            let (record, stored) = found.ok_or_else(|| no_request(fingerprint))?;
            if !stored.uid.is_empty() {
                return Ok(self.answer(&stored));
            }
            let key = RequestedKey::read(&stored.request)
                .map_err(|_| ApiError::internal("a stored signing request is damaged"))?;
            let name = node_key(&stored.name)?;
            if self.objects.get(&name).await?.is_some() {
                let shown = format!("Node {}", stored.name);
                let any = crate::objects::Preconditions::default();
                self.objects.delete(&name, &shown, &any, author).await?;
            }
            let added = self.add_node(
                &key,
                stored,
                record.mod_revision,
                Transaction::new(),
                author,
            );
            match added.await {
                Ok(Some(stored)) => return Ok(self.answer(&stored)),
                Ok(None) => {}
                Err(error) if error.reason == RefusalReason::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::unavailable("the request changes all the time"))
    }

    /// Forgets a waiting request; says whether there was one.
    pub(crate) async fn deny(&self, fingerprint: &CaPin) -> Result<String, ApiError> {
        let found = self.find(fingerprint).await?;
        let (_, stored) = found
            .filter(|(_, stored)| stored.uid.is_empty())
            .ok_or_else(|| no_request(fingerprint))?;
        let key = keys::enrolment(&fingerprint.to_hex());
        crate::token::delete_key(&self.objects.store, &key).await?;
        Ok(stored.name)
    }

    /// A certificate for a new key of a node.
    pub(crate) async fn renew(
        &self,
        certificate: &ClientCertificate,
        request: &str,
    ) -> Result<Value, ApiError> {
        let key = RequestedKey::read(request)
            .map_err(|error| ApiError::bad_request(format!("`csr`: {error}")))?;
        let (name, subject) = (&certificate.name, &certificate.subject);
        let expires = self.authorities.now() + NODE_LIFE;
        let author = Author {
            name: format!("system:node:{name}"),
            ..Author::default()
        };
        let node_key = node_key(name)?;
        let changed = self.objects.change_status(&node_key, &author, |node| {
            // The epoch is compared in the transaction: a revocation is never overtaken.
            if node.metadata.uuid.as_deref() != Some(subject.id.as_str())
                || epoch_of(node) != subject.epoch
            {
                return Err(revoked());
            }
            let mut status = node.status.clone();
            status["certificateExpires"] = rfc3339(expires).into();
            status["keyDigest"] = key.fingerprint().to_string().into();
            Ok(status)
        });
        changed.await?.ok_or_else(revoked)?;
        let stored = StoredEnrolment {
            certificate: self.issue(&key, name, &subject.id, subject.epoch)?,
            name: name.clone(),
            uid: subject.id.clone(),
            ..StoredEnrolment::default()
        };
        Ok(self.answer(&stored))
    }

    /// Makes all certificates of a node useless.
    pub(crate) async fn revoke(&self, name: &str, author: &Author) -> Result<u32, ApiError> {
        let mut epoch = 0;
        let node_key = node_key(name)?;
        let changed = self.objects.change_status(&node_key, author, |node| {
            epoch = epoch_of(node).saturating_add(1);
            let mut status = node.status.clone();
            status["epoch"] = epoch.into();
            Ok(status)
        });
        let changed = changed.await?;
        changed.ok_or_else(|| ApiError::not_found(&format!("Node {name}")))?;
        Ok(epoch)
    }

    /// Requests that wait for approval.
    pub(crate) async fn waiting(&self) -> Result<Vec<Value>, ApiError> {
        let all = self.list().await?.into_iter();
        let waiting = all.filter(|(_, one)| one.uid.is_empty());
        Ok(waiting.map(|(_, one)| pending(&one)).collect())
    }

    /// Forgets requests that waited too long, and answers whose certificate has ended.
    pub(crate) async fn forget_old(&self) -> Result<(), ApiError> {
        let now = self.authorities.now().as_secs();
        for (key, stored) in self.list().await? {
            let life = if stored.uid.is_empty() {
                PENDING_LIFE
            } else {
                NODE_LIFE
            };
            if stored.requested + life.as_secs() < now {
                crate::token::delete_key(&self.objects.store, &key).await?;
            }
        }
        Ok(())
    }

    async fn find(
        &self,
        fingerprint: &CaPin,
    ) -> Result<Option<(Record, StoredEnrolment)>, ApiError> {
        let key = keys::enrolment(&fingerprint.to_hex());
        let Some(record) = self.objects.store.get(key).await? else {
            return Ok(None);
        };
        let stored = StoredEnrolment::decode(record.value.clone())
            .map_err(|_| ApiError::internal("the record of an enrolment is damaged"))?;
        Ok(Some((record, stored)))
    }

    async fn list(&self) -> Result<Vec<(String, StoredEnrolment)>, ApiError> {
        let mut found = Vec::new();
        let span = Span::prefix(keys::enrolments());
        self.objects
            .store
            .scan(&span, None, |record| {
                if let Ok(stored) = StoredEnrolment::decode(record.value) {
                    found.push((String::from_utf8_lossy(&record.key).into_owned(), stored));
                }
                Ok(())
            })
            .await?;
        Ok(found)
    }

    fn issue(
        &self,
        key: &RequestedKey,
        name: &str,
        uid: &str,
        epoch: u32,
    ) -> Result<String, ApiError> {
        let loaded: Arc<Loaded> = self.authorities.current();
        let subject = CertificateSubject {
            fleet: loaded.fleet.clone(),
            kind: SubjectKind::Node,
            id: uid.to_owned(),
            epoch,
        };
        let now = self.authorities.now();
        let issued = loaded
            .signer()
            .issue_client(key, &subject, name, now, NODE_LIFE);
        let issued = issued.map_err(|error| ApiError::internal(error.to_string()))?;
        Ok(certificates_to_pem(&[issued]))
    }

    fn answer(&self, stored: &StoredEnrolment) -> Value {
        let loaded = self.authorities.current();
        json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Enrolment", "state": "enrolled",
            "fleet": loaded.fleet, "uid": stored.uid, "name": stored.name,
            "certificate": stored.certificate, "authorities": loaded.bundle(),
        })
    }
}

fn pending(stored: &StoredEnrolment) -> Value {
    let fingerprint = RequestedKey::read(&stored.request).map(|key| key.fingerprint().to_string());
    json!({
        "apiVersion": portolan_kinds::VERSION, "kind": "Enrolment", "state": "pending",
        "name": stored.name, "fingerprint": fingerprint.unwrap_or_default(),
        "requested": rfc3339(Duration::from_secs(stored.requested)), "address": stored.address,
        "labels": stored.labels,
    })
}

/// The same words for every wrong token: nothing tells whether its id exists.
fn refused_token() -> ApiError {
    let message = "the join token is not known, is used up or has ended, or its signature is not for this connection";
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        RefusalReason::Unauthenticated,
        message,
    )
    .hint("make a new one: portolan fleet join-token create")
}

fn no_request(fingerprint: &CaPin) -> ApiError {
    ApiError::not_found(&format!("a request of key {fingerprint}"))
}

fn revoked() -> ApiError {
    let message = "the certificate was revoked";
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        RefusalReason::Unauthenticated,
        message,
    )
}
