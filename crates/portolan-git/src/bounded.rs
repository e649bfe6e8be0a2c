//! HTTP to a git server, with a limit on the bytes of its answers.
//!
//! gix keeps every ref that a server names in memory, and a server may name them without end. So each byte is charged
//! when gix reads it: first to the limit for a list of refs, then, for the pack, to the limit of the fetch.

use std::any::Any;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gix::protocol::transport::client::blocking_io::http::reqwest::Remote;
use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};

/// How many bytes a server may send; shared by all answers of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    limit: AtomicU64,
    /// What has come since the limit was set.
    brought: AtomicU64,
}

/// gix's client, whose answers are charged.
pub(crate) struct BoundedHttp {
    client: Remote,
    allowance: Allowance,
}

/// An answer that is charged as it is read.
pub(crate) struct Charged<R> {
    answer: R,
    allowance: Allowance,
}

// === impl Allowance ===

impl Allowance {
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Counters {
            limit: AtomicU64::new(limit),
            brought: AtomicU64::new(0),
        }))
    }

    /// Sets another limit, for what comes from now on.
    pub(crate) fn renew(&self, limit: u64) {
        self.0.limit.store(limit, Ordering::Relaxed);
        self.0.brought.store(0, Ordering::Relaxed);
    }

    /// The limit, if the server went past it.
    pub(crate) fn exceeded(&self) -> Option<u64> {
        let limit = self.0.limit.load(Ordering::Relaxed);
        (self.0.brought.load(Ordering::Relaxed) > limit).then_some(limit)
    }

    fn charge(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.0.brought.fetch_add(bytes, Ordering::Relaxed);
    }

    fn check(&self) -> io::Result<()> {
        match self.exceeded() {
            Some(limit) => Err(io::Error::other(format!("more than {limit} bytes"))),
            None => Ok(()),
        }
    }
}

// === impl BoundedHttp ===

impl BoundedHttp {
    pub(crate) fn new(allowance: &Allowance) -> Self {
        Self {
            client: Remote::default(),
            allowance: allowance.clone(),
        }
    }

    fn charged<R>(&self, answer: R) -> Charged<R> {
        Charged {
            answer,
            allowance: self.allowance.clone(),
        }
    }
}

impl Http for BoundedHttp {
    type Headers = <Remote as Http>::Headers;
    type ResponseBody = Charged<<Remote as Http>::ResponseBody>;
    type PostBody = <Remote as Http>::PostBody;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Self::Headers, Self::ResponseBody>> {
        let GetResponse { headers, body } = self.client.get(url, base_url, headers)?;
        let body = self.charged(body);
        Ok(GetResponse { headers, body })
    }

    fn post(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        kind: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Self::Headers, Self::ResponseBody, Self::PostBody>> {
        let answer = self.client.post(url, base_url, headers, kind)?;
        Ok(PostResponse {
            post_body: answer.post_body,
            headers: answer.headers,
            body: self.charged(answer.body),
        })
    }

    fn configure(&mut self, config: &dyn Any) -> gix::Result {
        self.client.configure(config)
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.client.redirected_base_url()
    }
}

// === impl Charged ===

impl<R: Read> Read for Charged<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.allowance.check()?;
        let read = self.answer.read(buffer)?;
        self.allowance.charge(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Charged<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.allowance.check()?;
        self.answer.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.allowance.charge(amount);
        self.answer.consume(amount);
    }
}
