//! One value under one verb.

use std::borrow::Cow;
use std::fmt::Write;

use super::pad::Flags;
use super::{MAX_DEPTH, Operand, OperandValue};
use crate::marked::mark;
use crate::strconv::{FloatFormat, FloatKind, format_float, is_print, quote, quote_rune};

/// A verb with its flags.
#[derive(Debug, Clone, Copy)]
pub struct Verb {
    letter: char,
    flags: Flags,
    /// Items of lists and maps are left out once the text is longer.
    limit: usize,
}

impl Verb {
    /// `%v`
    pub const DEFAULT: Self = Self::new('v', Flags::NONE);

    pub(super) const fn new(letter: char, flags: Flags) -> Self {
        Self {
            letter,
            flags,
            limit: usize::MAX,
        }
    }

    /// The same, for a text that nobody reads once it is longer than this: every item of a list may be padded.
    pub(super) fn within(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Appends an operand of a directive.
    pub(super) fn write_operand<O: Operand>(self, out: &mut String, value: &O) {
        let is_nil = value.scalar() == OperandValue::Nil;
        match self.letter {
            'T' | 'v' if is_nil => self.flags.pad_spaces(out, "<nil>"),
            'T' => self
                .flags
                .pad_spaces(out, self.flags.cut(&value.type_name())),
            'w' => self.bad(out, value),
            _ if is_nil => self.bad(out, value),
            _ => self.write(out, value, 0),
        }
    }

    /// Appends a value that lies this deep inside another: zero levels for an operand.
    pub fn write<O: Operand>(self, out: &mut String, value: &O, depth: usize) {
        if depth > MAX_DEPTH {
            out.push('…');
            return;
        }
        if out.len() > self.limit {
            return;
        }
        if value.scalar() == OperandValue::Composite {
            value.write_parts(out, self, depth);
        } else {
            self.write_scalar(out, value);
        }
    }

    /// Apart from [`Verb::write`], whose calls nest as deep as the value: each of them takes little of the stack.
    #[inline(never)]
    fn write_scalar<O: Operand>(self, out: &mut String, value: &O) {
        let is_suited = match value.scalar() {
            OperandValue::Nil if self.flags.go_syntax => {
                out.push_str("interface {}(nil)");
                true
            }
            OperandValue::Nil => {
                out.push_str("<nil>");
                true
            }
            OperandValue::Bool(flag) => self.write_bool(out, flag),
            OperandValue::Int(number) => {
                self.write_integer(out, number.unsigned_abs(), Sign::of(number))
            }
            OperandValue::Uint(number) => self.write_integer(out, number, Sign::None),
            OperandValue::Float(kind, number) => self.write_float(out, number, kind),
            OperandValue::Complex(re, im) => self.write_complex(out, re, im),
            OperandValue::Str(bytes) => self.write_string(out, bytes),
            OperandValue::Bytes(bytes) => self.write_bytes(out, bytes),
            OperandValue::Composite => true,
        };
        if !is_suited {
            self.bad(out, value);
        }
    }

    /// Appends the text that a value prints itself as.
    pub fn write_text<O: Operand>(self, out: &mut String, text: &[u8], value: &O) {
        if !self.write_string(out, text) {
            self.bad(out, value);
        }
    }

    /// Appends a struct, or a pointer to one if its type begins with `*`; the verb goes to its fields.
    pub fn write_struct<'a, O: Operand + 'a>(
        self,
        out: &mut String,
        type_name: &str,
        fields: impl IntoIterator<Item = (&'a str, &'a O)>,
        depth: usize,
    ) {
        let struct_name = type_name.strip_prefix('*');
        if struct_name.is_some() {
            out.push('&');
        }
        if self.flags.go_syntax {
            out.push_str(struct_name.unwrap_or(type_name));
        }
        out.push('{');
        for (index, (name, value)) in fields.into_iter().enumerate() {
            if index > 0 {
                out.push_str(if self.flags.go_syntax { ", " } else { " " });
            }
            if self.flags.field_names {
                out.push_str(name);
                out.push(':');
            }
            self.write(out, value, depth + 1);
        }
        out.push('}');
    }

    /// `%!d(string=text)`: the verb does not suit the value.
    fn bad<O: Operand>(self, out: &mut String, value: &O) {
        let _ = write!(out, "%!{}(", self.letter);
        if value.scalar() == OperandValue::Nil {
            out.push_str("<nil>");
        } else {
            out.push_str(&value.type_name());
            out.push('=');
            Self::new('v', self.flags).write(out, value, 0);
        }
        out.push(')');
    }

    // These say whether the verb suits the value; nothing is written if it does not.

    fn write_bool(self, out: &mut String, flag: bool) -> bool {
        let is_suited = matches!(self.letter, 't' | 'v');
        if is_suited {
            self.flags.pad(out, if flag { "true" } else { "false" });
        }
        is_suited
    }

    fn write_integer(self, out: &mut String, magnitude: u64, sign: Sign) -> bool {
        let negative = sign == Sign::Negative;
        let text = match self.letter {
            'v' if self.flags.go_syntax && sign == Sign::None => format!("{magnitude:#x}"),
            'v' if self.flags.is_plain() => {
                let _ = if negative {
                    write!(out, "-{magnitude}")
                } else {
                    write!(out, "{magnitude}")
                };
                return true;
            }
            'v' | 'd' => magnitude.to_string(),
            'b' => self.prefixed("0b", format!("{magnitude:b}")),
            'o' => {
                let digits = format!("{magnitude:o}");
                if self.flags.sharp && !digits.starts_with('0') {
                    format!("0{digits}")
                } else {
                    digits
                }
            }
            'O' => format!("0o{magnitude:o}"),
            'x' => self.prefixed("0x", format!("{magnitude:x}")),
            'X' => self.prefixed("0X", format!("{magnitude:X}")),
            'c' => {
                let rune = rune(magnitude, negative);
                self.flags.pad_spaces(out, rune.encode_utf8(&mut [0; 4]));
                return true;
            }
            'q' => {
                let quoted = quote_rune(rune(magnitude, negative), self.flags.plus);
                self.flags.pad_spaces(out, &quoted);
                return true;
            }
            'U' => {
                self.write_unicode(out, magnitude, negative);
                return true;
            }
            _ => return false,
        };
        self.write_digits(out, &text, negative);
        true
    }

    fn prefixed(self, prefix: &str, digits: String) -> String {
        if self.flags.sharp {
            format!("{prefix}{digits}")
        } else {
            digits
        }
    }

    /// Digits with sign, precision (least number of digits) and padding.
    fn write_digits(self, out: &mut String, digits: &str, negative: bool) {
        let mut text = String::with_capacity(digits.len() + 1);
        match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => text.push('-'),
            (_, true, _) => text.push('+'),
            (_, _, true) => text.push(' '),
            _ => {}
        }
        let Some(precision) = self.flags.precision else {
            text.push_str(digits);
            return self.flags.pad_number(out, &text);
        };
        if precision == 0 && digits == "0" {
            return Flags {
                zero: false,
                ..self.flags
            }
            .pad(out, "");
        }
        let (prefix, plain) =
            digits.split_at(if digits.starts_with("0x") || digits.starts_with("0b") {
                2
            } else {
                0
            });
        text.push_str(prefix);
        text.extend(std::iter::repeat_n(
            '0',
            precision.saturating_sub(plain.len()),
        ));
        text.push_str(plain);
        self.flags.pad_spaces(out, &text);
    }

