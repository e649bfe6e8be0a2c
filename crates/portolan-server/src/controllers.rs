//! What the server does by itself: deletes what belongs to deleted owners and namespaces, and events by age.
//!
//! Several servers may run; the one that owns the shard acts, and every write compares that it still does.

use std::sync::Arc;
use std::time::Duration;

use portolan_kinds::wire::ConfigSpec;
use portolan_kinds::{KindObject, find_kind, read_span};
use portolan_store::{Compare, LeaseId, Ownership, StoreError};
use serde_json::json;
use tokio::sync::watch;

use crate::blobs;
use crate::cache::Cache;
use crate::error::{ApiError, RefusalReason};
use crate::events::Events;
use crate::membership::LeaseView;
use crate::objects::{Author, CONTENT_FINALIZER, Objects, Preconditions, key_of};
use crate::rate::{RateLimits, Rates};
use crate::upkeep::Upkeep;

/// The name of the Config that servers read.
const CONFIG: &str = "server";
/// How long events are kept when no Config says otherwise.
const EVENT_RETENTION: Duration = Duration::from_hours(24);
/// How often a server that does not own the shard tries to take it.
const CLAIM_EVERY: Duration = Duration::from_millis(500);
/// How often everything is looked at when nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(1_500);
/// Objects that are deleted in one round.
const MAX_ROUND: usize = 1_000;
/// The name that controllers write under.
const NAME: &str = "system:controller";

/// The controllers of a server.
pub(crate) struct Controllers {
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    pub(crate) cache: Cache,
    pub(crate) rates: Arc<Rates>,
    pub(crate) default_rates: RateLimits,
    /// The name of this server.
    pub(crate) server: String,
    /// The lease of this server, by which it holds the shard.
    pub(crate) lease: LeaseView,
    pub(crate) upkeep: Upkeep,
    /// Told whenever this server gets or loses the shard.
    pub(crate) owned: watch::Sender<Option<Ownership>>,
}

