//! HTTP and TLS, set up once for the whole workspace.
//!
//! ```text
//!   Tls ──────────▶ rustls::ClientConfig (ring) ──▶ Client (charts, registries, files)
//!                                              └──▶ portolan-git's transport
//! ```
//!
//! One HTTP stack (reqwest on hyper, the one gix brings anyway) and one crypto provider (ring): TLS is always handed to
//! reqwest ready-made, so that neither aws-lc-rs nor OpenSSL is ever compiled and no process-wide provider has to be
//! installed. A [`Response`] is read under a limit, never without one.
//!
//! The proxy variables (`HTTPS_PROXY`, `NO_PROXY`, …) and `SSL_CERT_FILE` are read by the stack itself, as every tool
//! does; [`Proxy::None`] turns the former off. This crate knows nothing of charts, registries or git.

#![warn(missing_docs)]

mod byte_progress;
mod client;
mod credentials;
mod error;
mod reach;
mod response;
mod tls;

pub use byte_progress::ByteProgress;
pub use client::{Client, HttpOptions, Proxy, Request};
pub use credentials::{Credentials, Secret};
pub use error::{HttpError, shown};
pub use reach::{FirstTry, KnownHosts, Unreachable, UnreachableReason, host_of};
pub use response::Response;
pub use tls::{Identity, Tls};
pub use url::Url;
