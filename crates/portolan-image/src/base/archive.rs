//! Reads the names in a layer of an image, and contents for who wants them.
//!
//! The `tar` crate reads names of any length into memory; these layers come from registries, so names have a limit here.

use std::io::{self, Read};

/// The longest extended header: names, attributes and what else stands there.
const MAX_EXTENSION: u64 = 1 << 20;

const BLOCK: usize = 512;

/// How much of a file is read at a time.
const PIECE: usize = 64 << 10;

/// One name of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// As it is written.
    pub(super) path: Vec<u8>,
    /// The letter of its kind: `5` is a directory, `2` a symbolic link.
    pub(super) kind: u8,
    /// What a link says.
    pub(super) target: Vec<u8>,
    /// Its permissions.
    pub(super) mode: u32,
    /// The numbers of its user and group.
    pub(super) owner: (u64, u64),
}

/// Reads names one after the other.
pub(super) struct Archive<R> {
    reader: R,
    /// The bytes of content that are still to be skipped.
    content: u64,
    /// The bytes behind it, up to the next block.
    padding: u64,
}

/// What extended headers say of the next name.
#[derive(Default)]
struct Extension {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    user: Option<u64>,
    group: Option<u64>,
}

impl<R: Read> Archive<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            content: 0,
            padding: 0,
        }
    }

    /// The next name; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        let mut extension = Extension::default();
        loop {
            self.skip_content()?;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let size = number(&header[124..136])?;
            match header[156] {
                b'x' => self.extended(size, &mut extension)?,
                b'g' => drop(self.small(size)?),
                b'L' => extension.path = Some(until_zero(&self.small(size)?).to_vec()),
                b'K' => extension.target = Some(until_zero(&self.small(size)?).to_vec()),
                kind => {
                    self.content = content_length(kind, extension.size.unwrap_or(size));
                    self.padding = padding(self.content);
                    return Ok(Some(Found {
                        path: extension.path.unwrap_or_else(|| name(&header)),
                        kind,
                        target: extension
                            .target
                            .unwrap_or_else(|| until_zero(&header[157..257]).to_vec()),
                        mode: u32::try_from(number(&header[100..108])? & 0o7777).unwrap_or(0),
                        owner: (
                            extension
                                .user
                                .map_or_else(|| number(&header[108..116]), Ok)?,
                            extension
                                .group
                                .map_or_else(|| number(&header[116..124]), Ok)?,
                        ),
                    }));
                }
            }
        }
    }

    /// The next header; `None` at the end, which is an empty block or the end of the file.
    fn header(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut header = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.reader.read(&mut header[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(invalid("it ends inside a header")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = header.iter().enumerate().map(|(at, byte)| match at {
            148..156 => u64::from(b' '),
            _ => u64::from(*byte),
        });
        if sum.sum::<u64>() != number(&header[148..156])? {
            return Err(invalid("a header's checksum is wrong"));
        }
        Ok(Some(header))
    }

    /// Gives the content of the file whose name was read last, in pieces.
    pub(super) fn read_content(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while self.content > 0 {
            let most = usize::try_from(self.content).unwrap_or(PIECE).min(PIECE);
            match self.reader.read(&mut piece[..most]) {
                Ok(0) => return Err(invalid("it ends inside a file")),
                Ok(read) => {
                    take(&piece[..read]);
                    self.content -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn skip_content(&mut self) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.reader).take(self.content), &mut io::sink())?;
        if skipped < self.content {
            return Err(invalid("it ends inside a file"));
        }
        // Some programs (umoci) write nothing behind the content of the last file.
        io::copy(&mut (&mut self.reader).take(self.padding), &mut io::sink())?;
        (self.content, self.padding) = (0, 0);
        Ok(())
    }

    /// A short content, read whole.
    fn small(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > MAX_EXTENSION {
            return Err(invalid("a name is too long"));
        }
        let mut content = Vec::new();
        (&mut self.reader).take(size).read_to_end(&mut content)?;
        if (content.len() as u64) < size {
            return Err(invalid("it ends inside a name"));
        }
        self.padding = padding(size);
        Ok(content)
    }

    fn extended(&mut self, size: u64, extension: &mut Extension) -> io::Result<()> {
        let content = self.small(size)?;
        let mut rest = content.as_slice();
        while !rest.is_empty() {
            let (keyword, value, after) =
                record(rest).ok_or_else(|| invalid("an extended header is broken"))?;
            match keyword {
                b"path" => extension.path = Some(value.to_vec()),
                b"linkpath" => extension.target = Some(value.to_vec()),
                b"size" => extension.size = Some(decimal(value)?),
                b"uid" => extension.user = Some(decimal(value)?),
                b"gid" => extension.group = Some(decimal(value)?),
                _ => {}
            }
            rest = after;
        }
        Ok(())
    }
}

/// A number of an extended header.
fn decimal(value: &[u8]) -> io::Result<u64> {
    let digits = std::str::from_utf8(value).ok();
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| invalid("a number of an extended header is none"))
}

/// Links, directories and devices have no content, whatever their headers say.
fn content_length(kind: u8, size: u64) -> u64 {
    if (b'1'..=b'6').contains(&kind) {
        0
    } else {
        size
    }
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK as u64
}

/// `length keyword=value\n` and what follows.
fn record(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
    let (record, after) = text.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], after))
}

fn name(header: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_zero(&header[..100]);
    let prefix = until_zero(&header[345..500]);
    let is_ustar = &header[257..263] == b"ustar\0";
    if !is_ustar || prefix.is_empty() {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

fn until_zero(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// A number in octal digits, or in binary if its first bit says so.
fn number(field: &[u8]) -> io::Result<u64> {
    let out_of_range = || invalid("a number is out of range");
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        let bytes = std::iter::once(first & 0x7f).chain(rest.iter().copied());
        return bytes.into_iter().try_fold(0_u64, |number, byte| {
            let shifted = number.checked_mul(256).ok_or_else(out_of_range)?;
            Ok(shifted | u64::from(byte))
        });
    }
    let digits = until_zero(field).trim_ascii();
    digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'7' => number
            .checked_mul(8)
            .map(|number| number | u64::from(digit - b'0'))
            .ok_or_else(out_of_range),
        _ => Err(invalid("a number has other characters than digits")),
    })
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