impl Controllers {
    /// Acts whenever this server owns the shard, until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut owned: Option<(Ownership, LeaseId)> = None;
        loop {
            self.read_config();
            if let Err(error) = self.hold(&mut owned).await {
                tracing::warn!(%error, "the shard cannot be taken");
            }
            let ownership = owned.as_ref().map(|(ownership, _)| ownership.clone());
            self.owned.send_if_modified(|told| {
                let is_new = *told != ownership;
                told.clone_from(&ownership);
                is_new
            });
            let Some(ownership) = ownership else {
                tokio::time::sleep(CLAIM_EVERY).await;
                continue;
            };
            self.round(&ownership).await;
            if let Err(error) = self.upkeep.round(&self.objects.store).await {
                tracing::warn!(%error, "old revisions cannot be removed");
            }
            let mut revisions = self.cache.subscribe();
            revisions.borrow_and_update();
            // Changes are acted on at once; time passes in any case.
            let _ = tokio::time::timeout(LOOK_EVERY, revisions.changed()).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Takes the shard, and gives it up when the lease under which it was taken cannot be counted on any more.
    async fn hold(&self, owned: &mut Option<(Ownership, LeaseId)>) -> Result<(), StoreError> {
        let lease = self.lease.current();
        if owned
            .as_ref()
            .is_some_and(|(_, under)| Some(*under) == lease)
        {
            return Ok(());
        }
        *owned = None;
        let Some(lease) = lease else {
            return Ok(());
        };
        let (store, incarnation) = (&self.objects.store, &self.objects.incarnation);
        let claimed = Ownership::claim(store, incarnation, 0, &self.server, lease).await?;
        *owned = claimed.map(|ownership| (ownership, lease));
        Ok(())
    }

    async fn round(&self, ownership: &Ownership) {
        let author = Author {
            name: NAME.to_owned(),
            fence: Some(ownership.fence()),
            ..Author::default()
        };
        for (what, done) in [
            (
                "namespaces",
                self.finish_namespaces(&author, &ownership.fence()).await,
            ),
            ("owners", self.collect_garbage(&author).await),
            ("events", self.expire_events(ownership).await),
            ("keys", self.rewrap_secrets(ownership).await),
        ] {
            if let Err(error) = done {
                tracing::warn!(%error, what, "a controller could not finish");
            }
        }
    }

    /// Deletes the content of namespaces that are being deleted, and then the namespaces.
    async fn finish_namespaces(&self, author: &Author, fence: &Compare) -> Result<(), ApiError> {
        let Some(kind) = find_kind("Namespace") else {
            return Ok(());
        };
        let ending = self.cache.objects(kind, None);
        for namespace in ending
            .iter()
            .filter(|one| one.metadata.deletion_timestamp.is_some())
        {
            let (content, count) = self.cache.in_namespace(namespace.name(), MAX_ROUND);
            for object in &content {
                self.delete(object, author).await?;
            }
            let left = u32::try_from(count).unwrap_or(u32::MAX);
            if left > 0 {
                let status = json!({"phase": "terminating", "remaining": left});
                self.objects
                    .set_status(&key_of(namespace), status, author)
                    .await?;
            } else {
                self.events
                    .remove_namespace(namespace.name(), fence)
                    .await?;
                blobs::remove_namespace(&self.objects.store, namespace.name(), fence).await?;
                self.release(namespace, author).await?;
            }
        }
        Ok(())
    }

    /// Takes the finalizer of a namespace away, which deletes it.
    async fn release(&self, namespace: &KindObject, author: &Author) -> Result<(), ApiError> {
        let Some(found) = self.objects.get(&key_of(namespace)).await? else {
            return Ok(());
        };
        let mut object = found.object.clone();
        object
            .metadata
            .finalizers
            .retain(|one| one != CONTENT_FINALIZER);
        match self.objects.update(object, author).await {
            Err(error) if error.reason == RefusalReason::Conflict => Ok(()),
            updated => updated.map(|_| ()),
        }
    }

    /// Deletes objects none of whose owners exists any more.
    async fn collect_garbage(&self, author: &Author) -> Result<(), ApiError> {
        for object in &self.cache.orphans(MAX_ROUND) {
            self.delete(object, author).await?;
        }
        Ok(())
    }

    /// Removes events by age.
    async fn expire_events(&self, ownership: &Ownership) -> Result<(), ApiError> {
        let fence = ownership.fence();
        let early = self.events.expire(self.retention(), &fence).await?;
        if early > 0 {
            tracing::warn!(
                early,
                "there are too many events: the oldest were removed before their time"
            );
        }
        Ok(())
    }

    /// Encrypts the keys of secrets by the newest key-encryption key.
    async fn rewrap_secrets(&self, ownership: &Ownership) -> Result<(), ApiError> {
        let Some(sealer) = &self.objects.sealer else {
            return Ok(());
        };
        let sealed = self.cache.sealed().into_iter();
        for (key, _) in sealed.filter(|(_, with)| with != sealer.current()) {
            if let Some(found) = self.objects.get(&key).await? {
                self.objects.rewrap(&key, found, ownership.fence()).await?;
            }
        }
        Ok(())
    }

    /// Deletes an object that is still the same one.
    async fn delete(&self, object: &KindObject, author: &Author) -> Result<(), ApiError> {
        let same = Preconditions {
            uuid: Some(object.metadata.uuid().to_owned()),
            version: None,
        };
        // What comes from Git goes with its owner too.
        let author = Author {
            source: object.metadata.source.clone(),
            ..author.clone()
        };
        match self
            .objects
            .delete(&key_of(object), object.name(), &same, &author)
            .await
        {
            Err(error)
                if matches!(
                    error.reason,
                    RefusalReason::NotFound | RefusalReason::Conflict
                ) =>
            {
                Ok(())
            }
            deleted => deleted.map(|_| ()),
        }
    }

    fn config(&self) -> Option<ConfigSpec> {
        let kind = find_kind("Config")?;
        let key = crate::keys::ObjectKey::new(kind, None, CONFIG);
        self.cache.object(&key)?.typed_spec().ok()
    }

    fn retention(&self) -> Duration {
        let events = self.config().and_then(|config| config.events);
        let retention = events.and_then(|events| read_span(events.retention()).ok());
        retention.unwrap_or(EVENT_RETENTION)
    }

    /// Takes over the settings that can change while the server runs.
    fn read_config(&self) {
        let config = self.config().unwrap_or_default();
        let limits = config.limits.unwrap_or_default();
        self.rates.set(RateLimits {
            per_second: limits
                .requests_per_second
                .unwrap_or(self.default_rates.per_second),
            burst: limits.request_burst.unwrap_or(self.default_rates.burst),
        });
    }
}
