//! Commands outlive the agent that started them: this program is the agent, the shim and the test at once.
//!
//! `main` is its own test runner, because a shim is a process of the same program.

#![expect(clippy::print_stdout, reason = "a test runner says what it did")]

use std::collections::BTreeMap;
use std::process::{Child, Command as Process, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_agent::{JobState, Jobs, SHIM, ShimProcesses, run_shim};
use portolan_modules::{Account, Command, ModuleError, Processes as _, Program, Root};
use tokio_util::sync::CancellationToken;

/// How long a state is waited for, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// A name, and what is tried in an empty directory.
type Case = (&'static str, fn(&Utf8Path));

const CASES: &[Case] = &[
    ("a_command_ends_with_its_code_and_output", ends),
    ("a_script_is_run_by_its_interpreter", script),
    ("input_and_variables_reach_the_command", input),
    ("variables_and_input_are_in_no_file", secrets),
    ("a_command_runs_as_another_user", account),
    ("what_cannot_be_started_is_said", not_started),
    ("a_command_that_takes_too_long_is_ended", timeout),
    ("a_stopped_command_ends_with_what_it_started", stopped),
    ("an_agent_killed_anywhere_runs_a_command_once", killed_agent),
    ("a_shim_killed_anywhere_leaves_no_second_run", killed_shim),
    ("commands_of_a_step_are_told_apart", told_apart),
    ("a_command_goes_on_while_no_agent_lives", goes_on),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == SHIM => return run_shim(rest),
        Some((first, rest)) if first == "agent" => agent(rest),
        _ => run_cases(arguments.iter().find(|one| !one.starts_with('-'))),
    }
    ExitCode::SUCCESS
}

/// Runs all cases, or those whose name contains a text.
fn run_cases(wanted: Option<&String>) {
    for (name, case) in CASES {
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        case(Utf8Path::from_path(directory.path()).expect("UTF-8"));
        println!("test {name} ... ok");
    }
}

/// An agent with one step: `agent DIRECTORY SHELL-TEXT`. Prints the code and what the command printed.
fn agent(arguments: &[String]) {
    let [directory, text] = arguments else {
        unreachable!("a directory and a command");
    };
    let processes = shims(Utf8Path::new(directory));
    match processes
        .step("step")
        .run(&shell(text), &CancellationToken::new())
    {
        Ok(exit) => print!("{} {}", exit.code, String::from_utf8_lossy(&exit.stdout)),
        Err(error) => print!("error {error}"),
    }
}

fn shims(directory: &Utf8Path) -> ShimProcesses {
    let program = std::env::current_exe().expect("this program");
    let program = Utf8PathBuf::try_from(program).expect("UTF-8");
    let root = Arc::new(Root::machine().expect("a root directory"));
    ShimProcesses::new(
        program,
        Jobs::open(&directory.join("jobs")).expect("jobs"),
        root,
    )
}

fn shell(text: &str) -> Command {
    Command {
        program: Program::Shell(text.to_owned()),
        directory: "/".into(),
        environment: BTreeMap::new(),
        input: Vec::new(),
        account: None,
        chroot: None,
        timeout: PATIENCE,
        leaves_nothing: false,
    }
}

fn run(directory: &Utf8Path, command: &Command) -> Result<(i32, String, String), ModuleError> {
    let exit = shims(directory)
        .step("step")
        .run(command, &CancellationToken::new())?;
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ok((exit.code, text(exit.stdout), text(exit.stderr)))
}

fn ends(directory: &Utf8Path) {
    let (code, out, err) =
        run(directory, &shell("echo one; echo two >&2; exit 7")).expect("it ran");
    assert_eq!((code, &*out, &*err), (7, "one\n", "two\n"));
}

fn script(directory: &Utf8Path) {
    let command = Command {
        program: Program::Script(Arc::from(&b"#!/bin/sh -e\necho \"$0\"\nfalse\necho no"[..])),
        ..shell("")
    };
    let (code, out, _) = run(directory, &command).expect("it ran");
    assert_eq!(code, 1);
    assert!(
        !Utf8Path::new(out.trim()).exists(),
        "`{out}` is left behind"
    );
}

fn input(directory: &Utf8Path) {
    let command = Command {
        input: b"from the pipe".to_vec(),
        environment: [("WHO".to_owned(), "agent".to_owned())].into(),
        directory: "/usr".into(),
        ..shell("cat; echo \" $WHO $PWD\"; env | grep -c CARGO")
    };
    let (_, out, _) = run(directory, &command).expect("it ran");
    assert_eq!(out, "from the pipe agent /usr\n0\n");
}

fn secrets(directory: &Utf8Path) {
    let command = Command {
        input: b"planted-input".to_vec(),
        environment: [("PASSWORD".to_owned(), "planted-variable".to_owned())].into(),
        ..shell("cat > /dev/null; test -n \"$PASSWORD\"")
    };
    run(directory, &command).expect("it ran");
    let found = Process::new("grep")
        .args(["-r", "planted", directory.as_str()])
        .output()
        .expect("grep");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

fn account(directory: &Utf8Path) {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let nobody = Account {
        user: "nobody".to_owned(),
        group: Some("daemon".to_owned()),
    };
    let command = Command {
        account: Some(nobody),
        ..shell("id -un; id -gn; echo $USER; test -w /etc/passwd")
    };
    let (code, out, _) = run(directory, &command).expect("it ran");
    assert_eq!((code, &*out), (1, "nobody\ndaemon\nnobody\n"));
}

fn not_started(directory: &Utf8Path) {
    let command = Command {
        program: Program::Script(Arc::from(&b"no interpreter"[..])),
        ..shell("")
    };
    let error = run(directory, &command).expect_err("it cannot be run");
    assert!(error.to_string().contains("interpreter line"), "{error}");
}

fn timeout(directory: &Utf8Path) {
    let command = Command {
        timeout: Duration::from_millis(100),
        ..shell("sleep 1000")
    };
    let error = run(directory, &command).expect_err("it is ended");
    assert!(error.to_string().contains("not done after"), "{error}");
}

fn stopped(directory: &Utf8Path) {
    let stop = CancellationToken::new();
    let marks = directory.join("marks");
    let text = format!("sh -c 'echo $$ >> {marks}; exec sleep 1000' & echo $$ >> {marks}; wait");
    let step = shims(directory).step("step");
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| step.run(&shell(&text), &stop));
        wait_until(|| lines(&marks).len() == 2);
        stop.cancel();
        let error = ended.join().expect("no panic").expect_err("it was stopped");
        assert!(matches!(error, ModuleError::Stopped), "{error}");
    });
    for pid in lines(&marks) {
        wait_until(|| !is_running(&pid));
    }
}

