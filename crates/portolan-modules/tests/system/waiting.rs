//! `wait` and `reboot`.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_modules::{
    BootMode, Command, Exit, Host, MachineRestart, ModuleError, PlannedOutcome, Processes, Program,
    RestartState, Root, View, boot_id,
};
use portolan_testbed::{HttpServer, Reply, free_port};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bed::{Bed, action, faults};

#[test]
fn a_port_is_waited_for() {
    let bed = Bed::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    bed.converge("wait", &json!({"port": port}));
    let closed = free_port();
    let step = json!({"port": closed, "timeout": "100ms"});
    assert!(matches!(
        bed.plan("wait", &step).unwrap().outcome,
        PlannedOutcome::Unknown { .. }
    ));
    let error = bed.apply("wait", &step).unwrap_err();
    assert!(error.to_string().contains("after 0.1 s"), "{error}");
}

#[test]
fn a_path_is_waited_for_below_the_root() {
    let bed = Bed::new();
    let step = json!({"path": "/srv/ready", "timeout": "60s"});
    let root = bed.root.clone();
    let maker = std::thread::spawn(move || std::fs::write(root.join("srv/ready"), "").unwrap());
    action("wait", &step)
        .apply(&bed.host, &portolan_modules::Plan::unchanged())
        .unwrap();
    maker.join().unwrap();
    bed.converge("wait", &step);
}

#[test]
fn an_answer_is_waited_for_and_is_the_result() {
    let bed = Bed::new();
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let server = HttpServer::start(move |_| {
        let mut calls = counted.lock().unwrap();
        *calls += 1;
        if *calls < 3 {
            Reply::status(503)
        } else {
            Reply::ok("ready")
        }
    });
    let step = action(
        "wait",
        &json!({"http": format!("{}/healthz", server.url()), "timeout": "60s"}),
    );
    let plan = step.plan(&View::of(&bed.host)).unwrap();
    let PlannedOutcome::Unknown { reason } = &plan.outcome else {
        panic!("{plan:?}");
    };
    assert!(reason.contains("status 503"), "{reason}");
    let applied = step.apply(&bed.host, &plan).unwrap();
    assert!(!applied.is_changed);
    assert_eq!(applied.result["status"], 200);
    assert_eq!(applied.result["body"], "ready");
    assert!(faults("wait", &json!({"http": "ftp://x"})).contains("http://"));
    assert!(faults("wait", &json!({})).contains("needs one of"));
}

#[test]
fn a_cancelled_step_stops_waiting() {
    let bed = Bed::new();
    bed.host.stop.cancel();
    let step = action("wait", &json!({"path": "/srv/never", "timeout": "1h"}));
    let error = step
        .apply(&bed.host, &portolan_modules::Plan::unchanged())
        .unwrap_err();
    assert!(matches!(error, ModuleError::Stopped));
}

/// Remembers what should be started, and starts nothing.
#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

impl Processes for Recorded {
    fn run(&self, command: &Command, _stop: &CancellationToken) -> Result<Exit, ModuleError> {
        let Program::Arguments(arguments) = &command.program else {
            panic!("only programs are started");
        };
        self.0.lock().unwrap().push(arguments.join(" "));
        Ok(Exit::default())
    }
}

#[test]
fn a_reboot_names_the_start_before_and_asks_for_a_restart() {
    let recorded = Arc::new(Recorded::default());
    let mut host = Host::local(Arc::new(Root::machine().unwrap()));
    host.processes = recorded.clone();
    let step = action("reboot", &json!({"timeout": "20m"}));
    let plan = step.plan(&View::of(&host)).unwrap();
    assert_eq!(plan.before["bootId"], boot_id(&host).unwrap());
    let applied = step.apply(&host, &plan).unwrap();
    let started = recorded.0.lock().unwrap().clone();
    assert!(
        ["systemctl --no-block reboot", "shutdown -r now"].contains(&started[0].as_str()),
        "{started:?}"
    );
    let restart = MachineRestart::of_result(&applied.result).unwrap();
    let minutes = Duration::from_mins;
    assert_eq!(
        restart.state(&boot_id(&host).unwrap(), minutes(1)),
        RestartState::Waiting
    );
    assert_eq!(
        restart.state(&boot_id(&host).unwrap(), minutes(20)),
        RestartState::Failed
    );
    assert_eq!(restart.state("another", minutes(30)), RestartState::Done);
}

#[test]
fn the_servers_own_machine_is_restarted_by_force_only() {
    let mut host = Host::local(Arc::new(Root::machine().unwrap()));
    host.processes = Arc::new(Recorded::default());
    host.boot = BootMode::ServersOwn;
    let error = action("reboot", &json!({}))
        .plan(&View::of(&host))
        .unwrap_err();
    assert!(
        error.to_string().contains("the control plane runs on it"),
        "{error}"
    );
    action("reboot", &json!({"force": true}))
        .plan(&View::of(&host))
        .unwrap();
}

#[test]
fn below_a_root_only_a_fake_start_changes() {
    let mut bed = Bed::new();
    let error = bed.plan("reboot", &json!({})).unwrap_err();
    assert!(matches!(
        error,
        ModuleError::NotBelowRoot { module: "reboot" }
    ));
    bed.host.boot = BootMode::Fake;
    let before = boot_id(&bed.host).unwrap();
    assert_eq!(before, "none");
    let (_, applied) = bed.apply("reboot", &json!({})).unwrap();
    let restart = MachineRestart::of_result(&applied.result).unwrap();
    assert_eq!(restart.boot_id, before);
    let now = boot_id(&bed.host).unwrap();
    assert_eq!(restart.state(&now, Duration::ZERO), RestartState::Done);
    assert!(matches!(
        bed.plan("reboot", &json!({"if": "required"}))
            .unwrap()
            .outcome,
        PlannedOutcome::Unchanged
    ));
    bed.write("run/reboot-required", "");
    bed.converge("reboot", &json!({"if": "required"}));
    assert_ne!(boot_id(&bed.host).unwrap(), now);
}
