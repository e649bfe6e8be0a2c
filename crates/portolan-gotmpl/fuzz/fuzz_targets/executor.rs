//! Any template over a value of every kind: it prints or fails, within its limits.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use portolan_gotmpl::{
    Executor, Limits, MissingKey, Options, Seeded, TemplateSet, TextParser, Value, helm_functions,
};

static PARSER: LazyLock<TextParser> =
    LazyLock::new(|| TextParser::new(Arc::new(helm_functions()), 200));

fn dot(text: &str) -> Value {
    let list = Value::list(vec![Value::int(1), Value::str("x"), Value::Nil, Value::float(2.5)]);
    let map = Value::map([("a".into(), list.clone()), ("b".into(), Value::Bool(true))].into());
    let entries = [
        ("l".into(), list),
        ("m".into(), map),
        ("s".into(), Value::str(text)),
        ("b".into(), Value::bytes(b"\xff\x00")),
        ("n".into(), Value::Nil),
    ];
    Value::map(entries.into())
}

fuzz_target!(|text: &str| {
    let Ok(parsed) = PARSER.parse("fuzz", text) else {
        return;
    };
    let mut set = TemplateSet::default();
    set.add(&parsed);
    let limits = Limits {
        steps: 50_000,
        template_depth: 500,
        output_bytes: 1 << 20,
        value_size: 1 << 20,
        produced_bytes: 8 << 20,
        ..Limits::default()
    };
    let options = Options { missing_key: MissingKey::Zero, range_over_int: true };
    let mut host = Seeded::new("fuzz", 0);
    let result = Executor::new(&set, &PARSER, options, &limits, &mut host).execute("fuzz", dot(text));
    if let Err(error) = result {
        let _ = error.to_string();
    }
});
