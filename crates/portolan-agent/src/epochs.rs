//! The highest epoch of each run that this agent has taken orders from, also across restarts.
//!
//! A server that lost its shard may not know it yet. Its orders carry the epoch of its ownership, and an agent that has
//! seen a later one for the same run refuses them.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::disk;

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
        let highest = match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            highest,
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
        let mut changed = self.highest.clone();
        changed.insert(run.to_owned(), epoch);
        self.write(changed)
    }

    /// Forgets all runs but those with the newest owners.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub fn keep_newest(&mut self, count: usize) -> Result<(), EpochError> {
        if self.highest.len() <= count {
            return Ok(());
        }
        let mut runs: Vec<(String, RunEpoch)> = self.highest.clone().into_iter().collect();
        runs.sort_by_key(|(_, epoch)| std::cmp::Reverse(*epoch));
        runs.truncate(count);
        self.write(runs.into_iter().collect())
    }

    fn write(&mut self, changed: BTreeMap<String, RunEpoch>) -> Result<(), EpochError> {
        let text = serde_json::to_vec(&changed).map_err(io::Error::other);
        let written = text.and_then(|text| disk::write_durable(&self.path, &text));
        written.map_err(|source| EpochError::Disk {
            path: self.path.clone(),
            source,
        })?;
        self.highest = changed;
        Ok(())
    }
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
        epochs.keep_newest(1).expect("the other one is forgotten");
        let refused = epochs.accept("run", epoch(1, 1));
        assert!(matches!(refused, Err(EpochError::Outdated)));
        epochs
            .accept("other", epoch(1, 0))
            .expect("not known any more");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_fresh_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("epochs")).expect("UTF-8");
        std::fs::write(&path, "{").expect("written");
        Epochs::open(&path).expect_err("half a file");
    }
}
