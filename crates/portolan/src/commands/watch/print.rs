//! Prints what a save changed.

use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_diff::Report;
use portolan_diff::render::{Colour, TerminalOptions, json, unified};
use portolan_flux::Work;
use portolan_object::counted;

use super::Form;
use crate::error::CommandError;
use crate::printer::Printer;

/// How many saved files are named.
const NAMED_FILES: usize = 3;

/// Prints what differs from what was seen last.
pub(super) fn print(report: &Report, form: Form, printer: &Printer) -> Result<(), CommandError> {
    if report.changes.is_empty() {
        printer.say_unless_quiet("nothing changed in the objects");
        return Ok(());
    }
    let canvas = printer.canvas();
    let options = TerminalOptions {
        colour: if canvas.styled {
            Colour::Always
        } else {
            Colour::Never
        },
        width: canvas.width.unwrap_or(120),
        full: false,
    };
    printer.data(match form {
        Form::Text => unified(report, &options),
        Form::Json => json(report),
    })
}

/// `apps/a.yaml, apps/b.yaml and 3 more`
pub(super) fn named(files: &[Utf8PathBuf]) -> String {
    let first: Vec<&str> = files
        .iter()
        .take(NAMED_FILES)
        .map(|file| file.as_str())
        .collect();
    match files.len().saturating_sub(NAMED_FILES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// `built 1 Kustomization and 2 releases again`
pub(super) fn rebuilt(before: Work, after: Work) -> String {
    format!(
        "built {} and {} again",
        counted(
            after.kustomizations - before.kustomizations,
            "Kustomization"
        ),
        counted(after.releases - before.releases, "release"),
    )
}

/// `120 ms`
pub(super) fn spent(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
