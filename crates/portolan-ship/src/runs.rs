//! Runs of ship in a store: a directory for each, which outlives it.
//!
//! ```text
//! STORE/portolan/runs/20261117-151433-5f1c/
//!     00000000000000000001.journal, lock    what happened, numbered
//!     begun                                 the lock is taken: whoever looks may ask whether it is still held
//!     output/web.first, web.last-0, …       what the programs of an artifact printed
//!     scratch/…                             files of work that goes on; removed after a kill by the next run
//!     api.sock                              where a live run can be asked by its owner's programs
//!     session.json                          the address and the token of a run that also listens on one
//!     outline.json                          which artifacts and steps it is about
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::{Durability, Journal, JournalError, JournalFiles, JournalOptions};
use portolan_object::Day;

use crate::orphans::end_groups;
use crate::output_log::KeptOutput;
use crate::skaffold::RunOutline;

/// How many bytes of events a run keeps on disk; the oldest go first.
const KEPT_EVENT_BYTES: u64 = 1 << 30;

/// How many runs are kept; older ones go when another begins.
const KEPT_RUNS: usize = 100;

/// How long a process may take between the directory of its run and the first event.
const LONGEST_BEGINNING: Duration = Duration::from_hours(1);

/// How finely the names of runs tell the time.
const PARTS_OF_SECOND: u64 = 0x1_0000;

/// The file of a run that has its lock.
const BEGUN: &str = "begun";

/// Where runs lie below a store.
const RUNS: &str = "portolan/runs";

/// One run: its name and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipRun {
    id: String,
    directory: Utf8PathBuf,
}

/// Why a run cannot be begun or found.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A directory cannot be used.
    #[error("cannot use the directory `{path}` of a run")]
    Directory {
        /// The directory.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Its journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What it is about was not kept, or is damaged.
    #[error("the run `{0}` did not keep what it is about")]
    Outline(String),
}

