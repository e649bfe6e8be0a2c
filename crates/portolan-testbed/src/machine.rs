//! A machine to install things on: systemd as the first process of namespaces of its own.
//!
//! It has this machine's programs and network. What it writes below `/etc`, `/usr/local` and `/var/lib` goes to layers in
//! memory, so nothing of it is left when it ends. Of the units of this machine it knows none.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long systemd may take on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(2);

/// What begins the namespaces. Units that every unit wants are there and do nothing.
const START: &str = "set -e
mount -t tmpfs none /run
for place in /etc /usr/local /var/lib; do
  layer=/run/layers$place
  mkdir -p $layer/upper $layer/work
  mount -t overlay none -o lowerdir=$place,upperdir=$layer/upper,workdir=$layer/work $place
done
mount -t tmpfs none /etc/systemd/system
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /run/systemd/system /run/sshd
for target in basic multi-user network-online shutdown sysinit test; do
  printf '[Unit]\\nDefaultDependencies=no\\n' > /etc/systemd/system/$target.target
done
export container=test SYSTEMD_UNIT_PATH=/etc/systemd/system
exec /lib/systemd/systemd --unit=test.target --log-target=null --show-status=no";

/// A running machine; it ends with this, and everything on it too.
pub struct Machine {
    namespaces: Child,
    init: String,
}

impl Machine {
    /// Starts one. `None` where systemd is not installed or the process is not root.
    ///
    /// # Panics
    /// When systemd does not start; under `CI`, when something is missing.
    pub fn start() -> Option<Self> {
        if !super::has_program("/lib/systemd/systemd", "--version") || !is_root() {
            return None;
        }
        let mut namespaces = Command::new("unshare")
            .args(["--pid", "--mount", "--cgroup", "--uts", "--ipc", "--fork"])
            .args(["--mount-proc", "--kill-child", "sh", "-c", START])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`unshare` is a part of every system");
        let began = Instant::now();
        loop {
            let children = format!("/proc/{0}/task/{0}/children", namespaces.id());
            let init = fs::read_to_string(children).unwrap_or_default();
            let init = init.trim().to_owned();
            let mut asked = enter(&init);
            let answer = asked.args(["systemctl", "is-system-running"]).output();
            let answer = answer.map(|output| output.stdout).unwrap_or_default();
            if !init.is_empty() && matches!(answer.as_slice(), b"running\n" | b"degraded\n") {
                return Some(Self { namespaces, init });
            }
            let has_ended = !matches!(namespaces.try_wait(), Ok(None));
            assert!(
                began.elapsed() < SOON && !has_ended,
                "systemd does not start"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A command on the machine.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = enter(&self.init);
        command.args(words);
        command
    }

    /// What a command on the machine prints.
    ///
    /// # Panics
    /// When it cannot be started, or fails.
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("it was started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {text}{said}");
        text
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.init]).status();
        let _ = self.namespaces.wait();
    }
}

fn enter(init: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", init, "--all", "--"]);
    command.stdin(Stdio::null());
    command
}

#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        assert!(std::env::var_os("CI").is_none(), "only root makes machines");
        eprintln!("SKIPPED: only root makes machines");
    }
    is_root
}
