//! Any bytes inside an action, between any delimiters: the lexer ends and cuts on character boundaries.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use portolan_gotmpl::{TextParser, builtin_functions};

static PARSER: LazyLock<TextParser> =
    LazyLock::new(|| TextParser::new(Arc::new(builtin_functions()), 200));

fuzz_target!(|input: (&str, &str, &str)| {
    let (left, right, action) = input;
    let parser = PARSER.clone().with_delimiters(left, right);
    let text = format!("text {left}{action}{right} text {left}- {action} -{right}");
    let _ = parser.parse("fuzz", &text);
});
