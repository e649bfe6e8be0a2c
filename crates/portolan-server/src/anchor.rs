//! What the store knows of the audit logs of its servers, so that a log that was cut off is noticed.

use portolan_store::{Incarnation, Span, Store, StoreError, Transaction};

use crate::audit::{AuditError, AuditHead, verify_audit};
use crate::keys;
use crate::server::StartError;
use crate::setup::DataDirectory;

/// The newest entry of a server's log that the store knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) server: String,
    pub(crate) number: u64,
    pub(crate) digest: String,
    /// The life of the store in which it was written.
    pub(crate) incarnation: u64,
}

/// Writes down how far the log of a server has come.
pub(crate) async fn store_anchor(
    store: &Store,
    incarnation: &Incarnation,
    server: &str,
    head: &AuditHead,
) -> Result<(), StoreError> {
    let key = keys::audit_anchor(server);
    let text = format!("{} {} {}", head.number, head.digest, incarnation.number);
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
            incarnation: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(anchor)
    }
}

/// Refuses an audit log that ends before what the store knows of it. A directory that was just given its name may be a new
/// server of several; the only server of a store has lost its log.
pub(crate) async fn check_anchor(
    store: &Store,
    incarnation: &Incarnation,
    files: &DataDirectory,
    server: &str,
) -> Result<(), StartError> {
    let is_single = store.status().await?.cluster.is_none();
    for anchor in anchors(store).await? {
        if anchor.server == server {
            verify_audit(files.directory(), anchor.number)?;
        } else if is_single && anchor.incarnation == incarnation.number {
            return Err(AuditError::Lost {
                server: anchor.server,
                known: anchor.number,
            }
            .into());
        }
    }
    Ok(())
}
