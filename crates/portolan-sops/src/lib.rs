//! Decrypts SOPS documents with age keys.
//!
//! A SOPS document keeps its shape: only the values are encrypted, each as
//! `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`. A `sops` map beside them holds the data key, encrypted for every
//! recipient, and an authentication code over all values.
//!
//! ```text
//! sops.age[].enc ──age key──▶ data key ──▶ every value (its path is authenticated too) ──▶ plain tree
//!                                     └──▶ sops.mac ──▶ compared with the hash of all plain values
//! ```
//!
//! [`decrypt`] decrypts a tree that was already parsed, [`decrypt_file`] a whole file in any of the formats, and
//! [`placeholders`] makes a tree of the same shape and types when there is no key. Decrypted values never appear in
//! errors or debug output; keys and whole decrypted files have types that print `[redacted]` and wipe their memory.
//! Values inside a decrypted tree are ordinary text: code that prints a tree must mask it.
//!
//! Only age keys (X25519) are supported, and only documents with one key group.

#![warn(missing_docs)]

mod error;
mod secret;

mod keys;
mod metadata;
mod rule;

mod cipher;
mod document;
mod number;
mod placeholder;

mod dotenv;
mod file;
mod json_text;
mod yaml_text;

pub use document::{Mac, decrypt, decrypt_documents, is_sops};
pub use error::SopsError;
pub use file::{Format, decrypt_file};
pub use keys::{Keys, KeysError};
pub use placeholder::placeholders;
pub use secret::Secret;
