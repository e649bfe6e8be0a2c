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
mod size;
mod strconv;

use std::collections::HashMap;

use crate::function::Function;

/// Functions by name; later tables override earlier ones, as Helm's override sprig's and sprig's override Go's.
#[derive(Clone, Default)]
pub struct FunctionTable {
    functions: HashMap<&'static str, Function>,
}

impl FunctionTable {
    /// Adds functions, in place of those of the same name.
    #[must_use]
    pub fn with(mut self, functions: &[Function]) -> Self {
        self.functions
            .extend(functions.iter().map(|function| (function.name, *function)));
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
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }
}

/// Every sprig function, and Helm's that need no templates (`toYaml`, `fromJson`, …).
pub fn all() -> &'static [Function] {
    table::ALL
}
