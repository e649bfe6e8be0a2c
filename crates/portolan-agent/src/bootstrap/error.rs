//! Why a machine was not made a node, and what to do about it.

use std::io;

use camino::Utf8PathBuf;

use super::ssh::SshTarget;

/// Why a machine was not made a node.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The destination is none.
    #[error("`{0}` is not a destination such as root@web-1")]
    Destination(String),
    /// There is no `ssh` here.
    #[error("cannot start `ssh`")]
    NoSsh(#[source] io::Error),
    /// A file or process of this machine failed.
    #[error("cannot drive `ssh`")]
    Local(#[source] io::Error),
    /// The program cannot be read.
    #[error("cannot read the program `{path}`")]
    Program {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is no program that an agent could be.
    #[error("`{0}` is not a program for Linux")]
    NoProgram(Utf8PathBuf),
    /// Nobody has checked the host's key yet.
    #[error("the host key of `{0}` is not known")]
    UnknownHostKey(String),
    /// The host shows another key than before.
    #[error("the host key of `{0}` has changed")]
    ChangedHostKey(String),
    /// The host does not let the user in.
    #[error("`{destination}` refuses the login: {said}")]
    Login {
        /// The host.
        destination: String,
        /// What `ssh` said.
        said: String,
    },
    /// There is no connection.
    #[error("cannot connect to `{destination}`: {said}")]
    Unreachable {
        /// The host.
        destination: String,
        /// What `ssh` said.
        said: String,
    },
    /// The user cannot install anything there.
    #[error("`{0}` is neither root nor may it use sudo without a password")]
    NoPermission(String),
    /// The host has no systemd.
    #[error("`{0}` does not run systemd")]
    NoSystemd(String),
    /// The program is for another machine.
    #[error("`{destination}` is {host}, and the program `{path}` is for {program}")]
    Architecture {
        /// The host.
        destination: String,
        /// Its machine.
        host: String,
        /// The program.
        path: Utf8PathBuf,
        /// The program's machine.
        program: &'static str,
    },
    /// The host is a node.
    #[error("`{destination}` is a node already: {data} has a certificate")]
    AlreadyEnrolled {
        /// The host.
        destination: String,
        /// The agent's data there.
        data: &'static str,
    },
    /// The name or the address cannot be written into the settings of the unit.
    #[error("`{0}` cannot be a setting of the agent")]
    Setting(String),
    /// A step on the host failed.
    #[error("cannot {what} on `{destination}`: {said}")]
    Step {
        /// What was tried.
        what: &'static str,
        /// The host.
        destination: String,
        /// What it said.
        said: String,
    },
}

impl BootstrapError {
    /// What `ssh` said when it did not connect.
    pub(super) fn of_ssh(target: &SshTarget, said: &str) -> Self {
        let destination = target.destination.clone();
        if said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            return Self::ChangedHostKey(destination);
        }
        if said.contains("Host key verification failed") {
            return Self::UnknownHostKey(destination);
        }
        let said = last_line(said);
        if said.contains("Permission denied") {
            return Self::Login { destination, said };
        }
        Self::Unreachable { destination, said }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Destination(_) | Self::Local(_) | Self::Program { .. } | Self::Setting(_) => {
                return None;
            }
            Self::NoSsh(_) => "install the OpenSSH client".to_owned(),
            Self::NoProgram(_) => "name a program of Portolan with --program".to_owned(),
            Self::UnknownHostKey(host) => {
                format!(
                    "run `ssh {host}` once, and compare the key's fingerprint before you accept it"
                )
            }
            Self::ChangedHostKey(host) => {
                format!("somebody may be in between; `ssh {host}` says which key was expected")
            }
            Self::Login { destination, .. } | Self::Unreachable { destination, .. } => {
                format!("`ssh {destination}` must work first")
            }
            Self::NoPermission(_) => {
                "log in as root, or allow sudo without a password for the installation".to_owned()
            }
            Self::NoSystemd(_) => {
                "start `portolan agent` there in another way, with a join token".to_owned()
            }
            Self::Architecture { host, .. } => {
                format!("name a program for {host} with --program")
            }
            Self::AlreadyEnrolled { data, .. } => format!(
                "to enrol it anew, stop portolan-agent there, remove {data}, and remove the node from the server"
            ),
            Self::Step { .. } => {
                "the same command goes on where it failed; a key that was made is kept".to_owned()
            }
        };
        Some(text)
    }
}

/// The last line that says something.
pub(super) fn last_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let last = lines.rev().find(|line| !line.is_empty());
    last.unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ssh_become_errors_with_advice() {
        let target = SshTarget {
            destination: "root@web-1".to_owned(),
            ..SshTarget::default()
        };
        let text = |said: &str| BootstrapError::of_ssh(&target, said).to_string();
        assert_eq!(
            text(
                "No ED25519 host key is known for web-1 and you have requested strict checking.\r\nHost key verification failed.\r\n"
            ),
            "the host key of `root@web-1` is not known"
        );
        assert_eq!(
            text(
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n"
            ),
            "the host key of `root@web-1` has changed"
        );
        assert_eq!(
            text("root@web-1: Permission denied (publickey).\r\n"),
            "`root@web-1` refuses the login: root@web-1: Permission denied (publickey)."
        );
        assert_eq!(
            text("ssh: connect to host web-1 port 22: Connection refused\r\n"),
            "cannot connect to `root@web-1`: ssh: connect to host web-1 port 22: Connection refused"
        );
    }
}
