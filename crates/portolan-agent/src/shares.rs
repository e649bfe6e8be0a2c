//! What this node gives to others and takes from them. Only nodes that may have a share can read it: the server stores and
//! passes on what it cannot open.
//!
//! ```text
//! publish ──ShareOffer──▶ server ──recipients──▶ pins checked, encrypted (age, X25519) ──SharePut──▶ server
//! fetch   ──ShareWant───▶ server ──ciphertext──▶ decrypted ──ShareTaken──▶ server
//!                         server ──ShareRewrap─▶ a holder encrypts it for nodes that came later
//! ```
//!
//! The key of each consumer is remembered at first use. One that changes is not encrypted to, and is told: a server that
//! was taken over could name a key of its own.

mod key;
mod pins;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use portolan_digest::hex;
use portolan_modules::{ShareError, ShareWait, Shares};
use portolan_trigger::FleetSeverity;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::beacons::{BeaconNotice, NodeBeacons};
use crate::data::{AgentData, DataError};
use crate::disk;
use crate::wire::agent_message::Message;
use crate::wire::server_message::Message as Theirs;
use crate::wire::{self, ShareRecipient};
use key::{ShareIdentity, encrypt};
use pins::Pins;

/// Messages that wait for a stream; more are dropped, and asked again.
const WAITING: usize = 64;

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
    published_file: Utf8PathBuf,
    published: Mutex<BTreeMap<String, String>>,
    outgoing: mpsc::Sender<Message>,
    waiting_messages: tokio::sync::Mutex<mpsc::Receiver<Message>>,
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
            published: Mutex::new(serde_json::from_slice(&published).unwrap_or_default()),
            published_file,
            outgoing,
            waiting_messages: tokio::sync::Mutex::new(waiting),
            asked: Mutex::new(BTreeMap::new()),
            beacons,
        })
    }

    /// The first message of a stream.
    pub(crate) fn key_message(&self) -> Message {
        Message::ShareKey(wire::ShareKey {
            recipient: self.identity.recipient(),
        })
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

    /// The recipients whose keys are the ones that were used first. The others are told.
    fn known_recipients(&self, recipients: &[ShareRecipient]) -> Vec<ShareRecipient> {
        let (known, changed) = lock(&self.pins).check(recipients);
        for recipient in changed {
            let notice = BeaconNotice {
                namespace: String::new(),
                beacon: String::new(),
                subject: "share-key".to_owned(),
                severity: FleetSeverity::Error,
                time: Timestamp::now(),
                summary: format!(
                    "the server names another key for shares of node {}: nothing is encrypted to it",
                    recipient.name
                ),
                data: json!({"consumer": recipient.name, "key": recipient.key})
                    .as_object()
                    .cloned()
                    .unwrap_or_default(),
                run: None,
                during: None,
                id: None,
            };
            self.beacons.tell(&notice);
        }
        known
    }

    fn remember_published(&self, key: &str, digest: &str) {
        let mut published = lock(&self.published);
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
        stop: &CancellationToken,
    ) -> Result<Theirs, ShareError> {
        let (sender, answers) = channel();
        lock(&self.asked).insert(ask.to_owned(), sender);
        let answer = self.ask_again(message, &answers, stop);
        lock(&self.asked).remove(ask);
        answer
    }

    fn ask_again(
        &self,
        message: &Message,
        answers: &Receiver<Theirs>,
        stop: &CancellationToken,
    ) -> Result<Theirs, ShareError> {
        loop {
            self.send(message.clone());
            let sent = Instant::now();
            while sent.elapsed() < ANSWER_TIME {
                match answers.recv_timeout(LOOK) {
                    Ok(answer) => return Ok(answer),
                    Err(RecvTimeoutError::Timeout) if stop.is_cancelled() => {
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
        let ask = hex(&rand::random::<[u8; 16]>());
        let offer = Message::ShareOffer(wire::ShareOffer {
            ask: ask.clone(),
            run: self.run.clone(),
            share: share.to_owned(),
            to: to.to_string().into(),
        });
        match self.shares.ask(&ask, &offer, stop)? {
            Theirs::ShareRecipients(answer) if answer.refused.is_empty() => Ok(answer),
            Theirs::ShareRecipients(answer) => Err(ShareError::Refused(answer.refused)),
            _ => Err(not_understood()),
        }
    }
}

impl Shares for RunShares {
    fn is_published(
        &self,
        share: &str,
        to: &Value,
        content: &[u8],
        stop: &CancellationToken,
    ) -> Result<bool, ShareError> {
        let offer = self.offer(share, to, stop)?;
        // The digest is keyed, so that nobody who reads the file can try contents against it.
        let digest = self.shares.identity.keyed_digest(content);
        let published = lock(&self.shares.published);
        Ok(published.get(&format!("{} {to}", offer.uuid)) == Some(&digest))
    }

    fn publish(
        &self,
        share: &str,
        to: &Value,
        content: &[u8],
        stop: &CancellationToken,
    ) -> Result<u64, ShareError> {
        let shares = &self.shares;
        let offer = self.offer(share, to, stop)?;
        let recipients = shares.known_recipients(&offer.recipients);
        let sealed = encrypt(content, &recipients);
        let sealed = sealed.map_err(|error| ShareError::Refused(error.to_string()))?;
        let ask = hex(&rand::random::<[u8; 16]>());
        let put = Message::SharePut(wire::SharePut {
            ask: ask.clone(),
            run: self.run.clone(),
            share: share.to_owned(),
            to: to.to_string().into(),
            recipients,
            content: sealed.into(),
            ..wire::SharePut::default()
        });
        match shares.ask(&ask, &put, stop)? {
            Theirs::ShareStored(stored) if stored.refused.is_empty() => {
                let digest = shares.identity.keyed_digest(content);
                shares.remember_published(&format!("{} {to}", stored.uuid), &digest);
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
    ) -> Result<Option<(u64, Vec<u8>)>, ShareError> {
        loop {
            let ask = hex(&rand::random::<[u8; 16]>());
            let want = Message::ShareWant(wire::ShareWant {
                ask: ask.clone(),
                run: self.run.clone(),
                share: share.to_owned(),
            });
            let Theirs::ShareContent(answer) = self.shares.ask(&ask, &want, stop)? else {
                return Err(not_understood());
            };
            if !answer.refused.is_empty() {
                return Err(ShareError::Refused(answer.refused));
            }
            if !answer.is_pending {
                let content = self.shares.identity.decrypt(&answer.content);
                let content = content.map_err(|error| ShareError::Refused(error.to_string()))?;
                self.shares.send(Message::ShareTaken(wire::ShareTaken {
                    uuid: answer.uuid,
                    version: answer.version,
                }));
                return Ok(Some((answer.version, content)));
            }
            if wait == ShareWait::No {
                return Ok(None);
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
}

fn not_understood() -> ShareError {
    ShareError::Refused("the server's answer cannot be read".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
