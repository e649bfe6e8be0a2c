//! Chart archives: a gzipped tar whose first path component is dropped.
//!
//! Nothing is written to disk. Paths that leave the chart, and archives that unpack to more than Helm itself allows,
//! are refused; the unpacked bytes are counted while the stream is read, so a gzip bomb is stopped at the limit and
//! not when memory is used up. Links have no content and become empty files, as in Helm.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::ChartFile;

/// The largest sum of all files of one archive (Helm's limit).
pub const MAX_CHART_BYTES: u64 = 100 * 1024 * 1024;

/// The largest single file of a chart (Helm's limit).
pub const MAX_CHART_FILE_BYTES: u64 = 5 * 1024 * 1024;

/// The most entries of one archive: headers of empty files cost memory that the byte limits do not see.
pub const MAX_CHART_FILES: usize = 65_536;

/// The longest stream unpacked, padding and headers counted: the content limit and a header for every entry.
const MAX_STREAM_BYTES: u64 = MAX_CHART_BYTES + 4 * 512 * MAX_CHART_FILES as u64;

/// Why an archive is not a chart.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes are not a gzipped tar, or are cut off.
    #[error("cannot unpack the archive: {0}")]
    Damaged(#[from] io::Error),
    /// A path begins with a slash.
    #[error("chart illegally contains absolute paths")]
    AbsolutePath,
    /// A file lies outside the chart's directory.
    #[error("chart illegally contains content outside the base directory: {0:?}")]
    OutsideBase(String),
    /// A path climbs out with `..`.
    #[error("chart illegally references parent directory")]
    ParentDirectory,
    /// A path begins with a drive letter.
    #[error("chart contains illegally named files")]
    DrivePath,
    /// `Chart.yaml` lies beside, not in, the chart's directory.
    #[error("chart yaml not in base directory")]
    NoBaseDirectory,
    /// A name is not UTF-8.
    #[error("chart contains a file name that is not UTF-8")]
    NotUtf8,
    /// All files together are larger than [`MAX_CHART_BYTES`].
    #[error("decompressed chart is larger than the maximum file size {MAX_CHART_BYTES}")]
    TooLarge,
    /// One file is larger than [`MAX_CHART_FILE_BYTES`].
    #[error(
        "decompressed chart file {0:?} is larger than the maximum file size {MAX_CHART_FILE_BYTES}"
    )]
    FileTooLarge(String),
    /// The archive has more than [`MAX_CHART_FILES`] entries.
    #[error("chart archive has more than {MAX_CHART_FILES} entries")]
    TooManyFiles,
    /// There is no file in it.
    #[error("no files in chart archive")]
    Empty,
}

/// Unpacks an archive into its files, in the archive's order.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<ChartFile>, ArchiveError> {
    let stream = MultiGzDecoder::new(bytes).take(MAX_STREAM_BYTES);
    let mut archive = tar::Archive::new(stream);
    let mut files = Vec::new();
    let mut left = MAX_CHART_BYTES;
    let mut content = Vec::new();
    for (count, entry) in archive.entries()?.enumerate() {
        if count >= MAX_CHART_FILES {
            return Err(ArchiveError::TooManyFiles);
        }
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let raw = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| ArchiveError::NotUtf8)?;
        if kind.is_dir()
            || kind.is_pax_global_extensions()
            || kind.is_pax_local_extensions()
            || raw.ends_with('/')
        {
            continue;
        }
        let name = chart_path(&raw)?;
        read_limited(&mut entry, &raw, left, &mut content)?;
        left -= content.len() as u64;
        files.push(ChartFile::new(name, &content));
    }
    if files.is_empty() {
        return Err(ArchiveError::Empty);
    }
    Ok(files)
}

