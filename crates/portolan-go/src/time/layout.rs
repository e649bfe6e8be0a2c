//! Layouts: a reference time in pieces, such as `2006-01-02 15:04:05`.

/// A piece of a layout that stands for a part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    LongMonth,
    ShortMonth,
    NumericMonth,
    ZeroMonth,
    LongWeekday,
    ShortWeekday,
    Day,
    SpaceDay,
    ZeroDay,
    SpaceYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperMeridiem,
    LowerMeridiem,
    ZoneName,
    Offset(Offset),
    /// `.000`: so many digits.
    Fraction(usize),
    /// `.999`: up to so many digits, zeros at the end left out.
    TrimmedFraction(usize),
}

/// How an offset from Greenwich is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// `Z` stands for no offset.
    pub(super) z_for_utc: bool,
    pub(super) colons: bool,
    pub(super) minutes: bool,
    pub(super) seconds: bool,
}

/// A layout cut at its first element.
pub(super) struct Piece<'l> {
    /// Text that stands for itself.
    pub(super) prefix: &'l str,
    /// The element with its spelling; none at the end.
    pub(super) element: Option<(Element, &'l str)>,
    /// What follows.
    pub(super) rest: &'l str,
}

/// Cuts a layout at its first element.
pub(super) fn next_piece(layout: &str) -> Piece<'_> {
    for (at, _) in layout.char_indices() {
        let rest = &layout[at..];
        // `_2006` is an underscore and a year.
        if rest.starts_with("_2006") {
            continue;
        }
        if let Some((element, length)) = element_at(rest) {
            return Piece {
                prefix: &layout[..at],
                element: Some((element, &rest[..length])),
                rest: &rest[length..],
            };
        }
    }
    Piece {
        prefix: layout,
        element: None,
        rest: "",
    }
}

/// The element that an offset's spelling stands for.
const fn offset(spelling: &str) -> (&str, Element) {
    let bytes = spelling.as_bytes();
    let colons = bytes.len() > 3 && bytes[3] == b':';
    let element = Element::Offset(Offset {
        z_for_utc: bytes[0] == b'Z',
        colons,
        minutes: bytes.len() > 3,
        seconds: bytes.len() > 6,
    });
    (spelling, element)
}

/// Every fixed spelling; longer ones stand before their beginnings.
const SPELLINGS: &[(&str, Element)] = &[
    ("January", Element::LongMonth),
    ("Monday", Element::LongWeekday),
    ("MST", Element::ZoneName),
    ("002", Element::ZeroYearDay),
    ("01", Element::ZeroMonth),
    ("02", Element::ZeroDay),
    ("03", Element::ZeroHour12),
    ("04", Element::ZeroMinute),
    ("05", Element::ZeroSecond),
    ("06", Element::Year),
    ("15", Element::Hour),
    ("1", Element::NumericMonth),
    ("2006", Element::LongYear),
    ("2", Element::Day),
    ("__2", Element::SpaceYearDay),
    ("_2", Element::SpaceDay),
    ("3", Element::Hour12),
    ("4", Element::Minute),
    ("5", Element::Second),
    ("PM", Element::UpperMeridiem),
    ("pm", Element::LowerMeridiem),
    offset("-070000"),
    offset("-07:00:00"),
    offset("-0700"),
    offset("-07:00"),
    offset("-07"),
    offset("Z070000"),
    offset("Z07:00:00"),
    offset("Z0700"),
    offset("Z07:00"),
    offset("Z07"),
];

/// The element that a layout begins with, and the length of its spelling.
fn element_at(layout: &str) -> Option<(Element, usize)> {
    let fixed = SPELLINGS
        .iter()
        .find(|(spelling, _)| layout.starts_with(spelling));
    if let Some((spelling, element)) = fixed {
        return Some((*element, spelling.len()));
    }
    // Short names do not end inside a word.
    let word_goes_on = layout.as_bytes().get(3).is_some_and(u8::is_ascii_lowercase);
    if layout.starts_with("Jan") && !word_goes_on {
        return Some((Element::ShortMonth, 3));
    }
    if layout.starts_with("Mon") && !word_goes_on {
        return Some((Element::ShortWeekday, 3));
    }
    fraction_at(layout)
}

/// `.000`, `,999`: a run of one digit that no other digit follows.
fn fraction_at(layout: &str) -> Option<(Element, usize)> {
    let digits = layout.strip_prefix(['.', ','])?;
    let digit = digits
        .chars()
        .next()
        .filter(|digit| matches!(digit, '0' | '9'))?;
    let count = digits.chars().take_while(|next| *next == digit).count();
    if digits[count..].starts_with(|next: char| next.is_ascii_digit()) {
        return None;
    }
    let element = match digit {
        '0' => Element::Fraction(count),
        _ => Element::TrimmedFraction(count),
    };
    Some((element, count + 1))
}