    fn write_unicode(self, out: &mut String, magnitude: u64, negative: bool) {
        let code = if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        };
        let width = self.flags.precision.unwrap_or(4).max(4);
        let mut text = format!("U+{code:0width$X}");
        let character = rune(magnitude, negative);
        if self.flags.sharp && is_print(character) {
            let _ = write!(text, " '{character}'");
        }
        self.flags.pad_spaces(out, &text);
    }

    fn write_float(self, out: &mut String, number: f64, kind: FloatKind) -> bool {
        let text = self.float_text(number, kind);
        match &text {
            Some(text) if number.is_finite() => self.flags.pad_number(out, text),
            Some(text) => self.flags.pad_spaces(out, text),
            None => {}
        }
        text.is_some()
    }

    /// A float with its sign, not yet padded.
    fn float_text(self, number: f64, kind: FloatKind) -> Option<String> {
        let (format, default) = match self.letter {
            'e' | 'E' => (FloatFormat::Exponent, Some(6)),
            'f' | 'F' => (FloatFormat::Fixed, Some(6)),
            'v' | 'g' | 'G' => (FloatFormat::General, None),
            'x' | 'X' => (FloatFormat::Hexadecimal, None),
            'b' => (FloatFormat::Binary, None),
            _ => return None,
        };
        let precision = self.flags.precision.or(default);
        let mut text = format_float(number, format, precision, kind);
        if self.flags.sharp && number.is_finite() && format != FloatFormat::Binary {
            let wanted = self.flags.precision.unwrap_or(6);
            let significant = match format {
                FloatFormat::General => Some(wanted),
                // Go counts the `x` of the prefix as a digit.
                FloatFormat::Hexadecimal => Some(wanted.saturating_sub(1)),
                _ => None,
            };
            text = with_point(&text, significant);
        }
        if matches!(self.letter, 'E' | 'G' | 'X') && number.is_finite() {
            text.make_ascii_uppercase();
        }
        Some(self.signed(text, number))
    }

    fn signed(self, text: String, number: f64) -> String {
        let bare = text.trim_start_matches('+');
        if text.starts_with('-') {
            text
        } else if self.flags.plus {
            format!("+{bare}")
        } else if self.flags.space {
            format!(" {bare}")
        } else if number.is_infinite() {
            text
        } else {
            bare.to_owned()
        }
    }

    fn write_complex(self, out: &mut String, re: f64, im: f64) -> bool {
        let (Some(real), Some(imaginary)) = (
            self.float_text(re, FloatKind::Float64),
            Self::new(
                self.letter,
                Flags {
                    plus: true,
                    ..self.flags
                },
            )
            .float_text(im, FloatKind::Float64),
        ) else {
            return false;
        };
        out.push('(');
        self.flags.pad_number(out, &real);
        self.flags.pad_number(out, &imaginary);
        out.push_str("i)");
        true
    }

    fn write_string(self, out: &mut String, bytes: &[u8]) -> bool {
        match self.letter {
            'v' if self.flags.go_syntax => self.write_quoted(out, bytes),
            'v' | 's' => self.flags.pad(out, self.flags.cut(&mark(bytes))),
            'x' | 'X' => self.write_hex(out, bytes),
            'q' => self.write_quoted(out, bytes),
            _ => return false,
        }
        true
    }

    fn write_quoted(self, out: &mut String, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let cut = self.flags.cut(&text);
        let bytes = if cut.len() == text.len() {
            bytes
        } else {
            cut.as_bytes()
        };
        let raw = self.flags.sharp
            && std::str::from_utf8(bytes).is_ok()
            && text.chars().all(fits_backquotes);
        let quoted = if raw {
            format!("`{cut}`")
        } else {
            quote(bytes, self.flags.plus)
        };
        self.flags.pad(out, &quoted);
    }

    fn write_hex(self, out: &mut String, bytes: &[u8]) {
        let length = self
            .flags
            .precision
            .map_or(bytes.len(), |precision| precision.min(bytes.len()));
        let prefix = match (self.flags.sharp, self.letter) {
            (true, 'x') => "0x",
            (true, _) => "0X",
            _ => "",
        };
        let mut text = String::new();
        for (index, byte) in bytes[..length].iter().enumerate() {
            if index > 0 && self.flags.space {
                text.push(' ');
            }
            if index == 0 || self.flags.space {
                text.push_str(prefix);
            }
            let _ = if self.letter == 'x' {
                write!(text, "{byte:02x}")
            } else {
                write!(text, "{byte:02X}")
            };
        }
        self.flags.pad(out, &text);
    }

    fn write_bytes(self, out: &mut String, bytes: &[u8]) -> bool {
        match self.letter {
            'v' if self.flags.go_syntax => {
                let items: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
                let _ = write!(out, "[]byte{{{}}}", items.join(", "));
            }
            'v' | 'd' => {
                out.push('[');
                for (index, byte) in bytes.iter().enumerate() {
                    if out.len() > self.limit {
                        return true;
                    }
                    if index > 0 {
                        out.push(' ');
                    }
                    self.write_integer(out, u64::from(*byte), Sign::None);
                }
                out.push(']');
            }
            _ => return self.write_string(out, bytes),
        }
        true
    }

    /// Appends a slice of the given type; `None` for one that was never made.
    pub fn write_list<'a, O: Operand + 'a>(
        self,
        out: &mut String,
        type_name: &str,
        items: Option<impl Iterator<Item = &'a O>>,
        depth: usize,
    ) {
        if self.flags.go_syntax && items.is_none() {
            let _ = write!(out, "{type_name}(nil)");
            return;
        }
        let (open, separator, close) = if self.flags.go_syntax {
            out.push_str(type_name);
            ('{', ", ", '}')
        } else {
            ('[', " ", ']')
        };
        out.push(open);
        for (index, item) in items.into_iter().flatten().enumerate() {
            if index > 0 {
                out.push_str(separator);
            }
            self.write(out, item, depth + 1);
        }
        out.push(close);
    }

    /// Appends a map of the given type, its keys in order; `None` for one that was never made.
    pub fn write_map<'a, O: Operand + 'a>(
        self,
        out: &mut String,
        type_name: &str,
        entries: Option<impl Iterator<Item = (&'a [u8], &'a O)>>,
        depth: usize,
    ) {
        if self.flags.go_syntax && entries.is_none() {
            let _ = write!(out, "{type_name}(nil)");
            return;
        }
        let (open, separator, close) = if self.flags.go_syntax {
            out.push_str(type_name);
            ("{", ", ", '}')
        } else {
            ("map[", " ", ']')
        };
        out.push_str(open);
        for (index, (key, item)) in entries.into_iter().flatten().enumerate() {
            if index > 0 {
                out.push_str(separator);
            }
            self.write(out, &Key(key), depth + 1);
            out.push(':');
            self.write(out, item, depth + 1);
        }
        out.push(close);
    }
}

