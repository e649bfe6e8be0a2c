//! What a build of an image reads from and writes to.

use crate::blob::BlobSink;
use crate::block::BlockCache;
use crate::image::LayerCache;
use crate::memo::Memo;
use crate::source::Source;

/// What a build reads from and writes to.
#[derive(Clone, Copy)]
pub struct BuildIo<'a> {
    /// The files.
    pub source: &'a dyn Source,
    /// Digests of files by their states: a file in such a state is not hashed again while it is copied.
    pub memo: &'a Memo,
    /// Layers known from before.
    pub cache: &'a dyn LayerCache,
    /// Compressed blocks known from before.
    pub blocks: &'a dyn BlockCache,
    /// Where blobs go.
    pub sink: &'a dyn BlobSink,
    /// How many threads compress.
    pub threads: usize,
}
