//! What a client may cost a server. The defaults fit a server of a few users and scrapers in a small container.

use std::time::Duration;

/// What a client may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections in all. At the limit the connection that has waited longest without a request is closed for a
    /// new one; when all of them are busy, the new one is closed.
    pub connections: usize,
    /// Open connections of one client, by the same rule. A client is an IPv4 address, or the /64 network of an IPv6
    /// address.
    pub connections_per_client: usize,
    /// Requests a second of one client, on average; more are answered with 429. Probes of `/healthz` and `/readyz` do
    /// not count.
    pub requests_per_second: u32,
    /// Requests of one client that may come at once.
    pub request_burst: u32,
    /// Requests of one HTTP/2 connection that may run at the same time.
    pub streams: u32,
    /// The bytes of a request's line and headers together; more are answered with 431. At least 8,192.
    pub header_bytes: usize,
    /// The number of headers of an HTTP/1 request; more are answered with 431.
    pub headers: usize,
    /// The bytes of a request's body; more are answered with 413.
    pub body_bytes: u64,
    /// The time from the connection to the end of the first request's headers; the TLS handshake is part of it.
    pub header_time: Duration,
    /// The time for a request's whole body; a slower one is answered with 408.
    pub body_time: Duration,
    /// The time from the end of the headers to the beginning of the answer; then it is 503.
    pub handler_time: Duration,
    /// The time in which a client must have read the whole answer. A route that answers for longer says so with
    /// [`crate::ResponseTime`].
    pub response_time: Duration,
    /// The time from the end of an answer to the end of the next request's headers.
    pub idle_time: Duration,
    /// The time that requests in flight get when the server ends.
    pub drain_time: Duration,
    /// The time in which a client must take another piece of its answer when the server ends.
    pub drain_stall: Duration,
}

impl Limits {
    /// Twice the connections of a busy page with scrapers; at about 20 KB each they hold 5 MB at most, and stay far
    /// below the usual 1,024 descriptors of a process.
    pub const CONNECTIONS: usize = 256;
    /// A browser opens six, a scraper one; several may share an address behind a proxy.
    pub const CONNECTIONS_PER_CLIENT: usize = 64;
    /// Twice what the load test of the exporter sends from one address, and far more than a page or a scraper asks for.
    pub const REQUESTS_PER_SECOND: u32 = 2000;
    /// A page with all its parts, opened by many at once.
    pub const REQUEST_BURST: u32 = 4000;
    /// Enough for a page; each may hold a body.
    pub const STREAMS: u32 = 64;
    /// Cookies and tokens of a proxy fit in.
    pub const HEADER_BYTES: usize = 32 * 1024;
    /// As many as hyper allows by itself.
    pub const HEADERS: usize = 100;
    /// What people and hooks send is far smaller.
    pub const BODY_BYTES: u64 = 1024 * 1024;
    /// A slow network needs a second for a handshake and a header.
    pub const HEADER_TIME: Duration = Duration::from_secs(10);
    /// A megabyte at 50 KB/s.
    pub const BODY_TIME: Duration = Duration::from_secs(20);
    /// Below the minute after which most proxies give up.
    pub const HANDLER_TIME: Duration = Duration::from_secs(30);
    /// Ten megabytes at 170 KB/s.
    pub const RESPONSE_TIME: Duration = Duration::from_mins(1);
    /// Longer than the usual 60 s between two scrapes, so that a scraper keeps its connection.
    pub const IDLE_TIME: Duration = Duration::from_secs(75);
    /// Below the 30 s that a pod is given to end.
    pub const DRAIN_TIME: Duration = Duration::from_secs(20);
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: Self::CONNECTIONS,
            connections_per_client: Self::CONNECTIONS_PER_CLIENT,
            requests_per_second: Self::REQUESTS_PER_SECOND,
            request_burst: Self::REQUEST_BURST,
            streams: Self::STREAMS,
            header_bytes: Self::HEADER_BYTES,
            headers: Self::HEADERS,
            body_bytes: Self::BODY_BYTES,
            header_time: Self::HEADER_TIME,
            body_time: Self::BODY_TIME,
            handler_time: Self::HANDLER_TIME,
            response_time: Self::RESPONSE_TIME,
            idle_time: Self::IDLE_TIME,
            drain_time: Self::DRAIN_TIME,
            drain_stall: Self::RESPONSE_TIME,
        }
    }
}