/// The key of a map.
struct Key<'a>(&'a [u8]);

impl Operand for Key<'_> {
    fn scalar(&self) -> OperandValue<'_> {
        OperandValue::Str(self.0)
    }

    fn type_name(&self) -> Cow<'_, str> {
        "string".into()
    }

    fn write_parts(&self, _: &mut String, _: Verb, _: usize) {}
}

/// The sign of an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Its type has no sign.
    None,
    Positive,
    Negative,
}

impl Sign {
    fn of(number: i64) -> Self {
        if number < 0 {
            Self::Negative
        } else {
            Self::Positive
        }
    }
}

/// Whether a character can stand between back quotes: no line ends or other controls but the tab.
fn fits_backquotes(character: char) -> bool {
    match character {
        '\t' => true,
        '`' | '\u{7f}' | '\u{feff}' => false,
        _ => character >= ' ',
    }
}

/// A float under the flag `#`: always with a point, and `%g` keeps its zeros.
fn with_point(text: &str, significant: Option<usize>) -> String {
    let unsigned = text.trim_start_matches(['-', '+', ' ']);
    let is_hex = unsigned.starts_with("0x");
    let end = text
        .find(if is_hex { 'p' } else { 'e' })
        .unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(end);
    let mut out = mantissa.to_owned();
    if !out.contains('.') {
        out.push('.');
    }
    if let Some(wanted) = significant {
        let digits = mantissa
            .trim_start_matches(['-', '+', ' '])
            .trim_start_matches("0x");
        let digits = digits.trim_start_matches(['0', '.']);
        let counted = digits.bytes().filter(u8::is_ascii_hexdigit).count();
        // A zero before the point counts only in zero itself.
        let counted = if digits.is_empty() { 1 } else { counted };
        out.extend(std::iter::repeat_n('0', wanted.saturating_sub(counted)));
    }
    out + exponent
}

/// The character of a code, U+FFFD where there is none.
fn rune(magnitude: u64, negative: bool) -> char {
    u32::try_from(magnitude)
        .ok()
        .filter(|_| !negative)
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
