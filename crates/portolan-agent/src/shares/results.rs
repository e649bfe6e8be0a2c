//! Results of steps that other nodes of a run read, and that are too large for a report or sensitive. The server keeps them
//! apart, and cannot read those of sensitive steps.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_digest::Digest;
use portolan_modules::ShareError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::encrypt;
use super::{LOOK, NodeShares, new_ask, not_understood};
use crate::wire::agent_message::Message;
use crate::wire::server_message::Message as Theirs;
use crate::wire::{ResultOffer, ResultPut, ResultWant};

/// The most bytes of a result that other nodes read. Encrypted to a thousand nodes it still fits into a blob.
const MAX_LARGE_BYTES: usize = 768 << 10;

/// How long servers that have a result may be away.
const AWAY_TIME: Duration = Duration::from_mins(2);

/// How often a result is asked for that cannot be had now.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Where the result of a step is that is too large for a report, or encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LargeResult {
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) sealed: bool,
}

impl NodeShares {
    /// Stores a result for the other nodes of a run; a sensitive one is encrypted to them.
    pub(crate) fn put_result(
        &self,
        run: &str,
        text: &str,
        is_sensitive: bool,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<LargeResult, ShareError> {
        if text.len() > MAX_LARGE_BYTES {
            let message = format!(
                "its result has {} bytes, and other nodes can be given at most {MAX_LARGE_BYTES}",
                text.len()
            );
            return Err(ShareError::Refused(message));
        }
        let content = if is_sensitive {
            self.seal_result(run, text, is_stopped)?
        } else {
            text.as_bytes().to_vec()
        };
        let ask = new_ask();
        let put = Message::ResultPut(ResultPut {
            ask: ask.clone(),
            run: run.to_owned(),
            content: content.into(),
        });
        match self.ask(&ask, &put, is_stopped)? {
            Theirs::ResultStored(stored) if stored.refused.is_empty() => Ok(LargeResult {
                digest: stored.digest,
                sealed: is_sensitive,
            }),
            Theirs::ResultStored(stored) => Err(ShareError::Refused(stored.refused)),
            _ => Err(not_understood()),
        }
    }

    fn seal_result(
        &self,
        run: &str,
        text: &str,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, ShareError> {
        let ask = new_ask();
        let offer = Message::ResultOffer(ResultOffer {
            ask: ask.clone(),
            run: run.to_owned(),
        });
        let recipients = match self.ask(&ask, &offer, is_stopped)? {
            Theirs::ShareRecipients(answer) if answer.refused.is_empty() => answer.recipients,
            Theirs::ShareRecipients(answer) => return Err(ShareError::Refused(answer.refused)),
            _ => return Err(not_understood()),
        };
        let sealed = encrypt(text.as_bytes(), &self.known_recipients(&recipients));
        sealed.map_err(|error| ShareError::Refused(error.to_string()))
    }

    /// The result of a step on another node.
    pub(crate) fn result(
        &self,
        run: &str,
        stored: &LargeResult,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Value, ShareError> {
        let began = Instant::now();
        let content = loop {
            let ask = new_ask();
            let want = Message::ResultWant(ResultWant {
                ask: ask.clone(),
                run: run.to_owned(),
                digest: stored.digest.clone(),
            });
            let Theirs::ResultContent(answer) = self.ask(&ask, &want, is_stopped)? else {
                return Err(not_understood());
            };
            if !answer.refused.is_empty() {
                return Err(ShareError::Refused(answer.refused));
            }
            if !answer.is_pending {
                break answer.content;
            }
            if began.elapsed() > AWAY_TIME {
                let message = "no server that has the result can be reached";
                return Err(ShareError::Refused(message.to_owned()));
            }
            let asked = Instant::now();
            while asked.elapsed() < ASK_EVERY {
                if is_stopped() {
                    return Err(ShareError::Stopped);
                }
                std::thread::park_timeout(LOOK);
            }
        };
        if Digest::of(&content).hex() != stored.digest {
            return Err(not_understood());
        }
        let content = if stored.sealed {
            let opened = self.identity.decrypt(&content);
            opened.map_err(|_| {
                let message = "the result is sensitive, and was not encrypted to this node";
                ShareError::Refused(message.to_owned())
            })?
        } else {
            content.to_vec()
        };
        serde_json::from_slice(&content).map_err(|_| not_understood())
    }

    /// Encrypts a text for this node alone, as text.
    pub(crate) fn seal_text(&self, text: &str) -> Option<String> {
        let sealed = self.identity.encrypt_for_self(text.as_bytes()).ok()?;
        Some(STANDARD.encode(sealed))
    }

    /// Decrypts what [`Self::seal_text`] gave.
    pub(crate) fn unseal_text(&self, sealed: &str) -> Option<String> {
        let sealed = STANDARD.decode(sealed).ok()?;
        String::from_utf8(self.identity.decrypt(&sealed).ok()?).ok()
    }
}
