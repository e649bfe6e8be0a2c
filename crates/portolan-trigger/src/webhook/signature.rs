//! Whether a request comes from somebody who has a key, and was not sent before.
//!
//! A sender signs `TIMESTAMP.BODY` with HMAC-SHA256 and sends `X-Portolan-Timestamp: TIMESTAMP`, in seconds, and
//! `X-Portolan-Signature: sha256=HEX`. A sender that cannot sign, as Alertmanager, sends the key itself as
//! `Authorization: Bearer KEY`.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use hmac::{Hmac, Mac};
use jiff::Timestamp;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::span::later;

/// The fewest bytes of a key.
const MIN_KEY: usize = 16;

/// Requests that are remembered until they are too old to be sent again.
const MAX_REMEMBERED: usize = 10_000;

/// A key that a sender has.
#[derive(Clone)]
pub struct WebhookKey {
    bytes: Zeroizing<Vec<u8>>,
    /// Whether the key itself may be sent instead of a signature.
    is_bearer: bool,
}

/// Checks requests of one webhook.
#[derive(Debug)]
pub struct WebhookVerifier {
    keys: Vec<WebhookKey>,
    window: Duration,
    max_bytes: usize,
}

/// A request, as far as it is needed to check it.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebhookRequest<'a> {
    /// The header `X-Portolan-Timestamp`.
    pub timestamp: Option<&'a str>,
    /// The header `X-Portolan-Signature`.
    pub signature: Option<&'a str>,
    /// The header `Authorization`.
    pub authorization: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// A request that comes from somebody who has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedDelivery {
    /// The name of the request; the same signature gives the same. Absent if it was not signed.
    pub id: Option<String>,
    /// Until when it could be sent again.
    pub until: Timestamp,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRefusal {
    /// The body is too large.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// There is neither a signature nor a key.
    #[error("the request has no `X-Portolan-Signature` with `X-Portolan-Timestamp`")]
    Unsigned,
    /// No key fits.
    #[error("the signature does not fit any key of the webhook")]
    WrongSignature,
    /// It was signed too long ago, or in the future.
    #[error("the request was signed at another time; the clocks may differ by {0} s")]
    Outdated(u64),
    /// It was received before.
    #[error("the same request was received before")]
    Replayed,
    /// More requests come than can be remembered.
    #[error("too many requests; try again later")]
    Busy,
    /// The body cannot be read.
    #[error("the body is not what the webhook expects: {0}")]
    Malformed(String),
}

/// Requests that were received lately.
#[derive(Debug, Default)]
pub struct ReplayMemory {
    known: HashMap<String, Timestamp>,
    by_end: BTreeSet<(Timestamp, String)>,
}

// === impl WebhookKey ===

impl WebhookKey {
    /// A key to sign with; `None` if it is too short to be one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= MIN_KEY).then(|| Self {
            bytes: Zeroizing::new(bytes.to_vec()),
            is_bearer: false,
        })
    }

    /// A key that may be sent instead of a signature.
    pub fn bearer(bytes: &[u8]) -> Option<Self> {
        let key = Self::new(bytes)?;
        Some(Self {
            is_bearer: true,
            ..key
        })
    }

    fn mac(&self) -> Option<Hmac<Sha256>> {
        Hmac::new_from_slice(&self.bytes).ok()
    }

    /// Whether this is the key, in a time that does not depend on where they differ.
    fn is(&self, sent: &[u8]) -> bool {
        let (Some(mut own), Some(mut other)) = (self.mac(), self.mac()) else {
            return false;
        };
        own.update(&self.bytes);
        other.update(sent);
        let other = other.finalize().into_bytes();
        own.verify_slice(&other).is_ok()
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WebhookKey([redacted])")
    }
}

// === impl WebhookVerifier ===

impl WebhookVerifier {
    /// Checks requests with these keys; more than one while keys are changed. Without a key, every request is refused.
    pub fn new(keys: Vec<WebhookKey>) -> Self {
        Self {
            keys,
            window: Duration::from_mins(5),
            max_bytes: 256 << 10,
        }
    }

