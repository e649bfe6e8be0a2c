//! Any text is substituted or refused; what is refused is refused inside the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_envsubst::substitute;

fuzz_target!(|input: (&str, &str, bool)| {
    let (text, value, strict) = input;
    let lookup = |name: &str| (name.len() % 2 == 0).then_some(value);
    if let Err(error) = substitute(text, strict, lookup) {
        assert!(error.offset <= text.len());
    }
});
