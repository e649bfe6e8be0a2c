//! What a process has only once: the printer, the threads for all asynchronous work, and what Ctrl-C cancels.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use portolan_engine::CancellationToken;
use portolan_supply::LazyRuntime;
use tokio::runtime::Runtime;

use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::interrupt;
use crate::printer::Printer;

/// The context of a command, made in `main`.
pub(crate) struct App {
    /// Writes to the terminal.
    pub(crate) printer: Printer,
    runtime: LazyRuntime,
    cancellation: CancellationToken,
    /// Set once Ctrl-C cancels the token.
    interrupts: OnceLock<()>,
}

impl App {
    pub(crate) fn new(printer: Printer) -> Self {
        Self {
            printer,
            runtime: LazyRuntime::default(),
            cancellation: CancellationToken::new(),
            interrupts: OnceLock::new(),
        }
    }

    /// The one runtime of the process.
    pub(crate) fn runtime(&self) -> io::Result<&Runtime> {
        self.runtime.get()
    }

    /// The same, for what may need it later.
    pub(crate) fn lazy_runtime(&self) -> &LazyRuntime {
        &self.runtime
    }

    /// Starts the runtime for a command whose units compute: they do so on threads of their own, as many as there are
    /// cores, and half as many do for what waits.
    pub(crate) fn start_for_computing(&self) -> io::Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.runtime.with_workers(cores / 2).map(|_| ())
    }

    /// The token that Ctrl-C cancels, now that somebody asks for it; a second Ctrl-C ends the process.
    pub(crate) fn cancellation(&self) -> io::Result<&CancellationToken> {
        let runtime = self.runtime()?;
        self.interrupts.get_or_init(|| {
            runtime.spawn(interrupt::watch(self.cancellation.clone()));
        });
        Ok(&self.cancellation)
    }

    /// Waits for something, until Ctrl-C.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, CommandError> {
        let cancellation = self.cancellation()?;
        self.runtime()?.block_on(async {
            tokio::select! {
                done = work => Ok(done),
                () = cancellation.cancelled() => Err(CommandError::stopped()),
            }
        })
    }

    /// Ends the process's work and prints what is left to say.
    pub(crate) fn finish(self, status: ExitStatus) -> ExitStatus {
        self.printer.finish(status)
    }
}
