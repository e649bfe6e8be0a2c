//! The limits that keep hostile input from using too much time or memory.

/// The longest input that is read, in bytes: 256 MiB.
///
/// The largest real manifests are a few MiB; offsets into a text are kept in 32 bits.
pub const MAX_INPUT_BYTES: usize = 256 << 20;

/// The deepest nesting of lists and maps that is read or printed.
///
/// Go allows 10,000 levels; 1,000 keeps every walk over a tree, and its release, inside a 2 MB stack.
pub const MAX_DEPTH: usize = 1_000;

/// The most nodes that aliases may stand for in one kustomize document.
///
/// kyaml writes aliases out without a limit; go-yaml v2 has a limit of its own, which the Helm dialect follows.
pub const MAX_EXPANDED_NODES: u64 = 4_000_000;

/// The most bytes of text that aliases may stand for in one document, in both dialects.
///
/// Go's libraries count nodes only: a hundred thousand aliases of a text of a megabyte are few nodes.
pub const MAX_EXPANDED_BYTES: u64 = MAX_INPUT_BYTES as u64;

/// The longest implicit key, in characters, quotes included; the YAML specification's number, as Go applies it.
pub const MAX_SIMPLE_KEY: u32 = 1_024;
