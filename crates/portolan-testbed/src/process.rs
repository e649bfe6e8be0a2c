//! A program that ends with the test process, however that ends.
//!
//! A shell starts the program and waits for the end of a pipe whose other end the test process holds. When the handle
//! is dropped, and also when the test process panics or is killed, the pipe closes and the shell stops the program.
//! Signals for the whole process group, from a terminal or `timeout`, must not end the shell before that.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const GUARD: &str = r#"
trap '' HUP INT TERM
log=$1; shift
"$@" >"$log" 2>&1 </dev/null &
echo $!
cat >/dev/null
kill -9 $! 2>/dev/null
wait
"#;

/// Also removes the directory.
const LAST: &str = r#"rm -rf "${log%/*}""#;

/// A running program.
pub struct Process {
    shell: Child,
    id: u32,
}

impl Process {
    /// Starts a program that logs to a file of its name in the directory.
    ///
    /// # Panics
    /// When no shell can be started or the log cannot be written.
    pub fn start(program: &Path, args: &[String], directory: &Path) -> Self {
        Self::spawn(GUARD, program, args, directory)
    }

    /// The same, and the directory is removed when it ends.
    pub(crate) fn start_last(program: &Path, args: &[String], directory: &Path) -> Self {
        Self::spawn(&format!("{GUARD}{LAST}"), program, args, directory)
    }

    fn spawn(script: &str, program: &Path, args: &[String], directory: &Path) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let log = directory.join(format!("{name}.log"));
        File::create(&log).expect("a log file");
        let mut shell = Command::new("sh")
            .args(["-c", script, "guard"])
            .arg(log)
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let told = shell.stdout.take().expect("a pipe");
        BufReader::new(told).read_line(&mut line).expect("a line");
        let id = line.trim().parse().expect("the id of the program");
        Self { shell, id }
    }

    /// Whether the program has ended by itself.
    pub fn has_ended(&self) -> bool {
        has_ended(self.id)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Sends a signal by its name, such as `STOP`.
    ///
    /// # Panics
    /// When there is no `kill`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.id.to_string()])
            .stderr(Stdio::null())
            .status();
        // A program that has ended takes no signals, and that is no mistake of the test.
        let _ = sent.expect("`kill` can be started");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The shell waits for the program, so nothing is left when this returns.
        let _ = self.shell.wait();
    }
}

/// Whether a process has ended, also when nobody has asked for how yet.
pub(crate) fn has_ended(id: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat"));
    // The state comes after the name in brackets; an ended program that nobody asked for yet is a `Z`.
    state.map_or(true, |text| {
        let state = text.rsplit(')').next().unwrap_or_default();
        state.trim_start().starts_with(['Z', 'X'])
    })
}
