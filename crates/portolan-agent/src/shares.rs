//! What this node gives to others and takes from them. Only nodes that may have a share can read it: the server stores and
//! passes on what it cannot open.
//!
//! ```text
//! publish ──ShareOffer──▶ server ──recipients──▶ pins checked, encrypted (age, X25519) ──SharePut──▶ server
//! fetch   ──ShareWant───▶ server ──ciphertext──▶ decrypted ──ShareTaken──▶ server
//!                         server ──ShareRewrap─▶ a holder encrypts it for nodes that came later
//! ```
//!
//! The key of each consumer must be signed with the key of its certificate, and is remembered at first use. One that is not
//! signed or that changes is not encrypted to, and is told: a server could name a key of its own.

mod key;
mod pins;
mod results;
mod vouching;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use portolan_digest::{Digest, hex};
use portolan_modules::{
    FetchedShare, LackingNode, LackingNodes, Publication, ShareError, ShareVersion, ShareWait,
    Shares,
};
use portolan_trigger::FleetSeverity;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::beacons::{BeaconNotice, NodeBeacons};
use crate::data::{AgentData, DataError, NodeIdentity};
use crate::disk;
use crate::wire::agent_message::Message;
use crate::wire::server_message::Message as Theirs;
use crate::wire::{self, ShareRecipient};
use key::{ShareIdentity, encrypt};
use pins::Pins;
use vouching::Vouching;

pub(crate) use results::LargeResult;

/// Messages that wait for a stream; more are dropped, and asked again.
const WAITING: usize = 64;

/// Of how many shares it is remembered until the agent ends that the node has them.
const MAX_TAKEN: usize = 200;

/// Of how many keys it is remembered that people were told of them: each is told once.
const MAX_TOLD: usize = 1_000;

/// How long an answer may take before it is asked again.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How often a share is asked for that is not there yet.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// How often is looked whether a step was stopped.
const LOOK: Duration = Duration::from_millis(100);

/// The shares of a node.
pub(crate) struct NodeShares {
    identity: ShareIdentity,
    pins: Mutex<Pins>,
    /// Who this node is, and whom it trusts; `None` before the first stream.
    vouching: Mutex<Option<Vouching>>,
    published_file: Utf8PathBuf,
    published: Mutex<BTreeMap<String, String>>,
    outgoing: mpsc::Sender<Message>,
    waiting_messages: tokio::sync::Mutex<mpsc::Receiver<Message>>,
    /// Keys that people were told of, by nodes.
    told_keys: Mutex<BTreeSet<(String, String)>>,
    /// The versions that this node has, by the uuids of Shares.
    taken: Mutex<BTreeMap<String, u64>>,
    /// Who waits for an answer.
    asked: Mutex<BTreeMap<String, Sender<Theirs>>>,
    beacons: Arc<NodeBeacons>,
}

/// The shares of a node as one run sees them.
pub(crate) struct RunShares {
    pub(crate) shares: Arc<NodeShares>,
    /// The uuid of the Run.
    pub(crate) run: String,
}

impl NodeShares {
    /// Reads the key of the node, or makes it.
    pub(crate) fn open(data: &AgentData, beacons: Arc<NodeBeacons>) -> Result<Self, DataError> {
        let directory = data.directory().join("shares");
        let failed = |source| DataError::File {
            path: directory.clone(),
            source,
        };
        disk::private_directory(&directory).map_err(failed)?;
        let identity = ShareIdentity::open(&directory.join("key")).map_err(failed)?;
        let pins = Pins::open(&directory.join("pins.json")).map_err(failed)?;
        let published_file = directory.join("published.json");
        let published = std::fs::read(&published_file).unwrap_or_default();
        let (outgoing, waiting) = mpsc::channel(WAITING);
        Ok(Self {
            identity,
            pins: Mutex::new(pins),
            vouching: Mutex::new(None),
            published: Mutex::new(serde_json::from_slice(&published).unwrap_or_default()),
            published_file,
            outgoing,
            waiting_messages: tokio::sync::Mutex::new(waiting),
            told_keys: Mutex::default(),
            taken: Mutex::new(BTreeMap::new()),
            asked: Mutex::new(BTreeMap::new()),
            beacons,
        })
    }

