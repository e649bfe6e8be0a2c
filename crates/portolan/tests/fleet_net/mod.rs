//! Three etcd members, three servers and ten agents, each in a network of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portolan_testbed::{EtcdCluster, Place, Process};
use serde_json::Value;

use crate::portolan::{Answer, wait_for};

pub(crate) const SERVERS: usize = 3;
pub(crate) const AGENTS: usize = 10;
/// For everything to be well again on a machine that is busy with other things.
pub(crate) const SOON: Duration = Duration::from_mins(3);

/// How an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentStart {
    Plain,
    /// Its clock can be set with [`Network::set_clock`].
    FakeClock,
}

/// All processes, which end with the test.
pub(crate) struct Network {
    // Before the cluster, so that the processes end first.
    servers: Vec<Option<Process>>,
    agents: Vec<Option<Process>>,
    pub(crate) cluster: EtcdCluster,
    addresses: Vec<String>,
    directory: tempfile::TempDir,
}

impl Network {
    /// Starts everything, and moves the calling thread to the clients. `None` where that cannot be done.
    pub(crate) fn start() -> Option<Self> {
        let mut cluster = EtcdCluster::start("3.7")?;
        let addresses = (0..SERVERS + AGENTS).map(|_| cluster.add_guest()).collect();
        cluster.enter();
        let mut network = Self {
            servers: (0..SERVERS).map(|_| None).collect(),
            agents: (0..AGENTS).map(|_| None).collect(),
            cluster,
            addresses,
            directory: tempfile::tempdir().expect("a directory"),
        };
        network.start_servers();
        network.start_agents();
        Some(network)
    }

    fn start_servers(&mut self) {
        self.start_server(0);
        let key = self.data(0).join("secrets.key");
        let token = self.data(0).join("admin.token");
        until("the first server", || key.exists() && token.exists());
        for number in 1..SERVERS {
            fs::create_dir(self.data(number)).expect("a directory");
            fs::copy(&key, self.data(number).join("secrets.key")).expect("copied");
            self.start_server(number);
        }
        for number in 0..SERVERS {
            until("a server", || self.status(number).is_some());
        }
    }

    fn start_agents(&mut self) {
        let args = [
            "join-token",
            "create",
            "--uses",
            "10",
            "--label",
            "fleet=test",
            "-o",
            "json",
        ];
        let made = self.fleet(0, &args);
        assert_eq!(made.code, 0, "{made}");
        let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
        let token = self.path("join.token");
        fs::write(&token, made["token"].as_str().expect("a token")).expect("written");
        fs::write(self.path("pin"), made["caPin"].as_str().expect("a pin")).expect("written");
        for number in 0..AGENTS {
            for inside in ["etc", "srv"] {
                fs::create_dir_all(self.root(number).join(inside)).expect("a directory");
            }
            // A disk that can be filled, and that nobody else has.
            let data = self.agent_data(number);
            fs::create_dir_all(&data).expect("a directory");
            let mount = format!(
                "mount -t tmpfs -o size=4m,mode=0700 disk '{}'",
                data.display()
            );
            assert!(
                self.cluster.shell_in_guest(SERVERS + number, &mount),
                "no disk"
            );
            self.start_agent(number, AgentStart::Plain);
        }
        let objects = self.path("objects.yaml");
        let text = "\
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
        fs::write(&objects, text).expect("written");
        let applied = self.fleet(0, &["apply", "-f", objects.to_str().expect("UTF-8")]);
        assert_eq!(applied.code, 0, "{applied}");
        self.until_all_ready();
    }

    /// Waits until every agent is connected.
    pub(crate) fn until_all_ready(&self) {
        until("ten nodes that are ready", || {
            let listed = self.fleet(0, &["nodes", "-o", "json"]);
            let listed: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
            let nodes = listed["items"].as_array().into_iter().flatten();
            nodes
                .filter(|node| node["status"]["state"] == "ready")
                .count()
                == AGENTS
        });
    }

    /// Starts a server on the data that it has, if it does not run.
    pub(crate) fn start_server(&mut self, number: usize) {
        if is_running(self.servers[number].as_ref()) {
            return;
        }
        let data = self.data(number);
        fs::create_dir_all(&data).expect("a directory");
        let words = [
            "serve".to_owned(),
            format!("--listen={}:7443", self.addresses[number]),
            format!("--data={}", data.display()),
            format!("--etcd={}", self.cluster.urls().join(",")),
        ];
        self.servers[number] =
            Some(self.run_in(number, &[], &words, &self.path(&format!("log-{number}"))));
    }

    pub(crate) fn kill_server(&mut self, number: usize) {
        self.servers[number] = None;
    }

    /// Starts an agent on the data that it has, if it does not run.
    pub(crate) fn start_agent(&mut self, number: usize, how: AgentStart) {
        if is_running(self.agents[number].as_ref()) {
            return;
        }
        let clock = format!(
            "FAKETIME_TIMESTAMP_FILE={}",
            self.clock_file(number).display()
        );
        let before: &[&str] = match how {
            AgentStart::Plain => &[],
            AgentStart::FakeClock => &[
                "env",
                &clock,
                "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1",
                "LD_PRELOAD=libfaketime.so.1",
            ],
        };
        let pin = fs::read_to_string(self.path("pin")).expect("a pin");
        let words = [
            "agent".to_owned(),
            format!("--server=https://{}:7443", self.addresses[number % SERVERS]),
            format!("--name={}", node(number)),
            format!("--data={}", self.agent_data(number).display()),
            format!("--root={}", self.root(number).display()),
            format!("--token-file={}", self.path("join.token").display()),
            format!("--ca-pin={pin}"),
        ];
        let log = self.path(&format!("log-{}", node(number)));
        self.agents[number] = Some(self.run_in(SERVERS + number, before, &words, &log));
    }

