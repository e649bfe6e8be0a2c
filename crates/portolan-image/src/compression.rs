//! How layers are compressed: in blocks of a fixed length, so the bytes do not depend on the number of threads.
//!
//! gzip blocks are independent deflate streams that end at a byte boundary, inside one gzip member, so any reader
//! sees one ordinary file. zstd blocks are consecutive frames. zlib-rs is called directly for deflate, because the
//! implementation that the `flate2` crate uses depends on the other crates in the build.

use zlib_rs::{Deflate, DeflateFlush, Status};

/// How layers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, which everything reads, with a level from 1 to 9.
    Gzip {
        /// 1 is fast, 9 is small.
        level: u8,
    },
    /// zstd, which containerd 1.5 and newer and CRI-O read.
    Zstd,
}

/// The level of zstd: one for all, as its bytes must not depend on a choice.
const ZSTD_LEVEL: i32 = 3;

/// The window of deflate, as a power of two.
const WINDOW_BITS: u8 = 15;

/// gzip's header without a name, a time and a system.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The last, empty block of deflate.
const DEFLATE_END: [u8; 2] = [3, 0];

/// A block that could not be compressed: a defect, never a matter of the content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot compress a block: {0}")]
pub struct CompressError(String);

impl Default for Compression {
    fn default() -> Self {
        Self::Gzip { level: 6 }
    }
}

impl Compression {
    /// The media type of a layer.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Gzip { .. } => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }

    /// Names what decides the bytes: method, level and a number that rises whenever they change. It is part of every key.
    pub fn version(self) -> String {
        match self {
            Self::Gzip { level } => format!("gzip-{level}/1"),
            Self::Zstd => format!("zstd-{ZSTD_LEVEL}/1"),
        }
    }

    /// The length of a block.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::Gzip { .. } => 1 << 20,
            Self::Zstd => 2 << 20,
        }
    }

    /// What stands before the blocks.
    pub(crate) fn head(self) -> &'static [u8] {
        match self {
            Self::Gzip { .. } => &GZIP_HEAD,
            Self::Zstd => &[],
        }
    }

    /// What stands after the blocks.
    pub(crate) fn tail(self, checksum: u32, length: u64) -> Vec<u8> {
        match self {
            Self::Gzip { .. } => {
                let mut tail = DEFLATE_END.to_vec();
                tail.extend_from_slice(&checksum.to_le_bytes());
                tail.extend_from_slice(&(length as u32).to_le_bytes());
                tail
            }
            Self::Zstd => Vec::new(),
        }
    }
}

/// Compresses blocks, one after the other; each thread has its own.
pub(crate) enum Compressor {
    Gzip(Box<Deflate>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(crate) fn new(compression: Compression) -> Result<Self, CompressError> {
        Ok(match compression {
            Compression::Gzip { level } => {
                let level = i32::from(level.clamp(1, 9));
                Self::Gzip(Box::new(Deflate::new(level, false, WINDOW_BITS)))
            }
            Compression::Zstd => Self::Zstd(
                zstd::bulk::Compressor::new(ZSTD_LEVEL)
                    .map_err(|error| CompressError(error.to_string()))?,
            ),
        })
    }

    /// Compresses one block in place of what `output` held, and returns its CRC-32, or 0 if the format wants none.
    pub(crate) fn block(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<u32, CompressError> {
        output.clear();
        match self {
            Self::Gzip(deflate) => {
                deflate_block(deflate, input, output)?;
                Ok(crc32fast::hash(input))
            }
            Self::Zstd(compressor) => {
                output.reserve(zstd::zstd_safe::compress_bound(input.len()));
                compressor
                    .compress_to_buffer(input, output)
                    .map_err(|error| CompressError(error.to_string()))?;
                Ok(0)
            }
        }
    }
}

fn deflate_block(
    deflate: &mut Deflate,
    input: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), CompressError> {
    deflate.reset();
    // The fastest levels may write nine bits for a byte.
    output.resize(input.len() + input.len() / 8 + 1024, 0);
    let status = deflate
        .compress(input, output, DeflateFlush::SyncFlush)
        .map_err(|error| CompressError(error.as_str().to_owned()))?;
    let (read, written) = (deflate.total_in() as usize, deflate.total_out() as usize);
    if status != Status::Ok || read != input.len() || written >= output.len() {
        return Err(CompressError(format!("{read} of {} bytes", input.len())));
    }
    output.truncate(written);
    Ok(())
}
