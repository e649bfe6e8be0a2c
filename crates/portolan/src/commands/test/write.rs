//! The output formats of a test's result.

use std::fmt::Write as _;

use portolan_object::{API_VERSION, Finding, counted};
use portolan_report::{
    Case as JunitCase, Outcome, Run, Suite, Tool, cause_key, github, junit, merge_clusters, sarif,
};
use portolan_review::RenderedRepository;
use portolan_review::judge::{JudgedFor, TestCase, Verdicts, heading, rules};
use portolan_yaml::Text;
use serde_json::json;

use crate::error::CommandError;
use crate::findings::{FindingStyle, paragraphs};
use crate::printer::Printer;

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// `{"clusters": […], "findings": […], "passed": N, "failed": N}`
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
    rendered: &RenderedRepository,
    format: Format,
    printer: &Printer,
) -> Result<(), CommandError> {
    let tool = Tool {
        name: "portolan",
        version: env!("CARGO_PKG_VERSION"),
    };
    let judged = JudgedFor::each(rendered);
    match format {
        Format::Table => table(verdicts, &judged, rendered, printer),
        Format::Json => printer.data(as_json(verdicts, &judged)),
        Format::Junit => printer.data(junit(&suites(verdicts, &judged))),
        Format::Sarif => {
            let clusters: Vec<_> = judged.iter().map(JudgedFor::json).collect();
            let run = Run {
                tool,
                rules: &rules(),
                names_clusters: judged.len() > 1,
                properties: json!({"clusters": clusters}),
            };
            printer.data(sarif(&run, &verdicts.found))
        }
        Format::Github => printer.data(github(&merge_clusters(verdicts.found.clone()))),
    }
}

fn table(
    verdicts: &Verdicts,
    judged: &[JudgedFor],
    rendered: &RenderedRepository,
    printer: &Printer,
) -> Result<(), CommandError> {
    if !printer.is_quiet() {
        printer.data(heading(judged) + "\n")?;
    }
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

fn as_json(verdicts: &Verdicts, judged: &[JudgedFor]) -> String {
    let clusters: Vec<_> = judged.iter().map(JudgedFor::json).collect();
    let findings = merge_clusters(verdicts.found.clone());
    let findings: Vec<_> = findings.iter().map(finding).collect();
    let failed = verdicts.failed();
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": "TestReport",
        "clusters": clusters,
        "findings": findings,
        "passed": verdicts.cases.len() - failed,
        "failed": failed,
        "warnings": verdicts.warnings(),
    });
    format!("{document:#}\n")
}

fn finding(found: &Finding) -> serde_json::Value {
    json!({
        "rule": found.rule.id,
        "level": found.severity,
        "subject": found.subject(),
        "owner": found.owner.as_ref().map(ToString::to_string),
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
fn suites(verdicts: &Verdicts, judged: &[JudgedFor]) -> Vec<Suite> {
    let suite = |judged: &JudgedFor| {
        let cases = verdicts.cases.iter();
        let cases = cases.filter(|case| case.owner.cluster == judged.cluster());
        Suite {
            name: format!("portolan test: {}", judged.cluster()),
            properties: properties(judged, verdicts),
            cases: cases.map(|case| junit_case(case, verdicts)).collect(),
        }
    };
    judged.iter().map(suite).collect()
}

/// What a cluster is judged for, and what is odd about that: no case stands for it.
fn properties(judged: &JudgedFor, verdicts: &Verdicts) -> Vec<(String, String)> {
    let is_about = |found: &&Finding| {
        let clusters = &found.clusters;
        let is_here = clusters.iter().any(|name| name == judged.cluster());
        found.owner.is_none() && (clusters.is_empty() || is_here)
    };
    let odd = verdicts.found.iter().filter(is_about);
    let odd = odd.map(|found| (found.severity.to_string(), with_place(found)));
    judged.properties().into_iter().chain(odd).collect()
}

fn junit_case(case: &TestCase, verdicts: &Verdicts) -> JunitCase {
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
        Some(object) => {
            let class = format!("{}: {}", case.owner.cluster, case.owner);
            (object.title(), class)
        }
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
