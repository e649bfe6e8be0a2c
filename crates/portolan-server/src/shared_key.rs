//! The key for secrets, which all servers of a store share.
//!
//! The store knows the name of the key that seals. The first server names it; one that joins must have that key. To
//! rotate it, every server first gets the new key as one that opens, and then one of them begins to seal with it.

use portolan_store::{Store, StoreError, Transaction};

use crate::keys;
use crate::membership::servers;
use crate::seal::KeyEncryptionKey;
use crate::server::StartError;
use crate::setup::{DataDirectory, write_private};

/// Why the keys of this server do not fit those of the others.
#[derive(Debug, thiserror::Error)]
pub enum SharedKeyError {
    /// This server has no key, and others have.
    #[error(
        "the servers of this store encrypt secrets with key {0}, and this one has no key: copy `secrets.key` of one of them to the data directory, or use --secret-key-file"
    )]
    NoKey(String),
    /// This server has another key.
    #[error(
        "the servers of this store encrypt secrets with key {shared}, and this one has only {own}: add that key to its file, one key per line"
    )]
    OtherKey {
        /// The key of the others.
        shared: String,
        /// The keys of this server.
        own: String,
    },
    /// Another server could not open what this one seals.
    #[error(
        "server {server} does not have key {key}: add it to the end of that server's file and start it again, then make it the first line here"
    )]
    NotEverywhere {
        /// The other server.
        server: String,
        /// The new key.
        key: String,
    },
}

/// The keys of this server, after they were found to fit those of the others. `given` come before those of the data
/// directory; the first server of a store without keys makes one.
pub(crate) async fn agree(
    store: &Store,
    files: &DataDirectory,
    given: Vec<KeyEncryptionKey>,
    server: &str,
) -> Result<Vec<KeyEncryptionKey>, StartError> {
    let in_directory = |source| StartError::Files {
        path: files.directory().to_owned(),
        source,
    };
    let mut keys = given;
    if keys.is_empty() {
        keys = files.secret_keys().map_err(in_directory)?;
    }
    if !keys.is_empty() {
        settle(store, &keys, server).await?;
        return Ok(keys);
    }
    // A single server that lost its key may begin again as long as there are no secrets, which is checked elsewhere.
    if let Some((shared, _)) = shared(store).await?
        && !is_single(store).await?
    {
        return Err(SharedKeyError::NoKey(shared).into());
    }
    let made = vec![KeyEncryptionKey::generate()];
    let path = files.secret_key_file();
    for key in &made {
        // On the disk before the store names it: a key that is named and lost would end everything.
        write_private(&path, key.to_line().as_bytes()).map_err(in_directory)?;
    }
    if let Err(error) = settle(store, &made, server).await {
        // Another server was faster; this key has sealed nothing.
        if matches!(error, StartError::SharedKey(_)) {
            std::fs::remove_file(&path).map_err(in_directory)?;
        }
        return Err(error);
    }
    Ok(made)
}

/// Names the first key in the store, if that leaves nobody without it.
async fn settle(store: &Store, keys: &[KeyEncryptionKey], server: &str) -> Result<(), StartError> {
    let own = keys.first().map(KeyEncryptionKey::id).unwrap_or_default();
    loop {
        let known = shared(store).await?;
        let revision = match known {
            Some((shared, _)) if shared == own => return Ok(()),
            Some((shared, revision)) => {
                allow_change(store, keys, &shared, server).await?;
                revision
            }
            None => 0,
        };
        let name = Transaction::replace(keys::secret_key(), revision, own.to_owned());
        if store.commit(name).await?.succeeded {
            return Ok(());
        }
    }
}

async fn allow_change(
    store: &Store,
    keys: &[KeyEncryptionKey],
    shared: &str,
    server: &str,
) -> Result<(), StartError> {
    let own = keys.first().map(KeyEncryptionKey::id).unwrap_or_default();
    if !is_single(store).await? && keys.iter().all(|key| key.id() != shared) {
        let own: Vec<&str> = keys.iter().map(KeyEncryptionKey::id).collect();
        return Err(SharedKeyError::OtherKey {
            shared: shared.to_owned(),
            own: own.join(", "),
        }
        .into());
    }
    for other in servers(store).await? {
        if other.server != server && other.secret_keys.iter().all(|key| key != own) {
            return Err(SharedKeyError::NotEverywhere {
                server: other.server,
                key: own.to_owned(),
            }
            .into());
        }
    }
    Ok(())
}

/// Whether the store is a file of this server alone.
async fn is_single(store: &Store) -> Result<bool, StoreError> {
    Ok(store.status().await?.cluster.is_none())
}

/// The name of the key that seals, and the revision at which it was named.
async fn shared(store: &Store) -> Result<Option<(String, u64)>, StoreError> {
    let record = store.get(keys::secret_key()).await?;
    Ok(record.map(|record| {
        let name = String::from_utf8_lossy(&record.value).into_owned();
        (name, record.mod_revision)
    }))
}
