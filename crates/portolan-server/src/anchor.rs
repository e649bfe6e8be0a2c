//! What the store knows of the audit logs of its servers, so that a log that was cut off is noticed.

use std::path::Path;

use portolan_store::{Span, Store, StoreError, Transaction};

use crate::audit::{AuditHead, verify_audit};
use crate::keys;
use crate::server::StartError;
use crate::setup::DataDirectory;

/// The newest entry of a server's log that the store knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) server: String,
    pub(crate) number: u64,
    pub(crate) digest: String,
}

/// Writes down how far the log of a server has come.
pub(crate) async fn store_anchor(
    store: &Store,
    server: &str,
    head: &AuditHead,
) -> Result<(), StoreError> {
    let key = keys::audit_anchor(server);
    let text = format!("{} {}", head.number, head.digest);
    let known = store.get(key.clone()).await?;
    let is_same = |value: &[u8]| value == text.as_bytes();
    if known.as_ref().is_some_and(|record| is_same(&record.value)) {
        return Ok(());
    }
    let revision = known.map_or(0, |record| record.mod_revision);
    store
        .commit(Transaction::replace(key, revision, text))
        .await?;
    Ok(())
}

/// What the store knows of all logs, by the names of their servers.
pub(crate) async fn anchors(store: &Store) -> Result<Vec<Anchor>, StoreError> {
    let mut found = Vec::new();
    let prefix = keys::audit_anchors();
    store
        .scan(&Span::prefix(prefix.clone()), None, |record| {
            let server = String::from_utf8_lossy(&record.key[prefix.len()..]).into_owned();
            let text = String::from_utf8_lossy(&record.value).into_owned();
            let anchor = Anchor::read(server, &text).ok_or_else(|| StoreError::Damaged {
                detail: format!("`{}` is no entry of an audit log", text.escape_debug()),
            })?;
            found.push(anchor);
            Ok(())
        })
        .await?;
    Ok(found)
}

impl Anchor {
    fn read(server: String, text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let anchor = Self {
            server,
            number: words.next()?.parse().ok()?,
            digest: words.next()?.to_owned(),
        };
        words.next().is_none().then_some(anchor)
    }
}

/// The newest entry of a server's log that the store knows of.
pub(crate) async fn anchored_head(
    store: &Store,
    server: &str,
) -> Result<Option<AuditHead>, StoreError> {
    let mut anchors = anchors(store).await?.into_iter();
    let anchor = anchors.find(|anchor| anchor.server == server);
    Ok(anchor.map(|anchor| AuditHead {
        number: anchor.number,
        digest: anchor.digest,
    }))
}

/// Checks the whole audit log of a data directory against what the store knows of it; returns the number of its last
/// entry. A directory that no server has started in has no log.
///
/// # Errors
/// When the store cannot be read, or the log is not what was written.
pub async fn verify_server_audit(store: &Store, data: &Path) -> Result<Option<u64>, StartError> {
    let Some(server) = DataDirectory::existing_name(data).map_err(|source| StartError::Files {
        path: data.to_owned(),
        source,
    })?
    else {
        return Ok(None);
    };
    let known = anchored_head(store, &server).await?;
    let known = known
        .as_ref()
        .map(|known| (known.number, known.digest.as_str()));
    Ok(Some(verify_audit(data, known)?))
}
