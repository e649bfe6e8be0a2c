//! Any text: it parses or is refused.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use portolan_gotmpl::{TextParser, helm_functions};

static PARSER: LazyLock<TextParser> =
    LazyLock::new(|| TextParser::new(Arc::new(helm_functions()), 200));

fuzz_target!(|text: &str| {
    let _ = PARSER.parse("fuzz", text);
});
