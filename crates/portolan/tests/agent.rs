//! `portolan agent` against `portolan serve`, as real processes over TLS.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::portolan::{Answer, portolan, wait_until};

/// A server with an empty store.
struct Server {
    child: Child,
    data: PathBuf,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        Self::start_at(data, "127.0.0.1:0")
    }

    fn start_at(data: &Path, address: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["serve", "--listen", address, "--data"])
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
        Self {
            child,
            data: data.to_owned(),
            url: format!("https://localhost:{port}"),
        }
    }

    /// Kills the server, and starts it again at the same address.
    fn restart(mut self) -> Self {
        self.kill();
        let address = self.url.replace("https://localhost", "127.0.0.1");
        Self::start_at(&self.data.clone(), &address)
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn fleet(&self, args: &[&str]) -> Answer {
        let file = |name: &str| self.data.join(name).to_str().expect("UTF-8").to_owned();
        let (token, authority) = (file("admin.token"), file("ca.pem"));
        let own = ["--server", &self.url, "--token-file", &token];
        portolan(&[&["fleet"][..], args, &own, &["--ca-file", &authority]].concat())
    }

    fn join_token(&self, uses: &str) -> Value {
        let made = self.fleet(&["join-token", "create", "--uses", uses, "-o", "json"]);
        assert_eq!(made.code, 0, "{made}");
        serde_json::from_str(&made.stdout).expect("JSON")
    }

    /// The state of a node; empty if there is none.
    fn state(&self, node: &str) -> String {
        let found = self.fleet(&["get", "node", node, "-o", "json"]);
        let found: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
        let state = found["status"]["state"].as_str();
        state.unwrap_or_default().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An agent that is killed with the test.
struct RunningAgent(Child);

impl RunningAgent {
    /// Sends a signal, such as `TERM`.
    fn signal(&self, name: &str) {
        let signal = format!("-{name}");
        let sent = Command::new("kill")
            .args([&signal, &self.0.id().to_string()])
            .status();
        assert!(sent.expect("kill is installed").success(), "it lives");
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `portolan agent` for a node, with variables that clients would follow to somewhere else.
fn agent_command(server: &Server, data: &Path, name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .args(["agent", "--server", &server.url, "--name", name, "--data"])
        .arg(data)
        .env("PORTOLAN_SERVER", "https://elsewhere.invalid")
        .env("PORTOLAN_TOKEN_FILE", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log(data));
    command
}

/// The file that an agent's messages go to, also those of its next start.
fn log(data: &Path) -> fs::File {
    let path = data.with_extension("log");
    let mut options = fs::OpenOptions::new();
    options
        .create(true)
        .append(true)
        .open(path)
        .expect("a file")
}

/// How often the agents of a data directory have connected.
fn connections(data: &Path) -> usize {
    let log = fs::read_to_string(data.with_extension("log")).expect("a log");
    log.matches("connected to server").count() - log.matches("not connected to server").count()
}

fn start_with_log(mut command: Command, data: &Path) -> RunningAgent {
    command.stdout(Stdio::null()).stderr(log(data));
    start(command)
}

/// Waits for what takes some rounds of the agent.
fn wait_long_until(mut state: impl FnMut() -> bool) {
    let began = Instant::now();
    while !state() {
        assert!(
            began.elapsed() < Duration::from_mins(5),
            "the state did not come"
        );
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

fn start(mut command: Command) -> RunningAgent {
    RunningAgent(
        command
            .spawn()
            .expect("the binary was built with this test"),
    )
}

/// Enrols a node and waits until it is connected.
fn enrol(server: &Server, directory: &Path, name: &str) -> RunningAgent {
    let token = server.join_token("1");
    let file = directory.join(format!("{name}.token"));
    fs::write(&file, token["token"].as_str().expect("a token")).expect("written");
    let mut command = agent_command(server, &directory.join(name), name);
    command.arg("--token-file").arg(&file);
    command.args(["--ca-pin", token["caPin"].as_str().expect("a pin")]);
    let agent = start(command);
    wait_until(|| server.state(name) == "ready");
    fs::remove_file(&file).expect("nobody needs it any more");
    agent
}

#[test]
fn a_node_is_ready_while_its_agent_is_connected() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let server = Server::start(&directory.join("server"));
    let agent = enrol(&server, directory, "web-1");
    // A killed agent is a lost link; it comes back without the token.
    agent.signal("KILL");
    wait_until(|| server.state("web-1") == "link-lost");
    drop(agent);
    let mut agent = start(agent_command(&server, &directory.join("web-1"), "web-1"));
    wait_until(|| server.state("web-1") == "ready");
    // A server that is killed and comes back finds its agent again.
    let server = server.restart();
    wait_until(|| connections(&directory.join("web-1")) == 3);
    wait_until(|| server.state("web-1") == "ready");
    // One that ends in good order has left.
    agent.signal("TERM");
    wait_until(|| server.state("web-1") == "left");
    assert!(agent.0.wait().expect("it ended").success());
}

#[test]
fn a_revoked_node_is_cut_and_two_agents_with_one_key_are_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let server = Server::start(&directory.join("server"));
    let first = enrol(&server, directory, "web-1");
    let copy = directory.join("copy");
    fs::create_dir(&copy).expect("a directory");
    fs::copy(
        directory.join("web-1/identity.json"),
        copy.join("identity.json"),
    )
    .expect("copied");
    let second = start(agent_command(&server, &copy, "web-1"));
    let is_reported = || {
        let events = server.fleet(&["get", "events", "-n", "system", "-o", "json"]);
        events.stdout.contains("node.cloned")
    };
    wait_until(is_reported);
    drop(second);
    wait_until(|| server.state("web-1") == "ready");
    let revoked = server.fleet(&["nodes", "revoke", "web-1"]);
    assert_eq!(revoked.code, 0, "{revoked}");
    wait_until(|| server.state("web-1") == "link-lost");
    drop(first);
}

#[test]
fn anything_but_a_join_token_is_refused_before_it_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let token = directory.path().join("token");
    fs::write(&token, "pt_0123456789abcdef_planted-secret").expect("written");
    // Nobody listens there: a request would fail in other words.
    let args = [
        "agent",
        "--server",
        "https://127.0.0.1:1",
        "--name",
        "web-1",
    ];
    let (data, token) = (
        data.to_str().expect("UTF-8"),
        token.to_str().expect("UTF-8"),
    );
    let pin = format!("sha256:{}", "0".repeat(64));
    let own = ["--data", data, "--token-file", token, "--ca-pin", &pin];
    let refused = portolan(&[&args[..], &own].concat());
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused.stderr.contains("does not hold a join token"),
        "{refused}"
    );
    assert!(!refused.stderr.contains("planted"), "{refused}");
    let without_pin = portolan(&[&args[..], &["--data", data]].concat());
    assert_eq!(without_pin.code, 2, "{without_pin}");
    assert!(without_pin.stderr.contains("--ca-pin"), "{without_pin}");
}

/// An upgrade: the agent becomes the program that took its place, and the node stays ready.
#[test]
fn an_agent_becomes_the_program_that_replaces_its_own() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let directory = directory.path();
    let server = Server::start(&directory.join("server"));
    drop(enrol(&server, directory, "web-1"));
    let program = directory.join("portolan");
    fs::hard_link(env!("CARGO_BIN_EXE_portolan"), &program).expect("linked");
    let data = directory.join("web-1");
    let plain = agent_command(&server, &data, "web-1");
    let mut command = Command::new(&program);
    command.args(plain.get_args()).stdin(Stdio::null());
    let before = connections(&data);
    let agent = start_with_log(command, &data);
    wait_until(|| connections(&data) == before + 1);
    let script = format!(
        "#!/bin/sh\necho \"$@\" > '{}'\nexec '{}' \"$@\"\n",
        directory.join("started").display(),
        env!("CARGO_BIN_EXE_portolan")
    );
    let new = directory.join("new");
    fs::write(&new, script).expect("written");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("set");
    fs::rename(&new, &program).expect("renamed");
    // It looks every ten seconds, and twice.
    wait_long_until(|| connections(&data) == before + 2);
    let started = fs::read_to_string(directory.join("started")).expect("the new program");
    assert!(started.starts_with("agent --server "), "{started}");
    assert_eq!(server.state("web-1"), "ready");
    drop(agent);
}
