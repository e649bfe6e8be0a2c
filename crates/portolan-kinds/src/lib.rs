//! The kinds of the control plane: what an object of each kind holds, and what is refused.
//!
//! ```text
//! YAML or JSON ──read (strict)──▶ canonical JSON ──defaults──▶ rules ──▶ KindObject, or every fault with its line
//!                                       ▲  │
//!                                  decode  encode          the messages of `proto/`, the same bytes for the same JSON
//!                                       │  ▼
//!                                     protobuf             what the store holds, and what gRPC sends
//! ```
//!
//! A kind is two files: its messages in `proto/portolan/v1alpha/`, whose comments are the documentation of its fields,
//! and its [`KindDefinition`] in `src/kinds/`: names, defaults, rules, columns of tables and fields to select by. The
//! list of all is [`KINDS`].
//!
//! This crate does no network, reads no clock and knows no store.

#![warn(missing_docs)]

mod fault;

mod schema;

mod codec;
mod read;
mod rule;

mod definition;
mod kinds;
mod object;

mod explain;
mod json_schema;
mod span;
mod unstorable;

/// The generated messages.
#[expect(
    missing_docs,
    reason = "the generated enumerations have functions without comments"
)]
#[expect(clippy::all, clippy::pedantic, reason = "generated")]
pub mod wire {
    include!("wire/portolan.v1alpha.rs");
}

pub use codec::{DecodeError, decode, encode};
pub use definition::{Column, KindDefinition, find_kind};
pub use explain::{FieldExplanation, KindExplanation, explain};
pub use fault::FieldFault;
pub use json_schema::{definition_schema, metadata_schema};
pub use kinds::{KINDS, trigger_rules};
pub use object::{KindObject, MAX_OBJECT_BYTES, VERSION, field_text};
pub use rule::{FieldDemand, FieldRule, FixedValue};
pub use schema::{DESCRIPTORS, FieldSchema, FieldShape, MessageSchema, message};
pub use span::read_span;
