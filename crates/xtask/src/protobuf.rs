//! The small part of protobuf's wire format that an `OpenAPI` document needs: it walks the fields of a message.

use anyhow::{Context, Result, bail};

/// A message: the bytes of its fields.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a>(pub(crate) &'a [u8]);

impl<'a> Message<'a> {
    /// The length-delimited fields with this number, in order.
    pub(crate) fn all(self, number: u64) -> Result<Vec<&'a [u8]>> {
        let mut found = Vec::new();
        let mut rest = self.0;
        while !rest.is_empty() {
            let tag = varint(&mut rest)?;
            match tag & 7 {
                0 => drop(varint(&mut rest)?),
                1 => drop(take(&mut rest, 8)?),
                5 => drop(take(&mut rest, 4)?),
                2 => {
                    let length = varint(&mut rest)?;
                    let content = take(&mut rest, usize::try_from(length)?)?;
                    if tag >> 3 == number {
                        found.push(content);
                    }
                }
                other => bail!("unknown wire type {other}"),
            }
        }
        Ok(found)
    }

    pub(crate) fn messages(self, number: u64) -> Result<Vec<Self>> {
        Ok(self.all(number)?.into_iter().map(Message).collect())
    }

    pub(crate) fn message(self, number: u64) -> Result<Option<Self>> {
        Ok(self.all(number)?.pop().map(Message))
    }

    pub(crate) fn text(self, number: u64) -> Result<&'a str> {
        let bytes = self.all(number)?.pop().unwrap_or_default();
        std::str::from_utf8(bytes).context("text is not UTF-8")
    }
}

fn varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    bail!("a varint is too long")
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (head, tail) = rest
        .split_at_checked(length)
        .context("the message ends early")?;
    *rest = tail;
    Ok(head)
}
