//! SOPS documents opened with age keys.
//!
//! A SOPS document keeps its shape: only the values are sealed, each as `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`, and
//! a `sops` map beside them holds the data key, sealed for every recipient, and a code over all values.
//!
//! ```text
//! sops.age[].enc ──age key──▶ data key ──▶ every value (its path is authenticated too) ──▶ plain tree
//!                                     └──▶ sops.mac ──▶ compared with the hash of all plain values
//! ```
//!
//! [`decrypt`] opens a tree that was read already, [`decrypt_file`] a whole file of any of the formats, and
//! [`placeholders`] makes a tree of the same shape and types when there is no key. Plain values never appear in errors
//! or debug output; keys and whole decrypted files are held in types that print `[redacted]` and wipe their memory.
//! Values inside a decrypted tree are ordinary text: whoever prints a tree masks it.
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
