//! Variables that read each other in a circle are refused when they are written.
//!
//! Every write that can close a circle changes one key of the store and compares it with what was read before the check.
//! So of two writes that close a circle together, the second is checked again and refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use portolan_kinds::{KindObject, find_kind};
use portolan_store::keys::ROOT;
use portolan_store::{Compare, Revision, Store, StoreError, Transaction};
use portolan_trigger::{
    GraphFault, StaleRule, VariableDefinition, VariableGraph, VariableProducer, variables_read,
};

use super::variables::Variables;
use crate::cache::Cache;
use crate::error::{ApiError, RefusalReason};
use crate::objects::{Author, Objects};
use crate::record::StoredKind;
use crate::server::WriteMode;

/// How long a write waits until this server has seen the one before.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// How often a write is checked again because another one could have closed a circle with it.
const ATTEMPTS: usize = 20;

/// Whether a write of this object can close a circle of variables.
fn can_close_circle(object: &KindObject) -> bool {
    match object.kind.name {
        "Variable" | "ClusterVariable" => object.spec.get("dynamic").is_some(),
        "ClusterVariablesBinding" => true,
        "TaskBook" => object.spec.get("vars").is_some(),
        _ => false,
    }
}

/// Writes an object by which no circle of variables is closed, also not together with another write.
pub(crate) async fn write_without_circle(
    objects: &Objects,
    cache: &Cache,
    how: WriteMode,
    object: KindObject,
    mut author: Author,
) -> Result<StoredKind, ApiError> {
    if !can_close_circle(&object) {
        return write(objects, how, object, &author).await;
    }
    let store = &objects.store;
    for _ in 0..ATTEMPTS {
        let guard = CircleGuard::read(store, cache).await?;
        check_circles(cache, &object)?;
        author.with = Some(guard.part());
        let written = write(objects, how, object.clone(), &author).await;
        if written.is_ok() || !guard.is_passed(store).await? {
            return written;
        }
    }
    Err(ApiError::unavailable("variables change all the time"))
}

async fn write(
    objects: &Objects,
    how: WriteMode,
    object: KindObject,
    author: &Author,
) -> Result<StoredKind, ApiError> {
    match how {
        WriteMode::Create => objects.create(object, author).await,
        WriteMode::Update => objects.update(object, author).await,
        WriteMode::Apply => objects.apply(object, author).await,
    }
}

/// Orders writes that can close a circle of variables.
struct CircleGuard {
    seen: Revision,
}

impl CircleGuard {
    /// Reads which write was the last, and waits until the cache has it.
    async fn read(store: &Store, cache: &Cache) -> Result<Self, StoreError> {
        let seen = Self::last(store).await?;
        cache.wait_for(seen, CACHE_WAIT).await;
        Ok(Self { seen })
    }

    async fn last(store: &Store) -> Result<Revision, StoreError> {
        let record = store.get(key()).await?;
        Ok(record.map_or(0, |record| record.mod_revision))
    }

    /// What is committed with the write.
    fn part(&self) -> Transaction {
        Transaction::new()
            .when(Compare::unchanged(key(), self.seen))
            .put(key(), "")
    }

    /// Whether another such write came since.
    async fn is_passed(&self, store: &Store) -> Result<bool, StoreError> {
        Ok(Self::last(store).await? != self.seen)
    }
}

fn key() -> String {
    format!("{ROOT}live/variables")
}

/// Refuses an object by which variables read each other in a circle, together with those that exist.
pub(crate) fn check_circles(cache: &Cache, object: &KindObject) -> Result<(), ApiError> {
    if !can_close_circle(object) {
        return Ok(());
    }
    let namespaces: Vec<String> = match object.namespace() {
        Some(namespace) => vec![namespace.to_owned()],
        None => find_kind("Namespace").map_or_else(Vec::new, |kind| {
            let all = cache.objects(kind, None);
            all.iter().map(|one| one.name().to_owned()).collect()
        }),
    };
    for namespace in namespaces {
        let now = Timestamp::UNIX_EPOCH;
        Variables::with(cache, &namespace, now, Some(object)).check_circles()?;
    }
    Ok(())
}

impl Variables {
    /// Whichever of several expressions of a name a node has: what any of them reads counts.
    fn check_circles(&self) -> Result<(), ApiError> {
        let mut reads: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
        for source in &self.sources {
            for (key, value) in &source.source.values {
                let of_key = reads.entry(key).or_default();
                if let (true, Some(text)) = (source.is_computed, value.as_str()) {
                    of_key.extend(variables_read(text).unwrap_or_default());
                }
                if let Some(produced) = &source.produced {
                    of_key.extend(produced.reads.iter().cloned());
                }
            }
        }
        let known: BTreeSet<String> = reads.keys().map(|key| (*key).clone()).collect();
        let definitions = reads.into_iter().map(|(key, reads)| {
            // What does not exist yet may come with the next object; runs refuse it.
            let reads = reads.intersection(&known).cloned().collect();
            let definition = VariableDefinition {
                producer: VariableProducer::Step { reads },
                refresh: None,
                ttl: None,
                when_stale: StaleRule::Fail,
                is_sensitive: false,
            };
            (key.clone(), definition)
        });
        match VariableGraph::new(definitions) {
            Err(fault @ GraphFault::Cycle(_)) => Err(ApiError::new(
                http::StatusCode::UNPROCESSABLE_ENTITY,
                RefusalReason::Invalid,
                fault.to_string(),
            )),
            _ => Ok(()),
        }
    }
}
