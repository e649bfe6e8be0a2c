//! Numbers and quoted texts as Go's `strconv` reads and writes them.

mod float;
mod number;
mod quote;
mod unquote;

pub use float::{FloatFormat, FloatKind, format_float};
pub use number::{parse_float, parse_int, parse_uint, saturating_int};
pub use quote::{is_print, quote, quote_rune};
pub use unquote::{CharError, unquote, unquote_char};
