//! Looks after all shares, on the server that owns the shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{
    ShareCheck, ShareContent, ShareHolders, ShareKey, ShareOffer, SharePut, ShareRecipients,
    ShareRewrap, ShareStored, ShareTaken, ShareWant,
};
use portolan_kinds::{KindObject, find_kind};
use portolan_store::Ownership;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::versions::{gone, has_expired};
use super::{request, store};
use crate::agents::AgentHub;
use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::events::Events;
use crate::node_access::NodeIdentity;
use crate::objects::{Author, Objects, key_of, new_uuid};
use crate::peer::node_key;

/// The name that shares are written under.
const AUTHOR: &str = "system:shares";

/// How often ciphertexts are looked for that no Share names.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// How long a holder may take to encrypt a share again before another one is asked.
const REWRAP_TIME: Duration = Duration::from_secs(5);

/// How long an answer waits until the cache knows what was written.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// How often versions are looked for that are too old.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The longest public key.
const MAX_KEY: usize = 200;

/// The longest time after which a version is gone.
const MAX_TTL: Duration = Duration::from_hours(24 * 365 * 10);

/// The longest signature of a key, and the longest certificate.
const MAX_PROOF: usize = 8 << 10;

/// Something that an agent did.
#[derive(Debug)]
pub(crate) enum ShareInput {
    /// It has this key.
    Key(Arc<NodeIdentity>, ShareKey),
    /// It wants to know whom a share goes to.
    Offered(Arc<NodeIdentity>, ShareOffer),
    /// It has encrypted a share.
    Put(Arc<NodeIdentity>, SharePut),
    /// It wants a share.
    Wanted(Arc<NodeIdentity>, ShareWant),
    /// It has a share.
    Taken(Arc<NodeIdentity>, ShareTaken),
    /// It wants to know who does not have a share.
    Checked(Arc<NodeIdentity>, ShareCheck),
}

/// A holder that was asked to encrypt a share again. Only its answer counts, and only for these nodes.
pub(crate) struct AskedHolder {
    holder: String,
    recipients: BTreeSet<String>,
    at: Instant,
}

/// Looks after all shares.
pub(crate) struct ShareKeeper {
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    pub(crate) cache: Cache,
    pub(crate) agents: Arc<AgentHub>,
    pub(crate) inputs: mpsc::Receiver<ShareInput>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
    /// The holder that was asked to encrypt a Share again, by the uuid of the Share.
    pub(crate) rewraps: BTreeMap<String, AskedHolder>,
}

