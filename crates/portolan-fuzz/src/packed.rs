//! Packs bytes as the tools do, so a fuzzer does not have to guess checksums.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The bytes in a gzip stream.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(bytes).expect("memory takes all");
    packed.finish().expect("memory takes all")
}

/// A tar archive of texts.
pub(crate) fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, path, text.as_bytes())
            .expect("memory takes all");
    }
    archive.into_inner().expect("memory takes all")
}
