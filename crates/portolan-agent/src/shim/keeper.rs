//! The shim's own process: starts one command, waits for it, ends it when its time is up, and writes down how it ended.

use std::io::{self, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::control_group::ControlGroup;
use super::job::{Ending, Job};
use super::order::{Order, OrderedProgram};
use super::starter::StartOrder;
use crate::failpoint::failpoint;

/// How often the shim looks whether it should stop the command.
const LOOK: Duration = Duration::from_millis(50);

/// How long a command may go on after it was asked to end.
const GRACE: Duration = Duration::from_secs(10);

/// The most bytes that a command may print.
const MAX_OUTPUT: u64 = 256 << 20;

/// Where programs are looked for, unless a step says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the command of a job to its end, in a process of its own. The order comes through `orders`.
///
/// # Errors
/// When the order is incomplete, or the job's directory cannot be written. Nothing was started then, or the job is lost.
pub(super) fn keep_job(directory: &Utf8Path, orders: impl io::Read) -> io::Result<()> {
    let order = Order::read(orders)?;
    // The end of the agent's session must not end the command.
    let _ = rustix::process::setsid();
    let job = Job::at(directory);
    let lock = job.lock()?;
    match job.mark_started() {
        Ok(()) => {}
        // Another shim was here first: the command is its business.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    failpoint("shim-started");
    let ending = match Running::start(&job, &order) {
        Ok(running) => running.wait(&job, order.timeout)?,
        Err(error) => Ending::NotStarted(error.to_string()),
    };
    failpoint("shim-ended");
    job.mark_ended(&ending)?;
    failpoint("shim-written");
    drop(lock);
    Ok(())
}

/// A command that runs.
struct Running {
    child: Child,
    group: Option<ControlGroup>,
    script: Option<Utf8PathBuf>,
}

impl Running {
    fn start(job: &Job, order: &Order) -> io::Result<Self> {
        let script = match &order.program {
            OrderedProgram::Script(content) => Some(place_script(content, order)?),
            OrderedProgram::Arguments(_) => None,
        };
        let program = match (&order.program, &script) {
            (OrderedProgram::Arguments(arguments), _) => arguments.clone(),
            (OrderedProgram::Script(content), path) => {
                let mut program = interpreter(content)?;
                program.extend(path.as_ref().map(ToString::to_string));
                program
            }
        };
        let group = ControlGroup::create(&format!("portolan-{}", std::process::id()));
        let (stdout, stderr) = job.create_outputs()?;
        let start = StartOrder {
            control_group: group.as_ref().map(ControlGroup::entrance),
            chroot: order.chroot.as_ref().map(Utf8PathBuf::from),
            directory: Utf8PathBuf::from(&order.directory),
            account: order.account.clone(),
            program,
        };
        let mut child = Command::new(std::env::current_exe()?)
            .arg(super::SHIM)
            .args(start.to_arguments())
            .env_clear()
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8")
            .envs(&order.environment)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            let input = order.input.clone();
            // A command need not read its input.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let root = Utf8Path::new(order.chroot.as_deref().unwrap_or("/"));
        Ok(Self {
            child,
            group,
            script: script.map(|path| root.join(path.as_str().trim_start_matches('/'))),
        })
    }

    fn wait(mut self, job: &Job, timeout: Duration) -> io::Result<Ending> {
        let deadline = Instant::now().checked_add(timeout);
        let mut stopping: Option<(Ending, Instant)> = None;
        let status = loop {
            if let Some(status) = self.wait_shortly()? {
                break status;
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let reason = match &stopping {
                Some((_, since)) => {
                    if since.elapsed() >= GRACE {
                        self.signal(Signal::KILL);
                    }
                    None
                }
                None if job.is_asked_to_stop() => Some(Ending::Stopped),
                None if is_late => Some(Ending::TimedOut),
                None if job.printed() > MAX_OUTPUT => Some(Ending::TooMuchOutput),
                None => None,
            };
            if let Some(reason) = reason {
                self.signal(Signal::TERM);
                stopping = Some((reason, Instant::now()));
            }
        };
        if stopping.is_some() {
            // What ignored the first signal goes with the command.
            self.signal(Signal::KILL);
        }
        if let Some(group) = &self.group {
            group.remove();
        }
        if let Some(script) = &self.script {
            let _ = std::fs::remove_file(script);
        }
        Ok(stopping.map_or_else(|| Ending::Exited(code(status)), |(reason, _)| reason))
    }

    /// Waits until the command ends, or for a moment.
    fn wait_shortly(&mut self) -> io::Result<Option<ExitStatus>> {
        if let Some(pid) = self.pid()
            && let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
        {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            let time = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(LOOK.subsec_nanos()),
            };
            let _ = poll(&mut handles, Some(&time));
        } else {
            std::thread::park_timeout(LOOK);
        }
        self.child.try_wait()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = &self.group {
            group.signal(signal);
        }
        if let Some(pid) = self.pid() {
            // It may have ended already.
            let _ = kill_process_group(pid, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }
}

fn code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(-1)
}

/// Writes a script where the user that runs it can read it, and nobody else.
fn place_script(content: &[u8], order: &Order) -> io::Result<Utf8PathBuf> {
    let root = Utf8Path::new(order.chroot.as_deref().unwrap_or("/"));
    let mut file = tempfile::Builder::new()
        .prefix("portolan-")
        .tempfile_in(root.join("tmp"))?;
    file.write_all(content)?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    if let Some(account) = &order.account {
        chown(&path, Some(account.uid), Some(account.gid))?;
    }
    let inside = path.strip_prefix(root).unwrap_or(&path);
    let inside = std::path::Path::new("/").join(inside);
    Utf8PathBuf::try_from(inside).map_err(io::Error::other)
}

/// The interpreter that the first line of a script names. The script is read by it, so that it also works on file
/// systems from which nothing may be executed.
fn interpreter(script: &[u8]) -> io::Result<Vec<String>> {
    let line = script.split(|byte| *byte == b'\n').next();
    let line = line.and_then(|line| line.strip_prefix(b"#!"));
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let words = line.map(str::trim).filter(|line| line.starts_with('/'));
    let Some((program, argument)) = words.map(|line| line.split_once(' ').unwrap_or((line, "")))
    else {
        let text = "the script has no interpreter line such as `#!/bin/sh`";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    };
    // As the kernel does it: everything after the program is one argument.
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    Ok(std::iter::once(program)
        .chain(argument)
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_interpreter() {
        let words = |text: &str| interpreter(text.as_bytes()).ok();
        assert_eq!(words("#!/bin/sh\nexit"), Some(vec!["/bin/sh".to_owned()]));
        let two = vec!["/usr/bin/env".to_owned(), "-S a b".to_owned()];
        assert_eq!(words("#! /usr/bin/env -S a b"), Some(two));
        assert_eq!(words("echo"), None);
        assert_eq!(words("#!sh"), None);
    }
}
