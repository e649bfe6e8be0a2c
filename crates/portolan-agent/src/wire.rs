//! The messages of the stream, generated from `proto/`.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::restriction,
    reason = "generated"
)]

include!("wire/portolan.agent.v1alpha.rs");
