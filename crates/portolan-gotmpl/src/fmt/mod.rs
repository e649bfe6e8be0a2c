//! Printing as Go's `fmt` does: `%v` of every kind of value, the verbs of `Printf`, strings in Go syntax.

mod pad;
mod printf;
pub(crate) mod raw;
mod verb;

use crate::value::Value;

pub use portolan_go::strconv::{FloatFormat, format_float, is_print, quote, quote_rune};
pub use printf::sprintf;
pub(crate) use verb::write_struct;
pub use verb::write_value;

/// What `fmt.Sprint` gives for one value: its default format.
pub fn display(value: &Value) -> String {
    if let Value::Str(text) = value {
        return text.as_str().to_owned();
    }
    let mut out = String::new();
    write_value(&mut out, value);
    raw::lossy(out)
}

/// What `fmt.Sprint` gives: a space between operands when neither is a string.
pub fn sprint(values: &[Value]) -> Value {
    let mut out = String::new();
    let mut previous_was_string = true;
    for (index, value) in values.iter().enumerate() {
        let is_string = matches!(value, Value::Str(_) | Value::RawStr(_));
        if index > 0 && !is_string && !previous_was_string {
            out.push(' ');
        }
        write_value(&mut out, value);
        previous_was_string = is_string;
    }
    raw::value(out)
}

/// What `fmt.Sprintln` gives: a space between all operands and a line end.
pub fn sprintln(values: &[Value]) -> Value {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        write_value(&mut out, value);
    }
    out.push('\n');
    raw::value(out)
}
