//! How a server is started, and why it cannot be.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use portolan_store::StoreError;
use portolan_store::level::NEWEST_LEVEL;

use crate::audit::AuditError;
use crate::authorities::AuthorityError;
use crate::backups::BackupOptions;
use crate::cache::Cache;
use crate::clock::{SystemTimeSource, TimeSource};
use crate::error::ApiError;
use crate::objects::Objects;
use crate::seal::{KeyEncryptionKey, SealError};
use crate::shared_key::SharedKeyError;
use crate::vault::VaultOptions;

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
    /// Where backups are made; without it there are none.
    pub backups: Option<BackupOptions>,
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
            backups: None,
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
    /// The directory of content that is too large for the store.
    #[error("the blobs of this server cannot be used")]
    Blobs(#[from] portolan_store::blob::BlobError),
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

/// Refuses to start without the keys of secrets that exist.
pub(super) fn check_keys(objects: &Objects, cache: &Cache) -> Result<(), StartError> {
    let mut unknown = BTreeMap::new();
    for (_, key) in cache.sealed() {
        let sealer = objects.sealer.as_ref();
        if !sealer.is_some_and(|sealer| sealer.has(&key)) {
            *unknown.entry(key).or_insert(0_usize) += 1;
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
