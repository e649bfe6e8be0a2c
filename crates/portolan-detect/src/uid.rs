//! The uid of a node: the uuid of its Node object, as bytes.

use std::fmt;
use std::str::FromStr;

use portolan_digest::hex;

/// The uid of a node. Its text is that of a uuid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeUid(pub [u8; 16]);

/// The text is not a uuid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the uid of a node: a uuid is 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12"
)]
pub struct NodeUidError(String);

/// Where the hyphens of a uuid stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl FromStr for NodeUid {
    type Err = NodeUidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).ok_or_else(|| NodeUidError(text.to_owned()))
    }
}

fn read(text: &str) -> Option<NodeUid> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 || HYPHENS.iter().any(|at| bytes.get(*at) != Some(&b'-')) {
        return None;
    }
    let mut digits = text.chars().filter(|letter| *letter != '-');
    let mut uid = [0; 16];
    for byte in &mut uid {
        let high = digits.next()?.to_digit(16)?;
        let low = digits.next()?.to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    digits.next().is_none().then_some(NodeUid(uid))
}

impl fmt::Display for NodeUid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b, c, d, e) = (
            hex(&self.0[..4]),
            hex(&self.0[4..6]),
            hex(&self.0[6..8]),
            hex(&self.0[8..10]),
            hex(&self.0[10..]),
        );
        write!(out, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for NodeUid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_uid_reads_as_the_same_uid() {
        let text = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9";
        let uid: NodeUid = text.parse().expect("a uuid");
        assert_eq!(uid.to_string(), text);
        assert_eq!(uid.0[0], 0x0a);
    }

    #[test]
    fn other_texts_are_refused_by_name() {
        for text in [
            "",
            "web-1",
            "0a1b2c3d4e5f40718293a4b5c6d7e8f9",
            "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f",
            "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8fg",
            "0a1b2c3d-4e5f-4071-8293-a4b5c6d7-8f9",
            "ä1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9a",
        ] {
            let refused = text.parse::<NodeUid>().expect_err(text);
            assert!(refused.to_string().contains(text), "{refused}");
        }
    }
}