impl ShareKeeper {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut sweeps = interval(SWEEP_EVERY);
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(input).await,
                    None => return,
                },
                _ = sweeps.tick() => self.sweep().await,
                _ = looks.tick() => self.end_old_versions().await,
            };
            if let Err(error) = done {
                // The agent asks again.
                tracing::warn!(%error, "a request about a share could not be answered");
            }
        }
    }

    /// Who writes, while this server owns the shard.
    pub(super) fn author(&self) -> Result<Author, ApiError> {
        let ownership = self.owned.borrow().clone();
        let ownership =
            ownership.ok_or_else(|| ApiError::unavailable("another server looks after shares"))?;
        Ok(Author {
            name: AUTHOR.to_owned(),
            fence: Some(ownership.fence()),
            ..Author::default()
        })
    }

    async fn take(&mut self, input: ShareInput) -> Result<(), ApiError> {
        let author = self.author()?;
        match input {
            ShareInput::Key(node, key) => self.keep_key(&author, &node, &key).await,
            ShareInput::Offered(node, offer) => {
                let mut answer =
                    self.offered(&node, &offer)
                        .unwrap_or_else(|refused| ShareRecipients {
                            refused,
                            ..ShareRecipients::default()
                        });
                answer.ask = offer.ask;
                self.agents
                    .send(&node.uid, Message::ShareRecipients(answer));
                Ok(())
            }
            ShareInput::Put(node, put) if put.run.is_empty() => {
                self.rewrapped(&author, &node, &put).await
            }
            ShareInput::Put(node, put) => {
                let answer = match self.checked_put(&node, &put) {
                    Ok((namespace, consumers)) => {
                        let (uuid, version) = self
                            .publish(&author, &node, &namespace, consumers, &put)
                            .await?;
                        ShareStored {
                            ask: put.ask,
                            refused: String::new(),
                            version: version.into(),
                            uuid,
                        }
                    }
                    Err(refused) => ShareStored {
                        ask: put.ask,
                        refused,
                        ..ShareStored::default()
                    },
                };
                self.agents.send(&node.uid, Message::ShareStored(answer));
                Ok(())
            }
            ShareInput::Wanted(node, want) => {
                let answer = match request::namespace_of(&self.cache, &want.run, &node) {
                    Ok(namespace) => self.wanted(&author, &node, &namespace, &want).await?,
                    Err(refused) => ShareContent {
                        refused,
                        ..ShareContent::default()
                    },
                };
                let answer = ShareContent {
                    ask: want.ask,
                    ..answer
                };
                self.agents.send(&node.uid, Message::ShareContent(answer));
                Ok(())
            }
            ShareInput::Taken(node, taken) => self.taken(&author, &node, &taken).await,
            ShareInput::Checked(node, check) => {
                let answer = self.missing(&node, &check);
                let answer = answer.unwrap_or_else(|refused| ShareHolders {
                    refused,
                    ..ShareHolders::default()
                });
                let ask = check.ask;
                let answer = ShareHolders { ask, ..answer };
                self.agents.send(&node.uid, Message::ShareHolders(answer));
                Ok(())
            }
        }
    }

    /// Keeps the public key of a node, for publishers.
    async fn keep_key(
        &self,
        author: &Author,
        node: &NodeIdentity,
        key: &ShareKey,
    ) -> Result<(), ApiError> {
        let proof = key.signature.len().max(key.certificate.len());
        if key.recipient.len() > MAX_KEY || proof > MAX_PROOF {
            return Ok(());
        }
        let place = node_key(&node.name)?;
        let changed = self.objects.change_status(&place, author, |stored| {
            let mut status = stored.status.clone();
            if stored.metadata.uuid.as_deref() == Some(node.uid.as_str()) {
                if !status.is_object() {
                    status = json!({});
                }
                status["shareKey"] = key.recipient.as_str().into();
                let certificate = STANDARD.encode(&key.certificate);
                let is_known = stored.status["shareKey"] == status["shareKey"]
                    && stored.status["shareKeyCertificate"].as_str() == Some(&certificate);
                // An agent of an earlier version does not sign it. Each signature is another one, so one that says nothing
                // new is not written: agents send it with every stream.
                if !key.signature.is_empty() && !is_known {
                    status["shareKeySignature"] = STANDARD.encode(&key.signature).into();
                    status["shareKeyCertificate"] = certificate.into();
                }
            }
            Ok(status)
        });
        changed.await?;
        Ok(())
    }

    fn offered(&self, node: &NodeIdentity, offer: &ShareOffer) -> Result<ShareRecipients, String> {
        let namespace = request::namespace_of(&self.cache, &offer.run, node)?;
        let share = request::find(&self.cache, &namespace, &offer.share);
        let consumers = request::consumers(&offer.to, share.as_deref())?;
        let recipients = request::recipients(&self.cache, &namespace, &consumers, Some(node));
        Ok(ShareRecipients {
            recipients,
            // What is too old is published again.
            uuid: share
                .filter(|share| !has_expired(share, self.objects.time.now()))
                .map_or_else(String::new, |share| share.metadata.uuid().to_owned()),
            ..ShareRecipients::default()
        })
    }

    /// The namespace and the consumers of what a node publishes.
    fn checked_put(&self, node: &NodeIdentity, put: &SharePut) -> Result<(String, Value), String> {
        if put.content.len() > store::MAX_BYTES {
            return Err("the share is too large".to_owned());
        }
        let namespace = request::namespace_of(&self.cache, &put.run, node)?;
        let share = request::find(&self.cache, &namespace, &put.share);
        let consumers = request::consumers(&put.to, share.as_deref())?;
        Ok((namespace, consumers))
    }

    /// Stores a new version. One that is sent again is the same version.
    async fn publish(
        &self,
        author: &Author,
        node: &NodeIdentity,
        namespace: &str,
        consumers: Value,
        put: &SharePut,
    ) -> Result<(String, u32), ApiError> {
        let kind = find_kind("Share").ok_or_else(|| ApiError::internal("no kind Share"))?;
        let spec = json!({"consumers": consumers});
        let wanted = KindObject::new(kind, &put.share, Some(namespace), spec);
        let share = self.objects.apply(wanted, author).await?;
        let uuid = share.object.metadata.uuid().to_owned();
        let version = share.object.status["version"].as_u64().unwrap_or(0);
        let version = u32::try_from(version).unwrap_or(0);
        if share.object.status["publication"].as_str() == Some(put.ask.as_str()) {
            return Ok((uuid, version));
        }
        let version = version + 1;
        let place = format!("{version}.{}", new_uuid());
        self.write(author, &uuid, &place, &put.content).await?;
        let holders = put.recipients.iter();
        let holders: Vec<Value> = holders
            .map(|one| json!({"node": one.name, "uuid": one.node, "taken": 0}))
            .collect();
        let now = self.objects.time.now();
        let mut status = json!({
            "version": version, "publisher": node.name, "published": rfc3339(now),
            "bytes": put.content.len(), "publication": put.ask, "content": place, "holders": holders,
        });
        if put.ttl_seconds > 0 {
            let ttl = Duration::from_secs(put.ttl_seconds).min(MAX_TTL);
            status["expires"] = rfc3339(now + ttl).into();
        }
        if put.one_shot {
            status["oneShot"] = true.into();
        }
        let key = key_of(&share.object);
        let changed = self
            .objects
            .change_status(&key, author, |_| Ok(status.clone()))
            .await?;
        self.seen(changed.map(|one| one.status_revision)).await;
        Ok((uuid, version))
    }

    async fn write(
        &self,
        author: &Author,
        uuid: &str,
        place: &str,
        content: &[u8],
    ) -> Result<(), ApiError> {
        let fence = author.fence.as_ref();
        let fence = fence.ok_or_else(|| ApiError::internal("no fence"))?;
        store::write(&self.objects.store, uuid, place, content, fence).await
    }

    /// Waits until the cache knows a write, because the next question is answered from it.
    pub(super) async fn seen(&self, revision: Option<u64>) {
        if let Some(revision) = revision {
            self.cache.wait_for(revision, CACHE_WAIT).await;
        }
    }

    async fn wanted(
        &mut self,
        author: &Author,
        node: &NodeIdentity,
        namespace: &str,
        want: &ShareWant,
    ) -> Result<ShareContent, ApiError> {
        let pending = ShareContent {
            is_pending: true,
            ..ShareContent::default()
        };
        let Some(share) = request::find(&self.cache, namespace, &want.share) else {
            return Ok(pending);
        };
        let version = share.status["version"].as_u64().unwrap_or(0);
        if version == 0 {
            return Ok(pending);
        }
        let recipients =
            request::recipients(&self.cache, namespace, &share.spec["consumers"], None);
        let is_holder = holders(&share).any(|holder| holder == node.uid);
        let is_publisher = share.status["publisher"].as_str() == Some(node.name.as_str());
        let is_consumer = recipients.iter().any(|one| one.node == node.uid);
        let may_have_it = is_consumer || (is_holder && is_publisher);
        if !may_have_it {
            return Ok(ShareContent {
                refused: format!(
                    "node {} is none that share {} is for",
                    node.name, want.share
                ),
                ..ShareContent::default()
            });
        }
        if let Some(gone) = gone(&share, self.objects.time.now()) {
            return Ok(gone.answer(&share, node));
        }
        if !is_holder {
            self.ask_holder(author, node, &share).await?;
            return Ok(pending);
        }
        let uuid = share.metadata.uuid();
        let place = share.status["content"].as_str().unwrap_or_default();
        let content = store::read(&self.objects.store, uuid, place).await?;
        Ok(ShareContent {
            uuid: uuid.to_owned(),
            version,
            content: content.into(),
            ..ShareContent::default()
        })
    }

    /// Asks a connected holder to encrypt a share for a node that came later, or notes that the node waits for one.
    async fn ask_holder(
        &mut self,
        author: &Author,
        node: &NodeIdentity,
        share: &KindObject,
    ) -> Result<(), ApiError> {
        let uuid = share.metadata.uuid().to_owned();
        let asked = self.rewraps.get(&uuid);
        if asked.is_some_and(|asked| asked.at.elapsed() < REWRAP_TIME) {
            return Ok(());
        }
        let connected = self.agents.connected();
        let mut living: Vec<&str> = holders(share)
            .filter(|holder| connected.contains(*holder))
            .collect();
        if living.is_empty() {
            return self.wait_for_holder(author, node, share).await;
        }
        // Not always the same one: it may be unable to.
        let number = usize::try_from(self.objects.time.now().as_secs()).unwrap_or(0);
        let holder = living.swap_remove(number % living.len());
        let namespace = share.namespace().unwrap_or_default();
        let place = share.status["content"].as_str().unwrap_or_default();
        let content = store::read(&self.objects.store, &uuid, place).await?;
        let publisher = share.status["publisher"].as_str().unwrap_or_default();
        let mut recipients =
            request::recipients(&self.cache, namespace, &share.spec["consumers"], None);
        // Whoever published it stays a holder, whether it is a consumer or not.
        let all = request::recipients(&self.cache, namespace, &json!({"all": true}), None);
        let own = all.into_iter().find(|one| one.name == publisher);
        recipients.extend(own.filter(|own| !recipients.iter().any(|one| one.node == own.node)));
        let asked = AskedHolder {
            holder: holder.to_owned(),
            recipients: recipients.iter().map(|one| one.node.clone()).collect(),
            at: Instant::now(),
        };
        let rewrap = Message::ShareRewrap(ShareRewrap {
            ask: place.to_owned(),
            uuid: uuid.clone(),
            version: share.status["version"].as_u64().unwrap_or(0),
            content: content.into(),
            recipients,
        });
        self.agents.send(holder, rewrap);
        self.rewraps.insert(uuid, asked);
        Ok(())
    }

    async fn wait_for_holder(
        &self,
        author: &Author,
        node: &NodeIdentity,
        share: &KindObject,
    ) -> Result<(), ApiError> {
        let mut is_new = false;
        let key = key_of(share);
        let changed = self.objects.change_status(&key, author, |stored| {
            let mut status = stored.status.clone();
            let mut pending = texts(&status["pending"]);
            is_new = !pending.contains(&node.name);
            if is_new {
                pending.push(node.name.clone());
                status["pending"] = json!(pending);
            }
            Ok(status)
        });
        changed.await?;
        if !is_new {
            return Ok(());
        }
        let spec = json!({
            "type": "share.pending", "severity": "warning",
            "summary": format!("node {} waits for share {}: no node that has it is connected", node.name, share.name()),
            "source": {"kind": "Share", "name": share.name(), "node": node.name},
            "time": rfc3339(self.objects.time.now()),
        });
        let kind = find_kind("Event").ok_or_else(|| ApiError::internal("no kind Event"))?;
        let name = format!("share-pending-{}", new_uuid());
        let event = KindObject::new(kind, &name, share.namespace(), spec);
        self.events.create(event, author).await?;
        Ok(())
    }

    /// Takes what a holder has encrypted again, if it was asked to and it is of the version that counts.
    async fn rewrapped(
        &mut self,
        author: &Author,
        node: &NodeIdentity,
        put: &SharePut,
    ) -> Result<(), ApiError> {
        let shares =
            find_kind("Share").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let Some(share) = shares.iter().find(|one| one.metadata.uuid() == put.uuid) else {
            return Ok(());
        };
        let is_current = share.status["content"].as_str() == Some(put.ask.as_str())
            && share.status["version"].as_u64() == Some(put.version);
        let is_asked = self.rewraps.get(&put.uuid).is_some_and(|asked| {
            let mut recipients = put.recipients.iter();
            asked.holder == node.uid && recipients.all(|one| asked.recipients.contains(&one.node))
        });
        if !is_current || !is_asked || put.content.len() > store::MAX_BYTES {
            return Ok(());
        }
        let place = format!("{}.{}", put.version, new_uuid());
        self.write(author, &put.uuid, &place, &put.content).await?;
        let key = key_of(share);
        let changed = self.objects.change_status(&key, author, |stored| {
            let mut status = stored.status.clone();
            // Somebody has published another version meanwhile.
            if status["content"].as_str() != Some(put.ask.as_str()) {
                return Ok(status);
            }
            let taken = |uuid: &str| {
                let old = status["holders"].as_array().into_iter().flatten();
                let mut old = old.filter(|one| one["uuid"].as_str() == Some(uuid));
                old.next().map_or(json!(0), |one| one["taken"].clone())
            };
            let holders = put.recipients.iter();
            let holders: Vec<Value> = holders
                .map(|one| json!({"node": one.name, "uuid": one.node, "taken": taken(&one.node)}))
                .collect();
            let mut pending = texts(&status["pending"]);
            pending.retain(|name| !put.recipients.iter().any(|one| one.name == *name));
            status["holders"] = holders.into();
            status["pending"] = json!(pending);
            status["content"] = place.as_str().into();
            status["bytes"] = put.content.len().into();
            Ok(status)
        });
        let changed = changed.await?;
        self.seen(changed.map(|one| one.status_revision)).await;
        self.rewraps.remove(&put.uuid);
        Ok(())
    }

    async fn taken(
        &self,
        author: &Author,
        node: &NodeIdentity,
        taken: &ShareTaken,
    ) -> Result<(), ApiError> {
        let shares =
            find_kind("Share").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let Some(share) = shares.iter().find(|one| one.metadata.uuid() == taken.uuid) else {
            return Ok(());
        };
        let key = key_of(share);
        let changed = self.objects.change_status(&key, author, |stored| {
            let mut status = stored.status.clone();
            // Nobody can have a version that does not exist.
            let version = status["version"].as_u64().unwrap_or(0).min(taken.version);
            let holders = status["holders"].as_array_mut().into_iter().flatten();
            for holder in holders {
                if holder["uuid"].as_str() == Some(node.uid.as_str()) {
                    holder["taken"] = version.into();
                }
            }
            Ok(status)
        });
        let changed = changed.await?;
        self.seen(changed.map(|one| one.status_revision)).await;
        self.end_if_taken(author, &taken.uuid).await
    }

    /// Removes ciphertexts that no Share names.
    async fn sweep(&mut self) -> Result<(), ApiError> {
        let Ok(author) = self.author() else {
            return Ok(());
        };
        self.rewraps
            .retain(|_, asked| asked.at.elapsed() < REWRAP_TIME);
        let shares =
            find_kind("Share").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let places: BTreeMap<String, String> = shares
            .iter()
            .filter_map(|share| {
                let place = share.status["content"].as_str()?;
                let is_gone = share.status["gone"].is_string();
                (!is_gone).then_some(())?;
                Some((share.metadata.uuid().to_owned(), place.to_owned()))
            })
            .collect();
        let fence = author.fence.as_ref();
        let fence = fence.ok_or_else(|| ApiError::internal("no fence"))?;
        store::sweep(&self.objects.store, |uuid| places.get(uuid).cloned(), fence).await
    }
}

/// The uuids of the nodes that can read a share.
pub(super) fn holders(share: &KindObject) -> impl Iterator<Item = &str> {
    let holders = share.status.get("holders").and_then(Value::as_array);
    let holders = holders.into_iter().flatten();
    holders.filter_map(|holder| holder["uuid"].as_str())
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}
