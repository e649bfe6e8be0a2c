//! Results, kept by the digest of their inputs.
//!
//! The first caller makes a result; callers that ask for the same result meanwhile wait for it. A digest may have
//! several results if some inputs are known only after the work (the files that were read, the answers that were
//! given); then each is checked to find the one that is still valid.
//!
//! ```text
//! of(digest) ──▶ ResultSlot: nobody else has it ──find──▶ a result that holds
//!                                         └─keep──▶ a new result
//! ```
//!
//! The number of kept results is limited: the least recently used digests are removed first, and within one digest
//! the oldest results.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use portolan_digest::Digest;
use tokio::sync::OwnedMutexGuard;

/// How much is kept of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// How many digests have results; at least one.
    pub digests: usize,
    /// How many results one digest has; at least one.
    pub variants: usize,
}

/// Results of one kind, shared by everything that may ask for them.
pub struct Results<T> {
    limits: ResultLimits,
    kept: Mutex<Kept<T>>,
    tally: Arc<Tally>,
}

/// The results of one digest, as long as nobody else may look at them or add one.
pub struct ResultSlot<T> {
    variants: OwnedMutexGuard<Vec<Arc<T>>>,
    limit: usize,
    tally: Arc<Tally>,
}

/// How often a result was made, and how often it was found made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultCounts {
    /// Results that were made and kept.
    pub made: u64,
    /// Results that were found.
    pub found: u64,
}

#[derive(Default)]
struct Tally {
    made: AtomicU64,
    found: AtomicU64,
}

struct Kept<T> {
    entries: HashMap<Digest, Entry<T>>,
    /// Counts every question, so that the oldest can be told.
    clock: u64,
    /// The clock when unused entries were last forgotten.
    swept: u64,
}

struct Entry<T> {
    variants: Arc<tokio::sync::Mutex<Vec<Arc<T>>>>,
    last_used: u64,
}

/// One part in this many is forgotten at once when there are too many, so that the search for the oldest pays.
const FORGOTTEN_PART: usize = 8;

// === impl Results ===

impl<T> Results<T> {
    /// No results so far.
    pub fn new(limits: ResultLimits) -> Self {
        Self {
            limits,
            kept: Mutex::new(Kept {
                entries: HashMap::new(),
                clock: 0,
                swept: 0,
            }),
            tally: Arc::default(),
        }
    }

    /// The results of a digest. Waits while another one has them: it may be making the one that is wanted.
    ///
    /// Dropping the slot without keeping a result lets the next one try.
    pub async fn of(&self, inputs: Digest) -> ResultSlot<T> {
        let variants = self.entry(inputs).lock_owned().await;
        ResultSlot {
            variants,
            limit: self.limits.variants.max(1),
            tally: Arc::clone(&self.tally),
        }
    }

    /// The result of a digest that has one result: found, or made now. A failure is not kept.
    pub async fn get_or_make<E>(
        &self,
        inputs: Digest,
        make: impl Future<Output = Result<Arc<T>, E>>,
    ) -> Result<Arc<T>, E> {
        let slot = self.of(inputs).await;
        match slot.find(|_| true) {
            Some(found) => Ok(found),
            None => Ok(slot.keep(make.await?)),
        }
    }

    /// Forgets every digest that nobody asked for since the last call; for those who do the same again and again.
    pub fn forget_unused(&self) {
        let mut kept = self.kept.lock();
        let now = kept.clock;
        let since = std::mem::replace(&mut kept.swept, now);
        let unused = |_: &Digest, entry: &mut Entry<T>| entry.is_idle() && entry.last_used <= since;
        let forgotten: Vec<_> = kept.entries.extract_if(unused).collect();
        drop(kept);
        drop(forgotten);
    }

    /// How many digests have results or are being worked on.
    pub fn len(&self) -> usize {
        self.kept.lock().entries.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was made and what was found so far.
    pub fn counts(&self) -> ResultCounts {
        ResultCounts {
            made: self.tally.made.load(Ordering::Relaxed),
            found: self.tally.found.load(Ordering::Relaxed),
        }
    }

    fn entry(&self, inputs: Digest) -> Arc<tokio::sync::Mutex<Vec<Arc<T>>>> {
        let mut kept = self.kept.lock();
        kept.clock += 1;
        let now = kept.clock;
        let entry = kept.entries.entry(inputs).or_insert_with(Entry::new);
        entry.last_used = now;
        let variants = Arc::clone(&entry.variants);
        let forgotten = kept.shrink(self.limits.digests.max(1));
        drop(kept);
        // Dropping results runs foreign code, which must not find the lock held.
        drop(forgotten);
        variants
    }
}

impl<T> Kept<T> {
    /// Takes out the entries that nobody asked for longest, if there are too many. What is in use stays.
    fn shrink(&mut self, limit: usize) -> Vec<Entry<T>> {
        if self.entries.len() <= limit {
            return Vec::new();
        }
        let idle = self.entries.iter().filter(|(_, entry)| entry.is_idle());
        let mut idle: Vec<_> = idle
            .map(|(digest, entry)| (entry.last_used, *digest))
            .collect();
        idle.sort_unstable();
        let excess = self.entries.len() - limit + limit / FORGOTTEN_PART;
        let oldest = idle.into_iter().take(excess);
        oldest
            .filter_map(|(_, digest)| self.entries.remove(&digest))
            .collect()
    }
}

impl<T> Entry<T> {
    fn new() -> Self {
        Self {
            variants: Arc::default(),
            last_used: 0,
        }
    }

    /// Whether nobody holds a slot of it or waits for one.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.variants) == 1
    }
}

// === impl ResultSlot ===

impl<T> ResultSlot<T> {
    /// The newest result that holds.
    pub fn find(&self, holds: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let mut newest_first = self.variants.iter().rev();
        let found = newest_first.find(|result| holds(result))?;
        self.tally.found.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(found))
    }

    /// Keeps a new result and lets others have the slot.
    pub fn keep(mut self, result: Arc<T>) -> Arc<T> {
        if self.variants.len() >= self.limit {
            self.variants.remove(0);
        }
        self.variants.push(Arc::clone(&result));
        self.tally.made.fetch_add(1, Ordering::Relaxed);
        result
    }
}
