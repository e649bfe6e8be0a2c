//! The highest epoch of each run that this agent has taken orders from, also across restarts.
//!
//! A server that lost its shard may not know it yet. Its orders carry the epoch of its ownership, and an agent that has
//! seen a later one for the same run refuses them.
//!
//! The file has one JSON map on each line, and later lines stand above earlier ones: an order of a new owner costs one line
//! and one sync. A torn last line was never acted on and is cut. The file is written anew when it has become long.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::disk;

/// The length from which on the file is written anew, in bytes: some ten thousand orders.
const LONG_BYTES: u64 = 1 << 20;

/// What orders owners in time: the incarnation of the store, then the revision at which the owner took its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunEpoch {
    /// The number of the store's incarnation.
    pub incarnation: u64,
    /// The revision at which the shard was taken.
    pub revision: u64,
}

/// The highest epoch of each run.
#[derive(Debug)]
pub struct Epochs {
    path: Utf8PathBuf,
    highest: BTreeMap<String, RunEpoch>,
    /// Where lines are added, once the file was written by this process.
    file: Option<File>,
    bytes: u64,
}

/// Why an order is refused.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    /// A later owner has given orders before.
    #[error("the order is of an earlier owner of the run")]
    Outdated,
    /// It could not be written down, so it may not be acted on.
    #[error("cannot write `{path}`")]
    Disk {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl Epochs {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// When it cannot be read. An agent that forgot its epochs must not take orders.
    pub fn open(path: &Utf8Path) -> io::Result<Self> {
        let highest = match std::fs::read_to_string(path) {
            Ok(text) => read(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            highest,
            file: None,
            bytes: 0,
        })
    }

    /// Takes an order, or refuses it. A new epoch is on the disk before this returns.
    ///
    /// # Errors
    /// When a later owner has given orders, or the disk cannot be written.
    pub fn accept(&mut self, run: &str, epoch: RunEpoch) -> Result<(), EpochError> {
        match self.highest.get(run) {
            Some(known) if *known > epoch => return Err(EpochError::Outdated),
            Some(known) if *known == epoch => return Ok(()),
            _ => {}
        }
        self.add(run, epoch).map_err(|source| self.failed(source))?;
        self.highest.insert(run.to_owned(), epoch);
        Ok(())
    }

    /// Forgets all runs but those with the newest owners, when the file has become long.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub fn keep_newest(&mut self, count: usize) -> Result<(), EpochError> {
        if self.bytes <= LONG_BYTES {
            return Ok(());
        }
        let mut runs: Vec<(String, RunEpoch)> = self.highest.clone().into_iter().collect();
        runs.sort_by_key(|(_, epoch)| std::cmp::Reverse(*epoch));
        runs.truncate(count);
        let kept: BTreeMap<String, RunEpoch> = runs.into_iter().collect();
        self.write_anew(&kept)
            .map_err(|source| self.failed(source))?;
        self.highest = kept;
        Ok(())
    }

    fn add(&mut self, run: &str, epoch: RunEpoch) -> io::Result<()> {
        if self.file.is_none() {
            self.write_anew(&self.highest.clone())?;
        }
        let mut line = serde_json::to_vec(&BTreeMap::from([(run, epoch)]))?;
        line.push(b'\n');
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let added = file.write_all(&line).and_then(|()| file.sync_data());
        if let Err(error) = added {
            // Half a line must not get others behind it: the next order writes the whole file.
            self.file = None;
            return Err(error);
        }
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn write_anew(&mut self, highest: &BTreeMap<String, RunEpoch>) -> io::Result<()> {
        self.file = None;
        let mut text = serde_json::to_vec(highest)?;
        text.push(b'\n');
        disk::write_durable(&self.path, &text)?;
        self.bytes = text.len() as u64;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }

    fn failed(&self, source: io::Error) -> EpochError {
        EpochError::Disk {
            path: self.path.clone(),
            source,
        }
    }
}

/// The maps of all lines, the later ones above the earlier ones. The last line may be torn, unless it is the only one: the
/// first is written with the file.
fn read(text: &str) -> io::Result<BTreeMap<String, RunEpoch>> {
    let mut lines = text.lines().peekable();
    let first = lines.next().unwrap_or_default();
    let mut highest: BTreeMap<String, RunEpoch> = serde_json::from_str(first)?;
    while let Some(line) = lines.next() {
        match serde_json::from_str::<BTreeMap<String, RunEpoch>>(line) {
            Ok(further) => highest.extend(further),
            Err(_) if lines.peek().is_none() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(incarnation: u64, revision: u64) -> RunEpoch {
        RunEpoch {
            incarnation,
            revision,
        }
    }

    #[test]
    fn an_earlier_owner_is_refused_also_after_a_restart() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("epochs")).expect("UTF-8");
        let mut epochs = Epochs::open(&path).expect("opened");
        epochs.accept("run", epoch(1, 900)).expect("the first");
        // A restored store counts its revisions from an earlier one.
        epochs.accept("run", epoch(2, 7)).expect("a later one");
        epochs.accept("run", epoch(2, 7)).expect("the same again");
        let mut epochs = Epochs::open(&path).expect("opened again");
        let refused = epochs.accept("run", epoch(1, 901));
        assert!(matches!(refused, Err(EpochError::Outdated)));
        epochs.accept("other", epoch(1, 1)).expect("another run");
        epochs.keep_newest(1).expect("the file is short");
        epochs
            .accept("other", epoch(1, 0))
            .expect_err("nothing is forgotten yet");
        epochs.bytes = LONG_BYTES + 1;
        epochs.keep_newest(1).expect("the other one is forgotten");
        let refused = epochs.accept("run", epoch(1, 1));
        assert!(matches!(refused, Err(EpochError::Outdated)));
        epochs
            .accept("other", epoch(1, 0))
            .expect("not known any more");
    }

    /// Wherever a crash cuts the file, what was whole counts, and the next order is kept behind it.
    #[test]
    fn a_torn_last_line_is_cut_and_any_other_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("epochs")).expect("UTF-8");
        let mut epochs = Epochs::open(&path).expect("opened");
        epochs.accept("a", epoch(1, 1)).expect("the first");
        epochs.accept("b", epoch(1, 2)).expect("the second");
        let whole = std::fs::read_to_string(&path).expect("a file");
        let last = whole.trim_end().rfind('\n').expect("lines") + 1;
        for length in last..whole.len() - 1 {
            std::fs::write(&path, &whole[..length]).expect("written");
            let mut epochs = Epochs::open(&path).expect("a torn line is no damage");
            epochs.accept("a", epoch(1, 0)).expect_err("kept");
            epochs.accept("b", epoch(1, 1)).expect("never acted on");
            let again = Epochs::open(&path).expect("whole again");
            assert_eq!(again.highest, epochs.highest);
        }
        std::fs::write(&path, whole.replacen("\"a\"", "\"a", 1)).expect("written");
        Epochs::open(&path).expect_err("a damaged line with one behind it");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_fresh_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("epochs")).expect("UTF-8");
        std::fs::write(&path, "{").expect("written");
        Epochs::open(&path).expect_err("half a file");
    }
}
