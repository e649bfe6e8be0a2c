//! The forms of a test's result.

use std::fmt::Write as _;

use portolan_check::{Level, RULES};
use portolan_report::{
    Case as JunitCase, Entry, Outcome, Rule, Severity, Tool, github, junit, sarif,
};
use serde_json::json;

use super::verdict::{Case, Found, Verdicts};
use crate::diagnostic::{Diagnostic, Level as Gravity};
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
        Format::Sarif => printer.data(sarif(tool, &rules(), &entries(verdicts))),
        Format::Github => printer.data(github(&entries(verdicts))),
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
fn drawn(found: &Found, rendered: &Rendered, styled: bool) -> String {
    let owner = match found.owner.as_str() {
        "" => String::new(),
        owner => format!(" ({owner})"),
    };
    let message = format!("{}{owner}: {}", found.subject, found.message);
    let shown = found.place.as_ref().filter(|_| !found.secret);
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
    let gravity = match found.rule.level {
        Level::Error => Gravity::ERROR,
        Level::Warning => Gravity::WARNING,
    };
    diagnostic.render_as(gravity, Some(found.rule.id), styled)
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

fn finding(found: &Found) -> serde_json::Value {
    let place = found.place.as_ref();
    json!({
        "rule": found.rule.id,
        "level": if found.rule.level == Level::Error { "error" } else { "warning" },
        "subject": found.subject,
        "owner": found.owner,
        "message": found.message,
        "file": place.map(|place| place.file.trim_start_matches('/')),
        "line": place.map(|place| place.at.line).filter(|line| *line > 0),
        "column": place.map(|place| place.at.column).filter(|column| *column > 0),
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
    let errors: Vec<&Found> = verdicts
        .of(case)
        .filter(|found| found.rule.level == Level::Error)
        .collect();
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
    JunitCase {
        name: case.subject.clone(),
        class: case.owner.clone(),
        outcome,
    }
}

fn with_place(found: &Found) -> String {
    match &found.place {
        Some(place) => format!(
            "{}: {}",
            place.to_string().trim_start_matches('/'),
            found.message
        ),
        None => found.message.clone(),
    }
}

fn rules() -> Vec<Rule> {
    let rules = RULES.iter().map(|rule| Rule {
        name: rule.id,
        meaning: rule.summary,
    });
    rules.collect()
}

fn entries(verdicts: &Verdicts) -> Vec<Entry> {
    verdicts.found.iter().map(entry).collect()
}

fn entry(found: &Found) -> Entry {
    let place = found.place.as_ref();
    let identity = format!(
        "{}\0{}\0{}\0{}",
        found.rule.id, found.owner, found.subject, found.message
    );
    Entry {
        id: portolan_object::Digest::of(identity.as_bytes()).to_string(),
        rule: found.rule.id,
        severity: match found.rule.level {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
        },
        subject: found.subject.clone(),
        message: found.message.clone(),
        file: place.map(|place| place.file.trim_start_matches('/').to_owned()),
        line: place.map(|place| place.at.line).filter(|line| *line > 0),
        column: place
            .map(|place| place.at.column)
            .filter(|column| *column > 0),
        accepted: None,
    }
}
