//! Three etcd members, each with a network, a disk and a process that a test can break.
//!
//! ```text
//! clients 10.0.0.100 ── bridge ─┬─ 10.0.0.1  etcd 0   disk of its own (tmpfs)
//!                               ├─ 10.0.0.2  etcd 1   …
//!                               ├─ 10.0.0.3  etcd 2   …
//!                               └─ 10.0.0.11 and on   guests: programs of the test's own, if it asks for them
//! ```

use std::path::{Path, PathBuf};

use crate::namespace::Namespace;
use crate::process::Process;
use crate::tools::{is_built, tools};

/// Members of a cluster.
const MEMBERS: usize = 3;
/// A disk has room for etcd's two log segments of 64 MB and some data.
const DISK: &str = "300m";

/// Who sends or receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Everything that runs inside of [`EtcdCluster::enter`].
    Clients,
    /// A member by its number.
    Member(usize),
    /// A guest by its number.
    Guest(usize),
}

/// A running cluster. Everything of it goes when it is dropped.
pub struct EtcdCluster {
    // Before the namespaces, so that programs end first.
    processes: Vec<Option<Process>>,
    members: Vec<Namespace>,
    guests: Vec<Namespace>,
    clients: Namespace,
    program: PathBuf,
    directory: tempfile::TempDir,
}

impl EtcdCluster {
    /// Starts three members of a release such as `3.7`, as `testbed/etcd/build` makes it. `None` when that is not there, or
    /// when the process may not make namespaces.
    ///
    /// # Panics
    /// When a part cannot be made; under `CI`, when something is missing.
    pub fn start(minor: &str) -> Option<Self> {
        let program = tools().join(format!("etcd-{minor}/etcd"));
        let hint =
            format!("`testbed/etcd/build {minor}` makes it, and `./test` calls that; it needs Go");
        if !is_built(&program, &hint) {
            return None;
        }
        let Some(clients) = Namespace::new() else {
            skip("namespaces cannot be made: root may, and `unshare` must be installed");
            return None;
        };
        let bridge = "ip link set lo up; ip link add lan type bridge; ip addr add 10.0.0.100/24 dev lan; ip link set lan up";
        assert!(clients.shell(bridge), "no bridge can be made");
        let mut cluster = Self {
            processes: (0..MEMBERS).map(|_| None).collect(),
            members: Vec::new(),
            guests: Vec::new(),
            clients,
            program,
            directory: tempfile::tempdir().expect("a directory"),
        };
        for number in 0..MEMBERS {
            let member = cluster.make_member(number);
            cluster.members.push(member);
        }
        (0..MEMBERS).for_each(|number| cluster.restart(number));
        Some(cluster)
    }

    fn make_member(&self, number: usize) -> Namespace {
        let member = self.make_place(Place::Member(number), &format!("port{number}"));
        let disk = self.disk(number);
        std::fs::create_dir(&disk).expect("a directory");
        let mount = format!("mount -t tmpfs -o size={DISK} disk '{}'", disk.display());
        assert!(member.shell(&mount), "no disk can be made");
        member
    }

    /// A network of its own, connected to the others by a port of the bridge.
    fn make_place(&self, place: Place, port: &str) -> Namespace {
        let made = Namespace::new().expect("a second namespace");
        let id = made.id();
        let cable = format!(
            "ip link add {port} type veth peer name eth0 netns {id}; ip link set {port} master lan up"
        );
        assert!(self.clients.shell(&cable), "no link can be made");
        let own = format!(
            "ip link set lo up; ip addr add {}/24 dev eth0; ip link set eth0 up",
            address(place)
        );
        assert!(made.shell(&own), "no network can be made");
        made
    }

    /// Adds a place for a program of the test's own, and returns its address.
    pub fn add_guest(&mut self) -> String {
        let place = Place::Guest(self.guests.len());
        let guest = self.make_place(place, &format!("guest{}", self.guests.len()));
        self.guests.push(guest);
        address(place)
    }

    /// Starts a program in the network of a guest. It logs to `nsenter.log` in the directory.
    pub fn start_in_guest(&self, number: usize, words: &[String], directory: &Path) -> Process {
        let line = self.guests[number].command_line(words);
        Process::start(Path::new(&line[0]), &line[1..], directory)
    }

    /// Runs a shell script in the network and the file systems of a guest. Returns whether it ended well.
    pub fn shell_in_guest(&self, number: usize, script: &str) -> bool {
        self.guests[number].shell(script)
    }

    /// Kills everything that runs in the network of a guest at once, as a power failure does.
    ///
    /// # Panics
    /// When processes cannot be listed.
    pub fn kill_guest(&self, number: usize) {
        self.guests[number].kill_all();
    }

