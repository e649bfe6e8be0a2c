//! Values printed as Go's `fmt` prints them: `%v` of every kind, the verbs of `Printf`.
//!
//! ```text
//! format, operands ──▶ Printer ──directive──▶ Verb ──▶ scalars: written here
//!                                              ▲ └──▶ lists, maps, structs: Operand::write_parts
//!                                              └───────────── each part ────────────┘
//! ```
//!
//! What a value is, its owner says with an [`Operand`]. The texts have [marks](crate::marked) for bytes that are not
//! UTF-8.

mod pad;
mod printf;
mod verb;

use std::borrow::Cow;

pub use printf::sprintf;
pub use verb::Verb;

use crate::strconv::FloatKind;

/// How deep values are printed; what lies deeper is shown as `…`, because maps can contain themselves.
///
/// A debug build walks a thousand levels in less than half of a 2 MB stack.
pub const MAX_DEPTH: usize = 1000;

/// A value that can be printed.
pub trait Operand: Sized {
    /// What it is.
    fn scalar(&self) -> OperandValue<'_>;

    /// Its type as `%T` prints it.
    fn type_name(&self) -> Cow<'_, str>;

    /// Appends a [`OperandValue::Composite`] by a method of the verb: [`Verb::write_list`], [`Verb::write_map`],
    /// [`Verb::write_struct`], or [`Verb::write_text`] for a type that prints itself.
    fn write_parts(&self, out: &mut String, verb: Verb, depth: usize);
}

/// What a verb makes of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OperandValue<'a> {
    /// `nil`
    Nil,
    /// `bool`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number.
    Float(FloatKind, f64),
    /// The real and the imaginary part.
    Complex(f64, f64),
    /// `string`, of any bytes.
    Str(&'a [u8]),
    /// `[]byte`
    Bytes(&'a [u8]),
    /// None of these: it is made of parts.
    Composite,
}

/// Appends a value in its default format, `%v`.
pub fn write_value<O: Operand>(out: &mut String, value: &O) {
    Verb::DEFAULT.write(out, value, 0);
}

/// What `fmt.Sprint` gives: a space between operands when neither is a string.
pub fn sprint<O: Operand>(values: &[O]) -> String {
    let mut out = String::new();
    let mut previous_was_string = true;
    for (index, value) in values.iter().enumerate() {
        let is_string = matches!(value.scalar(), OperandValue::Str(_));
        if index > 0 && !is_string && !previous_was_string {
            out.push(' ');
        }
        write_value(&mut out, value);
        previous_was_string = is_string;
    }
    out
}

/// What `fmt.Sprintln` gives: a space between all operands and a line end.
pub fn sprintln<O: Operand>(values: &[O]) -> String {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        write_value(&mut out, value);
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests;
