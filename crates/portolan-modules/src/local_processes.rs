//! Programs as children of this process: each in a process group of its own, ended whole, with bounded output.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Gid, OFlags, Uid};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio_util::sync::CancellationToken;

use crate::accounts::{Accounts, UserRecord};
use crate::action::ModuleError;
use crate::process::{Command, Exit, Processes, Program};
use crate::root::Root;

/// Starts programs as children of this process.
pub struct LocalProcesses {
    root: Arc<Root>,
}

/// How much is kept of the beginning and of the end of what a program prints, for each of its two outputs.
pub const KEPT_OUTPUT_BYTES: usize = 128 << 10;

/// How long a program may go on after it was asked to end.
const GRACE: Duration = Duration::from_secs(10);

/// How often is looked whether the step was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// How long more output is waited for after a program has ended: something that it left running may hold its pipes.
const LAST_OUTPUT: Duration = Duration::from_millis(500);

/// The search path of programs.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl LocalProcesses {
    /// Accounts are looked up in the files of this root directory.
    pub fn new(root: Arc<Root>) -> Self {
        Self { root }
    }

    fn identity(&self, command: &Command) -> Result<Option<Identity>, ModuleError> {
        let Some(account) = &command.account else {
            return Ok(None);
        };
        let accounts = Accounts::read(&self.root)?;
        let missing =
            |name: &str| ModuleError::failed("run a program as", name, "there is no such account");
        let user = accounts.user(&account.user);
        let user = user.ok_or_else(|| missing(&account.user))?;
        let gid = match &account.group {
            Some(group) => accounts.gid(group).ok_or_else(|| missing(group))?,
            None => user.gid,
        };
        Ok(Some(Identity {
            groups: accounts.groups_of(user),
            gid,
            user: user.clone(),
        }))
    }
}

impl Processes for LocalProcesses {
    fn run(&self, command: &Command, stop: &CancellationToken) -> Result<Exit, ModuleError> {
        let identity = self.identity(command)?;
        let script = Script::write(command, identity.as_ref())?;
        let arguments = arguments(&command.program, script.as_ref())?;
        let failed = |error: io::Error| {
            let name = arguments.first().cloned().unwrap_or_default();
            ModuleError::failed("start", name, error)
        };
        let child = spawn(command, &arguments, identity).map_err(failed)?;
        Running::of(child).map_err(failed)?.wait(command, stop)
    }
}

/// Who a program runs as.
struct Identity {
    user: UserRecord,
    gid: u32,
    groups: Vec<u32>,
}

/// A script in a file of its own, which goes when this does.
struct Script {
    file: tempfile::NamedTempFile,
    /// The interpreter and its argument.
    interpreter: Vec<String>,
    /// Where the program finds it.
    path: String,
}

impl Script {
    fn write(command: &Command, identity: Option<&Identity>) -> Result<Option<Self>, ModuleError> {
        let Program::Script(content) = &command.program else {
            return Ok(None);
        };
        let interpreter = interpreter(content).ok_or_else(|| {
            ModuleError::failed("start", "script", "it has no interpreter line")
                .with_hint("begin it with a line such as #!/bin/sh")
        })?;
        let failed = |error: io::Error| ModuleError::failed("write", "script", error);
        let directory = command.chroot.as_deref().unwrap_or("/".into()).join("tmp");
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix("portolan-").tempfile_in(&directory);
        let mut file = file.map_err(failed)?;
        file.write_all(content).map_err(failed)?;
        if let Some(identity) = identity {
            let uid = Some(Uid::from_raw(identity.user.uid));
            rustix::fs::fchown(file.as_file(), uid, None).map_err(|error| failed(error.into()))?;
        }
        let name = file.path().file_name().unwrap_or_default();
        let path = format!("/tmp/{}", name.to_string_lossy());
        Ok(Some(Self {
            file,
            interpreter,
            path,
        }))
    }
}

/// The interpreter of a script and its one argument, from its first line.
fn interpreter(content: &[u8]) -> Option<Vec<String>> {
    let line = content.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim();
    let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let mut parts = vec![program.to_owned()];
    if !argument.trim().is_empty() {
        parts.push(argument.trim().to_owned());
    }
    (!program.is_empty()).then_some(parts)
}

