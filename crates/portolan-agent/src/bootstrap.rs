//! Makes a machine that the user reaches by SSH a node.
//!
//! ```text
//! probe ──▶ copy the program ──▶ the agent makes its key there ──▶ unit and settings ──▶ start
//!                                       └─ fingerprint, read over SSH ──▶ approved on the server
//! ```
//!
//! The server gets no right to log in anywhere, and no secret is sent: the key stays on the host, and its fingerprint comes
//! back over a connection that the user's `ssh` has checked. Every step can be repeated.

mod error;
mod program_file;
mod ssh;

use camino::Utf8PathBuf;
use portolan_identity::CaPin;
use portolan_object::NameRule;

pub use error::BootstrapError;
use error::last_line;
use program_file::{ProgramFile, fits};
pub use ssh::SshTarget;
use ssh::{Input, ScriptOutput, SshConnection, quoted};

/// Where the agent is on the host. A package has its program in `/usr/bin`.
const PROGRAM: &str = "/usr/local/bin/portolan";
const DATA: &str = "/var/lib/portolan-agent";
const SETTINGS: &str = "/etc/portolan/agent.env";
const UNIT: &str = "/etc/systemd/system/portolan-agent.service";
/// The unit as packages install it.
const UNIT_TEXT: &str = include_str!("../../../deploy/agent/portolan-agent.service");

/// What the host is asked first, as root if that is possible. `%` is the data directory.
const PROBE: &str = r#"
echo "machine=$(uname -m)"
echo "uid=$(id -u)"
[ -d /run/systemd/system ] && echo systemd=yes
[ -e %/identity.json ] && echo enrolled=yes
command -v sha256sum > /dev/null && [ -f /usr/local/bin/portolan ] && echo "program=$(sha256sum < /usr/local/bin/portolan | cut -d' ' -f1)"
true
"#;

/// What becomes of a machine.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    /// The machine.
    pub target: SshTarget,
    /// The program that the agent is started from.
    pub program: Utf8PathBuf,
    /// The address of the server, as the machine reaches it.
    pub server: String,
    /// What the server's authority is known by.
    pub ca_pin: CaPin,
    /// The name that the node asks for.
    pub name: String,
}

/// A machine whose agent waits for the approval of its key.
pub struct BootstrappedHost {
    connection: SshConnection,
    sudo: &'static str,
    fingerprint: CaPin,
}

/// What the host said about itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Probe {
    machine: String,
    is_root: bool,
    has_systemd: bool,
    is_enrolled: bool,
    program: String,
}

impl Bootstrap {
    /// Installs and starts the agent; `tell` gets what is done.
    ///
    /// # Errors
    /// When a step is not possible; the host may have a part of the agent then, and the same call goes on.
    pub fn install(&self, tell: &dyn Fn(&str)) -> Result<BootstrappedHost, BootstrapError> {
        let settings = self.settings()?;
        let program = ProgramFile::read(&self.program)?;
        let connection = SshConnection::open(&self.target)?;
        let (probe, sudo) = ask(&connection)?;
        self.check(&probe, &program)?;
        let mut host = BootstrappedHost {
            connection,
            sudo,
            fingerprint: self.ca_pin,
        };
        if probe.program == program.digest {
            tell("the program is there already");
        } else {
            tell("copying the program");
            host.put(
                "copy the program",
                PROGRAM,
                "0755",
                &Input::File(&program.path),
            )?;
        }
        let key = format!("{PROGRAM} agent --data {DATA} --show-key");
        let said = host.step("start the program", &key, &Input::Nothing)?;
        host.fingerprint = read_fingerprint(&said)
            .ok_or_else(|| host.failed("read the key's fingerprint", &said))?;
        tell(&format!("the agent has made its key: {}", host.fingerprint));
        let text = Input::Text(&settings);
        host.put("write the settings", SETTINGS, "0644", &text)?;
        let unit = UNIT_TEXT.replace("/usr/bin/portolan", PROGRAM);
        host.put("install the unit", UNIT, "0644", &Input::Text(&unit))?;
        let start = "systemctl daemon-reload && systemctl enable --quiet portolan-agent && systemctl restart portolan-agent";
        host.step("start the agent", start, &Input::Nothing)?;
        tell("the agent is started");
        Ok(host)
    }

    fn check(&self, probe: &Probe, program: &ProgramFile) -> Result<(), BootstrapError> {
        let destination = || self.target.destination.clone();
        if !fits(program.machine, &probe.machine) {
            return Err(BootstrapError::Architecture {
                destination: destination(),
                host: probe.machine.clone(),
                path: program.path.clone(),
                program: program.machine,
            });
        }
        if !probe.is_root {
            return Err(BootstrapError::NoPermission(destination()));
        }
        if !probe.has_systemd {
            return Err(BootstrapError::NoSystemd(destination()));
        }
        if probe.is_enrolled {
            let destination = destination();
            return Err(BootstrapError::AlreadyEnrolled {
                destination,
                data: DATA,
            });
        }
        Ok(())
    }

