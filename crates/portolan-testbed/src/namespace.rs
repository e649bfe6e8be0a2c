//! A network namespace with file systems of its own, which ends with the test process.
//!
//! A `cat` that waits for the end of a pipe holds it, so nothing is left behind however the test ends.

use std::fs::{File, read_link};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::has_ended;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How long a namespace may take on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(20);

/// A namespace.
pub(crate) struct Namespace {
    holder: Child,
}

impl Namespace {
    /// Makes one; `None` where the process may not.
    pub(crate) fn new() -> Option<Self> {
        let holder = Command::new("unshare")
            .args(["--net", "--mount", "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut namespace = Self { holder };
        namespace.wait().then_some(namespace)
    }

    /// Waits until the holder has left the namespaces of this process.
    fn wait(&mut self) -> bool {
        let id = self.holder.id();
        let is_apart = |kind: &str| {
            let theirs = read_link(format!("/proc/{id}/ns/{kind}"));
            theirs
                .is_ok_and(|theirs| Some(theirs) != read_link(format!("/proc/self/ns/{kind}")).ok())
        };
        let start = Instant::now();
        while !(is_apart("net") && is_apart("mnt")) {
            let has_ended = !matches!(self.holder.try_wait(), Ok(None));
            if has_ended || start.elapsed() > SOON {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// The process that holds it, by which other tools name it.
    pub(crate) fn id(&self) -> u32 {
        self.holder.id()
    }

    /// The command line that runs `words` inside.
    pub(crate) fn command_line(&self, words: &[String]) -> Vec<String> {
        let id = self.holder.id();
        let enter = [
            "nsenter".to_owned(),
            format!("--net=/proc/{id}/ns/net"),
            format!("--mount=/proc/{id}/ns/mnt"),
            "--".to_owned(),
        ];
        enter.into_iter().chain(words.iter().cloned()).collect()
    }

    /// Runs a shell script inside. Returns whether it ended well.
    pub(crate) fn shell(&self, script: &str) -> bool {
        let words = self.command_line(&["sh".to_owned(), "-ec".to_owned(), script.to_owned()]);
        let ended = Command::new(&words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        ended.is_ok_and(|status| status.success())
    }

    /// Kills every process inside but the one that holds it.
    pub(crate) fn kill_all(&self) {
        let network = |id: u32| read_link(format!("/proc/{id}/ns/net")).ok();
        let holder = self.holder.id();
        let own = network(holder).expect("it lives");
        // Whoever is started while others are killed is found the next time.
        loop {
            let processes = std::fs::read_dir("/proc").expect("processes");
            let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            let inside = ids.filter(|id: &u32| {
                *id != holder && network(*id).as_ref() == Some(&own) && !has_ended(*id)
            });
            let inside: Vec<String> = inside.map(|id| id.to_string()).collect();
            if inside.is_empty() {
                return;
            }
            let _ = Command::new("kill")
                .arg("-KILL")
                .args(inside)
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Moves the calling thread inside; threads and processes that it starts are inside too.
    pub(crate) fn enter(&self) {
        let file = File::open(format!("/proc/{}/ns/net", self.holder.id())).expect("a namespace");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("root may enter a namespace");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