fn arguments(program: &Program, script: Option<&Script>) -> Result<Vec<String>, ModuleError> {
    let arguments = match (program, script) {
        (Program::Arguments(arguments), _) => arguments.clone(),
        (Program::Shell(text), _) => vec!["/bin/sh".into(), "-c".into(), text.clone()],
        (Program::Script(_), Some(script)) => {
            let mut arguments = script.interpreter.clone();
            debug_assert!(script.file.path().is_absolute());
            arguments.push(script.path.clone());
            arguments
        }
        (Program::Script(_), None) => Vec::new(),
    };
    if arguments.is_empty() {
        return Err(ModuleError::failed("start", "", "no program is named"));
    }
    Ok(arguments)
}

fn spawn(command: &Command, arguments: &[String], identity: Option<Identity>) -> io::Result<Child> {
    let mut child = std::process::Command::new(&arguments[0]);
    child
        .args(&arguments[1..])
        .env_clear()
        .env("PATH", SEARCH_PATH)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let home = identity.as_ref().map_or("/root", |one| &one.user.home);
    child.env("HOME", home);
    if let Some(identity) = &identity {
        child.env("USER", &identity.user.name);
        child.env("LOGNAME", &identity.user.name);
        child.env("SHELL", &identity.user.shell);
    }
    child
        .envs(&command.environment)
        .current_dir(&command.directory);
    if identity.is_none() && command.chroot.is_none() {
        return child.spawn();
    }
    let chroot = command.chroot.as_deref();
    // Root directory and identity belong to a thread in Linux. This one takes on those of the program, starts it, and
    // ends; no other thread is touched.
    std::thread::scope(|scope| {
        let starter = scope.spawn(move || {
            become_program(chroot, identity.as_ref())?;
            child.spawn()
        });
        starter
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the starting thread failed")))
    })
}

/// Gives the calling thread the root directory and identity of a program.
fn become_program(chroot: Option<&Utf8Path>, identity: Option<&Identity>) -> io::Result<()> {
    if let Some(directory) = chroot {
        #[expect(
            deprecated,
            reason = "the newer function is unsafe because of file tables; only the root directory is unshared here"
        )]
        rustix::thread::unshare(rustix::thread::UnshareFlags::FS)?;
        rustix::process::chroot(directory.as_std_path())?;
        rustix::process::chdir("/")?;
    }
    if let Some(identity) = identity {
        let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
        let (uid, gid) = (
            Uid::from_raw(identity.user.uid),
            Gid::from_raw(identity.gid),
        );
        // Who is that user already cannot, and need not, take on its groups.
        if rustix::process::geteuid() != uid {
            rustix::thread::set_thread_groups(&groups)?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
    }
    Ok(())
}

/// A program that runs.
struct Running {
    child: Child,
    group: Option<Pid>,
    /// Readable when the program has ended.
    ended: Option<OwnedFd>,
}

/// Why a program is being ended.
struct Ending {
    is_timeout: bool,
    since: Instant,
    is_killed: bool,
}

impl Running {
    fn of(child: Child) -> io::Result<Self> {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let ended = group.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let running = Self {
            child,
            group,
            ended,
        };
        for pipe in running.pipes().into_iter().flatten() {
            let flags = rustix::fs::fcntl_getfl(pipe)?;
            rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?;
        }
        Ok(running)
    }

    fn pipes(&self) -> [Option<BorrowedFd<'_>>; 3] {
        [
            self.child.stdin.as_ref().map(AsFd::as_fd),
            self.child.stdout.as_ref().map(AsFd::as_fd),
            self.child.stderr.as_ref().map(AsFd::as_fd),
        ]
    }