impl ShipRun {
    /// Begins a run in a store, and clears away what runs left that were killed.
    pub fn begin(store: &Utf8Path, now: SystemTime) -> Result<Self, RunError> {
        let runs = store.join(RUNS);
        fs::create_dir_all(&runs).map_err(at(&runs))?;
        let known = Self::list(store)?;
        let surplus = known.len().saturating_sub(KEPT_RUNS);
        for (at, run) in known.into_iter().enumerate() {
            run.clear_if_dead()?;
            if at < surplus && run.is_over(now)? {
                run.remove()?;
            }
        }
        loop {
            let newest = Self::list(store)?.pop();
            let id = name(now, newest.as_ref().map(Self::id));
            let directory = runs.join(&id);
            match owned_directory(&directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made.map_err(at(&directory))?;
                    let run = Self { id, directory };
                    for part in [run.scratch(), run.output()] {
                        owned_directory(&part).map_err(at(&part))?;
                    }
                    return Ok(run);
                }
            }
        }
    }

    /// The runs of a store, oldest first.
    pub fn list(store: &Utf8Path) -> Result<Vec<Self>, RunError> {
        let runs = store.join(RUNS);
        let entries = match runs.read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&runs))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(at(&runs))?;
            if entry.file_type().map_err(at(&runs))?.is_dir() {
                found.push(Self {
                    id: entry.file_name().to_owned(),
                    directory: entry.into_path(),
                });
            }
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The newest run of a store that has begun.
    pub fn newest(store: &Utf8Path) -> Result<Option<Self>, RunError> {
        let runs = Self::list(store)?.into_iter();
        Ok(runs.rev().find(Self::has_begun))
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its directory.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// Opens its journal to write it.
    pub fn journal(&self, now: SystemTime) -> Result<Journal, RunError> {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let options = JournalOptions {
            epoch_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            keep_bytes: KEPT_EVENT_BYTES,
            ..JournalOptions::default()
        };
        // A killed process loses nothing of what the system has; a machine that loses power loses a build anyway.
        let directory = self.directory.as_std_path();
        let journal = Journal::open(directory, Durability::Written, options)?;
        // From now on its lock says whether it lives; its first event comes later.
        let begun = self.directory.join(BEGUN);
        fs::write(&begun, "").map_err(at(&begun))?;
        Ok(journal)
    }

    /// Reads its journal, also while another process writes it.
    pub fn events_after(&self, seq: u64) -> JournalFiles {
        JournalFiles::after(self.directory.as_std_path(), seq)
    }

    /// Whether its process still runs.
    pub fn is_live(&self) -> Result<bool, RunError> {
        // The lock of a run that has not begun must not be touched: its process is about to take it.
        Ok(self.has_begun() && self.events_after(0).is_live()?)
    }

    /// Where the output of programs lies.
    pub fn output(&self) -> Utf8PathBuf {
        self.directory.join("output")
    }

    /// What is kept of what the programs of an artifact printed; `None` if it has not begun.
    pub fn kept_output(&self, name: &str) -> Result<Option<KeptOutput>, RunError> {
        let directory = self.output();
        KeptOutput::read(&directory, name).map_err(at(&directory))
    }

    /// Where work keeps its files while it goes on.
    pub fn scratch(&self) -> Utf8PathBuf {
        self.directory.join("scratch")
    }

    /// The socket that a live run can be asked through.
    pub fn socket(&self) -> Utf8PathBuf {
        self.directory.join("api.sock")
    }

    /// The file that says at which address a live run can be asked.
    pub fn session_file(&self) -> Utf8PathBuf {
        self.directory.join("session.json")
    }

    /// Keeps what it is about.
    pub fn keep_outline(&self, outline: &RunOutline) -> Result<(), RunError> {
        let path = self.outline_file();
        let text = serde_json::to_vec(outline).map_err(io::Error::from);
        text.and_then(|text| fs::write(&path, text))
            .map_err(at(&path))
    }

    /// What it is about.
    pub(crate) fn outline(&self) -> Result<RunOutline, RunError> {
        let text = fs::read(self.outline_file()).ok();
        let outline = text.and_then(|text| serde_json::from_slice(&text).ok());
        outline.ok_or_else(|| RunError::Outline(self.id.clone()))
    }

    fn outline_file(&self) -> Utf8PathBuf {
        self.directory.join("outline.json")
    }

    /// Removes the scratch files; to be called when all work has ended.
    pub fn clear_scratch(&self) -> Result<(), RunError> {
        let scratch = self.scratch();
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(&scratch)),
        }
    }

    /// Removes it with all that it left; to be called when it has ended.
    pub fn remove(self) -> Result<(), RunError> {
        match fs::remove_dir_all(&self.directory) {
            // Another process may have been faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(&self.directory)),
        }
    }

    /// Removes runs that ended before a time; the newest is kept. Returns how many went.
    pub fn remove_old(
        store: &Utf8Path,
        before: SystemTime,
        now: SystemTime,
    ) -> Result<usize, RunError> {
        let mut runs = Self::list(store)?;
        runs.pop();
        let mut removed = 0;
        for run in runs {
            if run.changed()? < before && run.is_over(now)? {
                run.remove()?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Whether nobody works in it, or it is gone. A directory without a journal may be that of a process that is about to begin it.
    fn is_over(&self, now: SystemTime) -> Result<bool, RunError> {
        if self.has_begun() {
            return Ok(!self.is_live()?);
        }
        let age = now.duration_since(self.changed()?).unwrap_or_default();
        Ok(age > LONGEST_BEGINNING)
    }

    /// When its directory was changed last; long ago if another process has removed it.
    fn changed(&self) -> Result<SystemTime, RunError> {
        match fs::metadata(&self.directory).and_then(|found| found.modified()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(UNIX_EPOCH),
            changed => changed.map_err(at(&self.directory)),
        }
    }

    fn has_begun(&self) -> bool {
        let entries = self.directory.read_dir_utf8().into_iter().flatten();
        let mut names = entries.flatten().map(|entry| entry.file_name().to_owned());
        names.any(|name| name == BEGUN || name.ends_with(".journal"))
    }

    /// Programs of a killed process go on, and its scratch files may hold secrets.
    fn clear_if_dead(&self) -> Result<(), RunError> {
        if self.scratch().exists() && self.has_begun() && !self.is_live()? {
            end_groups(&self.scratch());
            self.clear_scratch()?;
            // Where nobody answers any more.
            for file in [self.session_file(), self.socket()] {
                let _ = fs::remove_file(file);
            }
        }
        Ok(())
    }
}

/// `20261117-151433-5f1c`: names sort by time. The last part is the part of the second, or one more than that of the newest
/// run if that began in the same moment.
fn name(now: SystemTime, newest: Option<&str>) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let day = Day::of_unix_seconds(seconds).to_string().replace('-', "");
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let second = format!("{day}-{hour:02}{minute:02}{second:02}-");
    let part = u64::from(since.subsec_nanos()) * PARTS_OF_SECOND / 1_000_000_000;
    let after = newest
        .and_then(|newest| newest.strip_prefix(&second))
        .and_then(|part| u64::from_str_radix(part, 16).ok())
        .map_or(0, |part| part.saturating_add(1));
    format!("{second}{:04x}", part.max(after))
}

fn owned_directory(path: &Utf8Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn at(path: &Utf8Path) -> impl FnOnce(io::Error) -> RunError {
    let path = path.to_owned();
    move |source| RunError::Directory { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_sort_by_time_also_within_a_second() {
        let at = |nanos: u32| UNIX_EPOCH + Duration::new(1_794_928_473, nanos);
        let first = name(at(500_000_000), None);
        assert_eq!(first, "20261117-151433-8000");
        assert!(name(at(500_100_000), Some(&first)) > first);
        // The same moment, and a clock that went back.
        assert_eq!(name(at(500_000_000), Some(&first)), "20261117-151433-8001");
        assert_eq!(name(at(0), Some(&first)), "20261117-151433-8001");
    }
}
