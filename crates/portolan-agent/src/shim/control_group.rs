//! A control group for one command, so that nothing that it starts can hide from its end.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, kill_process};

const MOUNT: &str = "/sys/fs/cgroup";

/// A control group (version 2) below that of this process.
#[derive(Debug)]
pub(super) struct ControlGroup {
    path: Utf8PathBuf,
}

impl ControlGroup {
    /// Makes a group. `None` where this process may not make any; the process group has to do then.
    pub(super) fn create(name: &str) -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let path = Utf8Path::new(MOUNT).join(own).join(name);
        std::fs::create_dir(&path).ok()?;
        let group = Self { path };
        // A directory elsewhere can be made too, but is no control group.
        if group.path.join("cgroup.procs").exists() {
            return Some(group);
        }
        group.remove();
        None
    }

    /// The file through which a process enters the group.
    pub(super) fn entrance(&self) -> Utf8PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Sends a signal to all processes in it.
    pub(super) fn signal(&self, signal: Signal) {
        if signal == Signal::KILL && std::fs::write(self.path.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        let members = std::fs::read_to_string(self.entrance()).unwrap_or_default();
        for member in members.lines().filter_map(|line| line.parse().ok()) {
            if let Some(member) = Pid::from_raw(member) {
                // It may have ended already.
                let _ = kill_process(member, signal);
            }
        }
    }

    /// Removes the group, if nothing is left in it.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// Enters a group through its file.
pub(super) fn enter(entrance: &Utf8Path) -> io::Result<()> {
    std::fs::write(entrance, std::process::id().to_string())
}