fn read_limited(
    entry: &mut tar::Entry<'_, impl Read>,
    name: &str,
    left: u64,
    content: &mut Vec<u8>,
) -> Result<(), ArchiveError> {
    let size = entry.size();
    if size > left {
        return Err(ArchiveError::TooLarge);
    }
    if size > MAX_CHART_FILE_BYTES {
        return Err(ArchiveError::FileTooLarge(name.to_owned()));
    }
    content.clear();
    entry.take(size).read_to_end(content)?;
    if (content.len() as u64) < size {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(())
}

/// The path below the chart's directory: the first component dropped, cleaned, and checked to stay inside.
fn chart_path(raw: &str) -> Result<String, ArchiveError> {
    let slashed;
    let path = if raw.contains('\\') {
        slashed = raw.replace('\\', "/");
        slashed.as_str()
    } else {
        raw
    };
    let (base, rest) = path.split_once('/').unwrap_or((path, ""));
    if rest.starts_with('/') {
        return Err(ArchiveError::AbsolutePath);
    }
    let cleaned = clean_relative(rest);
    if cleaned.is_empty() {
        return Err(ArchiveError::OutsideBase(raw.to_owned()));
    }
    if cleaned.starts_with("..") {
        return Err(ArchiveError::ParentDirectory);
    }
    let mut letters = cleaned.bytes();
    if letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.next() == Some(b':')
        && letters.next() == Some(b'/')
    {
        return Err(ArchiveError::DrivePath);
    }
    if base == "Chart.yaml" {
        return Err(ArchiveError::NoBaseDirectory);
    }
    Ok(cleaned)
}

/// Removes `.`, doubled slashes and inner `..`; a leading `..` stays, so that it can be refused.
fn clean_relative(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            let bytes = name.as_bytes();
            header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes);
            header.set_cksum();
            tar.append(&header, *content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    fn refusal(name: &str) -> String {
        unpack(&archive(&[(name, b"x")])).unwrap_err().to_string()
    }

    #[test]
    fn the_first_component_is_dropped() {
        let files = unpack(&archive(&[
            ("web/Chart.yaml", b"\xef\xbb\xbfa"),
            ("web/./a//b", b"c"),
        ]))
        .unwrap();
        assert_eq!(files[0].name, "Chart.yaml");
        assert_eq!(&*files[0].content, b"a");
        assert_eq!(files[1].name, "a/b");
    }

    #[test]
    fn paths_out_of_the_chart_are_refused() {
        assert!(refusal("web/../../etc/passwd").contains("parent directory"));
        assert!(refusal("web//etc/passwd").contains("absolute paths"));
        assert!(refusal("web/c:/x").contains("illegally named"));
        assert!(refusal("Chart.yaml").contains("outside the base directory"));
        assert!(refusal("web\\..\\..\\x").contains("parent directory"));
    }

    #[test]
    fn a_link_has_no_content() {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "web/values.yaml", "/etc/passwd")
            .unwrap();
        let bytes = tar.into_inner().unwrap().finish().unwrap();
        assert!(unpack(&bytes).unwrap()[0].content.is_empty());
    }

    /// A few kilobytes that unpack to far more than memory: the stream must be left at the limit.
    #[test]
    fn a_gzip_bomb_is_stopped_at_the_limit() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let mut header = tar::Header::new_gnu();
        header.set_path("web/values.yaml").unwrap();
        header.set_size(10 << 30);
        header.set_cksum();
        encoder.write_all(header.as_bytes()).unwrap();
        for _ in 0..64 {
            encoder.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let error = unpack(&encoder.finish().unwrap()).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLarge), "{error}");

        let many: Vec<_> = (0..21)
            .map(|_| ("web/x", vec![0u8; MAX_CHART_FILE_BYTES as usize]))
            .collect();
        let many: Vec<_> = many.iter().map(|(n, c)| (*n, c.as_slice())).collect();
        assert!(matches!(
            unpack(&archive(&many)),
            Err(ArchiveError::TooLarge)
        ));
    }

    #[test]
    fn one_file_over_the_limit_is_refused() {
        let content = vec![0; MAX_CHART_FILE_BYTES as usize + 1];
        let error = unpack(&archive(&[("web/big", &content)])).unwrap_err();
        assert!(matches!(error, ArchiveError::FileTooLarge(_)), "{error}");
    }

    #[test]
    fn a_truncated_archive_is_refused() {
        let bytes = archive(&[("web/Chart.yaml", &[b'a'; 4000])]);
        assert!(unpack(&bytes[..bytes.len() / 2]).is_err());
        assert!(unpack(b"not gzip").is_err());
    }
}
