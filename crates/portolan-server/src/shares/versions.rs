//! Who has which version of a share, and versions that are gone: too old, or for one time and taken by all.

use std::sync::Arc;
use std::time::Duration;

use portolan_agent::wire::{ShareCheck, ShareContent, ShareHolders, ShareLack};
use portolan_kinds::{KindObject, find_kind};
use serde_json::json;

use super::keeper::ShareKeeper;
use super::request;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::node_access::NodeIdentity;
use crate::objects::{Author, key_of, new_uuid};

/// The most consumers without a version that are named.
const MAX_NAMED: usize = 100;

/// Why the content of a version is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// It is older than it may be.
    Expired,
    /// It was for one time, and every consumer has had it.
    Taken,
}

impl Gone {
    fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Taken => "taken",
        }
    }

    /// What a node is told that asks for it.
    pub(super) fn answer(self, share: &KindObject, node: &NodeIdentity) -> ShareContent {
        let version = share.status["version"].as_u64().unwrap_or(0);
        let name = share.name();
        let refused = match self {
            Self::Taken if taken_by(share, &node.uid) == version => {
                return ShareContent {
                    version,
                    is_spent: true,
                    ..ShareContent::default()
                };
            }
            Self::Taken => format!(
                "version {version} of share {name} was for one time, and all nodes that it was for have had it"
            ),
            Self::Expired => format!(
                "version {version} of share {name} is older than its `ttl` allows: publish it again"
            ),
        };
        ShareContent {
            refused,
            ..ShareContent::default()
        }
    }
}

/// Whether the newest version of a share is gone.
pub(super) fn gone(share: &KindObject, now: Duration) -> Option<Gone> {
    match share.status["gone"].as_str() {
        Some("taken") => Some(Gone::Taken),
        Some(_) => Some(Gone::Expired),
        None => is_too_old(share, now).then_some(Gone::Expired),
    }
}

/// Whether the newest version of a share is too old.
pub(super) fn has_expired(share: &KindObject, now: Duration) -> bool {
    gone(share, now) == Some(Gone::Expired)
}

fn is_too_old(share: &KindObject, now: Duration) -> bool {
    let expires = share.status["expires"].as_str();
    // Times in this form are in the order of their texts as long as years have four digits.
    expires.is_some_and(|expires| expires <= rfc3339(now).as_str())
}

/// The version that a node has; 0 if it has none.
fn taken_by(share: &KindObject, node: &str) -> u64 {
    let holders = share.status["holders"].as_array().into_iter().flatten();
    let mut own = holders.filter(|one| one["uuid"].as_str() == Some(node));
    own.next()
        .and_then(|one| one["taken"].as_u64())
        .unwrap_or(0)
}

impl ShareKeeper {
    /// Which consumers of a share do not have a version.
    pub(super) fn missing(
        &self,
        node: &NodeIdentity,
        check: &ShareCheck,
    ) -> Result<ShareHolders, String> {
        let namespace = request::namespace_of(&self.cache, &check.run, node)?;
        let share = request::find(&self.cache, &namespace, &check.share);
        let newest = share
            .as_ref()
            .and_then(|share| share.status["version"].as_u64())
            .unwrap_or(0);
        let version = if check.version == 0 {
            newest
        } else {
            check.version
        };
        let Some(share) = share.filter(|_| version > 0) else {
            return Ok(ShareHolders::default());
        };
        if gone(&share, self.objects.time.now()) == Some(Gone::Taken) && version <= newest {
            return Ok(ShareHolders {
                version,
                ..ShareHolders::default()
            });
        }
        let consumers = request::consumers_of(&self.cache, &namespace, &share.spec["consumers"]);
        let publisher = share.status["publisher"].as_str();
        let connected = self.agents.connected();
        let missing = consumers.iter().filter(|one| {
            let has_it = taken_by(&share, one.metadata.uuid()) >= version;
            !has_it && publisher != Some(one.name())
        });
        let missing: Vec<ShareLack> = missing
            .map(|one| {
                let state = one.status["state"].as_str().unwrap_or("enrolled");
                let is_down = matches!(state, "down" | "left");
                let reason = if is_down || !connected.contains(one.metadata.uuid()) {
                    format!("not connected, {state}")
                } else if one.status["shareKey"].as_str().is_none() {
                    "has no key yet".to_owned()
                } else {
                    match taken_by(&share, one.metadata.uuid()) {
                        0 => "has not fetched it".to_owned(),
                        old => format!("has version {old}"),
                    }
                };
                ShareLack {
                    node: one.name().to_owned(),
                    reason,
                    is_down,
                }
            })
            .collect();
        Ok(ShareHolders {
            version,
            missing_count: u32::try_from(missing.len()).unwrap_or(u32::MAX),
            missing: named_first(missing),
            ..ShareHolders::default()
        })
    }

