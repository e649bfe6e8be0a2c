//! The readers and writers of YAML, JSON, TOML, base 64, base 32 and URLs: any input gives an answer or an error, in bounded time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_gotmpl::functions::all;
use portolan_gotmpl::{Args, Ctx, Function, Limits, Param, Seeded, Value};

const NAMES: &[&str] = &[
    "fromYaml",
    "fromYamlArray",
    "fromJson",
    "fromJsonArray",
    "mustFromJson",
    "fromToml",
    "b64dec",
    "b32dec",
    "urlParse",
];

/// An argument of the type that a parameter has.
fn argument(param: Param, text: &str, number: i64) -> Value {
    match param {
        Param::Int | Param::Int64 => Value::int(number),
        Param::Float => Value::float(number as f64 / 3.0),
        _ => Value::str(text),
    }
}

fn function(choice: u8) -> &'static Function {
    let name = NAMES[usize::from(choice) % NAMES.len()];
    let found = all().iter().find(|function| function.name == name);
    found.expect("every name is in the table")
}

fuzz_target!(|input: (u8, &str, &str, i16)| {
    let (choice, first, second, number) = input;
    let function = function(choice);
    let params = function.signature.params.iter();
    let arguments: Vec<Value> = params
        .enumerate()
        .map(|(index, param)| argument(*param, if index % 2 == 0 { first } else { second }, number.into()))
        .collect();
    let limits = Limits::default();
    let mut host = Seeded::new("fuzz", 0);
    let mut ctx = Ctx { host: &mut host, limits: &limits };
    let _ = (function.call)(&mut ctx, Args::new(&arguments));
});
