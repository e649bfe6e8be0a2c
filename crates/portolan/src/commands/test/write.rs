//! The forms of a test's result.

use std::fmt::Write as _;

use portolan_object::{API_VERSION, Finding, counted};
use portolan_report::{
    Case as JunitCase, Outcome, Suite, Tool, cause_key, github, junit, merge_clusters, sarif,
};
use portolan_yaml::Text;
use serde_json::json;

use super::rules;
use super::verdict::{Case, Verdicts};
use crate::error::CommandError;
use crate::findings::{FindingStyle, paragraphs};
use crate::printer::Printer;
use crate::repository::Rendered;

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
        Format::Junit => printer.data(junit(&suites(verdicts))),
        Format::Sarif => printer.data(sarif(tool, &rules(), &verdicts.found)),
        Format::Github => printer.data(github(&merge_clusters(verdicts.found.clone()))),
    }
}

fn table(verdicts: &Verdicts, rendered: &Rendered, printer: &Printer) -> Result<(), CommandError> {
    let style = FindingStyle {
        names_rules: true,
        names_clusters: rendered.clusters.len() > 1,
        lists_all: printer.is_verbose(),
        styled: printer.canvas().styled,
    };
    for paragraph in paragraphs(verdicts.found.clone(), rendered.files(), style) {
        printer.data(paragraph + "\n\n")?;
    }
    let failed = verdicts.failed();
    let mut summary = format!("{} passed, {failed} failed", verdicts.cases.len() - failed);
    match verdicts.warnings() {
        0 => {}
        warnings => {
            let _ = write!(summary, ", {}", counted(warnings, "warning"));
        }
    }
    printer.data(summary + "\n")
}

fn as_json(verdicts: &Verdicts) -> String {
    let findings = merge_clusters(verdicts.found.clone());
    let findings: Vec<_> = findings.iter().map(finding).collect();
    let failed = verdicts.failed();
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": "TestReport",
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
        "owner": found.owner.as_ref().filter(|_| found.object.is_some()).map(ToString::to_string),
        "clusters": found.clusters.iter().map(Text::as_str).collect::<Vec<_>>(),
        "message": found.message(),
        "file": found.file(),
        "line": found.line(),
        "column": found.column(),
        "cause": cause_key(found),
        "hints": found.hints,
    })
}

/// One suite for each cluster.
fn suites(verdicts: &Verdicts) -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for case in &verdicts.cases {
        let name = format!("portolan test: {}", case.owner.cluster);
        let junit_case = junit_case(case, verdicts);
        match suites.last_mut().filter(|suite| suite.name == name) {
            Some(suite) => suite.cases.push(junit_case),
            None => suites.push(Suite {
                name,
                cases: vec![junit_case],
            }),
        }
    }
    suites
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
