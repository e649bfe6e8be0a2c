//! `service` on a real systemd, which is the first process of namespaces of its own, and below a root without one.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_modules::{Host, PlannedOutcome, Root, View};
use serde_json::{Value, json};

use crate::bed::{Bed, action, faults, is_root};

/// What begins the namespaces: empty directories for units and sockets, then systemd with a target that wants nothing.
const START: &str = "set -e
mount -t tmpfs none /run
mount -t tmpfs none /etc/systemd/system
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /run/systemd/system
printf '[Unit]\\nDefaultDependencies=no\\n' > /run/systemd/system/test.target
export container=test
exec /lib/systemd/systemd --unit=test.target --log-target=null --show-status=no";

/// A running systemd; it ends with this.
struct Manager {
    namespaces: Child,
    init: String,
}

impl Manager {
    fn start() -> Self {
        let mut namespaces = Command::new("unshare")
            .args(["--pid", "--mount", "--cgroup", "--uts", "--ipc", "--fork"])
            .args(["--mount-proc", "--kill-child", "sh", "-c", START])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_mins(2);
        loop {
            let children = format!("/proc/{0}/task/{0}/children", namespaces.id());
            let init = fs::read_to_string(children)
                .unwrap_or_default()
                .trim()
                .to_owned();
            let asked = enter(&init)
                .args(["systemctl", "is-system-running"])
                .output();
            let answer = asked.map(|output| output.stdout).unwrap_or_default();
            if !init.is_empty() && matches!(answer.as_slice(), b"running\n" | b"degraded\n") {
                return Self { namespaces, init };
            }
            let has_ended = namespaces.try_wait().unwrap().is_some();
            assert!(Instant::now() < end && !has_ended, "systemd does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.init]).status();
        let _ = self.namespaces.wait();
    }
}

fn enter(init: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", init, "--all"]);
    command
}

/// Runs a test again where systemd is the first process, and returns whether this is that second run.
fn in_manager(test: &str) -> bool {
    const MARK: &str = "PORTOLAN_TEST_MANAGER";
    if std::env::var_os(MARK).is_some_and(|name| name == test) {
        return true;
    }
    if !is_root() || !portolan_testbed::has_program("/lib/systemd/systemd", "--version") {
        return false;
    }
    let manager = Manager::start();
    let output = enter(&manager.init)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(MARK, test)
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    false
}

fn machine() -> Host {
    Host::local(Arc::new(Root::machine().unwrap()))
}

fn unit(name: &str, body: &str) {
    fs::write(
        format!("/etc/systemd/system/{name}"),
        format!("[Unit]\nDefaultDependencies=no\n{body}"),
    )
    .unwrap();
}

fn systemctl(arguments: &[&str]) -> String {
    let output = Command::new("systemctl").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn converge(parameters: &Value) -> bool {
    let (host, step) = (machine(), action("service", parameters));
    let plan = step.plan(&View::of(&host)).unwrap();
    let applied = step.apply(&host, &plan).unwrap();
    assert_eq!(
        applied.is_changed,
        matches!(plan.outcome, PlannedOutcome::Change(_))
    );
    step.verify(&host).unwrap();
    let plan = step.plan(&View::of(&host)).unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unchanged),
        "{plan:?}"
    );
    applied.is_changed
}

#[track_caller]
fn fails(parameters: &Value) -> String {
    let (host, step) = (machine(), action("service", parameters));
    let error = step
        .plan(&View::of(&host))
        .and_then(|plan| step.apply(&host, &plan))
        .unwrap_err();
    format!("{error} ({})", error.hint().unwrap_or_default())
}

const SLEEPER: &str = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=test.target\n";

#[test]
fn running_and_enabled_are_independent() {
    if !in_manager("services::running_and_enabled_are_independent") {
        return;
    }
    unit("web.service", SLEEPER);
    assert!(converge(&json!({"name": "web", "state": "running"})));
    assert_eq!(systemctl(&["is-active", "web"]), "active");
    assert_eq!(systemctl(&["is-enabled", "web"]), "disabled");
    assert!(converge(&json!({"name": "web", "enabled": true})));
    assert!(converge(
        &json!({"name": "web.service", "state": "stopped"})
    ));
    assert_eq!(systemctl(&["is-enabled", "web"]), "enabled");
    assert!(converge(
        &json!({"name": "web", "state": "running", "enabled": false})
    ));
    let before = systemctl(&["show", "-P", "MainPID", "web"]);
    let (host, restart) = (
        machine(),
        action("service", &json!({"name": "web", "state": "restarted"})),
    );
    let plan = restart.plan(&View::of(&host)).unwrap();
    assert_eq!(plan.changes()[0].diff, "restart\n");
    assert!(restart.apply(&host, &plan).unwrap().is_changed);
    assert_ne!(systemctl(&["show", "-P", "MainPID", "web"]), before);
    // A changed file is read before the unit is started again.
    unit("web.service", &SLEEPER.replace("1000", "2000"));
    let plan = restart.plan(&View::of(&host)).unwrap();
    restart.apply(&host, &plan).unwrap();
    assert!(systemctl(&["show", "-P", "ExecStart", "web"]).contains("2000"));
}

#[test]
fn a_unit_that_ends_at_once_has_failed() {
    if !in_manager("services::a_unit_that_ends_at_once_has_failed") {
        return;
    }
    unit(
        "bad.service",
        "[Service]\nExecStart=/bin/sh -c 'sleep 0.2; exit 3'\n",
    );
    let told = fails(&json!({"name": "bad", "state": "running", "settle": "30s"}));
    assert!(
        told.contains("it ended soon after its start (failed, exit-code)"),
        "{told}"
    );
    assert!(told.contains("journalctl -u bad.service"), "{told}");
    unit(
        "once.service",
        "[Service]\nType=oneshot\nExecStart=/bin/true\n",
    );
    let (host, once) = (
        machine(),
        action("service", &json!({"name": "once", "state": "running"})),
    );
    let plan = once.plan(&View::of(&host)).unwrap();
    once.apply(&host, &plan).unwrap();
}

#[test]
fn masked_static_and_missing_units_are_told() {
    if !in_manager("services::masked_static_and_missing_units_are_told") {
        return;
    }
    unit("web.service", SLEEPER);
    unit("fixed.service", "[Service]\nExecStart=/bin/sleep 1000\n");
    assert!(converge(
        &json!({"name": "web", "masked": false, "state": "running"})
    ));
    fs::remove_file("/etc/systemd/system/web.service").unwrap();
    systemctl(&["daemon-reload"]);
    assert!(converge(&json!({"name": "other", "masked": true})));
    let told = fails(&json!({"name": "other", "state": "running"}));
    assert!(told.contains("it is masked (use `masked: false`"), "{told}");
    assert!(
        !converge(&json!({"name": "fixed", "enabled": true})),
        "a static unit is no error"
    );
    let told = fails(&json!({"name": "nowhere", "state": "running"}));
    assert!(told.contains("there is no such unit"), "{told}");
    assert!(!converge(&json!({"name": "nowhere", "state": "stopped"})));
}

#[test]
fn instances_work_and_sockets_are_named() {
    if !in_manager("services::instances_work_and_sockets_are_named") {
        return;
    }
    unit("many@.service", "[Service]\nExecStart=/bin/sleep %i\n");
    assert!(converge(&json!({"name": "many@1000", "state": "running"})));
    unit("web.socket", "[Socket]\nListenStream=/run/web.sock\n");
    unit("web.service", SLEEPER);
    assert!(converge(&json!({"name": "web.socket", "state": "running"})));
    let host = machine();
    let stop = action("service", &json!({"name": "web", "state": "stopped"}));
    let plan = stop.plan(&View::of(&host)).unwrap();
    assert_eq!(plan.notes, ["web.socket may start it again"]);
}

/// Files only: nothing runs below a root, and nobody claims that it does.
#[test]
fn below_a_root_units_are_enabled_and_nothing_is_said_about_running() {
    if !portolan_testbed::has_program("systemctl", "--version") {
        return;
    }
    let bed = Bed::new();
    bed.write("etc/systemd/system/web.service", SLEEPER);
    bed.converge("service", &json!({"name": "web", "enabled": true}));
    assert!(
        bed.root
            .join("etc/systemd/system/test.target.wants/web.service")
            .is_symlink()
    );
    let plan = bed
        .plan("service", &json!({"name": "web", "state": "running"}))
        .unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unknown { .. }),
        "{plan:?}"
    );
    let (plan, applied) = bed
        .apply("service", &json!({"name": "web", "state": "restarted"}))
        .unwrap();
    assert!(matches!(&plan.outcome, PlannedOutcome::Skipped { reason } if reason == "no manager"));
    assert!(!applied.is_changed);
    bed.converge("service", &json!({"name": "web", "enabled": false}));
    bed.converge("service", &json!({"name": "other", "masked": true}));
    let told = bed.fails("service", &json!({"name": "other", "enabled": true}));
    assert!(told.contains("it is masked"), "{told}");
    bed.converge("service", &json!({"name": "other", "masked": false}));
}

#[test]
fn a_link_in_place_of_the_units_is_refused() {
    let bed = Bed::new();
    fs::create_dir(bed.root.join("etc/systemd")).unwrap();
    symlink(&bed.outside, bed.root.join("etc/systemd/system")).unwrap();
    let told = bed.fails("service", &json!({"name": "web", "masked": true}));
    assert!(told.contains("it is a link"), "{told}");
}

#[test]
fn parameters_that_do_not_fit_are_told() {
    assert!(faults("service", &json!({"name": "foo@", "state": "running"})).contains("template"));
    assert!(
        faults("service", &json!({"name": "../x", "enabled": true}))
            .contains("not the name of a unit")
    );
    assert!(faults("service", &json!({"name": "web"})).contains("needs `state`"));
    let both = json!({"name": "web", "masked": true, "state": "running"});
    assert!(faults("service", &both).contains("excludes"));
}
