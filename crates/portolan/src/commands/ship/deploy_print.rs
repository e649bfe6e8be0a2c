//! What deploying and deleting came to, for people and for programs.

use std::fmt::Write as _;

use portolan_object::{API_VERSION, counted};
use portolan_ship::{BuildResult, ObjectResult, ObjectStatus, StepResult, StepStatus};
use serde_json::Value;

use super::build_print::failures_text;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::table::Tone;

pub(super) fn deleted_json(objects: &[ObjectResult]) -> String {
    let json = serde_json::json!({
        "apiVersion": API_VERSION, "kind": "DeleteResult", "objects": objects,
    });
    format!("{json:#}\n")
}

pub(super) fn deleted_text(objects: &[ObjectResult], printer: &Printer) -> String {
    let styled = printer.canvas().styled;
    let lines: Vec<String> = objects
        .iter()
        .map(|object| object_line(object, styled))
        .collect();
    let is_deleted = |object: &&ObjectResult| object.status == ObjectStatus::Pruned;
    let deleted = objects.iter().filter(is_deleted).count();
    let would_go = |object: &&ObjectResult| object.status == ObjectStatus::WouldDelete;
    let end = match objects.iter().filter(would_go).count() {
        0 => format!("{} deleted", counted(deleted, "object")),
        count => format!(
            "nothing was done; {} would be deleted",
            counted(count, "object")
        ),
    };
    format!("{}{end}\n", lines.concat())
}

pub(super) fn deployed_json(
    result: &BuildResult,
    steps: &[StepResult],
    kind: &str,
) -> Result<Value, CommandError> {
    let mut value = serde_json::to_value(result).map_err(CommandError::user)?;
    value["kind"] = kind.into();
    value["steps"] = serde_json::to_value(steps).map_err(CommandError::user)?;
    Ok(value)
}

pub(super) fn deployed_text(
    result: &BuildResult,
    steps: &[StepResult],
    printer: &Printer,
) -> String {
    let styled = printer.canvas().styled;
    let mut text = String::new();
    let (good, bad): (Vec<_>, Vec<_>) = steps
        .iter()
        .partition(|step| step.status == StepStatus::Deployed);
    for step in good.iter().chain(&bad) {
        let name = Tone::Name.paint(&step.name, styled);
        let seconds = step.duration_ms as f64 / 1000.0;
        let _ = match step.status {
            StepStatus::Deployed => writeln!(
                text,
                "{} {name}  deployed in {seconds:.1} s",
                Tone::Good.paint("✓", styled)
            ),
            StepStatus::Failed => writeln!(
                text,
                "{} {name}  failed after {seconds:.1} s",
                Tone::Bad.paint("✗", styled)
            ),
            StepStatus::Skipped => writeln!(text, "- {name}  skipped: {}", step.because.join(", ")),
            StepStatus::Cancelled => writeln!(text, "- {name}  cancelled"),
        };
        for object in &step.objects {
            text.push_str(&object_line(object, styled));
        }
        if let Some(note) = &step.note {
            let _ = writeln!(text, "  {note}");
        }
        let is_told = step
            .objects
            .iter()
            .any(|object| object.status == ObjectStatus::Failed);
        if let Some(error) = step.error.as_ref().filter(|_| !is_told) {
            let _ = writeln!(text, "  {error}");
        }
    }
    text.push_str(&failures_text(result, styled));
    let deployed = good.len();
    let _ = writeln!(
        text,
        "{} of {} deployed in {:.1} s",
        deployed,
        counted(steps.len(), "step"),
        result.duration_ms as f64 / 1000.0
    );
    text
}

pub(super) fn object_line(object: &ObjectResult, styled: bool) -> String {
    let (word, tone) = match object.status {
        ObjectStatus::Applied => ("applied", Tone::Plain),
        ObjectStatus::Ready => ("ready", Tone::Good),
        ObjectStatus::Failed => ("failed", Tone::Bad),
        ObjectStatus::Pruned => ("deleted", Tone::Warning),
        ObjectStatus::Kept => ("kept", Tone::Plain),
        ObjectStatus::WouldCreate => ("would be created", Tone::Good),
        ObjectStatus::WouldChange => ("would be changed", Tone::Warning),
        ObjectStatus::Unchanged => ("unchanged", Tone::Plain),
        ObjectStatus::WouldDelete => ("would be deleted", Tone::Bad),
    };
    let message = object
        .message
        .as_ref()
        .map(|message| format!(": {message}"));
    let word = tone.paint(&format!("{word:8}"), styled);
    format!(
        "  {word} {}{}\n",
        object.object,
        message.unwrap_or_default()
    )
}