    /// The node has this certificate from now on, and trusts these authorities.
    pub(crate) fn set_identity(&self, identity: &NodeIdentity) {
        let mut vouching = lock(&self.vouching);
        // A new signature is a new write of the server.
        if vouching.as_ref().is_some_and(|known| known.is_of(identity)) {
            return;
        }
        match Vouching::of(identity, &self.identity.recipient()) {
            Ok(signed) => *vouching = Some(signed),
            Err(error) => tracing::warn!(%error, "the key for shares cannot be signed"),
        }
    }

    /// The first message of a stream.
    pub(crate) fn key_message(&self) -> Message {
        let vouching = lock(&self.vouching);
        let (signature, certificate) = vouching.as_ref().map(Vouching::own).unwrap_or_default();
        Message::ShareKey(wire::ShareKey {
            recipient: self.identity.recipient(),
            signature,
            certificate,
        })
    }

    /// What the server may not have heard over the stream before: the versions that this node has.
    pub(crate) fn taken_messages(&self) -> Vec<Message> {
        let taken = lock(&self.taken);
        let messages = taken
            .iter()
            .map(|(uuid, version)| taken_message(uuid, *version));
        messages.collect()
    }

    /// Waits for something to send.
    pub(crate) async fn next_message(&self) -> Message {
        match self.waiting_messages.lock().await.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    }

    /// Takes a message of the server.
    pub(crate) fn take(&self, message: Theirs) {
        let ask = match &message {
            Theirs::ShareRecipients(one) => &one.ask,
            Theirs::ShareStored(one) => &one.ask,
            Theirs::ShareContent(one) => &one.ask,
            Theirs::ShareHolders(one) => &one.ask,
            Theirs::ResultStored(one) => &one.ask,
            Theirs::ResultContent(one) => &one.ask,
            Theirs::ShareRewrap(rewrap) => return self.rewrap(rewrap),
            _ => return,
        };
        if let Some(waiting) = lock(&self.asked).get(ask) {
            // Nobody waits any more.
            let _ = waiting.send(message);
        }
    }

    /// Encrypts a share for nodes that came later.
    fn rewrap(&self, rewrap: &wire::ShareRewrap) {
        let Ok(content) = self.identity.decrypt(&rewrap.content) else {
            tracing::warn!("a share cannot be read, and not be encrypted for others");
            return;
        };
        let recipients = self.known_recipients(&rewrap.recipients);
        match encrypt(&content, &recipients) {
            Ok(content) => self.send(Message::SharePut(wire::SharePut {
                ask: rewrap.ask.clone(),
                uuid: rewrap.uuid.clone(),
                version: rewrap.version,
                recipients,
                content: content.into(),
                ..wire::SharePut::default()
            })),
            Err(error) => tracing::warn!(%error, "a share cannot be encrypted for others"),
        }
    }

    fn send(&self, message: Message) {
        // Whoever waits for an answer asks again.
        let _ = self.outgoing.try_send(message);
    }

    /// The recipients whose keys are the ones that were used first, and new ones that are signed. The others are told.
    fn known_recipients(&self, recipients: &[ShareRecipient]) -> Vec<ShareRecipient> {
        let vouch = |one: &ShareRecipient| match &*lock(&self.vouching) {
            Some(vouching) => vouching.check(one),
            None => Err("this node does not know its own certificate yet".to_owned()),
        };
        let checked = lock(&self.pins).check(recipients, vouch);
        for one in &checked.changed {
            let summary = format!(
                "the server names another key for shares of node {}: nothing is encrypted to it",
                one.name
            );
            self.tell_key("share-key", summary, one, "it is another one than before");
        }
        for (one, why) in &checked.refused {
            let summary = format!(
                "the server names a key for shares of node {} that is not its own: nothing is encrypted to it: {why}",
                one.name
            );
            self.tell_key("share-key-refused", summary, one, why);
        }
        checked.known
    }

