//! Runs the built binary as a user would and keeps what it answered.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod git;
pub(crate) mod project;
pub(crate) mod repository;

use std::fmt;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What one run answered.
pub(crate) struct Answer {
    /// The exit code; -1 when a signal ended it.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// How long a test waits for a state before it gives up.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs `portolan` with these arguments and no input.
pub(crate) fn portolan(args: &[&str]) -> Answer {
    portolan_with_input(args, "")
}

/// Runs `portolan` with these arguments and a text on standard input.
pub(crate) fn portolan_with_input(args: &[&str], input: &str) -> Answer {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(args)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let mut stdin = child.stdin.take().expect("it was asked for");
    // A command that does not read its input closes it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Answer::of(&child.wait_with_output().expect("it was started"))
}

/// Runs `portolan` in a directory.
pub(crate) fn portolan_in(directory: &str, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .args(args)
        .current_dir(directory)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    Answer::of(
        &command
            .output()
            .expect("the binary was built with this test"),
    )
}

/// Waits for a state; fails the test when it does not come.
pub(crate) fn wait_until(mut state: impl FnMut() -> bool) {
    let began = Instant::now();
    while !state() {
        assert!(began.elapsed() < DEADLINE, "the state did not come");
        // Servers refuse clients that ask thousands of times a second.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl Answer {
    /// What a process that ended answered.
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Waits for a process that was started by the test.
pub(crate) fn wait_for(child: Child) -> Answer {
    Answer::of(&child.wait_with_output().expect("it was started"))
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "\n--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}
