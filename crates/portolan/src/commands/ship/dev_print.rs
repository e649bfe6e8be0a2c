//! What `portolan dev` prints: logs, results and events, for people or for programs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use portolan_ship::{
    ArtifactResult, ArtifactStatus, BuildResult, CheckResult, DevEvent, FileChanges, StepResult,
};
use tokio::sync::mpsc::Receiver;

use super::build_print::failures_text;
use super::checks_print::checks_text;
use super::deploy_print::deployed_text;
use super::output_args::Format;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::table::Tone;

/// How many saved files are named.
const NAMED_FILES: usize = 3;

/// Prints in one format.
pub(super) struct DevPrinter<'a> {
    format: Format,
    printer: &'a Printer,
    /// Held while a run draws lines that logs would be mixed with.
    drawing: Mutex<()>,
}

/// Prints events until the session is over.
pub(super) fn print_events(
    mut events: Receiver<DevEvent>,
    print: &DevPrinter<'_>,
) -> Result<(), CommandError> {
    while let Some(event) = events.blocking_recv() {
        let _turn = lock(&print.drawing);
        print.event(&event)?;
    }
    Ok(())
}

impl<'a> DevPrinter<'a> {
    pub(super) fn new(format: Format, printer: &'a Printer) -> Self {
        Self {
            format,
            printer,
            drawing: Mutex::new(()),
        }
    }

    /// Keeps events back while lines are drawn over on the same terminal.
    pub(super) fn pause_logs(&self) -> Option<MutexGuard<'_, ()>> {
        self.printer.draws_over_data().then(|| lock(&self.drawing))
    }

    /// Says which files were saved.
    pub(super) fn changed(
        &self,
        changes: &FileChanges,
        directory: &Utf8Path,
    ) -> Result<(), CommandError> {
        let relative = |path: &Utf8Path| {
            let path = path.strip_prefix(directory).unwrap_or(path);
            path.as_str().to_owned()
        };
        let files = changes.paths.iter().take(NAMED_FILES);
        self.event(&DevEvent::Changed {
            files: files.map(|path| relative(path)).collect(),
            count: changes.paths.len(),
        })
    }

    pub(super) fn built(&self, result: &BuildResult) -> Result<(), CommandError> {
        if self.format == Format::Json {
            let value = serde_json::to_value(result).map_err(CommandError::user)?;
            return self.json("built", value);
        }
        let styled = self.printer.canvas().styled;
        let is_built = |artifact: &&ArtifactResult| artifact.status == ArtifactStatus::Built;
        for artifact in result.artifacts.iter().filter(is_built) {
            let name = Tone::Name.paint(&artifact.name, styled);
            let seconds = artifact.duration_ms as f64 / 1000.0;
            let mark = Tone::Good.paint("✓", styled);
            let line = format!("{mark} {name}  built in {seconds:.1} s\n");
            self.printer.data(line)?;
        }
        self.printer.data(failures_text(result, styled))
    }

    pub(super) fn deployed(
        &self,
        result: &BuildResult,
        steps: &[StepResult],
    ) -> Result<(), CommandError> {
        match self.format {
            Format::Text => self
                .printer
                .data(deployed_text(result, steps, self.printer)),
            Format::Json => {
                let steps = serde_json::to_value(steps).map_err(CommandError::user)?;
                self.json(
                    "deployed",
                    serde_json::json!({"run": result.run, "steps": steps}),
                )
            }
        }
    }

    /// What tests or verifications came to.
    pub(super) fn checked(&self, kind: &str, checks: &[CheckResult]) -> Result<(), CommandError> {
        if checks.is_empty() {
            return Ok(());
        }
        if self.format == Format::Json {
            let results = serde_json::to_value(checks).map_err(CommandError::user)?;
            return self.json(kind, serde_json::json!({"results": results}));
        }
        let what = if kind == "tested" {
            "test"
        } else {
            "verification"
        };
        let styled = self.printer.canvas().styled;
        self.printer.data(checks_text(checks, what, styled))
    }

    fn event(&self, event: &DevEvent) -> Result<(), CommandError> {
        if self.format == Format::Json {
            let line = serde_json::to_string(event).map_err(CommandError::user)?;
            return self.printer.data(line + "\n");
        }
        if let DevEvent::Log {
            pod,
            container,
            line,
        } = event
        {
            let styled = self.printer.canvas().styled;
            let from = Tone::Name.paint(&format!("[{pod} {container}]"), styled);
            return self.printer.data(format!("{from} {line}\n"));
        }
        let text = event.text();
        if event.is_trouble() {
            self.printer.warning(&text);
        } else {
            self.printer.say_unless_quiet(&text);
        }
        Ok(())
    }

    /// One line with a type, as events have it.
    fn json(&self, kind: &str, mut value: serde_json::Value) -> Result<(), CommandError> {
        value["type"] = kind.into();
        self.printer.data(format!("{value}\n"))
    }
}

fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