    fn disk(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("member-{number}"))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none, which never is.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Where clients reach the members.
    pub fn urls(&self) -> Vec<String> {
        let members = (0..self.members.len()).map(Place::Member);
        members
            .map(|member| format!("http://{}:2379", address(member)))
            .collect()
    }

    /// Moves the calling thread to the clients. Threads, runtimes and processes that it starts afterwards are there too.
    pub fn enter(&self) {
        self.clients.enter();
    }

    /// Kills a member at once.
    pub fn kill(&mut self, number: usize) {
        self.processes[number] = None;
    }

    /// Starts a member on the data that it has, if it does not run.
    pub fn restart(&mut self, number: usize) {
        if self.processes[number].is_some() {
            return;
        }
        let url = |port: u16| format!("http://{}:{port}", address(Place::Member(number)));
        let names = (0..MEMBERS).map(|other| {
            let peer = address(Place::Member(other));
            format!("m{other}=http://{peer}:2380")
        });
        let names: Vec<String> = names.collect();
        let args = [
            self.program.display().to_string(),
            format!("--name=m{number}"),
            format!("--data-dir={}", self.disk(number).join("data").display()),
            format!("--listen-client-urls={}", url(2379)),
            format!("--advertise-client-urls={}", url(2379)),
            format!("--listen-peer-urls={}", url(2380)),
            format!("--initial-advertise-peer-urls={}", url(2380)),
            format!("--initial-cluster={}", names.join(",")),
            "--heartbeat-interval=100".to_owned(),
            "--election-timeout=1000".to_owned(),
            "--log-level=error".to_owned(),
        ];
        let line = self.members[number].command_line(&args);
        let process = Process::start(Path::new(&line[0]), &line[1..], self.directory.path());
        self.processes[number] = Some(process);
    }

    /// Stops a member where it stands.
    pub fn pause(&self, number: usize) {
        self.signal(number, "STOP");
    }

    /// Lets a paused member go on.
    pub fn resume(&self, number: usize) {
        self.signal(number, "CONT");
    }

    fn signal(&self, number: usize, name: &str) {
        if let Some(process) = &self.processes[number] {
            process.signal(name);
        }
    }

    /// Loses everything that one place sends to another. What comes back is not touched.
    ///
    /// # Panics
    /// When the way cannot be blocked.
    pub fn block(&self, from: Place, to: Place) {
        let script = format!("ip route replace blackhole {}/32", address(to));
        assert!(self.namespace(from).shell(&script), "{from:?} to {to:?}");
    }

    /// Lets two places reach each other again, both ways.
    pub fn unblock(&self, one: Place, other: Place) {
        for (from, to) in [(one, other), (other, one)] {
            // What was not blocked is not there to be removed.
            let script = format!("ip route del blackhole {}/32", address(to));
            let _ = self.namespace(from).shell(&script);
        }
    }

    /// Takes all that is left of a member's disk.
    ///
    /// # Panics
    /// When there is room left afterwards.
    pub fn fill_disk(&self, number: usize) {
        let ballast = self.disk(number).join("ballast");
        let script = format!(
            "dd if=/dev/zero of='{0}' bs=64k 2>/dev/null || true; ! dd if=/dev/zero of='{0}2' bs=64k count=4 2>/dev/null",
            ballast.display()
        );
        assert!(self.members[number].shell(&script), "the disk is not full");
    }

    /// Gives that room back.
    ///
    /// # Panics
    /// When it cannot be given back.
    pub fn free_disk(&self, number: usize) {
        let script = format!(
            "rm -f '{0}' '{0}2'",
            self.disk(number).join("ballast").display()
        );
        assert!(self.members[number].shell(&script), "the disk stays full");
    }

    /// Starts again every member that ended by itself.
    pub fn restart_ended(&mut self) {
        for number in 0..self.members.len() {
            if self.processes[number]
                .as_ref()
                .is_some_and(Process::has_ended)
            {
                self.processes[number] = None;
            }
            self.restart(number);
        }
    }

    fn namespace(&self, place: Place) -> &Namespace {
        match place {
            Place::Clients => &self.clients,
            Place::Member(number) => &self.members[number],
            Place::Guest(number) => &self.guests[number],
        }
    }
}

fn address(place: Place) -> String {
    match place {
        Place::Clients => "10.0.0.100".to_owned(),
        Place::Member(number) => format!("10.0.0.{}", number + 1),
        Place::Guest(number) => format!("10.0.0.{}", number + 11),
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("SKIPPED: {why}");
}
