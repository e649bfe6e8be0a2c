//! `portolan fleet bootstrap` over a real sshd, to a machine with a real systemd.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portolan_testbed::{Machine, free_port, has_program};
use serde_json::Value;

use crate::portolan::{Answer, wait_for, wait_until};

/// How long a machine that is busy with other things may take to copy a large program and start it.
const LONG: Duration = Duration::from_mins(5);

/// A server, a machine with an sshd, and what a user needs to reach both.
struct Bed {
    // Ends before the machine.
    sshd: Child,
    machine: Machine,
    server: Child,
    url: String,
    directory: tempfile::TempDir,
}

impl Bed {
    fn start() -> Option<Self> {
        if !has_program("/usr/sbin/sshd", "-V") || !has_program("ssh", "-V") {
            return None;
        }
        let machine = Machine::start()?;
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path();
        for key in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            let command = command.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            let made = command.arg(place.join(key)).status();
            assert!(made.expect("ssh-keygen comes with ssh").success());
        }
        fs::copy(place.join("user.pub"), place.join("authorized")).expect("copied");
        let port = free_port();
        let at = |name: &str| place.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             AuthorizedKeysFile {}\nPermitRootLogin yes\nPasswordAuthentication no\n",
            at("host"),
            at("authorized"),
        );
        fs::write(place.join("sshd_config"), config).expect("written");
        let host_key = fs::read_to_string(place.join("host.pub")).expect("a key");
        fs::write(
            place.join("known"),
            format!("[127.0.0.1]:{port} {host_key}"),
        )
        .expect("written");
        for (name, known) in [("config", "known"), ("config-unknown", "nowhere")] {
            let config = format!(
                "Host web-1\n  HostName 127.0.0.1\n  Port {port}\nHost *\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
                 UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  BatchMode yes\n",
                at("user"),
                at(known),
            );
            fs::write(place.join(name), config).expect("written");
        }
        machine.run(&["useradd", "--shell", "/bin/sh", "deploy"]);
        // sshd lets nobody in whose account is locked, as that of a new user without a password is.
        machine.run(&["usermod", "--password", "*", "deploy"]);
        let sshd = machine
            .command(&["/usr/sbin/sshd", "-D", "-e", "-f", &at("sshd_config")])
            .stderr(Stdio::null())
            .spawn()
            .expect("it is installed");
        let (server, url) = start_server(&place.join("server"));
        let bed = Self {
            sshd,
            machine,
            server,
            url,
            directory,
        };
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(bed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command
            .arg("fleet")
            .args(args)
            .args(["--server", &self.url, "--token-file"])
            .arg(self.path("server/admin.token"))
            .arg("--ca-file")
            .arg(self.path("server/ca.pem"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn fleet(&self, args: &[&str]) -> Answer {
        let started = self.command(args).spawn();
        wait_for(started.expect("the binary was built with this test"))
    }

    fn bootstrap(&self, destination: &str, config: &str, more: &[&str]) -> Answer {
        let config = self.path(config).display().to_string();
        let own = ["bootstrap", destination, "--ssh-config", &config];
        self.fleet(&[&own[..], more].concat())
    }

    fn node(&self, name: &str) -> Value {
        let found = self.fleet(&["get", "node", name, "-o", "json"]);
        serde_json::from_str(&found.stdout).unwrap_or_default()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for child in [&mut self.sshd, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start_server(data: &Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let stderr = child.stderr.take().expect("it was asked for");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening on https://"));
    let line = line.expect("it listens");
    let port = line.trim().rsplit_once(':').expect("a port").1.to_owned();
    // Whoever stops reading would block the server.
    std::thread::spawn(move || lines.for_each(drop));
    (child, format!("https://localhost:{port}"))
}

/// Whether a failed command named the cause and what to do about it.
fn assert_refused(answer: &Answer, cause: &str, advice: &str) {
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains(cause), "{cause}: {answer}");
    assert!(answer.stderr.contains(advice), "{advice}: {answer}");
}

#[test]
fn a_machine_becomes_a_node_over_ssh_and_what_stands_in_the_way_is_named() {
    let Some(bed) = Bed::start() else {
        return;
    };
    let began = Instant::now();
    // Nothing is installed before everything is known to be well.
    let unknown = bed.bootstrap("root@web-1", "config-unknown", &[]);
    assert_refused(
        &unknown,
        "the host key of `root@web-1` is not known",
        "compare the key's fingerprint",
    );
    let stranger = bed.bootstrap("stranger@web-1", "config", &[]);
    assert_refused(&stranger, "refuses the login", "must work first");
    let powerless = bed.bootstrap("deploy@web-1", "config", &[]);
    assert_refused(
        &powerless,
        "`deploy@web-1` is neither root nor may it use sudo",
        "log in as root",
    );
    let mut foreign = vec![0_u8; 64];
    foreign[..6].copy_from_slice(b"\x7fELF\x02\x01");
    foreign[18] = 183;
    fs::write(bed.path("foreign"), foreign).expect("written");
    let program = bed.path("foreign").display().to_string();
    let other = bed.bootstrap("root@web-1", "config", &["--program", &program]);
    assert_refused(&other, "is for aarch64", "with --program");
    bed.machine
        .run(&["test", "!", "-e", "/usr/local/bin/portolan"]);
    bed.machine
        .run(&["test", "!", "-e", "/var/lib/portolan-agent"]);

    let done = bed.bootstrap("root@web-1", "config", &["--label", "role=web"]);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (0, "node/web-1 ready\n"),
        "{done}"
    );
    let node = bed.node("web-1");
    assert_eq!(node["status"]["state"], "ready", "{node:#}");
    assert_eq!(node["metadata"]["labels"]["role"], "web", "{node:#}");
    // The key that was approved is the one that the host has.
    let fingerprint = node["status"]["keyDigest"].as_str().expect("a digest");
    assert!(done.stderr.contains(fingerprint), "{fingerprint}: {done}");
    assert_eq!(
        bed.machine
            .run(&["systemctl", "is-enabled", "portolan-agent"]),
        "enabled\n"
    );
    let mode = bed.machine.run(&[
        "stat",
        "-c",
        "%a %U",
        "/var/lib/portolan-agent",
        "/var/lib/portolan-agent/identity.json",
    ]);
    assert_eq!(mode, "700 root\n600 root\n");

    let named = bed.bootstrap("root@web-1", "config", &[]);
    assert_refused(&named, "there is a node `web-1` already", "--name");
    let again = bed.bootstrap("root@web-1", "config", &["--name", "web-2"]);
    assert_refused(
        &again,
        "is a node already",
        "remove /var/lib/portolan-agent",
    );
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}
