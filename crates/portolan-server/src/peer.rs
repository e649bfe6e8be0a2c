//! Who a client certificate belongs to, asked again for every request and every message of a stream.
//!
//! Reading and verifying a certificate is done once and kept by its digest; whether it is valid now, and whether its
//! node or user still has it, is asked each time.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;
use portolan_identity::{CaPin, ClientCertificate, IdentityError, SubjectKind};
use portolan_kinds::{KindObject, find_kind};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::authorities::Authorities;
use crate::cache::Cache;
use crate::error::{ApiError, RefusalReason};
use crate::keys::ObjectKey;
use crate::node_access::NodeIdentity;
use crate::objects::Objects;
use crate::token::{Identity, Tokens};

/// Certificates that are kept; beyond it all are read again.
const MAX_KEPT: usize = 20_000;

/// Reads client certificates.
pub(crate) struct Peers {
    pub(crate) authorities: Arc<Authorities>,
    pub(crate) cache: Cache,
    pub(crate) objects: Objects,
    pub(crate) tokens: Tokens,
    kept: Mutex<HashMap<[u8; 32], Arc<ClientCertificate>>>,
}

impl Peers {
    pub(crate) fn new(
        authorities: Arc<Authorities>,
        cache: Cache,
        objects: Objects,
        tokens: Tokens,
    ) -> Self {
        Self {
            authorities,
            cache,
            objects,
            tokens,
            kept: Mutex::default(),
        }
    }

    /// Who shows this certificate.
    pub(crate) async fn identify(&self, der: &[u8]) -> Result<Identity, ApiError> {
        let certificate = self.read(der).await?;
        match certificate.subject.kind {
            SubjectKind::Node => self.node(certificate).await,
            SubjectKind::User => self.user(certificate).await,
            SubjectKind::Server => Ok(server_identity(certificate)),
        }
    }

    /// Whether an identity that came by a certificate would still be accepted.
    pub(crate) async fn is_alive(&self, certificate: &Arc<ClientCertificate>) -> bool {
        if !self.is_trusted_now(certificate) {
            return false;
        }
        let again = match certificate.subject.kind {
            SubjectKind::Node => self.node(Arc::clone(certificate)).await,
            SubjectKind::User => self.user(Arc::clone(certificate)).await,
            SubjectKind::Server => return true,
        };
        // A store that cannot be asked is no reason to cut streams.
        !matches!(again, Err(error) if error.reason == RefusalReason::Unauthenticated)
    }

    /// Whether a message may still be sent, from what is in memory alone.
    pub(crate) fn may_go_on(&self, certificate: &ClientCertificate) -> bool {
        if !certificate.is_valid_at(self.authorities.now()) {
            return false;
        }
        match certificate.subject.kind {
            SubjectKind::Node => {
                let node = self.cached_node(&certificate.name);
                node.is_none_or(|node| certificate_fits(certificate, &node).is_ok())
            }
            SubjectKind::User | SubjectKind::Server => true,
        }
    }

    async fn read(&self, der: &[u8]) -> Result<Arc<ClientCertificate>, ApiError> {
        let digest: [u8; 32] = Sha256::digest(der).into();
        let now = self.authorities.now();
        let kept = self.kept.lock().get(&digest).cloned();
        if let Some(certificate) = kept {
            if certificate.is_valid_at(now) {
                return Ok(certificate);
            }
            return Err(refused(&IdentityError::NotValidNow));
        }
        let mut read = self.verify(der);
        if matches!(read, Err(IdentityError::Untrusted)) && self.may_be_ours(der) {
            // Another server may have made an authority that this one has not heard of.
            let _ = self.authorities.refresh(false).await;
            read = self.verify(der);
        }
        let certificate = Arc::new(read.map_err(|error| refused(&error))?);
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(digest, Arc::clone(&certificate));
        Ok(certificate)
    }

    fn verify(&self, der: &[u8]) -> Result<ClientCertificate, IdentityError> {
        let loaded = self.authorities.current();
        ClientCertificate::read(der, &loaded.fleet, &loaded.trusted, self.authorities.now())
    }

