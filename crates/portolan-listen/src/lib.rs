//! The hardened HTTP listener that every server of Portolan uses.
//!
//! ```text
//! Listener ───accept──▶ Connections (caps, eviction) ──▶ TLS ──▶ HTTP/1 or HTTP/2 ──▶ respond ──▶ the server's Router
//!                               ▲                                        │                 └─▶ /healthz /readyz /metrics
//!                               └──────────── Activity (deadlines) ◀─────┘
//! ```
//!
//! The entry point is [`serve`]: it takes a bound [`Listener`] (an address, or a socket for this user alone), a router
//! and a [`ListenConfig`], and answers requests until it is cancelled; then it finishes the requests in flight.
//! Whatever a client does, it costs no more than [`Limits`] allow: how many connections in total and per client, how
//! large and how slow a request may be, how slowly an answer may be read. This crate does not know what the routes do.

mod limits;
mod tls;

mod activity;
mod body;
mod client;
mod connections;
mod error_reply;
mod executor;
mod listener;
mod metrics;
mod respond;
mod serve;

pub use body::BodyRelease;
pub use error_reply::error_reply;
pub use limits::Limits;
pub use listener::Listener;
pub use metrics::{Metrics, MetricsText};
pub use respond::{PeerAddress, ResponseTime};
pub use serve::{Drained, ListenConfig, Readiness, serve};
pub use tls::{SharedCertificate, TlsError, TlsPeer, TlsSource};
