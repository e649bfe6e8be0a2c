//! Flux and `portolan dev`: what would undo a deployment is suspended while the command runs, whatever ends it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_cluster::{Access, Cluster};
use portolan_ship::{RenderedStep, SuspendedFlux, flux_owners, guard_suspended, resume_left};
use tokio::runtime::Runtime;

use crate::error::CommandError;
use crate::printer::Printer;

/// The first argument of a process that resumes what a killed session has left suspended.
pub(crate) const GUARD: &str = "resume-suspended-flux";

/// What a session has suspended, with the process that resumes it if the session is killed.
pub(super) struct Suspension {
    suspended: SuspendedFlux,
    guard: Child,
}

/// Resumes what sessions before have left suspended.
pub(super) fn resume_former(
    cluster: &Cluster,
    store: &Utf8Path,
    runtime: &Runtime,
    printer: &Printer,
) -> Result<(), CommandError> {
    let resumed = runtime.block_on(resume_left(cluster, store));
    for owner in resumed.map_err(CommandError::user)? {
        printer.note(&format!(
            "resumed the {owner}, which a session before had left suspended"
        ));
    }
    Ok(())
}

/// Suspends what manages objects of the steps; refuses if there is such and it was not asked for.
pub(super) fn suspend(
    is_asked: bool,
    access: &Access,
    (cluster, store): (&Cluster, &Utf8Path),
    steps: &[RenderedStep],
    (runtime, printer): (&Runtime, &Printer),
) -> Result<Option<Suspension>, CommandError> {
    let owners = runtime.block_on(flux_owners(cluster, steps));
    let owners = owners.map_err(CommandError::user)?;
    let Some(first) = owners.first() else {
        return Ok(None);
    };
    if !is_asked {
        let error = CommandError::usage(format!(
            "the {first} manages objects of this project: Flux would undo what is deployed"
        ));
        return Err(error.hint("`--suspend-flux` suspends it until the command ends"));
    }
    let suspended = runtime.block_on(SuspendedFlux::prepare(cluster, store, owners));
    let suspended = suspended.map_err(CommandError::user)?;
    // The guard comes first: nothing may be suspended that nobody would resume.
    let guard = start_guard(access, suspended.path())?;
    let done = runtime.block_on(suspended.suspend(cluster));
    done.map_err(CommandError::user)?;
    for owner in suspended.owners() {
        printer.say_unless_quiet(&format!("suspended the {owner} until this ends"));
    }
    Ok(Some(Suspension { suspended, guard }))
}

impl Suspension {
    /// Resumes everything, and waits for the end of the guard.
    pub(super) fn end(
        mut self,
        cluster: &Cluster,
        runtime: &Runtime,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        let resumed = runtime.block_on(self.suspended.resume(cluster));
        // If it failed, the guard goes on trying.
        for owner in resumed.map_err(CommandError::user)? {
            printer.say_unless_quiet(&format!("resumed the {owner}"));
        }
        let _ = self.guard.wait();
        Ok(())
    }
}

/// In a process group of its own: Ctrl-C at the terminal is not meant for it.
fn start_guard(access: &Access, file: &Utf8Path) -> Result<Child, CommandError> {
    let kubeconfig = access.kubeconfig.clone().unwrap_or_default();
    let guard = Command::new(std::env::current_exe()?)
        .arg(GUARD)
        .arg(file)
        .arg(kubeconfig)
        .arg(access.context.clone().unwrap_or_default())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(guard)
}

/// What the guard process does. The arguments are the file, a kubeconfig and a context, which may be empty.
pub(crate) fn run_guard(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut next = || {
        arguments
            .next()
            .and_then(|argument| argument.into_string().ok())
    };
    let (Some(file), Some(kubeconfig), Some(context)) = (next(), next(), next()) else {
        return ExitCode::from(2);
    };
    let named = |text: String| Some(text).filter(|text| !text.is_empty());
    let access = Access {
        kubeconfig: named(kubeconfig).map(Into::into),
        context: named(context),
        plugin_runner: std::env::current_exe().ok(),
    };
    let Ok(runtime) = Runtime::new() else {
        return ExitCode::from(2);
    };
    let file = Utf8PathBuf::from(file);
    let guarded = guard_suspended(&file, || Cluster::connect(&access));
    match runtime.block_on(guarded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
