//! Any text is substituted or refused; what is refused is refused inside the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_envsubst::{Unset, substitute};

fuzz_target!(|input: (&str, &str, bool)| {
    let (text, value, strict) = input;
    let unset = if strict { Unset::Refused } else { Unset::Empty };
    let lookup = |name: &str| (name.len() % 2 == 0).then_some(value);
    if let Err(error) = substitute(text, unset, lookup) {
        assert!(error.offset <= text.len());
    }
});
