//! Properties of a node: `&anchor`, `*alias` and `!tag`.

use super::Scanner;
use crate::error::Fallible;
use crate::read::token::{Mark, TagParts, Token, TokenKind};

impl Scanner<'_> {
    pub(super) fn scan_anchor(&mut self) -> Fallible<Token> {
        let start = self.cursor.mark();
        let alias = self.cursor.byte() == b'*';
        self.cursor.pos += 1;
        let name = self.scan_word();
        let end = self.cursor.mark();
        let follows = matches!(
            self.cursor.byte(),
            b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
        );
        if name.is_empty() || !(follows || self.cursor.is_blankz(0)) {
            let message = "did not find expected alphabetic or numeric character";
            return self.fail(start, message);
        }
        let kind = if alias {
            TokenKind::Alias(name.into())
        } else {
            TokenKind::Anchor(name.into())
        };
        Ok(Token { kind, start, end })
    }

    pub(super) fn scan_tag(&mut self) -> Fallible<Token> {
        let start = self.cursor.mark();
        let (handle, rest) = if self.cursor.peek(1) == b'<' {
            self.cursor.pos += 2;
            let suffix = self.scan_tag_uri("", start)?;
            if self.cursor.byte() != b'>' {
                return self.fail(start, "did not find the expected '>'");
            }
            self.cursor.pos += 1;
            (String::new(), suffix)
        } else {
            self.scan_short_tag(start)?
        };
        if !self.cursor.is_blankz(0) {
            return self.fail(start, "did not find expected whitespace or line break");
        }
        Ok(Token {
            kind: TokenKind::Tag(Box::new(TagParts { handle, rest })),
            start,
            end: self.cursor.mark(),
        })
    }

    /// `!handle!suffix`, `!suffix` or `!` alone, which is a suffix without a handle.
    fn scan_short_tag(&mut self, start: Mark) -> Fallible<(String, String)> {
        let handle = self.scan_tag_handle(false, start)?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.scan_tag_uri("", start)?;
            return Ok((handle, suffix));
        }
        let suffix = self.scan_tag_uri(&handle, start)?;
        match suffix.as_str() {
            "" => Ok((suffix, "!".to_owned())),
            _ => Ok(("!".to_owned(), suffix)),
        }
    }

    pub(super) fn scan_tag_handle(&mut self, directive: bool, start: Mark) -> Fallible<String> {
        if self.cursor.byte() != b'!' {
            return self.fail(start, "did not find expected '!'");
        }
        self.cursor.pos += 1;
        let mut handle = String::from("!");
        handle.push_str(&self.scan_word());
        if self.cursor.byte() == b'!' {
            handle.push('!');
            self.cursor.pos += 1;
        } else if directive && handle != "!" {
            return self.fail(start, "did not find expected '!'");
        }
        Ok(handle)
    }

    /// The rest of a tag, after a head whose first character does not count.
    pub(super) fn scan_tag_uri(&mut self, head: &str, start: Mark) -> Fallible<String> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut found = !head.is_empty();
        while is_uri(self.cursor.byte()) {
            found = true;
            if self.cursor.byte() == b'%' {
                self.scan_uri_escape(start, &mut uri)?;
            } else {
                uri.push(self.cursor.byte());
                self.cursor.pos += 1;
            }
        }
        if !found {
            return self.fail(start, "did not find expected tag URI");
        }
        match String::from_utf8(uri) {
            Ok(uri) => Ok(uri),
            Err(_) => self.fail(start, "found an incorrect trailing UTF-8 octet"),
        }
    }

    /// One character written as `%C3%A9`.
    fn scan_uri_escape(&mut self, start: Mark, uri: &mut Vec<u8>) -> Fallible<()> {
        let first = self.scan_uri_octet(start)?;
        let width = match first {
            0..0x80 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0..0xf8 => 4,
            _ => return self.fail(start, "found an incorrect leading UTF-8 octet"),
        };
        uri.push(first);
        for _ in 1..width {
            let next = self.scan_uri_octet(start)?;
            if next & 0xc0 != 0x80 {
                return self.fail(start, "found an incorrect trailing UTF-8 octet");
            }
            uri.push(next);
        }
        Ok(())
    }

    fn scan_uri_octet(&mut self, start: Mark) -> Fallible<u8> {
        let digit = |ahead| char::from(self.cursor.peek(ahead)).to_digit(16);
        let (b'%', Some(high), Some(low)) = (self.cursor.byte(), digit(1), digit(2)) else {
            return self.fail(start, "did not find URI escaped octet");
        };
        self.cursor.pos += 3;
        Ok((high << 4 | low) as u8)
    }
}

fn is_uri(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || (byte != 0 && b"_-;/?:@&=+$,.!~*'()[]%".contains(&byte))
}
