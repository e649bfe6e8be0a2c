//! What a text contains; this decides how it may be written.

/// The forms a text allows.
#[derive(Clone, Copy)]
pub(super) struct Analysis {
    /// It holds line breaks.
    pub multiline: bool,
    pub plain_allowed: bool,
    pub single_allowed: bool,
    pub block_allowed: bool,
    /// It holds characters that must be escaped.
    pub special: bool,
}

/// What was seen while going through a text.
#[derive(Default)]
struct Seen {
    indicators: bool,
    breaks: bool,
    special: bool,
    tabs: bool,
    leading_space: bool,
    leading_break: bool,
    trailing_space: bool,
    trailing_break: bool,
    break_space: bool,
    space_break: bool,
}

static BORING: [bool; 256] = boring();

/// Bytes that never matter after the first one.
const fn boring() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, 0x21..=0x22 | 0x24..=0x39 | 0x3b..=0x7e);
        byte += 1;
    }
    table
}

impl Analysis {
    /// Looks at a text; v3 allows tabs in block scalars.
    pub(super) fn of(text: &str, tabs_in_blocks: bool) -> Self {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Self {
                multiline: false,
                plain_allowed: true,
                single_allowed: true,
                block_allowed: false,
                special: false,
            };
        }
        let mut seen = Seen::default();
        seen.look_at_start(bytes);
        seen.look_at_all(bytes);
        seen.verdict(tabs_in_blocks)
    }
}

impl Seen {
    fn look_at_start(&mut self, bytes: &[u8]) {
        let alone = matches!(bytes.get(1), None | Some(b' ' | b'\t'));
        self.indicators = bytes.starts_with(b"---")
            || bytes.starts_with(b"...")
            || match bytes[0] {
                b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>'
                | b'\'' | b'"' | b'%' | b'@' | b'`' => true,
                b'?' | b':' | b'-' => alone,
                _ => false,
            };
    }

    fn look_at_all(&mut self, bytes: &[u8]) {
        let (mut at, mut after_space, mut after_break) = (0, false, false);
        let mut after_white = true;
        while let Some(&byte) = bytes.get(at) {
            if BORING[byte as usize] {
                (after_space, after_break, after_white) = (false, false, false);
                at += 1;
                continue;
            }
            let width = width(byte);
            let next = bytes.get(at + width);
            let (first, last) = (at == 0, next.is_none());
            match byte {
                b':' if !first => self.indicators |= matches!(next, None | Some(b' ' | b'\t')),
                b'#' if !first => self.indicators |= after_white,
                b'\t' => self.tabs = true,
                _ => self.special |= !is_printable(&bytes[at..]),
            }
            let is_break = is_break(&bytes[at..]);
            if byte == b' ' {
                self.leading_space |= first;
                self.trailing_space |= last;
                self.break_space |= after_break;
            } else if is_break {
                self.breaks = true;
                self.leading_break |= first;
                self.trailing_break |= last;
                self.space_break |= after_space;
            }
            (after_space, after_break) = (byte == b' ', is_break);
            after_white = is_break || matches!(byte, b' ' | b'\t' | 0);
            at += width;
        }
    }

    fn verdict(&self, tabs_in_blocks: bool) -> Analysis {
        let special = self.special || self.tabs && !tabs_in_blocks;
        let edges =
            self.leading_space || self.leading_break || self.trailing_space || self.trailing_break;
        let awkward = self.break_space || self.space_break || special || self.tabs;
        Analysis {
            multiline: self.breaks,
            plain_allowed: !(self.indicators || edges || awkward || self.breaks),
            single_allowed: !awkward,
            block_allowed: !(self.trailing_space || self.space_break || special),
            special,
        }
    }
}

/// How many bytes a character has.
pub(super) fn width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// Whether the character at the start may be written as it is; those beyond U+FFFF may not.
pub(super) fn is_printable(bytes: &[u8]) -> bool {
    match *bytes {
        [0xc2, second, ..] => second >= 0xa0,
        [0xef, 0xbb, 0xbf, ..] => false,
        [0xef, 0xbf, third, ..] => third < 0xbe,
        [b'\n' | 0x20..=0x7e | 0xc3..=0xef, ..] => true,
        _ => false,
    }
}

/// Whether a line break is at the start.
pub(super) fn is_break(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [b'\r' | b'\n', ..] | [0xc2, 0x85, ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..]
    )
}