    /// Tells people of a key that is not used.
    fn tell_key(&self, subject: &str, summary: String, recipient: &ShareRecipient, why: &str) {
        let mut told = lock(&self.told_keys);
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        if !told.insert((recipient.node.clone(), recipient.key.clone())) {
            return;
        }
        drop(told);
        let data = json!({"consumer": recipient.name, "key": recipient.key, "reason": why});
        self.beacons.tell(&BeaconNotice {
            namespace: String::new(),
            beacon: String::new(),
            subject: subject.to_owned(),
            severity: FleetSeverity::Error,
            time: Timestamp::now(),
            summary,
            data: data.as_object().cloned().unwrap_or_default(),
            run: None,
            during: None,
            id: None,
        });
    }

    /// The node has a version: whoever waits until all have it is told.
    fn taken(&self, uuid: &str, version: u64) {
        let mut taken = lock(&self.taken);
        if taken.len() >= MAX_TAKEN && !taken.contains_key(uuid) {
            taken.pop_first();
        }
        taken.insert(uuid.to_owned(), version);
        drop(taken);
        self.send(taken_message(uuid, version));
    }

    /// Only the last publication of a Share counts: what was published before it is another version.
    fn remember_published(&self, uuid: &str, key: &str, digest: &str) {
        let mut published = lock(&self.published);
        published.retain(|known, _| known.split(' ').next() != Some(uuid));
        published.insert(key.to_owned(), digest.to_owned());
        let text = serde_json::to_vec(&*published).unwrap_or_default();
        // Without it, the same content is published once more.
        if let Err(error) = disk::write_durable(&self.published_file, &text) {
            tracing::warn!(%error, "what was published cannot be remembered");
        }
    }

