//! The ciphertext of shares in the store, in parts.

use portolan_store::keys::ROOT;
use portolan_store::{Compare, Span, Store, Transaction};

use crate::error::ApiError;

/// The bytes of a part: a value of the store has room for twice as many.
const PART: usize = 256 << 10;

/// The most bytes of a ciphertext: a MiB, and a header line for each of a thousand nodes.
pub(super) const MAX_BYTES: usize = (1 << 20) + (256 << 10);

/// The prefix of all shares.
fn all() -> String {
    format!("{ROOT}share/")
}

fn prefix(uuid: &str, place: &str) -> String {
    format!("{ROOT}share/{uuid}/{place}/")
}

/// Writes a ciphertext. It counts once the status of the Share names its place.
pub(super) async fn write(
    store: &Store,
    uuid: &str,
    place: &str,
    content: &[u8],
    fence: &Compare,
) -> Result<(), ApiError> {
    for (number, part) in content.chunks(PART).enumerate() {
        let key = format!("{}{number:04}", prefix(uuid, place));
        let created = Transaction::create(key, part.to_vec());
        let outcome = store.commit(created.when(fence.clone())).await?;
        if !outcome.succeeded {
            return Err(ApiError::unavailable(
                "another server looks after shares now",
            ));
        }
    }
    Ok(())
}

/// Reads a ciphertext.
pub(super) async fn read(store: &Store, uuid: &str, place: &str) -> Result<Vec<u8>, ApiError> {
    let mut content = Vec::new();
    let span = Span::prefix(prefix(uuid, place));
    store
        .scan(&span, None, |record| {
            content.extend_from_slice(&record.value);
            Ok(())
        })
        .await?;
    Ok(content)
}

/// Removes one ciphertext.
pub(super) async fn remove(
    store: &Store,
    uuid: &str,
    place: &str,
    fence: &Compare,
) -> Result<(), ApiError> {
    let mut found = Vec::new();
    let span = Span::prefix(prefix(uuid, place));
    store
        .scan(&span, None, |record| {
            found.push((record.key, record.mod_revision));
            Ok(())
        })
        .await?;
    for (key, revision) in found {
        let removed = Transaction::remove(key, revision).when(fence.clone());
        store.commit(removed).await?;
    }
    Ok(())
}

/// Removes every ciphertext that no Share names: `place` gives the one that a Share names.
pub(super) async fn sweep(
    store: &Store,
    place: impl Fn(&str) -> Option<String>,
    fence: &Compare,
) -> Result<(), ApiError> {
    let mut unneeded = Vec::new();
    let top = all();
    store
        .scan(&Span::prefix(top.clone()), None, |record| {
            let key = String::from_utf8_lossy(&record.key);
            let mut parts = key.strip_prefix(&top).unwrap_or_default().split('/');
            let (uuid, stored) = (parts.next(), parts.next());
            let named = uuid.and_then(&place);
            if named.as_deref() != stored {
                unneeded.push((record.key.clone(), record.mod_revision));
            }
            Ok(())
        })
        .await?;
    for (key, revision) in unneeded {
        let removed = Transaction::remove(key, revision).when(fence.clone());
        store.commit(removed).await?;
    }
    Ok(())
}
