//! Flags, width and padding of one formatting directive.

/// What stands between `%` and the verb.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    /// `%#v`: as the value would be written in Go.
    pub(super) go_syntax: bool,
    /// `%+v`: the fields of structs with their names.
    pub(super) field_names: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
}

impl Flags {
    /// Nothing.
    pub(super) const NONE: Self = Self {
        width: None,
        precision: None,
        minus: false,
        plus: false,
        sharp: false,
        go_syntax: false,
        field_names: false,
        space: false,
        zero: false,
    };

    /// `%#v` and `%+v` have a meaning of their own; the plain flags are then not meant.
    pub(super) fn for_verb(self, letter: char) -> Self {
        if letter != 'v' {
            return self;
        }
        Self {
            go_syntax: self.sharp,
            field_names: self.plus || self.sharp,
            sharp: false,
            plus: false,
            ..self
        }
    }

    /// Whether nothing was asked for.
    pub(super) fn is_plain(self) -> bool {
        self.width.is_none() && self.precision.is_none() && !self.plus && !self.space
    }

    /// Appends a text, padded with spaces (or zeros) to the width in characters.
    pub(super) fn pad(&self, out: &mut String, text: &str) {
        let missing = self
            .width
            .map_or(0, |width| width.saturating_sub(text.chars().count()));
        if self.minus {
            out.push_str(text);
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            let fill = if self.zero { '0' } else { ' ' };
            out.extend(std::iter::repeat_n(fill, missing));
            out.push_str(text);
        }
    }

    /// The same, never with zeros.
    pub(super) fn pad_spaces(&self, out: &mut String, text: &str) {
        Self {
            zero: false,
            ..*self
        }
        .pad(out, text);
    }

    /// Appends a number, zeros going between its sign and its digits.
    pub(super) fn pad_number(&self, out: &mut String, text: &str) {
        let signed = text.starts_with(['+', '-', ' ']);
        if self.zero && !self.minus && signed {
            let (sign, digits) = text.split_at(1);
            out.push_str(sign);
            let width = self.width.map(|width| width.saturating_sub(1));
            Self { width, ..*self }.pad(out, digits);
        } else {
            self.pad(out, text);
        }
    }

    /// Cuts a text to the precision in characters.
    pub(super) fn cut<'a>(&self, text: &'a str) -> &'a str {
        let end = self
            .precision
            .and_then(|count| text.char_indices().nth(count));
        end.map_or(text, |(end, _)| &text[..end])
    }
}