    /// The settings of the unit.
    fn settings(&self) -> Result<String, BootstrapError> {
        if !NameRule::Subdomain.fits(&self.name) {
            return Err(BootstrapError::Setting(self.name.clone()));
        }
        let is_plain = |one: char| one.is_ascii_alphanumeric() || ":/.-_[]".contains(one);
        if !self.server.starts_with("https://") || !self.server.chars().all(is_plain) {
            return Err(BootstrapError::Setting(self.server.clone()));
        }
        Ok(format!(
            "SERVER={}\nNAME={}\nENROL=--ca-pin {}\n",
            self.server.trim_end_matches('/'),
            self.name,
            self.ca_pin
        ))
    }
}

/// Asks the host about itself, and finds out how to be root there.
fn ask(connection: &SshConnection) -> Result<(Probe, &'static str), BootstrapError> {
    let probe = PROBE.replace('%', DATA);
    let as_root = format!(
        "if [ \"$(id -u)\" = 0 ]; then sh -c {0}; elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then echo sudo=yes; sudo -n sh -c {0}; else sh -c {0}; fi",
        quoted(&probe)
    );
    let output = connection.run(&as_root, &Input::Nothing)?;
    if !output.is_success {
        return Err(failed(connection, "look around", &output));
    }
    let needs_sudo = output.stdout.lines().any(|line| line == "sudo=yes");
    let sudo = if needs_sudo { "sudo -n " } else { "" };
    Ok((Probe::read(&output.stdout), sudo))
}

impl Probe {
    fn read(text: &str) -> Self {
        let mut probe = Self::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let value = value.trim();
            match key {
                "machine" => value.clone_into(&mut probe.machine),
                "uid" => probe.is_root = value == "0",
                "systemd" => probe.has_systemd = value == "yes",
                "enrolled" => probe.is_enrolled = value == "yes",
                "program" => value.clone_into(&mut probe.program),
                _ => {}
            }
        }
        probe
    }
}

impl BootstrappedHost {
    /// The fingerprint of the key that the agent made, as the host printed it.
    pub fn fingerprint(&self) -> CaPin {
        self.fingerprint
    }

    /// The last that the agent said on the host, for an error.
    pub fn last_words(&self) -> String {
        let script = "journalctl --unit=portolan-agent --lines=1 --output=cat 2> /dev/null || true";
        let said = self.step("read the log", script, &Input::Nothing);
        last_line(&said.unwrap_or_default())
    }

    /// Writes a file on the host in one step: nobody ever sees a part of it.
    fn put(
        &self,
        what: &'static str,
        path: &str,
        mode: &str,
        input: &Input<'_>,
    ) -> Result<(), BootstrapError> {
        let script = format!(
            "set -e; umask 022; mkdir -p \"$(dirname {path})\"; cat > {path}.new; chmod {mode} {path}.new; sync {path}.new; mv {path}.new {path}"
        );
        self.step(what, &script, input).map(|_| ())
    }

    /// Runs a script as root and returns what it prints.
    fn step(
        &self,
        what: &'static str,
        script: &str,
        input: &Input<'_>,
    ) -> Result<String, BootstrapError> {
        let script = format!("{}sh -c {}", self.sudo, quoted(script));
        let output = self.connection.run(&script, input)?;
        if output.is_success {
            return Ok(output.stdout);
        }
        Err(failed(&self.connection, what, &output))
    }

    fn failed(&self, what: &'static str, said: &str) -> BootstrapError {
        BootstrapError::Step {
            what,
            destination: self.connection.destination().to_owned(),
            said: last_line(said),
        }
    }
}

fn failed(connection: &SshConnection, what: &'static str, output: &ScriptOutput) -> BootstrapError {
    BootstrapError::Step {
        what,
        destination: connection.destination().to_owned(),
        said: last_line(&output.stderr),
    }
}

/// The fingerprint, which is the only line of the answer.
fn read_fingerprint(said: &str) -> Option<CaPin> {
    said.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_says_about_itself_is_read() {
        let said = "machine=aarch64\nuid=0\nsystemd=yes\nodd\nprogram=abc\n";
        let expected = Probe {
            machine: "aarch64".to_owned(),
            is_root: true,
            has_systemd: true,
            is_enrolled: false,
            program: "abc".to_owned(),
        };
        assert_eq!(Probe::read(said), expected);
        assert_eq!(Probe::read("Last login: never\n"), Probe::default());
    }

    #[test]
    fn settings_hold_nothing_that_the_unit_would_read_as_more() {
        let settings = |server: &str, name: &str| {
            let bootstrap = Bootstrap {
                target: SshTarget::default(),
                program: Utf8PathBuf::new(),
                server: server.to_owned(),
                ca_pin: CaPin::of_public_key(b"key"),
                name: name.to_owned(),
            };
            bootstrap.settings()
        };
        let good = settings("https://fleet.example.com:7443/", "web-1").expect("good");
        assert!(good.starts_with(
            "SERVER=https://fleet.example.com:7443\nNAME=web-1\nENROL=--ca-pin sha256:"
        ));
        assert!(settings("https://[fd00::1]:7443", "web-1").is_ok());
        for server in [
            "http://a",
            "https://a b",
            "https://a\nNAME=b",
            "https://a'",
            "https://a$b",
        ] {
            assert!(settings(server, "web-1").is_err(), "{server}");
        }
        for name in ["", "-x", "a b", "a\nb", "A"] {
            assert!(settings("https://a", name).is_err(), "{name:?}");
        }
    }
}
