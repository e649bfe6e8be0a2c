//! What the programs of a piece of work printed: the first and the last mebibyte, whatever lies between.
//!
//! ```text
//! web.first    the first mebibyte
//! web.last-0   mebibytes after it, each in the file that was not written last: the newest two are there
//! web.last-1
//! web.turns    how many bytes are in no file any more, and which of the last files is written
//! ```
//!
//! Files are appended to as lines come, so that a killed process loses nothing, and never hold more than three mebibytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;

/// How much of the beginning is kept, and how much of the end.
const KEPT: u64 = 1 << 20;

/// The output of one piece of work, being written.
#[derive(Debug)]
pub(crate) struct OutputLog {
    files: LogFiles,
    file: File,
    /// The bytes in the open file.
    written: u64,
    /// Which of the two last files is open; none while the first is.
    last: Option<usize>,
    /// The bytes that are in none of the files any more.
    dropped: u64,
    /// The bytes of the last file that was filled.
    filled: u64,
}

/// Where the output of one piece of work lies.
#[derive(Debug, Clone)]
struct LogFiles {
    first: Utf8PathBuf,
    last: [Utf8PathBuf; 2],
    /// How many bytes are in no file any more, and which of the last files is written.
    turns: Utf8PathBuf,
}

/// What is kept of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptOutput {
    /// Its beginning.
    pub first: String,
    /// How many bytes between beginning and end are not kept.
    pub dropped: u64,
    /// Its end; empty if all of it is in the beginning.
    pub last: String,
}

impl OutputLog {
    pub(crate) fn begin(directory: &Utf8Path, name: &str) -> io::Result<Self> {
        let files = LogFiles::of(directory, name);
        let file = create(&files.first)?;
        Ok(Self {
            files,
            file,
            written: 0,
            last: None,
            dropped: 0,
            filled: 0,
        })
    }

    /// Adds lines.
    pub(crate) fn add(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            if self.written + text.len() as u64 >= KEPT {
                self.write(&text)?;
                text.clear();
                self.turn()?;
            }
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        self.write(&text)
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.written += text.len() as u64;
        Ok(())
    }

    /// Goes on in the other of the two last files.
    fn turn(&mut self) -> io::Result<()> {
        let next = match self.last {
            None => 0,
            Some(last) => {
                // What the other file held goes.
                self.dropped += self.filled;
                self.filled = self.written;
                1 - last
            }
        };
        fs::write(&self.files.turns, format!("{} {next}", self.dropped))?;
        let path = self.files.last.get(next).unwrap_or(&self.files.first);
        self.file = create(path)?;
        self.written = 0;
        self.last = Some(next);
        Ok(())
    }
}

impl KeptOutput {
    /// Reads what is kept of the output of a name; `None` if there is none.
    pub(crate) fn read(directory: &Utf8Path, name: &str) -> io::Result<Option<Self>> {
        let files = LogFiles::of(directory, name);
        let Some((first, _)) = read_end(&files.first, u64::MAX)? else {
            return Ok(None);
        };
        let [a, b] = &files.last;
        let turns = fs::read_to_string(&files.turns).unwrap_or_default();
        let (dropped, open) = turns.split_once(' ').unwrap_or(("0", "0"));
        let dropped: u64 = dropped.parse().unwrap_or(0);
        let (older, newer) = if open == "0" { (b, a) } else { (a, b) };
        let (newest, length) = read_end(newer, KEPT)?.unwrap_or_default();
        let (before, before_length) =
            read_end(older, KEPT.saturating_sub(newest.len() as u64))?.unwrap_or_default();
        let unread = length + before_length - (newest.len() + before.len()) as u64;
        let last = [before, newest].concat();
        Ok(Some(Self {
            first: String::from_utf8_lossy(&first).into_owned(),
            dropped: dropped + unread,
            last: String::from_utf8_lossy(&last).into_owned(),
        }))
    }
}

impl LogFiles {
    fn of(directory: &Utf8Path, name: &str) -> Self {
        // Names of artifacts are names of files; other keys may be anything.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let name = if name.len() <= 100 && name.chars().all(is_plain) && !name.starts_with('.') {
            name.to_owned()
        } else {
            Digest::of(name.as_bytes()).hex()
        };
        let path = |end: &str| directory.join(format!("{name}.{end}"));
        Self {
            first: path("first"),
            last: [path("last-0"), path("last-1")],
            turns: path("turns"),
        }
    }
}

fn create(path: &Utf8Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// The last bytes of a file, and its length; none if it is not there.
fn read_end(path: &Utf8Path, most: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    // No file is longer than what is kept and one line.
    file.take(2 * KEPT).read_to_end(&mut bytes)?;
    Ok(Some((bytes, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_mebibyte_are_kept_of_any_amount() {
        for lines in [0, 3, 20_000, 30_000, 50_000, 200_000] {
            let directory = tempfile::tempdir().expect("a directory");
            let directory = Utf8Path::from_path(directory.path()).expect("UTF-8");
            let mut log = OutputLog::begin(directory, "web").expect("a log");
            let mut all = String::new();
            for number in 0..lines {
                let line = format!("line {number:010} {}", "x".repeat(40));
                log.add(std::slice::from_ref(&line)).expect("written");
                all.push_str(&line);
                all.push('\n');
            }
            let kept = KeptOutput::read(directory, "web")
                .expect("read")
                .expect("there");
            assert!(all.starts_with(&kept.first), "{lines}");
            assert!(all.ends_with(&kept.last), "{lines}");
            let sum = kept.first.len() as u64 + kept.dropped + kept.last.len() as u64;
            assert_eq!(sum, all.len() as u64, "{lines}");
            assert!(kept.last.len() as u64 <= KEPT && kept.first.len() as u64 <= KEPT + 100);
            let is_long = all.len() as u64 > 3 * KEPT;
            assert!(!is_long || kept.last.len() as u64 == KEPT, "{lines}");
        }
        assert_eq!(
            KeptOutput::read(Utf8Path::new("/nowhere"), "web").expect("nothing"),
            None
        );
    }

    #[test]
    fn a_name_leads_nowhere() {
        let files = LogFiles::of(Utf8Path::new("/run/output"), "../../etc/passwd");
        assert_eq!(files.first.parent(), Some(Utf8Path::new("/run/output")));
    }
}
