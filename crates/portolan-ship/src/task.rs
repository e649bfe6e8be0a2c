//! What a builder, tester, deployer or verifier gets: its inputs come with it, and this is how it speaks and when it must
//! stop. It knows neither the journal nor the engine: whoever writes a builder cannot forget an event.

use std::borrow::Cow;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::{CancellationToken, Context};
use portolan_secret::{KnownSecrets, Mask};

use crate::output_log::OutputLog;
use crate::process::{self, Ended, Program};

/// The handle of one piece of work: it says how far it is and what it has to say.
///
/// ```
/// fn build(task: &portolan_ship::Task) {
///     task.progress(1, Some(2), "half of it");
///     task.log("a line");
/// }
/// ```
///
/// It leads neither to the journal nor to the engine, so no work can tell of a start or an end by itself:
///
/// ```compile_fail,E0616
/// fn build(task: &portolan_ship::Task) {
///     task.context.log("past the files of the output");
/// }
/// ```
///
/// ```compile_fail,E0599
/// fn build(task: &portolan_ship::Task) {
///     task.end();
/// }
/// ```
///
/// Only the runner makes one:
///
/// ```compile_fail,E0624
/// let make = portolan_ship::Task::new;
/// ```
pub struct Task {
    context: Context,
    scratch: Utf8PathBuf,
    /// All that it says, kept in files: the journal counts lines beyond its budget instead of keeping them.
    output: Mutex<OutputLog>,
}

impl Task {
    pub(crate) fn new(context: Context, scratch: Utf8PathBuf, output: OutputLog) -> Self {
        Self {
            context,
            scratch,
            output: Mutex::new(output),
        }
    }

    /// Says how far the work is.
    pub fn progress(&self, done: u64, total: Option<u64>, text: impl Into<String>) {
        self.context.progress(done, total, text);
    }

    /// Says a line.
    pub fn log(&self, line: impl Into<String>) {
        self.log_all(vec![line.into()]);
    }

    /// Says lines.
    fn log_all(&self, lines: Vec<String>) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not stop work that needs no disk; what the journal has of the lines is there.
        let _ = output.add(&lines);
        drop(output);
        for line in lines {
            self.context.log(line);
        }
    }

    /// Makes a directory in the scratch directory that only we can read; each call gives another one.
    pub(crate) fn own_directory(&self, purpose: &str) -> io::Result<Utf8PathBuf> {
        let made = tempfile::Builder::new()
            .prefix(&format!("{purpose}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.scratch)?;
        let path = Utf8PathBuf::from_path_buf(made.keep());
        path.map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))
    }

    /// Whether the work is called off; long computations look now and then.
    pub fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// The token by which the work is called off.
    pub fn token(&self) -> &CancellationToken {
        self.context.token()
    }

    /// A directory of its own, which is removed when the work ends.
    pub fn scratch(&self) -> &Utf8Path {
        &self.scratch
    }

    /// Runs a program to its end. Its lines are the task's; it and everything it started ends when the work is called off
    /// or takes longer than this.
    pub fn run(&self, program: &Program, limit: Duration) -> io::Result<Ended> {
        self.run_hiding(program, limit, &KnownSecrets::default().mask())
    }

    /// Runs a program to its end, with secrets hidden in its lines.
    pub fn run_hiding(
        &self,
        program: &Program,
        limit: Duration,
        secrets: &Mask,
    ) -> io::Result<Ended> {
        let hide = |line: String| {
            let hidden = match secrets.text(&line) {
                Cow::Borrowed(_) => None,
                Cow::Owned(hidden) => Some(hidden),
            };
            hidden.unwrap_or(line)
        };
        let token = self.context.token();
        process::run(program, &self.scratch, limit, token, &hide, &mut |lines| {
            self.log_all(lines);
        })
    }
}
