//! YAML read and written exactly as Go's libraries do.
//!
//! Helm reads and prints with sigs.k8s.io/yaml over go-yaml v2, kustomize with kyaml over go-yaml v3; the same file
//! can mean two things. A [`Dialect`] says which of them is followed for reading, and each way of printing is a
//! function:
//!
//! | Go | here |
//! |---|---|
//! | `YAMLToJSON` | [`parse_one`] with [`Dialect::Helm`], then [`to_json`] |
//! | `Unmarshal` and `Marshal`, Helm's `toYaml` | [`parse_one`], [`write_v2`]; own values through [`Emitter::v2`] |
//! | Helm's `toYamlPretty` | [`write_v3_pretty`], [`Emitter::v3_pretty`] |
//! | kustomize's reading and output | [`parse`] with [`Dialect::Kustomize`], [`write_kustomize`] |
//!
//! # Who owns what
//!
//! A source is copied once into an `Arc<str>`, unless it is passed as a [`Text`] (possibly a part of another one),
//! which is read in place. A scalar or key that appears literally in the source, which is nearly always so, is a
//! [`Text`]: a slice that shares the source. Cloning a `Text`, a [`List`], a [`Map`] or a whole [`Node`] copies no
//! content; lists and maps are behind an `Arc` and are copied, one level deep, when a shared one is changed (and
//! moved into a vector when a parsed one grows or shrinks). So an alias costs nothing, a tree can be passed around
//! freely, and a change of a clone is never visible in the original. The disadvantage: a node keeps its whole source
//! in memory, so a program that keeps a few texts of many sources should copy them.
//!
//! # Safety against input
//!
//! The limits are in [`limits`]. Reading recurses over a few levels at most and keeps deeper levels on its own stack;
//! printing recurses no deeper than [`limits::MAX_DEPTH`].

#![warn(missing_docs)]

mod value;

mod error;
pub mod limits;

mod read;

mod emit;
pub mod json;
pub mod order;
mod outline;
mod packed;

pub use emit::{Emitter, write_kustomize, write_v2, write_v3_pretty};
pub use error::{Error, Errors, WriteError};
pub use json::{from_json, to_json};
pub use outline::{Outline, outline};
pub use packed::{pack_tree, unpack_tree};
pub use read::documents::{
    Dialect, parse, parse_bytes, parse_head, parse_one, parse_one_bytes, parse_one_strict,
};
pub use value::node::{Entry, Key, List, Map, Node, Position, Scalar, Style, Tag, Value};
pub use value::number::Number;
pub use value::text::Text;