    pub(crate) fn kill_agent(&mut self, number: usize) {
        self.agents[number] = None;
    }

    /// Kills an agent and all commands of its node, as a power failure does.
    pub(crate) fn kill_node(&mut self, number: usize) {
        self.cluster.kill_guest(SERVERS + number);
        self.agents[number] = None;
    }

    fn run_in(&self, guest: usize, before: &[&str], words: &[String], log: &Path) -> Process {
        fs::create_dir_all(log).expect("a directory");
        let mut line: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        line.push(env!("CARGO_BIN_EXE_portolan").to_owned());
        line.extend(words.iter().cloned());
        self.cluster.start_in_guest(guest, &line, log)
    }

    pub(crate) fn signal_server(&self, number: usize, name: &str) {
        if let Some(process) = &self.servers[number] {
            process.signal(name);
        }
    }

    pub(crate) fn signal_agent(&self, number: usize, name: &str) {
        if let Some(process) = &self.agents[number] {
            process.signal(name);
        }
    }

    /// The process of an agent.
    pub(crate) fn agent_id(&self, number: usize) -> u32 {
        self.agents[number].as_ref().expect("it runs").id()
    }

    /// Sets the clock of an agent, such as `+1d`.
    pub(crate) fn set_clock(&self, number: usize, offset: &str) {
        let file = self.clock_file(number);
        let new = file.with_extension("new");
        fs::write(&new, format!("{offset}\n")).expect("written");
        fs::rename(new, file).expect("renamed");
    }

    fn clock_file(&self, number: usize) -> PathBuf {
        self.path(&format!("clock-{number}"))
    }

    /// Takes all that is left of the disk with the agent's journal.
    pub(crate) fn fill_disk(&self, number: usize) {
        let file = self.agent_data(number).join("ballast");
        let script = format!(
            "dd if=/dev/zero of='{}' bs=4k 2> /dev/null || true",
            file.display()
        );
        assert!(
            self.cluster.shell_in_guest(SERVERS + number, &script),
            "not filled"
        );
    }

    /// Gives that room back.
    pub(crate) fn free_disk(&self, number: usize) {
        let script = format!("rm '{}'", self.agent_data(number).join("ballast").display());
        assert!(
            self.cluster.shell_in_guest(SERVERS + number, &script),
            "not freed"
        );
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn data(&self, number: usize) -> PathBuf {
        self.path(&format!("server-{number}"))
    }

    fn agent_data(&self, number: usize) -> PathBuf {
        self.path(&format!("{}-data", node(number)))
    }

    /// The directory that stands for a node.
    pub(crate) fn root(&self, number: usize) -> PathBuf {
        self.path(&format!("{}-root", node(number)))
    }

    /// A file of a node; empty if there is none.
    pub(crate) fn read(&self, number: usize, name: &str) -> String {
        fs::read_to_string(self.root(number).join(name)).unwrap_or_default()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// `portolan fleet …` as the first admin, at one of the servers.
    pub(crate) fn spawn(&self, server: usize, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command
            .arg("fleet")
            .args(args)
            .arg(format!("--server=https://{}:7443", self.addresses[server]))
            .arg("--token-file")
            .arg(self.data(0).join("admin.token"))
            .arg("--ca-file")
            .arg(self.data(server).join("ca.pem"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .spawn()
            .expect("the binary was built with this test")
    }

    pub(crate) fn fleet(&self, server: usize, args: &[&str]) -> Answer {
        wait_for(self.spawn(server, args))
    }

    /// What a server says of itself; `None` if it does not answer.
    pub(crate) fn status(&self, server: usize) -> Option<Value> {
        let told = self.fleet(server, &["status", "-o", "json"]);
        serde_json::from_str(&told.stdout).ok()
    }

    /// Waits for a server other than `but` that looks after runs.
    pub(crate) fn owner(&self, but: Option<usize>) -> usize {
        let mut owner = None;
        until("an owner", || {
            let others = (0..SERVERS).filter(|number| {
                Some(*number) != but && is_running(self.servers[*number].as_ref())
            });
            owner = others.into_iter().find(|number| {
                let status = self.status(*number).unwrap_or_default();
                status["controllers"]["isOwner"] == true
            });
            owner.is_some()
        });
        owner.expect("it was waited for")
    }

    /// The state of a node.
    pub(crate) fn state(&self, server: usize, number: usize) -> String {
        let found = self.fleet(server, &["get", "node", &node(number), "-o", "json"]);
        let found: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
        found["status"]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Loses what an agent and the servers send to each other, one way or both.
    pub(crate) fn cut(&self, number: usize, requests: bool, answers: bool) {
        let agent = Place::Guest(SERVERS + number);
        for server in (0..SERVERS).map(Place::Guest) {
            if requests {
                self.cluster.block(agent, server);
            }
            if answers {
                self.cluster.block(server, agent);
            }
        }
    }

    pub(crate) fn mend(&self, number: usize) {
        let agent = Place::Guest(SERVERS + number);
        for server in (0..SERVERS).map(Place::Guest) {
            self.cluster.unblock(agent, server);
        }
    }
}

/// The name of a node.
pub(crate) fn node(number: usize) -> String {
    format!("node-{number}")
}

fn is_running(process: Option<&Process>) -> bool {
    process.is_some_and(|process| !process.has_ended())
}

/// Waits for a state.
pub(crate) fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < SOON, "{what}: it does not come");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}
