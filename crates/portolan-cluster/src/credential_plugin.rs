//! Programs that a kubeconfig names to get credentials, run under limits.
//!
//! ```text
//! kube's client ──starts──▶ our own binary (run_plugin) ──starts, watches, ends──▶ the program of the kubeconfig
//!       ▲                                                                                      │
//!       └────────────────── its answer, if it comes in time and is not too large ◀─────────────┘
//! ```
//!
//! The client starts such a program whenever a token is about to expire, and waits for its end without a time limit.
//! [`guard`] puts our own binary in its place, so a program that hangs or writes without end fails only one request
//! and leaves no process behind.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use kube::config::ExecConfig;

/// The first argument by which a binary knows that it is to call [`run_plugin`] with the others.
pub const RUN_PLUGIN: &str = "--run-credential-plugin";

/// What a program may use.
#[derive(Debug, Clone, Copy)]
struct PluginLimits {
    time: Duration,
    bytes: u64,
}

/// Nobody is there to answer a question: the program asks a service or a file.
const ALONE: Duration = Duration::from_secs(30);

/// Somebody may have to log in first.
const WITH_A_PERSON: Duration = Duration::from_mins(5);

/// The largest answers carry a certificate and its chain: some ten thousand bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why a program gave no credentials.
#[derive(Debug, thiserror::Error)]
enum PluginError {
    #[error("cannot be started")]
    Start(#[source] io::Error),
    #[error("gave no answer within {} seconds and was ended", .0.as_secs())]
    TooSlow(Duration),
    #[error("wrote more than {0} bytes and was ended")]
    TooLarge(u64),
    #[error("its answer cannot be read or handed on")]
    Answer(#[source] io::Error),
}

/// Puts a guarding program in front of the one that a kubeconfig names.
pub(crate) fn guard(exec: &mut ExecConfig, runner: &Path) {
    let (Some(command), Some(runner)) = (exec.command.take(), runner.to_str()) else {
        return;
    };
    let arguments = exec.args.take().unwrap_or_default();
    exec.command = Some(runner.to_owned());
    exec.args = Some([vec![RUN_PLUGIN.to_owned(), command], arguments].concat());
}

/// Runs a program of a kubeconfig under limits and hands its answer to our own standard output.
///
/// The arguments are the program and its own ones. What went wrong goes to standard error.
pub fn run_plugin(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(program) = arguments.next() else {
        return ExitCode::from(2);
    };
    let time = if io::stdin().is_terminal() {
        WITH_A_PERSON
    } else {
        ALONE
    };
    let limits = PluginLimits {
        time,
        bytes: MAX_BYTES,
    };
    let arguments: Vec<OsString> = arguments.collect();
    match run(&program, &arguments, limits, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        // It has said why.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let program = program.to_string_lossy();
            let _ = writeln!(io::stderr(), "error: `{program}` {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a program to its end; returns whether it was content with itself.
fn run(
    program: &OsStr,
    arguments: &[OsString],
    limits: PluginLimits,
    answer: &mut impl Write,
) -> Result<bool, PluginError> {
    descendants::keep();
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(PluginError::Start)?;
    let outcome = watch(&mut child, limits);
    if outcome.is_err() {
        // A program that keeps to its limits may leave an agent behind, as some do on purpose.
        descendants::end();
        let _ = child.kill();
    }
    let status = child.wait().map_err(PluginError::Answer)?;
    let text = outcome?;
    // What a failed program wrote is no answer, and errors would repeat it.
    if status.success() {
        answer.write_all(&text).map_err(PluginError::Answer)?;
        answer.flush().map_err(PluginError::Answer)?;
    }
    Ok(status.success())
}

/// Reads what a program writes until it ends its output.
fn watch(child: &mut Child, limits: PluginLimits) -> Result<Vec<u8>, PluginError> {
    let output = child.stdout.take().into_iter();
    let (give, take) = sync_channel(1);
    let bytes = limits.bytes;
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.map(|output| output.take(bytes + 1).read_to_end(&mut text));
        let read: io::Result<Vec<usize>> = read.collect();
        // Nobody takes it when the time was up.
        let _ = give.send(read.map(|_| text));
    });
    match take.recv_timeout(limits.time) {
        Ok(Ok(text)) if text.len() as u64 > limits.bytes => Err(PluginError::TooLarge(bytes)),
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(PluginError::Answer(error)),
        Err(RecvTimeoutError::Timeout) => Err(PluginError::TooSlow(limits.time)),
        Err(RecvTimeoutError::Disconnected) => {
            Err(PluginError::Answer(io::ErrorKind::UnexpectedEof.into()))
        }
    }
}

/// The processes that come from this one.
#[cfg(target_os = "linux")]
mod descendants {
    use std::collections::HashMap;

    use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

    /// Keeps those below this process whose own parents end.
    pub(super) fn keep() {
        // Without it only children of programs that put themselves into the background get away.
        let _ = set_child_subreaper(Some(getpid()));
    }

    /// Ends all of them. Those that start more meanwhile are found at the next look.
    pub(super) fn end() {
        const LOOKS: usize = 20;
        for _ in 0..LOOKS {
            let found = below(getpid().as_raw_nonzero().get());
            if found.is_empty() {
                return;
            }
            for pid in found.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    /// The living processes below one.
    fn below(root: i32) -> Vec<i32> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(pid) = name.to_str().and_then(|name| name.parse().ok())
                && let Some(parent) = parent(pid)
            {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut found = Vec::new();
        let mut next = vec![root];
        while let Some(pid) = next.pop() {
            let below = children.remove(&pid).unwrap_or_default();
            found.extend(&below);
            next.extend(below);
        }
        found
    }

    /// The parent of a process that has not ended: `pid (name) state parent …`.
    fn parent(pid: i32) -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        (state != "Z").then_some(parent)
    }
}

/// Elsewhere the program itself is ended, and what it started is left to it.
#[cfg(not(target_os = "linux"))]
mod descendants {
    pub(super) fn keep() {}
    pub(super) fn end() {}
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::time::Instant;

    use super::*;

    /// Ending what one program started would end what all others of this process started.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    const SOON: Duration = Duration::from_secs(10);

    fn shell(script: &str, limits: PluginLimits) -> (Result<bool, PluginError>, String) {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = Vec::new();
        let arguments = ["-c".into(), script.into()];
        let start = Instant::now();
        let ended = run(OsStr::new("sh"), &arguments, limits, &mut answer);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        (ended, String::from_utf8_lossy(&answer).into_owned())
    }

    const PLENTY: PluginLimits = PluginLimits {
        time: SOON,
        bytes: 1000,
    };

    #[test]
    fn an_answer_is_handed_on_with_the_programs_verdict() {
        let (ended, answer) = shell("echo yes", PLENTY);
        assert!(ended.unwrap());
        assert_eq!(answer, "yes\n");
        let (ended, answer) = shell("echo token; exit 3", PLENTY);
        assert!(!ended.unwrap());
        assert_eq!(answer, "");
    }

    #[test]
    fn an_endless_answer_is_cut_off() {
        let (ended, answer) = shell("yes", PLENTY);
        let text = ended.unwrap_err().to_string();
        assert_eq!(text, "wrote more than 1000 bytes and was ended");
        assert_eq!(answer, "");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let told = directory.path().join("pid");
        let script = format!(
            "(sleep 1000 & echo $! > {0}.part; mv {0}.part {0}); sleep 1000",
            told.display()
        );
        let limits = PluginLimits {
            time: Duration::from_secs(1),
            bytes: 1000,
        };
        let (ended, _) = shell(&script, limits);
        let text = ended.unwrap_err().to_string();
        assert_eq!(text, "gave no answer within 1 seconds and was ended");
        let pid = std::fs::read_to_string(told).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let is_gone = stat.map_or(true, |stat| stat.contains(") Z "));
        assert!(is_gone, "the process in the background lives on");
    }

    #[test]
    fn a_kubeconfigs_program_is_started_by_the_guard() {
        let mut exec: ExecConfig = serde_json::from_str(
            r#"{"command": "aws", "args": ["eks", "get-token"], "interactiveMode": "Never"}"#,
        )
        .unwrap();
        guard(&mut exec, Path::new("/bin/portolan"));
        assert_eq!(exec.command.as_deref(), Some("/bin/portolan"));
        let arguments = ["--run-credential-plugin", "aws", "eks", "get-token"];
        assert_eq!(exec.args.unwrap(), arguments);
    }
}