    /// Ends a version that was for one time once all nodes that it is for have it, the publisher too if it is one of them: it
    /// may be about to fetch its own.
    pub(super) async fn end_if_taken(&self, author: &Author, uuid: &str) -> Result<(), ApiError> {
        let shares =
            find_kind("Share").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let share = shares.iter().find(|one| one.metadata.uuid() == uuid);
        let Some(share) = share.filter(|one| one.status["oneShot"] == json!(true)) else {
            return Ok(());
        };
        let version = share.status["version"].as_u64().unwrap_or(0);
        let namespace = share.namespace().unwrap_or_default();
        let consumers = request::consumers_of(&self.cache, namespace, &share.spec["consumers"]);
        let has_it = |one: &Arc<KindObject>| taken_by(share, one.metadata.uuid()) == version;
        if consumers.iter().all(has_it) {
            self.end_version(author, share, Gone::Taken).await?;
        }
        Ok(())
    }

    /// Ends versions that are too old.
    pub(super) async fn end_old_versions(&self) -> Result<(), ApiError> {
        let Ok(author) = self.author() else {
            return Ok(());
        };
        let shares =
            find_kind("Share").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let now = self.objects.time.now();
        for share in &shares {
            if share.status["gone"].is_null() && is_too_old(share, now) {
                self.end_version(&author, share, Gone::Expired).await?;
            }
        }
        Ok(())
    }

    /// Removes the content of the newest version, and says why it is gone.
    async fn end_version(
        &self,
        author: &Author,
        share: &KindObject,
        why: Gone,
    ) -> Result<(), ApiError> {
        let mut is_new = false;
        let place = share.status["content"].clone();
        let key = key_of(share);
        let changed = self.objects.change_status(&key, author, |stored| {
            let mut status = stored.status.clone();
            // Another version may have come meanwhile.
            is_new = status["content"] == place && status["gone"].is_null();
            if is_new {
                status["gone"] = why.word().into();
                status["pending"] = json!([]);
            }
            Ok(status)
        });
        let changed = changed.await?;
        if !is_new {
            return Ok(());
        }
        self.seen(changed.map(|one| one.status_revision)).await;
        let version = share.status["version"].as_u64().unwrap_or(0);
        let (severity, reason) = match why {
            Gone::Expired => ("warning", "it is older than its `ttl` allows"),
            Gone::Taken => ("info", "it was for one time, and every consumer has it"),
        };
        let spec = json!({
            "type": format!("share.{}", why.word()), "severity": severity,
            "summary": format!("version {version} of share {} is gone: {reason}", share.name()),
            "source": {"kind": "Share", "name": share.name()},
            "time": rfc3339(self.objects.time.now()),
        });
        let kind = find_kind("Event").ok_or_else(|| ApiError::internal("no kind Event"))?;
        let name = format!("share-{}-{}", why.word(), new_uuid());
        let event = KindObject::new(kind, &name, share.namespace(), spec);
        self.events.create(event, author).await?;
        let fence = author.fence.as_ref();
        let fence = fence.ok_or_else(|| ApiError::internal("no fence"))?;
        let place = place.as_str().unwrap_or_default();
        super::store::remove(&self.objects.store, share.metadata.uuid(), place, fence).await
    }
}

/// Some of those that lack a version: first those that can still get it.
fn named_first(mut missing: Vec<ShareLack>) -> Vec<ShareLack> {
    missing.sort_by(|one, other| (one.is_down, &one.node).cmp(&(other.is_down, &other.node)));
    missing.truncate(MAX_NAMED);
    missing
}
