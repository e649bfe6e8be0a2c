//! Bearer tokens: `ptl_<id>_<secret>`. The store has the digest of the secret part, found by the public id.

use std::sync::Arc;
use std::time::Duration;

use portolan_digest::hex;
use portolan_identity::{ClientCertificate, RequestedKey};
use portolan_kinds::wire::StoredToken;
use portolan_store::{Span, Store, Transaction};
use prost::Message as _;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::clock::TimeSource;
use crate::error::{ApiError, RefusalReason};
use crate::keys;
use crate::node_access::NodeIdentity;

const PREFIX: &str = "ptl_";

/// Who makes a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    /// The public id of the token or user certificate, or the digest of the key of a node's certificate.
    pub(crate) token: String,
    /// The node, when an agent asks.
    pub(crate) node: Option<Arc<NodeIdentity>>,
    /// The certificate that it was proved by; without one it was a token.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

/// Tokens in the store.
#[derive(Clone)]
pub(crate) struct Tokens {
    pub(crate) store: Store,
    pub(crate) time: Arc<dyn TimeSource>,
}

/// A token to make.
#[derive(Debug, Clone)]
pub(crate) struct NewToken {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    /// `None` without an end.
    pub(crate) life: Option<Duration>,
    pub(crate) description: String,
}

impl Tokens {
    /// Makes a token and returns its text, which nobody can read again.
    pub(crate) async fn create(
        &self,
        new: NewToken,
    ) -> Result<(String, Zeroizing<String>), ApiError> {
        let id = hex(&rand::random::<[u8; 8]>());
        let secret = Zeroizing::new(hex(&rand::random::<[u8; 32]>()));
        let now = self.time.now();
        let stored = StoredToken {
            digest: Sha256::digest(secret.as_bytes()).to_vec().into(),
            user: new.user,
            groups: new.groups,
            expires: new.life.map_or(0, |life| (now + life).as_secs()),
            created: now.as_secs(),
            description: new.description,
            is_certificate: false,
        };
        let create = Transaction::create(keys::token(&id), stored.encode_to_vec());
        if !self.store.commit(create).await?.succeeded {
            return Err(ApiError::unavailable("the token could not be stored"));
        }
        let text = Zeroizing::new(format!("{PREFIX}{id}_{}", secret.as_str()));
        Ok((id, text))
    }

    /// Who a token belongs to.
    pub(crate) async fn identify(&self, text: &str) -> Result<Identity, ApiError> {
        let (id, secret) = split(text).ok_or_else(refused)?;
        let record = self.store.get(keys::token(id)).await?.ok_or_else(refused)?;
        let stored = StoredToken::decode(record.value).map_err(|_| refused())?;
        let digest = Sha256::digest(secret.as_bytes());
        if stored.is_certificate || !is_same(&digest, &stored.digest) {
            return Err(refused());
        }
        if stored.expires > 0 && self.time.now().as_secs() >= stored.expires {
            return Err(refused());
        }
        Ok(Identity {
            user: stored.user,
            groups: stored.groups,
            token: id.to_owned(),
            ..Identity::default()
        })
    }

    /// Whether a token still works.
    pub(crate) async fn is_alive(&self, id: &str) -> Result<bool, ApiError> {
        Ok(self.find(id).await?.is_some())
    }

    /// The record of a token or user certificate that still works.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<StoredToken>, ApiError> {
        let Some(record) = self.store.get(keys::token(id)).await? else {
            return Ok(None);
        };
        let stored = StoredToken::decode(record.value).map_err(|_| refused())?;
        let is_alive = stored.expires == 0 || self.time.now().as_secs() < stored.expires;
        Ok(is_alive.then_some(stored))
    }

    /// Records a client certificate of a user, and returns its id.
    pub(crate) async fn create_certificate(
        &self,
        new: NewToken,
        key: &RequestedKey,
    ) -> Result<String, ApiError> {
        let id = hex(&rand::random::<[u8; 8]>());
        let now = self.time.now();
        let stored = StoredToken {
            digest: key.fingerprint().to_bytes().to_vec().into(),
            user: new.user,
            groups: new.groups,
            expires: new.life.map_or(0, |life| (now + life).as_secs()),
            created: now.as_secs(),
            description: new.description,
            is_certificate: true,
        };
        let create = Transaction::create(keys::token(&id), stored.encode_to_vec());
        if !self.store.commit(create).await?.succeeded {
            return Err(ApiError::unavailable(
                "the certificate could not be recorded",
            ));
        }
        Ok(id)
    }

    /// All tokens by id, without their secrets.
    pub(crate) async fn list(&self) -> Result<Vec<(String, StoredToken)>, ApiError> {
        let prefix = keys::tokens();
        let mut found = Vec::new();
        self.store
            .scan(&Span::prefix(prefix.clone()), None, |record| {
                let id = String::from_utf8_lossy(&record.key[prefix.len()..]).into_owned();
                if let Ok(token) = StoredToken::decode(record.value) {
                    found.push((id, token));
                }
                Ok(())
            })
            .await?;
        Ok(found)
    }

    /// Deletes a token; says whether there was one.
    pub(crate) async fn delete(&self, id: &str) -> Result<bool, ApiError> {
        delete_key(&self.store, &keys::token(id)).await
    }
}

/// Deletes a key, whatever its value is; says whether there was one.
pub(crate) async fn delete_key(store: &Store, key: &str) -> Result<bool, ApiError> {
    loop {
        let Some(record) = store.get(key.to_owned()).await? else {
            return Ok(false);
        };
        let remove = Transaction::remove(key.to_owned(), record.mod_revision);
        if store.commit(remove).await?.succeeded {
            return Ok(true);
        }
    }
}

/// The same words for every wrong token: nothing tells whether its id exists.
fn refused() -> ApiError {
    ApiError::new(
        http::StatusCode::UNAUTHORIZED,
        RefusalReason::Unauthenticated,
        "the token is not known, or does not work any more",
    )
}

fn split(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (id.len() == 16 && secret.len() == 64 && is_hex(id) && is_hex(secret)).then_some((id, secret))
}

/// Compares without telling by its time how much is right.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |found, (a, b)| found | (a ^ b));
    a.len() == b.len() && differences == 0
}
