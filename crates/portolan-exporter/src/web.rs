//! What the exporter answers over HTTP: metrics, findings as JSON, and a page for people.

mod metrics;
mod page;
mod server;

pub(crate) use metrics::{Rendered, metrics};
pub use server::serve;
