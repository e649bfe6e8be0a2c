//! The forms of a test's result.

use std::fmt::Write as _;

use portolan_object::{Finding, Severity};
use portolan_report::{Case as JunitCase, Outcome, Tool, github, junit, sarif};
use serde_json::json;

use super::rules;
use super::verdict::{Case, Verdicts};
use crate::diagnostic::{Diagnostic, Level};
use crate::error::CommandError;
use crate::printer::Printer;
use crate::repository::{Rendered, in_text};

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// `{"findings": […], "passed": N, "failed": N}`
    Json,
    /// One test case for each object
    Junit,
    /// For code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

pub(super) fn write(
    verdicts: &Verdicts,
    rendered: &Rendered,
    format: Format,
    printer: &Printer,
) -> Result<(), CommandError> {
    let tool = Tool {
        name: "portolan",
        version: env!("CARGO_PKG_VERSION"),
    };
    match format {
        Format::Table => table(verdicts, rendered, printer),
        Format::Json => printer.data(as_json(verdicts)),
        Format::Junit => printer.data(junit("portolan test", &cases(verdicts))),
        Format::Sarif => printer.data(sarif(tool, &rules(), &verdicts.found)),
        Format::Github => printer.data(github(&verdicts.found)),
    }
}

fn table(verdicts: &Verdicts, rendered: &Rendered, printer: &Printer) -> Result<(), CommandError> {
    for found in &verdicts.found {
        printer.data(drawn(found, rendered, printer.canvas().styled) + "\n\n")?;
    }
    let failed = verdicts.failed();
    let warnings = verdicts.found.len() - verdicts.errors();
    let mut summary = format!("{} passed, {failed} failed", verdicts.cases.len() - failed);
    if warnings > 0 {
        let _ = write!(summary, ", {warnings} warnings");
    }
    printer.data(summary + "\n")
}

/// The finding with the line it speaks of; lines of Secrets stay where they are.
fn drawn(found: &Finding, rendered: &Rendered, styled: bool) -> String {
    let message = format!(
        "{} ({}): {}",
        found.subject(),
        bringer(found),
        found.message()
    );
    let shown = found.place.as_ref().filter(|_| !is_secret(found));
    let text = found.place.as_ref().map(|_| {
        shown
            .map(|place| rendered.text_of(place))
            .unwrap_or_default()
    });
    let place = found.place.as_ref().zip(text.as_deref());
    let diagnostic = Diagnostic {
        message,
        place: place.map(|(place, text)| in_text(place, text)),
        hints: found.hints.clone(),
    };
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    diagnostic.render_as(level, Some(found.rule.id), styled)
}

/// Who brings the object; of what does not build, the clusters.
fn bringer(found: &Finding) -> String {
    match (&found.object, &found.owner) {
        (Some(_), Some(owner)) => owner.to_string(),
        _ => found.clusters.join(", "),
    }
}

fn is_secret(found: &Finding) -> bool {
    let object = found.object.as_ref();
    object.is_some_and(|object| object.gvk.kind == "Secret")
}

fn as_json(verdicts: &Verdicts) -> String {
    let findings: Vec<_> = verdicts.found.iter().map(finding).collect();
    let failed = verdicts.failed();
    let document = json!({
        "findings": findings,
        "passed": verdicts.cases.len() - failed,
        "failed": failed,
    });
    format!("{document:#}\n")
}

fn finding(found: &Finding) -> serde_json::Value {
    json!({
        "rule": found.rule.id,
        "level": found.severity,
        "subject": found.subject(),
        "owner": bringer(found),
        "message": found.message(),
        "file": found.file(),
        "line": found.line(),
        "column": found.column(),
        "hints": found.hints,
    })
}

fn cases(verdicts: &Verdicts) -> Vec<JunitCase> {
    verdicts
        .cases
        .iter()
        .map(|case| junit_case(case, verdicts))
        .collect()
}

fn junit_case(case: &Case, verdicts: &Verdicts) -> JunitCase {
    let errors: Vec<&Finding> = verdicts.errors_of(case).collect();
    let outcome = match errors.first() {
        None => Outcome::Passed,
        Some(first) => Outcome::Failed {
            kind: first.rule.id.to_owned(),
            message: errors
                .iter()
                .map(|found| with_place(found))
                .collect::<Vec<_>>()
                .join("\n"),
        },
    };
    let (name, class) = match &case.object {
        Some(object) => (object.title(), case.owner.to_string()),
        None => (case.owner.to_string(), case.owner.cluster.to_string()),
    };
    JunitCase {
        name,
        class,
        outcome,
    }
}

fn with_place(found: &Finding) -> String {
    match &found.place {
        Some(place) => format!(
            "{}: {}",
            place.to_string().trim_start_matches('/'),
            found.message()
        ),
        None => found.message(),
    }
}
