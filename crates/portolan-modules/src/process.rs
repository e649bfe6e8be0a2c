//! How modules start programs. An agent runs them so that they outlive it; a local run starts them as children.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio_util::sync::CancellationToken;

use crate::action::ModuleError;
use crate::host::Account;

/// A program to start.
#[derive(Clone)]
pub struct Command {
    /// What is started.
    pub program: Program,
    /// Where it starts.
    pub directory: Utf8PathBuf,
    /// Variables beside the few that every program gets.
    pub environment: BTreeMap<String, String>,
    /// What it reads.
    pub input: Vec<u8>,
    /// Who it runs as.
    pub account: Option<Account>,
    /// The root directory that it is confined to; the machine's without one.
    pub chroot: Option<Utf8PathBuf>,
    /// How long it may run.
    pub timeout: Duration,
    /// Whether what it leaves running is ended when it ends. A step may start a daemon; a look must leave nothing.
    pub leaves_nothing: bool,
}

/// What is started.
#[derive(Clone)]
pub enum Program {
    /// A program with its arguments.
    Arguments(Vec<String>),
    /// A text for `/bin/sh -c`.
    Shell(String),
    /// The content of a script that has an interpreter line.
    Script(std::sync::Arc<[u8]>),
}

/// How a program ended, and what it printed.
#[derive(Clone, Debug, Default)]
pub struct Exit {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub code: i32,
    /// What it printed, the middle left out above a limit.
    pub stdout: Vec<u8>,
    /// What it printed as errors, the middle left out above a limit.
    pub stderr: Vec<u8>,
}

/// Starts programs and waits for them.
pub trait Processes: Send + Sync {
    /// Runs a program to its end. Everything that it started is ended when `stop` is, or when its time is up.
    ///
    /// # Errors
    /// When it cannot be started, or was stopped.
    fn run(&self, command: &Command, stop: &CancellationToken) -> Result<Exit, ModuleError>;
}