    /// How far the time of a signature may be from the time of the server.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// How large a body may be.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Checks a request. Whether it was sent before is for [`ReplayMemory`].
    ///
    /// ```
    /// use portolan_trigger::{WebhookKey, WebhookRefusal, WebhookRequest, WebhookVerifier};
    ///
    /// let key = WebhookKey::new(b"0123456789abcdef").ok_or("short")?;
    /// let verifier = WebhookVerifier::new(vec![key]);
    /// let request = WebhookRequest {
    ///     timestamp: Some("1795000000"),
    ///     signature: Some("sha256=9b2d1d5b2f0e3d0a0f0d0c0b0a090807060504030201000102030405060708ff"),
    ///     body: b"{}",
    ///     ..WebhookRequest::default()
    /// };
    /// let now = "2026-11-18T11:06:40Z".parse()?;
    /// assert_eq!(verifier.verify(&request, now), Err(WebhookRefusal::WrongSignature));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is too large, not signed, signed with another key or at another time.
    pub fn verify(
        &self,
        request: &WebhookRequest<'_>,
        now: Timestamp,
    ) -> Result<VerifiedDelivery, WebhookRefusal> {
        if request.body.len() > self.max_bytes {
            return Err(WebhookRefusal::TooLarge(self.max_bytes));
        }
        if let (Some(timestamp), Some(signature)) = (request.timestamp, request.signature) {
            return self.verify_signed(timestamp, signature, request.body, now);
        }
        let bearer = request
            .authorization
            .and_then(|header| header.strip_prefix("Bearer "));
        let Some(sent) = bearer else {
            return Err(WebhookRefusal::Unsigned);
        };
        let keys = self.keys.iter().filter(|key| key.is_bearer);
        if count_fitting(keys, |key| key.is(sent.trim().as_bytes())) == 0 {
            return Err(WebhookRefusal::WrongSignature);
        }
        Ok(VerifiedDelivery {
            id: None,
            until: now,
        })
    }

    fn verify_signed(
        &self,
        timestamp: &str,
        signature: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<VerifiedDelivery, WebhookRefusal> {
        let sent = signature
            .strip_prefix("sha256=")
            .and_then(from_hex)
            .ok_or(WebhookRefusal::WrongSignature)?;
        let fitting = count_fitting(self.keys.iter(), |key| {
            let Some(mut mac) = key.mac() else {
                return false;
            };
            mac.update(timestamp.as_bytes());
            mac.update(b".");
            mac.update(body);
            mac.verify_slice(&sent).is_ok()
        });
        if fitting == 0 {
            return Err(WebhookRefusal::WrongSignature);
        }
        // The time counts only now that it is known who wrote it.
        let seconds = timestamp.parse::<i64>().ok();
        let signed = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let outdated = WebhookRefusal::Outdated(self.window.as_secs());
        let signed = signed.ok_or_else(|| outdated.clone())?;
        if now.duration_since(signed).unsigned_abs() > self.window {
            return Err(outdated);
        }
        Ok(VerifiedDelivery {
            id: Some(portolan_digest::hex(&sent)),
            until: later(signed, self.window),
        })
    }
}

/// How many keys fit; all are tried, so that the time does not tell which.
fn count_fitting<'k>(
    keys: impl Iterator<Item = &'k WebhookKey>,
    fits: impl Fn(&WebhookKey) -> bool,
) -> usize {
    keys.filter(|key| fits(key)).count()
}

/// The 32 bytes of 64 hexadecimal digits.
fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0_u8; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        let is_digits = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = is_digits.then(|| u8::from_str_radix(pair, 16).ok())??;
    }
    Some(bytes)
}

// === impl ReplayMemory ===

impl ReplayMemory {
    /// Remembers a request that was verified.
    ///
    /// # Errors
    /// When it was received before, or when more requests come than can be remembered: it is refused rather than that
    /// another one is forgotten.
    pub fn admit(
        &mut self,
        delivery: &VerifiedDelivery,
        now: Timestamp,
    ) -> Result<(), WebhookRefusal> {
        let Some(id) = &delivery.id else {
            return Ok(());
        };
        while let Some((end, old)) = self.by_end.pop_first() {
            if end >= now {
                self.by_end.insert((end, old));
                break;
            }
            self.known.remove(&old);
        }
        if self.known.contains_key(id) {
            return Err(WebhookRefusal::Replayed);
        }
        if self.known.len() >= MAX_REMEMBERED {
            return Err(WebhookRefusal::Busy);
        }
        self.known.insert(id.clone(), delivery.until);
        self.by_end.insert((delivery.until, id.clone()));
        Ok(())
    }

    /// Forgets a request that came to nothing: its sender may send it again.
    pub fn forget(&mut self, delivery: &VerifiedDelivery) {
        if let Some(id) = &delivery.id
            && let Some(until) = self.known.remove(id)
        {
            self.by_end.remove(&(until, id.clone()));
        }
    }
}

impl WebhookRefusal {
    /// The HTTP status to answer with.
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLarge(_) => 413,
            Self::Unsigned | Self::WrongSignature | Self::Outdated(_) => 401,
            Self::Replayed => 409,
            Self::Busy => 429,
            Self::Malformed(_) => 400,
        }
    }
}
