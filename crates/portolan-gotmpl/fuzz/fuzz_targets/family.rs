//! A family of template functions, called with texts and numbers that the fuzzer makes up.

use portolan_gotmpl::functions::all;
use portolan_gotmpl::{Args, Budget, Ctx, Function, Limits, Param, Seeded, Value};

/// Which function of the family is called, two texts and a number for its arguments.
pub type Call<'a> = (u8, &'a str, &'a str, i16);

/// Calls one function of `names`: it must answer or fail, and do so in bounded time.
pub fn call(names: &[&str], (choice, first, second, number): Call) {
    let function = function(names[usize::from(choice) % names.len()]);
    let texts = [first, second].into_iter().cycle();
    let params = function.signature.params.iter();
    let arguments: Vec<Value> = params
        .zip(texts)
        .map(|(param, text)| argument(*param, text, number.into()))
        .collect();
    let limits = Limits::default();
    let mut host = Seeded::new("fuzz", 0);
    let mut ctx = Ctx::new(&mut host, &limits, Budget::default());
    let _ = (function.call)(&mut ctx, Args::new(&arguments));
}

fn function(name: &str) -> &'static Function {
    let found = all().iter().find(|function| function.name == name);
    found.expect("every name is in the table")
}

/// An argument of the type that a parameter has.
fn argument(param: Param, text: &str, number: i64) -> Value {
    match param {
        Param::Int | Param::Int64 => Value::int(number),
        Param::Float => Value::float(number as f64 / 3.0),
        _ => Value::str(text),
    }
}
