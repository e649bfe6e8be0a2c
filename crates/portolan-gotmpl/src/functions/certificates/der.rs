//! DER: the binary form of keys and certificates, written and read element by element.

/// The tags used here.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of something that its number in the structure names, holding other elements.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// The same, holding bytes.
pub(super) const fn context_bytes(number: u8) -> u8 {
    0x80 | number
}

/// An element: tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let used = &bytes[length.leading_zeros() as usize / 8..];
        out.push(0x80 | used.len() as u8);
        out.extend_from_slice(used);
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of elements.
pub(super) fn sequence(elements: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &elements.concat())
}

/// A positive integer from its bytes, highest first.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut content = bytes[zeros..].to_vec();
    if content.first().is_none_or(|first| *first >= 0x80) {
        content.insert(0, 0);
    }
    element(INTEGER, &content)
}

/// A string of whole bytes as bits.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// An object identifier from its encoded parts.
pub(super) fn object_id(encoded: &[u8]) -> Vec<u8> {
    element(OBJECT_ID, encoded)
}

/// Reads elements one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
}

/// An element that was read.
#[derive(Clone, Copy)]
pub(super) struct Element<'b> {
    pub(super) tag: u8,
    pub(super) content: &'b [u8],
    /// Tag and length included.
    pub(super) whole: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    /// The next element; none at the end or where the bytes are not DER.
    pub(super) fn next(&mut self) -> Option<Element<'b>> {
        let (tag, rest) = self.bytes.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match *first {
            short @ 0..0x80 => (usize::from(short), rest),
            long => {
                let count = usize::from(long & 0x7f);
                let (digits, rest) = rest
                    .split_at_checked(count)
                    .filter(|_| (1..=4).contains(&count))?;
                let length = digits
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte));
                (length, rest)
            }
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = &self.bytes[..self.bytes.len() - after.len()];
        self.bytes = after;
        Some(Element {
            tag: *tag,
            content,
            whole,
        })
    }

    /// The next element, when it has this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<Element<'b>> {
        self.next().filter(|element| element.tag == tag)
    }
}

impl<'b> Element<'b> {
    /// The elements inside.
    pub(super) fn inside(self) -> Reader<'b> {
        Reader::new(self.content)
    }
}