/// The command appends a line; however often and wherever the agent dies, there is one line, and its output is not lost.
fn killed_agent(directory: &Utf8Path) {
    for point in ["agent-job-created", "agent-shim-spawned"] {
        let directory = directory.join(point);
        std::fs::create_dir(&directory).expect("a directory");
        let text = format!("echo x >> {directory}/runs; echo done; exit 3");
        let (_, killed) = start_agent(&directory, &text, Some(point));
        assert!(killed.is_none(), "{point}: it was not killed");
        for _ in 0..2 {
            let (answer, code) = start_agent(&directory, &text, None);
            assert_eq!((&*answer, code), ("3 done\n", Some(0)), "{point}");
        }
        assert_eq!(lines(&directory.join("runs")), ["x"], "{point}");
    }
}

fn killed_shim(directory: &Utf8Path) {
    // Where the shim dies, how often the command then has run, and what is known of it.
    let points = [
        ("shim-started", 0, "error"),
        ("shim-ended", 1, "error"),
        ("shim-written", 1, "3 done\n"),
    ];
    for (point, runs, expected) in points {
        let directory = directory.join(point);
        std::fs::create_dir(&directory).expect("a directory");
        let text = format!("echo x >> {directory}/runs; echo done; exit 3");
        for crash in [Some(point), None, None] {
            let (answer, _) = start_agent(&directory, &text, crash);
            assert!(answer.starts_with(expected), "{point}: {answer}");
        }
        assert_eq!(lines(&directory.join("runs")).len(), runs, "{point}");
        let state = shims(&directory).step("step").state().expect("read");
        let is_lost = expected == "error";
        let wanted = if is_lost {
            JobState::Lost
        } else {
            JobState::Ended
        };
        assert_eq!(state, wanted, "{point}");
    }
}

fn told_apart(directory: &Utf8Path) {
    let counted = |number: u32| shell(&format!("echo {number} >> {directory}/runs; echo {number}"));
    // The second time, the first command is another one: a guard that changed.
    for commands in [[1, 2, 2], [3, 2, 2]] {
        let step = shims(directory).step("step");
        for number in commands {
            let exit = step.run(&counted(number), &CancellationToken::new());
            let stdout = exit.expect("it ran").stdout;
            assert_eq!(stdout, format!("{number}\n").into_bytes());
        }
    }
    let runs = lines(&directory.join("runs"));
    assert_eq!(runs.iter().filter(|line| *line == "1").count(), 1);
    assert_eq!(runs.iter().filter(|line| *line == "3").count(), 1);
}

fn goes_on(directory: &Utf8Path) {
    let text = format!("echo x >> {directory}/runs; read line < {directory}/pipe; echo $line");
    let pipe = directory.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe.as_str(), 0o600.into()).expect("a pipe");
    let mut first = spawn_agent(directory, &text, None);
    wait_until(|| lines(&directory.join("runs")).len() == 1);
    first.kill().expect("killed");
    first.wait().expect("it ended");
    let step = shims(directory).step("step");
    assert_eq!(step.state().expect("read"), JobState::Running);
    let second = spawn_agent(directory, &text, None);
    std::fs::write(&pipe, "hello\n").expect("written");
    let output = second.wait_with_output().expect("it ended");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 hello\n");
    assert_eq!(lines(&directory.join("runs")), ["x"]);
}

/// Runs an agent to its end: what it printed, and its exit code unless it was killed.
fn start_agent(directory: &Utf8Path, text: &str, crash: Option<&str>) -> (String, Option<i32>) {
    let output = spawn_agent(directory, text, crash).wait_with_output();
    let output = output.expect("it ended");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code())
}

fn spawn_agent(directory: &Utf8Path, text: &str, crash: Option<&str>) -> Child {
    let mut agent = Process::new(std::env::current_exe().expect("this program"));
    agent.args(["agent", directory.as_str(), text]);
    agent.env_remove("PORTOLAN_CRASH_AT").stdout(Stdio::piped());
    if let Some(point) = crash {
        agent.env("PORTOLAN_CRASH_AT", point);
    }
    agent.spawn().expect("this program")
}

fn lines(path: &Utf8Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether a process lives; one that nobody waited for does not.
fn is_running(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

fn wait_until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it did not come to that");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