    /// Asks until there is an answer.
    fn ask(
        &self,
        ask: &str,
        message: &Message,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Theirs, ShareError> {
        let (sender, answers) = channel();
        lock(&self.asked).insert(ask.to_owned(), sender);
        let answer = self.ask_again(message, &answers, is_stopped);
        lock(&self.asked).remove(ask);
        answer
    }

    fn ask_again(
        &self,
        message: &Message,
        answers: &Receiver<Theirs>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Theirs, ShareError> {
        loop {
            self.send(message.clone());
            let sent = Instant::now();
            while sent.elapsed() < ANSWER_TIME {
                match answers.recv_timeout(LOOK) {
                    Ok(answer) => return Ok(answer),
                    Err(RecvTimeoutError::Timeout) if is_stopped() => {
                        return Err(ShareError::Stopped);
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

impl RunShares {
    /// Whom a share would be encrypted to; changes nothing.
    fn offer(
        &self,
        share: &str,
        to: &Value,
        stop: &CancellationToken,
    ) -> Result<wire::ShareRecipients, ShareError> {
        let ask = new_ask();
        let offer = Message::ShareOffer(wire::ShareOffer {
            ask: ask.clone(),
            run: self.run.clone(),
            share: share.to_owned(),
            to: to.to_string().into(),
        });
        match self.shares.ask(&ask, &offer, &|| stop.is_cancelled())? {
            Theirs::ShareRecipients(answer) if answer.refused.is_empty() => Ok(answer),
            Theirs::ShareRecipients(answer) => Err(ShareError::Refused(answer.refused)),
            _ => Err(not_understood()),
        }
    }
}

/// What tells publications of one content apart that differ in whom they are for or how long they stay.
fn publication_key(uuid: &str, publication: &Publication<'_>) -> String {
    let ttl = publication.ttl;
    let ttl = ttl.map_or_else(String::new, |ttl| format!(" ttl={}", ttl.as_secs()));
    let once = if publication.is_one_shot { " once" } else { "" };
    format!("{uuid} {}{ttl}{once}", publication.to)
}

impl Shares for RunShares {
    fn is_published(
        &self,
        publication: &Publication<'_>,
        stop: &CancellationToken,
    ) -> Result<bool, ShareError> {
        let offer = self.offer(publication.share, publication.to, stop)?;
        // The digest is keyed, so that nobody who reads the file can try contents against it.
        let digest = self.shares.identity.keyed_digest(publication.content);
        let published = lock(&self.shares.published);
        Ok(published.get(&publication_key(&offer.uuid, publication)) == Some(&digest.to_string()))
    }

    fn publish(
        &self,
        publication: &Publication<'_>,
        stop: &CancellationToken,
    ) -> Result<u64, ShareError> {
        let shares = &self.shares;
        let offer = self.offer(publication.share, publication.to, stop)?;
        let recipients = shares.known_recipients(&offer.recipients);
        let sealed = encrypt(publication.content, &recipients);
        let sealed = sealed.map_err(|error| ShareError::Refused(error.to_string()))?;
        let ask = new_ask();
        let put = Message::SharePut(wire::SharePut {
            ask: ask.clone(),
            run: self.run.clone(),
            share: publication.share.to_owned(),
            to: publication.to.to_string().into(),
            recipients,
            content: sealed.into(),
            ttl_seconds: publication.ttl.map_or(0, |ttl| ttl.as_secs().max(1)),
            one_shot: publication.is_one_shot,
            ..wire::SharePut::default()
        });
        match shares.ask(&ask, &put, &|| stop.is_cancelled())? {
            Theirs::ShareStored(stored) if stored.refused.is_empty() => {
                let digest = shares.identity.keyed_digest(publication.content);
                let key = publication_key(&stored.uuid, publication);
                shares.remember_published(&stored.uuid, &key, &digest.to_string());
                Ok(stored.version)
            }
            Theirs::ShareStored(stored) => Err(ShareError::Refused(stored.refused)),
            _ => Err(not_understood()),
        }
    }

    fn fetch(
        &self,
        share: &str,
        wait: ShareWait,
        stop: &CancellationToken,
    ) -> Result<FetchedShare, ShareError> {
        loop {
            let ask = new_ask();
            let want = Message::ShareWant(wire::ShareWant {
                ask: ask.clone(),
                run: self.run.clone(),
                share: share.to_owned(),
            });
            let answer = self.shares.ask(&ask, &want, &|| stop.is_cancelled())?;
            let Theirs::ShareContent(answer) = answer else {
                return Err(not_understood());
            };
            if !answer.refused.is_empty() {
                return Err(ShareError::Refused(answer.refused));
            }
            if answer.is_spent {
                return Ok(FetchedShare::Spent(answer.version));
            }
            if !answer.is_pending {
                let content = self.shares.identity.decrypt(&answer.content);
                let content = content.map_err(|error| ShareError::Refused(error.to_string()))?;
                return Ok(FetchedShare::Version(ShareVersion {
                    uuid: answer.uuid,
                    number: answer.version,
                    content,
                }));
            }
            if wait == ShareWait::No {
                return Ok(FetchedShare::Pending);
            }
            let asked = Instant::now();
            while asked.elapsed() < ASK_EVERY {
                if stop.is_cancelled() {
                    return Err(ShareError::Stopped);
                }
                std::thread::park_timeout(LOOK);
            }
        }
    }

    fn acknowledge(&self, version: &ShareVersion) {
        self.shares.taken(&version.uuid, version.number);
    }

    fn lacking(
        &self,
        share: &str,
        version: Option<u64>,
        stop: &CancellationToken,
    ) -> Result<LackingNodes, ShareError> {
        let ask = new_ask();
        let check = Message::ShareCheck(wire::ShareCheck {
            ask: ask.clone(),
            run: self.run.clone(),
            share: share.to_owned(),
            version: version.unwrap_or_default(),
        });
        let answer = self.shares.ask(&ask, &check, &|| stop.is_cancelled())?;
        let Theirs::ShareHolders(answer) = answer else {
            return Err(not_understood());
        };
        if !answer.refused.is_empty() {
            return Err(ShareError::Refused(answer.refused));
        }
        let named = answer.missing.into_iter().map(|one| LackingNode {
            node: one.node,
            reason: one.reason,
            is_down: one.is_down,
        });
        Ok(LackingNodes {
            version: answer.version,
            named: named.collect(),
            count: usize::try_from(answer.missing_count).unwrap_or(usize::MAX),
        })
    }

    fn keyed_digest(&self, content: &[u8]) -> Digest {
        self.shares.identity.keyed_digest(content)
    }
}

fn taken_message(uuid: &str, version: u64) -> Message {
    Message::ShareTaken(wire::ShareTaken {
        uuid: uuid.to_owned(),
        version,
    })
}

/// Tells one question from the others.
fn new_ask() -> String {
    hex(&rand::random::<[u8; 16]>())
}

fn not_understood() -> ShareError {
    ShareError::Refused("the server's answer cannot be read".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
