//! The directory of one command, and what it says about it.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::Exit;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::disk;

/// How much of the beginning and of the end of an output is kept.
const HALF_OUTPUT: u64 = 512 << 10;

/// The jobs of an agent.
#[derive(Debug, Clone)]
pub struct Jobs {
    directory: Utf8PathBuf,
}

/// What is known of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Nothing was started.
    Absent,
    /// Its shim lives.
    Running,
    /// The command ended.
    Ended,
    /// It was started, and its shim died before the command ended: with the machine, or killed.
    Lost,
}

/// How a command ended, as its shim writes it down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    /// By itself: its exit code, or 128 and the number of the signal.
    Exited(i32),
    /// It ran for too long.
    TimedOut,
    /// It was told to stop.
    Stopped,
    /// It printed too much.
    TooMuchOutput,
    /// It could not be started.
    NotStarted(String),
}

/// The directory of one command.
#[derive(Debug, Clone)]
pub(super) struct Job {
    directory: Utf8PathBuf,
}

impl Jobs {
    /// Jobs below a directory, which is made if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(directory: &Utf8Path) -> io::Result<Self> {
        disk::private_directory(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// The directory of the jobs of a step. `step` must be a name for a file.
    pub(super) fn of_step(&self, step: &str) -> Utf8PathBuf {
        self.directory.join(step)
    }

    /// Removes everything about steps that `is_needed` does not want.
    ///
    /// # Errors
    /// When a directory cannot be read or removed.
    pub fn forget(&self, is_needed: impl Fn(&str) -> bool) -> io::Result<()> {
        for entry in self.directory.read_dir_utf8()? {
            let entry = entry?;
            if !is_needed(entry.file_name()) {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Job {
    pub(super) fn at(directory: &Utf8Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Makes the directory, with what tells its command from others.
    pub(super) fn create(&self, fingerprint: &str) -> io::Result<()> {
        disk::private_directory(&self.directory)?;
        if self.fingerprint().is_none() {
            disk::write_durable(&self.path("command"), fingerprint.as_bytes())?;
        }
        if let Some(parent) = self.directory.parent() {
            disk::sync_directory(parent)?;
        }
        Ok(())
    }

    pub(super) fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// The command that the directory is for.
    pub(super) fn fingerprint(&self) -> Option<String> {
        std::fs::read_to_string(self.path("command")).ok()
    }

    pub(super) fn state(&self) -> io::Result<JobState> {
        if self.ending()?.is_some() {
            return Ok(JobState::Ended);
        }
        if self.is_locked()? {
            return Ok(JobState::Running);
        }
        // It may have ended between the two looks.
        match (self.ending()?, self.path("started").exists()) {
            (Some(_), _) => Ok(JobState::Ended),
            (None, true) => Ok(JobState::Lost),
            (None, false) => Ok(JobState::Absent),
        }
    }

    /// The lock that a shim holds while it lives; waits for another one's end.
    pub(super) fn lock(&self) -> io::Result<File> {
        let file = self.lock_file()?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// Writes down that the command is about to be started. Fails if another shim did so before.
    pub(super) fn mark_started(&self) -> io::Result<()> {
        let text = format!("{}\n", std::process::id());
        disk::create_durable(&self.path("started"), text.as_bytes())
    }

    /// Writes down how the command ended.
    pub(super) fn mark_ended(&self, ending: &Ending) -> io::Result<()> {
        let text = serde_json::to_vec(ending).map_err(io::Error::other)?;
        disk::write_durable(&self.path("exit"), &text)
    }

    pub(super) fn ending(&self) -> io::Result<Option<Ending>> {
        match std::fs::read(self.path("exit")) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks the shim to end the command.
    pub(super) fn ask_to_stop(&self) -> io::Result<()> {
        File::create(self.path("stop")).map(|_| ())
    }

    pub(super) fn is_asked_to_stop(&self) -> bool {
        self.path("stop").exists()
    }

    /// New files for the output.
    pub(super) fn create_outputs(&self) -> io::Result<(File, File)> {
        Ok((
            File::create(self.path("stdout"))?,
            File::create(self.path("stderr"))?,
        ))
    }

    /// How many bytes the command has printed.
    pub(super) fn printed(&self) -> u64 {
        let length = |name| std::fs::metadata(self.path(name)).map_or(0, |found| found.len());
        length("stdout") + length("stderr")
    }

    /// What the command printed and its exit code.
    pub(super) fn exit(&self, code: i32) -> io::Result<Exit> {
        Ok(Exit {
            code,
            stdout: read_both_ends(&self.path("stdout"))?,
            stderr: read_both_ends(&self.path("stderr"))?,
        })
    }

    fn is_locked(&self) -> io::Result<bool> {
        if !self.directory.exists() {
            return Ok(false);
        }
        let file = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true).read(true);
        options.open(self.path("lock"))
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        self.directory.join(name)
    }
}

/// Reads a file; the middle of a large one is left out.
fn read_both_ends(path: &Utf8Path) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut content = Vec::new();
    if length <= 2 * HALF_OUTPUT {
        file.take(2 * HALF_OUTPUT).read_to_end(&mut content)?;
        return Ok(content);
    }
    file.by_ref().take(HALF_OUTPUT).read_to_end(&mut content)?;
    let left_out = length - 2 * HALF_OUTPUT;
    content.extend(format!("\n… {left_out} bytes are left out …\n").into_bytes());
    file.seek(SeekFrom::Start(length - HALF_OUTPUT))?;
    file.take(HALF_OUTPUT).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_large_output_is_left_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("stdout")).expect("UTF-8");
        let half = HALF_OUTPUT as usize;
        let text = [vec![b'a'; half], vec![b'b'; 7], vec![b'c'; half]].concat();
        std::fs::write(&path, text).expect("written");
        let read = read_both_ends(&path).expect("read");
        let note = "\n… 7 bytes are left out …\n";
        assert_eq!(read.len(), 2 * half + note.len());
        assert!(String::from_utf8(read).expect("text").contains(note));
    }
}
