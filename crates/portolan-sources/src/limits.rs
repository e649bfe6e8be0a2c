//! Limits on what is accepted from remote servers.

const MEBIBYTE: u64 = 1024 * 1024;

/// Bounds on what is fetched and unpacked; the defaults are far above what is in use and below what would hurt.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest `index.yaml`: the largest public ones have 30 MiB.
    pub index_bytes: u64,
    /// The largest chart archive: Helm refuses charts above 100 MiB unpacked.
    pub chart_bytes: u64,
    /// The largest layer of an artifact, and the most of all objects of a bucket together.
    pub artifact_bytes: u64,
    /// The most bytes that a fetch from a git remote may bring.
    pub git_bytes: u64,
    /// The largest single file.
    pub file_bytes: u64,
    /// The most bytes that an archive may unpack to.
    pub unpacked_bytes: u64,
    /// The most entries of an archive or bucket.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            index_bytes: 256 * MEBIBYTE,
            chart_bytes: 100 * MEBIBYTE,
            artifact_bytes: 256 * MEBIBYTE,
            git_bytes: 1024 * MEBIBYTE,
            file_bytes: 64 * MEBIBYTE,
            unpacked_bytes: 512 * MEBIBYTE,
            entries: 100_000,
        }
    }
}
