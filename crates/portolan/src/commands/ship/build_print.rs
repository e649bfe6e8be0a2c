//! What a build came to, for people and for programs.

use std::fmt::Write as _;

use portolan_object::counted;
use portolan_ship::{ArtifactResult, ArtifactStatus, BuildResult};

use crate::commands::cache::shown_size;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::table::Tone;

pub(super) fn print_json(result: &BuildResult, printer: &Printer) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(result).map_err(CommandError::user)?;
    printer.data(format!("{text}\n"))
}

/// What is there first, then what failed with what it skipped, then the counts.
pub(super) fn print_text(result: &BuildResult, printer: &Printer) -> Result<(), CommandError> {
    let styled = printer.canvas().styled;
    let paint = |tone: Tone, text: &str| tone.paint(text, styled);
    let mut text = String::new();
    let width = result.artifacts.iter().map(|artifact| artifact.name.len());
    let width = width.max().unwrap_or(0);
    for artifact in result
        .artifacts
        .iter()
        .filter(|artifact| artifact.is_good())
    {
        let name = paint(Tone::Name, &format!("{:width$}", artifact.name));
        let (sign, status) = (paint(Tone::Good, "✓"), word(artifact.status));
        let image = artifact.image.as_deref().unwrap_or_default();
        let _ = writeln!(text, "{sign} {name}  {status:6}  {image}");
        if !artifact.because.is_empty() {
            let because = artifact.because.join(", ");
            let _ = writeln!(text, "  {:width$}  because {because}", "");
        }
    }
    text.push_str(&failures_text(result, styled));
    printer.data(text)?;
    printer.data(format!("{}\n", summary(result)))?;
    advise(result, printer);
    Ok(())
}

/// What was not built, with why.
pub(super) fn failures_text(result: &BuildResult, styled: bool) -> String {
    let width = result.artifacts.iter().map(|artifact| artifact.name.len());
    let width = width.max().unwrap_or(0);
    let bad = result
        .artifacts
        .iter()
        .filter(|artifact| !artifact.is_good());
    bad.map(|artifact| failure(artifact, width, styled))
        .collect()
}

fn failure(artifact: &ArtifactResult, width: usize, styled: bool) -> String {
    let name = Tone::Name.paint(&format!("{:width$}", artifact.name), styled);
    let status = word(artifact.status);
    if artifact.status != ArtifactStatus::Failed {
        let because = match artifact.because.as_slice() {
            [] => String::new(),
            because => format!(": {}", because.join(", ")),
        };
        return format!("- {name}  {status}{because}\n");
    }
    let sign = Tone::Bad.paint("✗", styled);
    let seconds = artifact.duration_ms as f64 / 1000.0;
    let error = artifact.error.as_deref().unwrap_or_default();
    let error = error.replace('\n', "\n  ");
    format!("{sign} {name}  {status} after {seconds:.1} s\n  {error}\n")
}

/// `2 built, 1 cached, 1 failed in 1.4 s`
fn summary(result: &BuildResult) -> String {
    use ArtifactStatus::{Built, Cached, Cancelled, Failed, Skipped};
    let counts = [Built, Cached, Failed, Skipped, Cancelled].into_iter();
    let counts = counts.filter_map(|status| match result.count(status) {
        0 => None,
        count => Some(format!("{count} {}", word(status))),
    });
    let counts: Vec<String> = counts.collect();
    let pushed = result.pushed.iter().flatten();
    let (sent, bytes) = pushed.fold((0, 0), |(sent, bytes), pushed| {
        (sent + pushed.sent, bytes + pushed.bytes)
    });
    let pushed = match &result.pushed {
        None => String::new(),
        Some(pushed) => format!(
            ", {} pushed ({}, {} sent)",
            pushed.len(),
            counted(sent, "blob"),
            shown_size(bytes)
        ),
    };
    let counts = if counts.is_empty() {
        "nothing to build: the document has no artifacts".to_owned()
    } else {
        counts.join(", ")
    };
    format!(
        "{counts}{pushed} in {:.1} s",
        result.duration_ms as f64 / 1000.0
    )
}

/// What to do after a failure.
fn advise(result: &BuildResult, printer: &Printer) {
    if result.is_good() {
        return;
    }
    let failed = result
        .artifacts
        .iter()
        .find(|artifact| artifact.status == ArtifactStatus::Failed);
    if let Some(failed) = failed {
        let (name, output) = (&failed.name, &result.output);
        printer.say_unless_quiet(&format!(
            "hint: all that the programs of {name} printed is in `{output}/{name}.*`; `portolan events --run {}` prints what happened",
            result.run
        ));
    }
    printer.say_unless_quiet(
        "hint: the next `portolan ship build` builds what is missing, and nothing else",
    );
}

fn word(status: ArtifactStatus) -> &'static str {
    match status {
        ArtifactStatus::Built => "built",
        ArtifactStatus::Cached => "cached",
        ArtifactStatus::Failed => "failed",
        ArtifactStatus::Skipped => "skipped",
        ArtifactStatus::Cancelled => "cancelled",
    }
}
