//! An answer whose body is read piece by piece, under a limit.

use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use url::Url;

use crate::HttpError;

/// An answer; holding it counts against the client's limit of answers under way.
#[derive(Debug)]
pub struct Response {
    url: String,
    inner: reqwest::Response,
    length: Option<u64>,
    received: u64,
    started: Instant,
    pace: Pace,
    _permit: OwnedSemaphorePermit,
}

/// How slowly an answer may come. A silent server is caught by the idle timeout, one that drips by this.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The most time for the whole request.
    pub(crate) whole: Duration,
    /// The fewest bytes a second on average.
    pub(crate) slowest_rate: u64,
    /// How long it may be slower than that.
    pub(crate) slow_start: Duration,
}

impl Pace {
    /// When an answer that has brought so many bytes is given up.
    fn deadline(&self, started: Instant, received: u64) -> Instant {
        let earned = Duration::from_secs(received / self.slowest_rate.max(1));
        started + self.slow_start.saturating_add(earned).min(self.whole)
    }
}

impl Response {
    pub(crate) fn new(
        url: String,
        inner: reqwest::Response,
        permit: OwnedSemaphorePermit,
        started: Instant,
        pace: Pace,
    ) -> Self {
        Self {
            url,
            // Asked now: later it is only what is still to come.
            length: inner.content_length(),
            inner,
            received: 0,
            started,
            pace,
            _permit: permit,
        }
    }

    /// The HTTP status code.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// The address that answered in the end, after redirects.
    pub fn final_url(&self) -> &Url {
        self.inner.url()
    }

    /// How many bytes the body has, when the server says.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The first header of a name, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// All headers of a name that are text.
    pub fn headers<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let all = self.inner.headers().get_all(name).iter();
        all.filter_map(|value| value.to_str().ok())
    }

    /// Itself when the server said success, else an error with the status.
    pub fn success(self) -> Result<Self, HttpError> {
        if self.inner.status().is_success() {
            return Ok(self);
        }
        Err(HttpError::Status {
            status: self.status(),
            url: self.url,
        })
    }

    /// The next piece of the body, `None` at its end; fails as soon as more than `limit` bytes came in all.
    pub async fn chunk(
        &mut self,
        limit: u64,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, HttpError> {
        if self.length.is_some_and(|length| length > limit) {
            return Err(self.too_large(limit));
        }
        let deadline = self.pace.deadline(self.started, self.received);
        let chunk = tokio::time::timeout_at(deadline.into(), self.inner.chunk()).await;
        let chunk = chunk.map_err(|_| HttpError::TooSlow {
            url: self.url.clone(),
            received: self.received,
            elapsed: self.started.elapsed(),
        })?;
        let chunk = chunk.map_err(|source| HttpError::Truncated {
            url: self.url.clone(),
            received: self.received,
            source: source.without_url(),
        })?;
        self.received += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
        if self.received > limit {
            return Err(self.too_large(limit));
        }
        Ok(chunk)
    }

    /// The whole body.
    pub async fn bytes(mut self, limit: u64) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(limit).await? {
            body.extend_from_slice(chunk.as_ref());
        }
        Ok(body)
    }

    fn too_large(&self, limit: u64) -> HttpError {
        HttpError::TooLarge {
            url: self.url.clone(),
            limit,
        }
    }
}
