//! What the agent tells a shim to run.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::time::Duration;

use portolan_digest::Digest;
use portolan_modules::{Command, Program};
use serde::{Deserialize, Serialize};

use super::account::RunAs;

/// The most bytes of an order: a script, its input and its variables.
const MAX_ORDER: u64 = 80 << 20;

/// A command, as it goes through the pipe to a shim.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: OrderedProgram,
    pub(super) directory: String,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) input: Vec<u8>,
    pub(super) account: Option<RunAs>,
    pub(super) chroot: Option<String>,
    pub(super) timeout: Duration,
}

#[derive(Serialize, Deserialize)]
pub(super) enum OrderedProgram {
    Arguments(Vec<String>),
    Script(Vec<u8>),
}

impl Order {
    pub(super) fn of(command: &Command, account: Option<RunAs>) -> Self {
        let program = match &command.program {
            Program::Arguments(arguments) => OrderedProgram::Arguments(arguments.clone()),
            Program::Shell(text) => {
                let shell = ["/bin/sh", "-c", text].map(str::to_owned);
                OrderedProgram::Arguments(shell.to_vec())
            }
            Program::Script(content) => OrderedProgram::Script(content.to_vec()),
        };
        Self {
            program,
            directory: command.directory.to_string(),
            environment: command.environment.clone(),
            input: command.input.clone(),
            account,
            chroot: command.chroot.as_ref().map(ToString::to_string),
            timeout: command.timeout,
        }
    }

    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }

    /// Reads an order to its end. One that was cut off, because the agent died, is an error.
    pub(super) fn read(source: impl Read) -> io::Result<Self> {
        let mut text = Vec::new();
        source.take(MAX_ORDER).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }
}

/// What tells commands of one step apart. It is a digest, because a command can contain secrets.
pub(super) fn fingerprint(order: &[u8]) -> String {
    Digest::of(order).hex()
}
