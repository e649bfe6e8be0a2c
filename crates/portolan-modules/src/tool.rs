//! Programs of the system that modules use: started in a plain environment, their failure told with what they printed.

use std::collections::BTreeMap;

use crate::action::ModuleError;
use crate::host::{Account, Host};
use crate::process::{Exit, Program};

/// The last lines that a message repeats of what a failed program printed.
const LINES_IN_MESSAGE: usize = 20;

/// A program of the system with its arguments.
#[must_use]
pub(crate) struct Tool {
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    account: Option<Account>,
}

impl Tool {
    /// A program, found in the usual directories.
    pub(crate) fn new(program: &str) -> Self {
        Self {
            arguments: vec![program.to_owned()],
            // What they print is read, so it must not be translated.
            environment: [("LC_ALL".to_owned(), "C.UTF-8".to_owned())].into(),
            account: None,
        }
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// Runs it as the user that the step names.
    pub(crate) fn for_user(mut self, account: Option<&Account>) -> Self {
        self.account = account.cloned();
        self
    }

    /// Runs it to its end, whatever its exit code is.
    pub(crate) fn run(self, host: &Host) -> Result<Exit, ModuleError> {
        let mut command = host.command(Program::Arguments(self.arguments));
        command.environment.extend(self.environment);
        // Programs of the system run on the machine, with a root as an argument, and as who the module says.
        command.directory = "/".into();
        command.chroot = None;
        command.account = self.account;
        host.processes.run(&command, &host.stop)
    }

    /// Runs it and returns what it printed; an exit code other than 0 is a failure to do `act` on `subject`.
    pub(crate) fn run_for(
        self,
        host: &Host,
        act: &'static str,
        subject: &str,
    ) -> Result<String, ModuleError> {
        let program = self.arguments.first().cloned().unwrap_or_default();
        let exit = self.run(host)?;
        if exit.code == 0 {
            return Ok(String::from_utf8_lossy(&exit.stdout).into_owned());
        }
        Err(ModuleError::failed(
            act,
            subject,
            format!("`{program}` {}", how_it_ended(&exit)),
        ))
    }
}

/// The exit code and the last lines of what a program printed, for a message.
pub(crate) fn how_it_ended(exit: &Exit) -> String {
    let printed = [&exit.stderr, &exit.stdout]
        .into_iter()
        .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned())
        .find(|text| !text.is_empty());
    let Some(printed) = printed else {
        return format!("ended with exit code {}", exit.code);
    };
    let lines: Vec<&str> = printed.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES_IN_MESSAGE)..].join("\n");
    format!("ended with exit code {}: {last}", exit.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_repeats_the_last_lines_only() {
        let exit = Exit {
            code: 3,
            stdout: b"not this".to_vec(),
            stderr: (0..50)
                .flat_map(|n| format!("line {n}\n").into_bytes())
                .collect(),
        };
        let told = how_it_ended(&exit);
        assert!(
            told.starts_with("ended with exit code 3: line 30\n"),
            "{told}"
        );
        assert!(told.ends_with("line 49"));
        assert_eq!(how_it_ended(&Exit::default()), "ended with exit code 0");
    }
}
