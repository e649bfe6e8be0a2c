//! The functions of sprig and Helm, by family, and the one table that names them all.

#![expect(
    clippy::unnecessary_wraps,
    reason = "every function body has the type `NativeFn`, also where it cannot fail"
)]

mod table;

mod case;
mod strings;
mod wrap;

mod decimal;
mod math;

mod defaults;
mod dicts;
mod equal;
mod lists;
mod merge;
mod reflection;

mod network;
mod path;
mod regex;
mod semver;
mod url;

mod dates;
mod time;

mod certificates;
mod cipher;
mod digest;
mod encoding;
mod json;
mod password;
mod random;
mod toml;
mod yaml;

mod convert;
mod letters;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::function::Function;
pub use regex::GoRegex;

/// Functions by name; later tables override earlier ones, as Helm's override sprig's and sprig's override Go's.
#[derive(Clone, Default)]
pub struct FunctionTable {
    functions: HashMap<&'static str, &'static Function, BuildHasherDefault<NameHasher>>,
}

/// FNV-1a: names are short, and nobody outside chooses which ones are in the table.
#[derive(Clone)]
struct NameHasher(u64);

impl FunctionTable {
    /// Adds functions, in place of those of the same name.
    #[must_use]
    pub fn with(mut self, functions: &'static [Function]) -> Self {
        self.functions
            .extend(functions.iter().map(|function| (function.name, function)));
        self
    }

    /// Takes functions away.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        for name in names {
            self.functions.remove(*name);
        }
        self
    }

    /// The function of a name.
    pub fn get(&self, name: &str) -> Option<&'static Function> {
        self.functions.get(name).copied()
    }
}

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Every sprig function, and Helm's that need no templates (`toYaml`, `fromJson`, …).
pub fn all() -> &'static [Function] {
    table::ALL
}
