//! Any template over a value of every kind: it prints or fails, within its limits.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use portolan_budget::{Budget, Stop};
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
    let limits = Limits { template_depth: 500, ..Limits::default() };
    let allowed = portolan_budget::Limits { steps: 200_000, bytes: 16 << 20, ..Default::default() };
    let options = Options { missing_key: MissingKey::Zero, range_over_int: true };
    let mut host = Seeded::new("fuzz", 0);
    let result = Executor::new(&set, &PARSER, options, &limits, &mut host)
        .with_budget(Budget::new(allowed, Stop::default()))
        .execute("fuzz", dot(text));
    if let Err(error) = result {
        let _ = error.to_string();
    }
});
