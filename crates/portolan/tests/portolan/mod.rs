//! Runs the built binary as a user would and keeps what it answered.

use std::fmt;
use std::process::{Command, Stdio};

/// What one run answered.
pub struct Answer {
    /// The exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs `portolan` with these arguments and no input.
pub fn portolan(args: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(args)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built with this test");
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
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
