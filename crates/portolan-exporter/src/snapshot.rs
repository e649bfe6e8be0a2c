//! The last good answer, in memory and on disk.
//!
//! The file is replaced by renaming a complete one over it, so a reader finds the old or the new one, never a part.
//! It also contains the report, so after a restart there is an answer before the cluster is asked. Memory holds only
//! the data from which the report and its texts are made.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use portolan_audit::Report;
use portolan_files::{OutputDir, WriteError};
use serde::{Deserialize, Serialize};

use crate::changes::FindingLedger;
use crate::scan::Knowledge;

/// The name of the file.
const FILE: &str = "snapshot.json";

/// The form of the file; another one is not read.
const FORMAT: u32 = 3;

/// The largest file that is read: ten thousand findings take about forty megabytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The last good answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// When the scan ended, in seconds since 1970.
    pub taken_at: u64,
    /// What it cost.
    pub effort: Effort,
    /// The fingerprint of the checker that judged: another one would have to judge anew.
    pub(crate) checker: String,
    /// What it learnt, so that unchanged releases need not be fetched after a restart.
    pub(crate) knowledge: Knowledge,
    /// What changed since the answer before, if a fleet server is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ledger: Option<FindingLedger>,
}

/// What a scan cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effort {
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How many requests it needed.
    pub requests: u64,
}

/// The file, as it is written.
#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    snapshot: &'a Snapshot,
    report: &'a Report,
}

/// The file, as it is read.
#[derive(Deserialize)]
struct Stored {
    format: u32,
    snapshot: Snapshot,
    report: Report,
}

/// Why a snapshot cannot be kept or loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk said no.
    #[error("cannot use the snapshot `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The directory's name cannot be printed.
    #[error("the directory `{}` has a name that is not UTF-8", path.display())]
    Name {
        /// The directory.
        path: PathBuf,
    },
    /// The file is none of ours, or of another version.
    #[error("the snapshot `{path}` is of another version or damaged")]
    Format {
        /// The file.
        path: PathBuf,
    },
}

impl Snapshot {
    /// Loads the last good answer and what it found; `None` when there is none.
    pub fn load(directory: &Path) -> Result<Option<(Self, Report)>, SnapshotError> {
        let path = path(directory);
        // A pipe in its place would never be opened.
        let file = match fs::metadata(&path) {
            Ok(data) if !data.is_file() || data.len() > MAX_BYTES => {
                return Err(SnapshotError::Format { path });
            }
            Ok(_) => File::open(&path),
            Err(error) => Err(error),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SnapshotError::Io { path, source }),
        };
        match serde_json::from_reader::<_, Stored>(BufReader::new(file)) {
            Ok(stored) if stored.format == FORMAT => Ok(Some((stored.snapshot, stored.report))),
            _ => Err(SnapshotError::Format { path }),
        }
    }

    /// Puts it in place of the one on disk.
    pub fn save(&self, report: &Report, directory: &Path) -> Result<(), SnapshotError> {
        let written = Written {
            format: FORMAT,
            snapshot: self,
            report,
        };
        let directory = Utf8Path::from_path(directory).ok_or_else(|| SnapshotError::Name {
            path: directory.to_owned(),
        })?;
        let output = OutputDir::create(directory)?;
        output.write_with(FILE.into(), |file| {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, &written)?;
            file.flush()
        })?;
        Ok(())
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_audit::{Checker, Counts};

    #[test]
    fn a_snapshot_survives_the_disk_and_damage_is_told() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Snapshot::load(directory.path()).unwrap().is_none());
        let report = Report::new(Vec::new(), Counts::default(), &Checker::default().target);
        let effort = Effort {
            took_ms: 8,
            requests: 9,
        };
        let snapshot = Snapshot {
            taken_at: 7,
            effort,
            checker: "print".to_owned(),
            knowledge: Knowledge::default(),
            ledger: None,
        };
        snapshot.save(&report, directory.path()).unwrap();
        let (loaded, found) = Snapshot::load(directory.path()).unwrap().unwrap();
        assert_eq!(
            (loaded.taken_at, loaded.effort, loaded.checker.as_str()),
            (7, effort, "print")
        );
        assert_eq!(found, report);
        fs::write(path(directory.path()), "{\"format\": 3").unwrap();
        assert!(Snapshot::load(directory.path()).is_err());
        fs::remove_file(path(directory.path())).unwrap();
        fs::create_dir(path(directory.path())).unwrap();
        assert!(Snapshot::load(directory.path()).is_err());
    }
}
