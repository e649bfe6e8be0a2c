//! Any text as every flag of the `--set` family.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_helm::values::{SetKind, Tree, set};

fuzz_target!(|text: &str| {
    for kind in [SetKind::Typed, SetKind::Strings, SetKind::Json, SetKind::Literal] {
        let mut values = Tree::empty_table();
        let _ = set(&mut values, text, kind);
    }
});
