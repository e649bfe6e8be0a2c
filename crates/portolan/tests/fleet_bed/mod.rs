//! A fleet of processes: a server, and agents whose nodes are directories.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::portolan::{Answer, wait_for, wait_until};

pub(crate) const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

/// The node that takes single commands and `reboot` steps.
pub(crate) const EXEC_NODE: &str = "node-3";

/// All processes, which end with the test.
pub(crate) struct Fleet {
    directory: tempfile::TempDir,
    server: Child,
    port: String,
    agents: BTreeMap<String, Child>,
}

impl Fleet {
    /// A server and three agents that are ready; namespace `default` may target them as the group `all`.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, port) = start_server(&directory.path().join("server"), "0", None);
        let mut fleet = Self {
            directory,
            server,
            port,
            agents: BTreeMap::new(),
        };
        for node in NODES {
            fleet.enrol(node);
        }
        let objects = "\
apiVersion: v1alpha
kind: NodeGroup
metadata: {name: all}
spec: {selector: 'fleet=test'}
---
apiVersion: v1alpha
kind: NodeGrant
metadata: {name: all}
spec: {groups: [all], namespaces: [default]}
";
        let objects = fleet.write("objects.yaml", objects);
        let applied = fleet.fleet(&["apply", "-f", &objects]);
        assert_eq!(applied.code, 0, "{applied}");
        for node in NODES {
            wait_until(|| fleet.state(node) == "ready");
        }
        fleet
    }

    /// Makes a node and starts its agent.
    pub(crate) fn enrol(&mut self, node: &str) {
        let make = [
            "join-token",
            "create",
            "--label",
            "fleet=test",
            "-o",
            "json",
        ];
        let made = self.fleet(&make);
        assert_eq!(made.code, 0, "{made}");
        let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
        let token = self.write(
            &format!("{node}.token"),
            made["token"].as_str().expect("a token"),
        );
        let pin = made["caPin"].as_str().expect("a pin").to_owned();
        for inside in ["etc", "srv"] {
            fs::create_dir_all(self.root(node).join(inside)).expect("a directory");
        }
        let enrolment = ["--token-file".to_owned(), token, "--ca-pin".to_owned(), pin];
        self.spawn_agent(node, &enrolment, None);
    }

    /// Starts the agent of a node that is enrolled; `crash` names a place where it dies.
    pub(crate) fn start_agent(&mut self, node: &str, crash: Option<&str>) {
        self.spawn_agent(node, &[], crash);
    }

    fn spawn_agent(&mut self, node: &str, more: &[String], crash: Option<&str>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command
            .args(["agent", "--server", &self.url(), "--name", node, "--data"])
            .arg(self.path(&format!("{node}-data")))
            .arg("--root")
            .arg(self.root(node))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if node == EXEC_NODE {
            command.args(["--allow-exec", "--fake-boot"]);
        }
        if let Some(crash) = crash {
            command.env("PORTOLAN_CRASH_AT", crash);
        }
        let child = command
            .spawn()
            .expect("the binary was built with this test");
        self.agents.insert(node.to_owned(), child);
    }

    /// Kills an agent, as `kill -9` does. Its commands go on.
    pub(crate) fn kill_agent(&mut self, node: &str) {
        if let Some(mut agent) = self.agents.remove(node) {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }

    /// The process of an agent.
    pub(crate) fn agent_id(&self, node: &str) -> u32 {
        self.agents.get(node).expect("an agent").id()
    }

    /// Sends a signal such as `STOP` to an agent.
    pub(crate) fn signal_agent(&self, node: &str, name: &str) {
        let id = self.agents.get(node).expect("an agent").id();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id.to_string()])
            .status();
        assert!(sent.expect("kill is installed").success(), "it lives");
    }

    /// Whether an agent has ended by itself.
    pub(crate) fn has_died(&mut self, node: &str) -> bool {
        let agent = self.agents.get_mut(node).expect("an agent");
        agent.try_wait().expect("looked").is_some()
    }

    /// Whether the server has ended by itself.
    pub(crate) fn has_server_died(&mut self) -> bool {
        self.server.try_wait().expect("looked").is_some()
    }

    /// Kills the server.
    pub(crate) fn kill_server(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Kills the server and starts it again at the same address.
    pub(crate) fn restart_server(&mut self) {
        self.restart_server_at(None);
    }

    /// As [`restart_server`](Self::restart_server); `crash` names a place where the new one dies.
    pub(crate) fn restart_server_at(&mut self, crash: Option<&str>) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let (server, _) = start_server(&self.path("server"), &self.port, crash);
        self.server = server;
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory that stands for a node.
    pub(crate) fn root(&self, node: &str) -> PathBuf {
        self.path(&format!("{node}-root"))
    }

    /// A file below a node; empty if there is none.
    pub(crate) fn read(&self, node: &str, name: &str) -> String {
        fs::read_to_string(self.root(node).join(name)).unwrap_or_default()
    }

    /// Writes a file and gives its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// `portolan fleet …` as the first admin.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        // What stands behind `--` belongs to somebody else.
        let end = args.iter().position(|arg| *arg == "--");
        let (own, rest) = args.split_at(end.unwrap_or(args.len()));
        command
            .arg("fleet")
            .args(own)
            .args(["--server", &self.url(), "--ca-file"])
            .arg(self.path("server/ca.pem"));
        if !own.contains(&"--token-file") {
            command
                .arg("--token-file")
                .arg(self.path("server/admin.token"));
        }
        command.args(rest).stdin(Stdio::null());
        command
    }

    pub(crate) fn fleet(&self, args: &[&str]) -> Answer {
        let mut command = self.command(args);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        wait_for(
            command
                .spawn()
                .expect("the binary was built with this test"),
        )
    }

    /// The types of the events about a node, in order.
    pub(crate) fn node_events(&self, node: &str) -> Vec<String> {
        let found = self.fleet(&["get", "events", "-n", "system", "-o", "json"]);
        let found: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
        let one = vec![found.clone()];
        let events = found["items"].as_array().unwrap_or(&one).iter();
        let events = events.filter(|event| event["spec"]["source"]["name"] == node);
        events
            .filter_map(|event| event["spec"]["type"].as_str().map(str::to_owned))
            .collect()
    }

    /// The state of a node; empty if it is not known.
    pub(crate) fn state(&self, node: &str) -> String {
        let found = self.fleet(&["get", "node", node, "-o", "json"]);
        let found: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
        found["status"]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn start_server(data: &Path, port: &str, crash: Option<&str>) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(data)
        .stderr(Stdio::piped());
    if let Some(crash) = crash {
        command.env("PORTOLAN_CRASH_AT", crash);
    }
    let mut child = command
        .spawn()
        .expect("the binary was built with this test");
    let stderr = child.stderr.take().expect("it was asked for");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening on https://"));
    let line = line.expect("it listens");
    let port = line.trim().rsplit_once(':').expect("a port").1.to_owned();
    // Whoever stops reading would block the server.
    std::thread::spawn(move || lines.for_each(drop));
    (child, port)
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let nodes: Vec<String> = self.agents.keys().cloned().collect();
        for node in nodes {
            self.kill_agent(&node);
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
