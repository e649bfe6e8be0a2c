//! The agent's side: starts shims, and finds what earlier ones did.

use std::io::{self, Write as _};
use std::process::{Child, Command as Process, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_modules::{Command, Exit, ModuleError, Processes, Program, Root};
use tokio_util::sync::CancellationToken;

use super::account::RunAs;
use super::job::{Ending, Job, JobState, Jobs};
use super::order::{Order, fingerprint};
use crate::failpoint::failpoint;

/// How often the agent looks at a job that it waits for: soon at first, since most commands are short.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LAST_LOOK: Duration = Duration::from_millis(100);

/// Starts commands so that they outlive this process.
#[derive(Clone)]
pub struct ShimProcesses {
    program: Utf8PathBuf,
    jobs: Jobs,
    root: Arc<Root>,
}

/// The commands of one step. The first one that it runs is job 0, the next one job 1: a step that is done again after the
/// agent was killed asks for the same commands in the same order, and gets what became of them.
pub struct StepJobs {
    shim: ShimProcesses,
    step: String,
    next: Mutex<usize>,
}

impl ShimProcesses {
    /// `program` must hand the arguments after [`SHIM`](super::SHIM) to [`run_shim`](super::run_shim).
    /// Accounts are looked up in the files of the root directory.
    pub fn new(program: impl Into<Utf8PathBuf>, jobs: Jobs, root: Arc<Root>) -> Self {
        Self {
            root,
            program: program.into(),
            jobs,
        }
    }

    /// The commands of a step, by a key that no other step has and that is a name for a file.
    pub fn step(&self, key: &str) -> StepJobs {
        StepJobs {
            shim: self.clone(),
            step: key.to_owned(),
            next: Mutex::new(0),
        }
    }

    fn spawn(&self, job: &Job, order: &[u8]) -> io::Result<Child> {
        let mut child = Process::new(&self.program)
            .args([super::SHIM, "keep", job.directory().as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        failpoint("agent-shim-spawned");
        if let Some(mut pipe) = child.stdin.take() {
            // A shim that died meanwhile is noticed when its job is looked at.
            let _ = pipe.write_all(order);
        }
        Ok(child)
    }
}

impl StepJobs {
    /// What is known of the step's last command: whether it is safe to do the step again.
    ///
    /// [`JobState::Lost`] means that a command was started and nobody knows whether it ended.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn state(&self) -> io::Result<JobState> {
        let mut last = JobState::Absent;
        for number in 0.. {
            match self.job(number).state()? {
                JobState::Absent => break,
                state => last = state,
            }
        }
        Ok(last)
    }

    fn job(&self, number: usize) -> Job {
        Job::at(&self.shim.jobs.of_step(&self.step).join(number.to_string()))
    }

    /// The next job: that of the same command, or a new one.
    fn take(&self, command: &str) -> io::Result<Job> {
        let mut next = self
            .next
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        loop {
            let job = self.job(*next);
            *next += 1;
            match job.fingerprint() {
                Some(other) if other != command => {}
                _ => {
                    job.create(command)?;
                    return Ok(job);
                }
            }
        }
    }

    fn run_job(&self, order: &Order, stop: &CancellationToken) -> io::Result<Finished> {
        let order = order.to_bytes()?;
        let job = self.take(&fingerprint(&order))?;
        failpoint("agent-job-created");
        let mut shim: Option<Child> = None;
        let mut look = FIRST_LOOK;
        let mut is_stopping = false;
        loop {
            match job.state()? {
                JobState::Ended => {
                    reap(shim);
                    return Ok(match job.ending()? {
                        Some(Ending::Exited(code)) => Finished::Exit(job.exit(code)?),
                        other => Finished::Without(other),
                    });
                }
                JobState::Lost => {
                    reap(shim);
                    return Ok(Finished::Lost);
                }
                JobState::Absent => match &mut shim {
                    None if stop.is_cancelled() => {
                        return Ok(Finished::Without(Some(Ending::Stopped)));
                    }
                    None => shim = Some(self.shim.spawn(&job, &order)?),
                    Some(child) => {
                        if let Some(status) = child.try_wait()?
                            && job.state()? == JobState::Absent
                        {
                            let text =
                                format!("the process that starts commands ended with {status}");
                            return Err(io::Error::other(text));
                        }
                    }
                },
                JobState::Running => {}
            }
            if stop.is_cancelled() && !is_stopping {
                job.ask_to_stop()?;
                is_stopping = true;
            }
            std::thread::park_timeout(look);
            look = (look * 2).min(LAST_LOOK);
        }
    }
}

/// What became of a command.
enum Finished {
    Exit(Exit),
    Without(Option<Ending>),
    Lost,
}

impl Processes for StepJobs {
    fn run(&self, command: &Command, stop: &CancellationToken) -> Result<Exit, ModuleError> {
        let failed = |reason: String| ModuleError::failed("run", shown(&command.program), reason);
        let account = command.account.as_ref();
        let account = account.map(|account| RunAs::find(&self.shim.root, account));
        let order = Order::of(command, account.transpose()?);
        match self.run_job(&order, stop) {
            Ok(Finished::Exit(exit)) => Ok(exit),
            Ok(Finished::Without(Some(Ending::NotStarted(reason)))) => Err(failed(reason)),
            Ok(Finished::Without(Some(Ending::TimedOut))) => Err(failed(format!(
                "not done after {} s",
                command.timeout.as_secs()
            ))),
            Ok(Finished::Without(Some(Ending::TooMuchOutput))) => {
                Err(failed("it printed more than 256 MiB".to_owned()))
            }
            Ok(Finished::Without(_)) => Err(ModuleError::Stopped),
            Ok(Finished::Lost) => Err(failed(
                "it was started, and nobody knows how it ended".to_owned(),
            )),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// The shim ends by itself a moment after its job did.
fn reap(shim: Option<Child>) {
    if let Some(mut shim) = shim {
        std::thread::spawn(move || shim.wait());
    }
}

/// The program without its arguments, which messages do not repeat.
fn shown(program: &Program) -> String {
    match program {
        Program::Arguments(arguments) => arguments.first().cloned().unwrap_or_default(),
        Program::Shell(_) => "/bin/sh".to_owned(),
        Program::Script(_) => "script".to_owned(),
    }
}
