//! HTTP and TLS, set up once for the whole workspace.
//!
//! ```text
//!   Tls ──────────▶ rustls::ClientConfig (ring) ──▶ Client (charts, registries, files)
//!                                              └──▶ portolan-git's transport
//! ```
//!
//! There is one HTTP stack (reqwest on hyper, which gix needs anyway) and one crypto provider (ring). reqwest always
//! gets a finished TLS configuration, so neither aws-lc-rs nor OpenSSL is compiled and no process-wide provider has
//! to be installed. A [`Response`] is always read under a limit.
//!
//! The stack itself reads the proxy variables (`HTTPS_PROXY`, `NO_PROXY`, …) and `SSL_CERT_FILE`, as other tools do;
//! [`Proxy::None`] turns the proxy variables off. This crate knows nothing about charts, registries or git.

#![warn(missing_docs)]

mod byte_progress;
mod client;
mod credentials;
mod error;
mod link_local;
mod reach;
mod response;
mod tls;
mod upload;

pub use byte_progress::ByteProgress;
pub use client::{Client, HttpOptions, Proxy, Request};
pub use credentials::{Credentials, Secret};
pub use error::{HttpError, shown};
pub use reach::{FirstTry, KnownHosts, Unreachable, UnreachableReason, host_of};
pub use response::Response;
pub use tls::{Identity, Tls};
pub use upload::Upload;
pub use url::Url;
