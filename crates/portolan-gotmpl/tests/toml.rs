//! What Helm's TOML library makes of texts good and bad: `cases/from_toml.json`, answered by Helm 3.17.3 as
//! `fromToml | toJson`.

use portolan_gotmpl::functions::all;
use portolan_gotmpl::{Args, Budget, Ctx, Limits, Seeded, Value};
use portolan_yaml::{Node, from_json};

fn call(name: &str, argument: Value) -> Value {
    let function = all().iter().find(|function| function.name == name);
    let function = function.expect("the table names it");
    let limits = Limits::default();
    let mut host = Seeded::new("toml", 0);
    let mut ctx = Ctx::new(&mut host, &limits, Budget::default());
    (function.call)(&mut ctx, Args::new(&[argument])).expect("errors stand in the result")
}

fn json_of(toml: &[u8]) -> String {
    let read = call("fromToml", Value::str_from_bytes(toml));
    let json = call("toJson", read);
    json.as_str().expect("JSON is text").to_owned()
}

#[test]
fn texts_are_read_and_refused_as_in_helm() {
    let cases = from_json(include_str!("cases/from_toml.json")).expect("the cases are JSON");
    for case in cases.as_list().expect("the cases are a list") {
        let text = |key: &str| {
            case.get(key)
                .and_then(Node::as_str)
                .expect("both are texts")
        };
        assert_eq!(
            json_of(text("toml").as_bytes()),
            text("json"),
            "{:?}",
            text("toml")
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let refusal = r#"{"Error":"toml: line 1 (last key \"a\"): invalid UTF-8 byte: 0xff"}"#;
    assert_eq!(json_of(b"a = \"\xff\""), refusal);
}

/// Every table once knew its whole key, and every header looked at all tables.
#[test]
fn many_tables_and_long_keys_take_linear_time() {
    let arrays = "[[a]]\nb.c = [1]\n".repeat(20_000);
    assert!(json_of(arrays.as_bytes()).starts_with(r#"{"a":[{"b":{"c":[1]}},"#));
    let deep = format!("{}=1", vec!["a"; 100_000].join("."));
    assert!(json_of(deep.as_bytes()).contains("values nest more than 200 deep"));
    let nested = format!("a = {}", "{b.c.d = ".repeat(10_000));
    assert!(json_of(nested.as_bytes()).contains("values nest more than 200 deep"));
}