    /// Strangers cannot make the server ask the store.
    fn may_be_ours(&self, der: &[u8]) -> bool {
        let fleet = &self.authorities.current().fleet;
        ClientCertificate::read_unchecked(der).is_ok_and(|read| read.subject.fleet == *fleet)
    }

    fn is_trusted_now(&self, certificate: &ClientCertificate) -> bool {
        certificate.is_valid_at(self.authorities.now())
    }

    async fn node(&self, certificate: Arc<ClientCertificate>) -> Result<Identity, ApiError> {
        let cached = self.cached_node(&certificate.name);
        let fits = |node: &KindObject| certificate_fits(&certificate, node);
        let is_fine = cached.as_deref().is_some_and(|node| fits(node).is_ok());
        if !is_fine {
            // The cache may not know yet what another server has written.
            let key = node_key(&certificate.name)?;
            let found = self.objects.get(&key).await?;
            let found = found.ok_or_else(|| gone("its node does not exist any more"))?;
            fits(&found.object)?;
        }
        let node = NodeIdentity {
            name: certificate.name.clone(),
            uid: certificate.subject.id.clone(),
        };
        Ok(Identity {
            user: format!("system:node:{}", node.name),
            groups: vec!["system:nodes".to_owned()],
            token: certificate.key.to_string(),
            node: Some(Arc::new(node)),
            certificate: Some(certificate),
        })
    }

    async fn user(&self, certificate: Arc<ClientCertificate>) -> Result<Identity, ApiError> {
        let found = self.tokens.find(&certificate.subject.id).await?;
        let stored = found.ok_or_else(|| gone("it was taken back"))?;
        let is_its_key = CaPin::to_hex(&certificate.key) == portolan_digest::hex(&stored.digest);
        if !stored.is_certificate || !is_its_key {
            return Err(gone("it was replaced"));
        }
        Ok(Identity {
            user: stored.user,
            groups: stored.groups,
            token: certificate.subject.id.clone(),
            node: None,
            certificate: Some(certificate),
        })
    }

    fn cached_node(&self, name: &str) -> Option<Arc<KindObject>> {
        self.cache.object(&node_key(name).ok()?)
    }
}

/// Only servers have the key of the authority, and these certificates are short-lived: nothing is asked of the store.
fn server_identity(certificate: Arc<ClientCertificate>) -> Identity {
    Identity {
        user: format!("system:server:{}", certificate.subject.id),
        token: certificate.key.to_string(),
        certificate: Some(certificate),
        ..Identity::default()
    }
}

/// The key of a Node.
pub(crate) fn node_key(name: &str) -> Result<ObjectKey, ApiError> {
    let kind = find_kind("Node").ok_or_else(|| ApiError::internal("no kind Node"))?;
    Ok(ObjectKey::new(kind, None, name))
}

/// The number that certificates of a node must carry.
pub(crate) fn epoch_of(node: &KindObject) -> u32 {
    let epoch = node.status.get("epoch").and_then(Value::as_u64);
    epoch.and_then(|epoch| epoch.try_into().ok()).unwrap_or(1)
}

fn certificate_fits(certificate: &ClientCertificate, node: &KindObject) -> Result<(), ApiError> {
    if node.metadata.uuid.as_deref() != Some(certificate.subject.id.as_str()) {
        return Err(gone("another node has its name now"));
    }
    if node.metadata.deletion_timestamp.is_some() {
        return Err(gone("its node is being deleted"));
    }
    if certificate.subject.epoch != epoch_of(node) {
        return Err(gone("it was revoked"));
    }
    Ok(())
}

fn gone(why: &str) -> ApiError {
    let message = format!("the certificate does not work any more: {why}");
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        RefusalReason::Unauthenticated,
        message,
    )
}

fn refused(error: &IdentityError) -> ApiError {
    let message = error.to_string();
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        RefusalReason::Unauthenticated,
        message,
    )
}