    fn wait(mut self, command: &Command, stop: &CancellationToken) -> Result<Exit, ModuleError> {
        let deadline = Instant::now().checked_add(command.timeout);
        let mut input = command.input.as_slice();
        let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
        let mut ending: Option<Ending> = None;
        let failed = |error: io::Error| ModuleError::failed("wait for", "program", error);
        let status = loop {
            self.exchange(&mut input, &mut stdout, &mut stderr);
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                break status;
            }
            self.watch_end(stop, deadline, &mut ending);
            self.sleep(!input.is_empty());
        };
        if ending.is_some() || command.leaves_nothing {
            self.signal(Signal::KILL);
        }
        self.drain(&mut stdout, &mut stderr);
        match ending {
            Some(Ending {
                is_timeout: true, ..
            }) => Err(timed_out(command, &stdout, &stderr)),
            Some(_) => Err(ModuleError::Stopped),
            None => Ok(Exit {
                code: exit_code(status),
                stdout: stdout.into_bytes(),
                stderr: stderr.into_bytes(),
            }),
        }
    }

    /// Asks the group to end when it must, and makes it end when it does not.
    fn watch_end(
        &self,
        stop: &CancellationToken,
        deadline: Option<Instant>,
        ending: &mut Option<Ending>,
    ) {
        match ending {
            None => {
                let is_timeout = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if is_timeout || stop.is_cancelled() {
                    self.signal(Signal::TERM);
                    *ending = Some(Ending {
                        is_timeout: is_timeout && !stop.is_cancelled(),
                        since: Instant::now(),
                        is_killed: false,
                    });
                }
            }
            Some(ending) if !ending.is_killed && ending.since.elapsed() >= GRACE => {
                self.signal(Signal::KILL);
                ending.is_killed = true;
            }
            Some(_) => {}
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Waits until there is something to read or write, or the program has ended, or it is time to look.
    fn sleep(&self, has_input: bool) {
        let [stdin, stdout, stderr] = self.pipes();
        let mut handles = Vec::new();
        handles.extend(
            stdin
                .filter(|_| has_input)
                .map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::OUT)),
        );
        let readable = stdout.into_iter().chain(stderr);
        let readable = readable.chain(self.ended.as_ref().map(AsFd::as_fd));
        handles.extend(readable.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(LOOK.subsec_nanos()),
        };
        // Interrupted or not, the loop looks again.
        let _ = poll(&mut handles, Some(&timeout));
    }

    /// Writes and reads what is possible without waiting; a pipe at its end is closed.
    fn exchange(&mut self, input: &mut &[u8], stdout: &mut Kept, stderr: &mut Kept) {
        if let Some(pipe) = &mut self.child.stdin {
            let is_done = loop {
                if input.is_empty() {
                    break true;
                }
                match pipe.write(input) {
                    Ok(count) => *input = &input[count..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // It reads no more.
                    Err(_) => {
                        *input = &[];
                        break true;
                    }
                }
            };
            if is_done {
                self.child.stdin = None;
            }
        }
        if self
            .child
            .stdout
            .as_mut()
            .is_some_and(|pipe| stdout.take_from(pipe))
        {
            self.child.stdout = None;
        }
        if self
            .child
            .stderr
            .as_mut()
            .is_some_and(|pipe| stderr.take_from(pipe))
        {
            self.child.stderr = None;
        }
    }

    /// Reads what is left after the end.
    fn drain(&mut self, stdout: &mut Kept, stderr: &mut Kept) {
        let ended = Instant::now();
        self.ended = None;
        loop {
            self.exchange(&mut &[][..], stdout, stderr);
            let is_open = self.child.stdout.is_some() || self.child.stderr.is_some();
            if !is_open || ended.elapsed() >= LAST_OUTPUT {
                return;
            }
            self.sleep(false);
        }
    }
}

/// What a program printed, as it is kept: the beginning, and the end of the rest.
#[derive(Default)]
struct Kept {
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

impl Kept {
    /// Reads what is there. Returns whether that was all.
    fn take_from(&mut self, pipe: &mut impl Read) -> bool {
        let mut buffer = [0; 16 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => self.add(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT_OUTPUT_BYTES.saturating_sub(self.beginning.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend(rest);
        let surplus = self.end.len().saturating_sub(KEPT_OUTPUT_BYTES);
        self.end.drain(..surplus);
        self.left_out += surplus as u64;
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.beginning;
        if self.left_out > 0 {
            let note = format!("\n… {} bytes left out …\n", self.left_out);
            bytes.extend_from_slice(note.as_bytes());
        }
        bytes.extend(self.end);
        bytes
    }

    /// The last lines, for messages.
    fn last_lines(&self, count: usize) -> String {
        let all: Vec<u8> = self.beginning.iter().chain(&self.end).copied().collect();
        let text = String::from_utf8_lossy(&all);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

/// The lines of output that a message about a time-out shows.
const SHOWN_LINES: usize = 20;

fn timed_out(command: &Command, stdout: &Kept, stderr: &Kept) -> ModuleError {
    let name = match &command.program {
        Program::Arguments(arguments) => arguments.first().cloned().unwrap_or_default(),
        Program::Shell(_) => "/bin/sh".to_owned(),
        Program::Script(_) => "script".to_owned(),
    };
    let seconds = command.timeout.as_secs_f64();
    let mut reason = format!("it did not end within {seconds} s");
    for output in [stdout, stderr] {
        let lines = output.last_lines(SHOWN_LINES);
        if !lines.is_empty() {
            reason.push('\n');
            reason.push_str(&lines);
        }
    }
    ModuleError::failed("run", name, reason)
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}
