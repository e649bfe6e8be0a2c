//! Which process may act for which namespaces.
//!
//! Controllers work on shards of the namespaces, each owned by one process. The owner holds a key with its lease, so
//! another process can take over when it dies. The lease alone is not enough: a process that was paused may continue
//! to act long after the lease ended. So every write of an owner compares its key ([`Ownership::fence`]), and a
//! receiver of orders refuses those of a lower [`Epoch`].

use sha2::{Digest, Sha256};

use crate::keys::{META, SHARDS};
use crate::{Compare, Incarnation, LeaseId, Revision, Store, StoreError, Transaction};

/// The rule by which namespaces are spread, written down with the layout.
const RULE: &str = "sha256-8";

/// How namespaces are spread over shards; fixed when the store is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardLayout {
    count: u32,
}

impl ShardLayout {
    /// A layout of so many shards, at least one.
    pub fn new(count: u32) -> Self {
        Self {
            count: count.max(1),
        }
    }

    /// Reads the layout of a store; a new store gets `self`, and so do all that come later.
    pub async fn open(self, store: &Store) -> Result<Self, StoreError> {
        let key = format!("{META}shards");
        loop {
            if let Some(record) = store.get(key.clone()).await? {
                let damaged = || StoreError::Damaged {
                    detail: format!("`{}` is no layout of shards", record.value.escape_ascii()),
                };
                return Self::parse(&record.value).ok_or_else(damaged);
            }
            let text = format!("{} {RULE}", self.count);
            if store
                .commit(Transaction::create(key.clone(), text))
                .await?
                .succeeded
            {
                return Ok(self);
            }
        }
    }

    /// Reads a stored layout; `None` also for a rule that is not known here.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (count, rule) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        (rule == RULE).then_some(Self { count })
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The shard of a namespace: the first eight bytes of its SHA-256 as a number, divided by the count, the rest.
    pub fn of(self, namespace: &str) -> u32 {
        let digest = Sha256::digest(namespace.as_bytes());
        let first = u64::from_be_bytes(digest[..8].try_into().expect("eight of 32 bytes"));
        (first % u64::from(self.count)) as u32
    }

    /// How many shards each of so many servers should own at most, so that all are owned and none has two more than another.
    pub fn fair_share(self, servers: u32) -> u32 {
        self.count.div_ceil(servers.max(1))
    }
}

/// What orders owners in time; the later owner has the greater one, also across restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// The number of the incarnation.
    pub incarnation: u64,
    /// The revision at which the owner's key was created.
    pub create_revision: Revision,
}

/// A shard that a process owns, or owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The shard.
    pub shard: u32,
    /// When it was taken.
    pub epoch: Epoch,
}

impl Ownership {
    /// Takes a shard that nobody owns; `None` if somebody does.
    pub async fn claim(
        store: &Store,
        incarnation: &Incarnation,
        shard: u32,
        owner: &str,
        lease: LeaseId,
    ) -> Result<Option<Self>, StoreError> {
        let key = key(shard);
        let claim = Transaction::new()
            .when(Compare::absent(key.clone()))
            .put_leased(key, owner.to_owned(), lease);
        let outcome = store.commit(claim).await?;
        let epoch = Epoch {
            incarnation: incarnation.number,
            create_revision: outcome.revision,
        };
        Ok(outcome.succeeded.then_some(Self { shard, epoch }))
    }

    /// The compare that every write of the owner carries.
    pub fn fence(&self) -> Compare {
        Compare::same(key(self.shard), self.epoch.create_revision)
    }

    /// Gives the shard up, if it is still owned.
    pub async fn release(self, store: &Store) -> Result<(), StoreError> {
        let release = Transaction::new()
            .when(self.fence())
            .delete(key(self.shard));
        store.commit(release).await?;
        Ok(())
    }
}

fn key(shard: u32) -> String {
    format!("{SHARDS}{shard}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored data depends on it: these must never change.
    #[test]
    fn namespaces_keep_their_shards() {
        let shards = |count: u32| {
            ["system", "default", "web", "", "größe"].map(|name| ShardLayout::new(count).of(name))
        };
        assert_eq!(shards(1), [0; 5]);
        assert_eq!(shards(16), GOLDEN);
    }

    const GOLDEN: [u32; 5] = [12, 13, 9, 4, 15];

    #[test]
    fn shares_are_fair_and_cover_all() {
        let layout = ShardLayout::new(16);
        assert_eq!(
            [1, 2, 3, 5, 16, 40].map(|servers| layout.fair_share(servers)),
            [16, 8, 6, 4, 1, 1]
        );
        assert_eq!(layout.fair_share(0), 16);
    }
}
