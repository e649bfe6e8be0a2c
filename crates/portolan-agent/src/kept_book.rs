//! A book that the node keeps on its disk, with everything that its steps see: for beacons that compare it with the node,
//! and for schedules that need no server.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8PathBuf;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use crate::runs::{FileStore, StoredFiles};
use crate::wire::RunOrder;

/// The largest book that is kept.
const MAX_BYTES: usize = 1 << 20;

/// A book that the node keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct KeptBook(Arc<RunOrder>);

impl KeptBook {
    /// Takes what the server sent; `None` if it is too large to be kept.
    pub(crate) fn read(order: RunOrder) -> Option<Self> {
        (order.encoded_len() <= MAX_BYTES).then(|| Self(Arc::new(order)))
    }

    /// The book as the server sent it.
    pub(crate) fn order(&self) -> &RunOrder {
        &self.0
    }

    /// Its files, which the store has.
    pub(crate) fn files(&self, store: &Arc<FileStore>) -> Arc<StoredFiles> {
        let digests = self.0.files.iter();
        let digests = digests.map(|(path, digest)| (Utf8PathBuf::from(path), digest.clone()));
        Arc::new(StoredFiles {
            store: Arc::clone(store),
            digests: digests.collect(),
        })
    }

    /// Whether all of its files are here; an error if one will not come.
    pub(crate) fn has_files(&self, store: &FileStore) -> Result<bool, String> {
        store.has_all(self.0.files.values())
    }

    /// The digests of the files of some books.
    pub(crate) fn digests<'b>(books: impl IntoIterator<Item = &'b Self>) -> BTreeSet<String> {
        let books = books.into_iter();
        books
            .flat_map(|book| book.0.files.values().cloned())
            .collect()
    }
}

impl From<KeptBook> for String {
    fn from(book: KeptBook) -> Self {
        STANDARD.encode(book.0.encode_to_vec())
    }
}

/// A text that holds no book.
#[derive(Debug, thiserror::Error)]
#[error("it holds no book")]
pub(crate) struct NoBook;

impl TryFrom<String> for KeptBook {
    type Error = NoBook;

    fn try_from(text: String) -> Result<Self, NoBook> {
        let bytes = STANDARD.decode(text).map_err(|_| NoBook)?;
        let order = RunOrder::decode(bytes.as_slice()).map_err(|_| NoBook)?;
        Self::read(order).ok_or(NoBook)
    }
}
