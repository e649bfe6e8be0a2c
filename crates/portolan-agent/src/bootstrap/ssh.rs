//! The user's own `ssh`, which runs scripts on another machine.
//!
//! One `ssh` opens the connection and is kept until the end; the others go through it. So the user is asked for a password
//! once at most, by `ssh` itself, and what goes wrong with the connection goes wrong there.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::BootstrapError;

/// How long the connection may take, with a user who types a password.
const OPEN_TIME: Duration = Duration::from_mins(3);

/// How much of what a script prints is kept.
const MAX_OUTPUT: u64 = 64 << 10;

/// How the user's `ssh` reaches a machine.
#[derive(Debug, Clone, Default)]
pub struct SshTarget {
    /// `user@host`, or a name of the user's configuration.
    pub destination: String,
    /// The port, if it is not the one of the configuration.
    pub port: Option<u16>,
    /// A configuration file in place of the user's.
    pub config: Option<Utf8PathBuf>,
    /// Options as in a configuration file, such as `ProxyJump=gate`.
    pub options: Vec<String>,
}

/// An open connection; it is closed with this.
pub(crate) struct SshConnection {
    target: SshTarget,
    master: Child,
    directory: tempfile::TempDir,
}

/// What a script gets to read.
pub(crate) enum Input<'a> {
    Nothing,
    Text(&'a str),
    File(&'a Utf8Path),
}

/// What a script answered.
pub(crate) struct ScriptOutput {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl SshTarget {
    fn check(&self) -> Result<(), BootstrapError> {
        let is_odd = |text: &str| text.is_empty() || text.starts_with('-');
        let has_host = !self.destination.ends_with('@') && !is_odd(self.host());
        // A word that begins with `-` would be an option of ssh.
        if is_odd(&self.destination) || !has_host || self.destination.contains(char::is_whitespace)
        {
            return Err(BootstrapError::Destination(self.destination.clone()));
        }
        Ok(())
    }

    /// The part behind the user.
    pub fn host(&self) -> &str {
        let after_user = self.destination.rsplit_once('@');
        after_user.map_or(self.destination.as_str(), |(_, host)| host)
    }

    fn command(&self, socket: &Utf8Path) -> Command {
        let mut command = Command::new("ssh");
        command.args(["-S", socket.as_str(), "-T"]);
        if let Some(config) = &self.config {
            command.args(["-F", config.as_str()]);
        }
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        for option in &self.options {
            command.args(["-o", option]);
        }
        command
    }
}

impl SshConnection {
    /// Connects.
    pub(crate) fn open(target: &SshTarget) -> Result<Self, BootstrapError> {
        target.check()?;
        let directory = tempfile::tempdir().map_err(BootstrapError::Local)?;
        let socket = socket(&directory)?;
        let log = directory.path().join("log");
        let log_file = File::create(&log).map_err(BootstrapError::Local)?;
        let mut command = target.command(&socket);
        command.args([
            "-M",
            "-N",
            "-o",
            "ControlPersist=no",
            "--",
            &target.destination,
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let master = command.stderr(log_file).spawn();
        let master = master.map_err(BootstrapError::NoSsh)?;
        let mut connection = Self {
            target: target.clone(),
            master,
            directory,
        };
        let began = Instant::now();
        while !socket.exists() {
            let has_ended = connection.master.try_wait();
            if has_ended.map_err(BootstrapError::Local)?.is_some() {
                let said = File::open(&log).and_then(limited);
                let said = said.map_err(BootstrapError::Local)?;
                return Err(BootstrapError::of_ssh(&connection.target, &said));
            }
            if began.elapsed() > OPEN_TIME {
                let destination = connection.target.destination.clone();
                let said = "it took too long".to_owned();
                return Err(BootstrapError::Unreachable { destination, said });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(connection)
    }

    /// Runs a script for `sh` on the machine.
    pub(crate) fn run(
        &self,
        script: &str,
        input: &Input<'_>,
    ) -> Result<ScriptOutput, BootstrapError> {
        let local = BootstrapError::Local;
        let mut command = self.target.command(&socket(&self.directory)?);
        // The user's shell there may be any; `sh` reads the script.
        let line = format!("sh -c {}", quoted(script));
        command.args([
            "-o",
            "ControlMaster=no",
            "--",
            &self.target.destination,
            &line,
        ]);
        command.stdin(match input {
            Input::Nothing => Stdio::null(),
            Input::Text(_) => Stdio::piped(),
            Input::File(path) => File::open(path).map_err(local)?.into(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(BootstrapError::NoSsh)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let (stdout, stderr) = std::thread::scope(|scope| {
            let stderr = scope.spawn(|| stderr.map_or(Ok(String::new()), limited));
            let stdout = scope.spawn(|| stdout.map_or(Ok(String::new()), limited));
            if let (Some(mut stdin), Input::Text(text)) = (stdin, input) {
                // A script that ends early says why.
                let _ = stdin.write_all(text.as_bytes());
            }
            let joined = |reader: std::thread::ScopedJoinHandle<'_, io::Result<String>>| {
                reader.join().unwrap_or_else(|_| Ok(String::new()))
            };
            (joined(stdout), joined(stderr))
        });
        let status = child.wait().map_err(local)?;
        Ok(ScriptOutput {
            is_success: status.success(),
            stdout: stdout.map_err(local)?,
            stderr: stderr.map_err(local)?,
        })
    }

    /// The machine, for messages.
    pub(crate) fn destination(&self) -> &str {
        &self.target.destination
    }
}

impl Drop for SshConnection {
    fn drop(&mut self) {
        let _ = self.master.kill();
        let _ = self.master.wait();
    }
}

fn socket(directory: &tempfile::TempDir) -> Result<Utf8PathBuf, BootstrapError> {
    // A short name: the path of a socket has room for some hundred letters.
    let path = Utf8PathBuf::try_from(directory.path().join("s"));
    path.map_err(|error| BootstrapError::Local(io::Error::other(error)))
}

/// The first part of what is read; the rest is read and forgotten, so that nobody waits to write.
fn limited(mut source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    io::copy(&mut source, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_never_an_option() {
        let target = |destination: &str| SshTarget {
            destination: destination.to_owned(),
            ..SshTarget::default()
        };
        for good in ["web-1", "root@web-1", "a@b@web-1", "root@10.0.0.1"] {
            assert!(target(good).check().is_ok(), "{good}");
        }
        for wrong in [
            "",
            "root@",
            "-oProxyCommand=id",
            "root@-oProxyCommand=id",
            "a b",
        ] {
            assert!(target(wrong).check().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_of_a_shell_is_what_it_was() {
        let text = "a 'b' $(c) \"d\"\n\\e";
        let output = Command::new("sh")
            .args(["-c", &format!("printf %s {}", quoted(text))])
            .output()
            .expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), text);
    }
}
