//! Where a server keeps its objects: in a file of its own, or in an etcd that several servers share.

use std::path::PathBuf;
use std::sync::Arc;

use portolan_store::etcd::Etcd;
use portolan_store::{Embedded, EmbeddedOptions, Engine, Store, StoreError};

use crate::setup::DataDirectory;

/// Pages of the file that are kept in memory. A server has all objects in memory besides, and lists and watches are rarely
/// of the same pages; what is not kept here is read from the page cache of the system.
const PAGE_CACHE_BYTES: usize = 32 << 20;

/// The store of a server.
#[derive(Clone)]
pub enum ServerStore {
    /// A file in the data directory.
    Embedded(Arc<Embedded>),
    /// Shared with other servers.
    Etcd(Arc<Etcd>),
}

/// Why a server has no store.
#[derive(Debug, thiserror::Error)]
pub enum ServerStoreError {
    /// The data directory has a store, and etcd was asked for.
    #[error("`{}` is a store of its own, and etcd would be another one", .0.display())]
    TwoStores(PathBuf),
    /// It cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ServerStore {
    /// Opens etcd if that is given, else the store of the data directory.
    ///
    /// # Errors
    /// When there are two stores, or when the file cannot be opened.
    pub fn open(files: &DataDirectory, etcd: Option<Arc<Etcd>>) -> Result<Self, ServerStoreError> {
        match etcd {
            Some(_) if files.store().exists() => Err(ServerStoreError::TwoStores(files.store())),
            Some(etcd) => Ok(Self::Etcd(etcd)),
            None => {
                let options = EmbeddedOptions {
                    cache_bytes: PAGE_CACHE_BYTES,
                    ..EmbeddedOptions::default()
                };
                let engine = Embedded::open(&files.store(), options)?;
                Ok(Self::Embedded(Arc::new(engine)))
            }
        }
    }

    /// What [`crate::ApiServer::start`] takes.
    pub fn store(&self) -> Store {
        Store::new(match self {
            Self::Embedded(engine) => Arc::clone(engine) as Arc<dyn Engine>,
            Self::Etcd(engine) => Arc::clone(engine) as Arc<dyn Engine>,
        })
    }

    /// What an operator should know about it now: members of etcd that do not answer, and bugs of their releases.
    pub async fn warnings(&self) -> Vec<String> {
        let Self::Etcd(engine) = self else {
            return Vec::new();
        };
        let members = engine.members().await.into_iter();
        let warning = members.filter_map(|member| match &member.version {
            Ok(_) if member.bugs.is_empty() => None,
            Ok(version) => Some(format!(
                "etcd {version} at {} has known bugs: {}",
                member.endpoint,
                member.bugs.join("; ")
            )),
            Err(why) => Some(format!(
                "etcd at {} does not answer: {why}",
                member.endpoint
            )),
        });
        warning.collect()
    }

    /// Waits until the store cannot write any more, and says why; for ever with etcd, which others look after.
    pub async fn failed(&self) -> String {
        match self {
            Self::Embedded(engine) => engine.failed().await,
            Self::Etcd(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use portolan_store::etcd::EtcdOptions;

    use super::*;

    #[test]
    fn a_directory_with_a_store_is_not_used_with_etcd() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = DataDirectory::open(directory.path()).expect("a data directory");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let _inside = runtime.enter();
        let etcd = || Arc::new(Etcd::new(EtcdOptions::new(["http://127.0.0.1:1"])).expect("etcd"));
        assert!(ServerStore::open(&files, Some(etcd())).is_ok());
        drop(ServerStore::open(&files, None).expect("a store"));
        let refused = ServerStore::open(&files, Some(etcd()));
        assert!(matches!(refused, Err(ServerStoreError::TwoStores(path)) if path == files.store()));
    }
}
