//! What a process has only once: the printer, and the threads for all asynchronous work.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::Runtime;

use crate::exit::ExitStatus;
use crate::printer::Printer;

/// The context of a command, made in `main`.
pub(crate) struct App {
    /// Writes to the terminal.
    pub(crate) printer: Printer,
    /// Started when it is first asked for: many commands do without.
    runtime: OnceLock<Runtime>,
}

impl App {
    pub(crate) fn new(printer: Printer) -> Self {
        Self {
            printer,
            runtime: OnceLock::new(),
        }
    }

    /// The one runtime of the process.
    pub(crate) fn runtime(&self) -> io::Result<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = Runtime::new()?;
        Ok(self.runtime.get_or_init(|| runtime))
    }

    /// Ends the process's work and prints what is left to say.
    pub(crate) fn finish(self, status: ExitStatus) -> ExitStatus {
        // Threads that still compute for a cancelled unit must not hold up the end.
        if let Some(runtime) = self.runtime.into_inner() {
            runtime.shutdown_background();
        }
        self.printer.finish(status)
    }
}
