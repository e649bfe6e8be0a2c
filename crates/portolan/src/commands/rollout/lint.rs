//! `portolan rollout lint`: rollouts in files, before a cluster sees them.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use portolan_canary::{Review, review};
use portolan_object::{API_VERSION, Finding, Severity};
use serde_json::{Value, json};

use super::Format;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::printer::Printer;

/// Check rollouts in files, and tell the most pods that each has at once
///
/// Every rule of the definition is tried, those in CEL included, and advice is given on what is allowed and still not
/// wise. `portolan test` says the same of a whole repository. The exit code is 1 when there are errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout lint rollout.yaml
  portolan build | portolan rollout lint -
  portolan rollout lint rollout.yaml -o json")]
pub(crate) struct LintArgs {
    /// Files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<Utf8PathBuf>,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,
}

pub(crate) fn lint(args: &LintArgs, printer: &Printer) -> CommandResult {
    let mut files = Vec::new();
    for file in &args.files {
        let input = Input::read(file)?;
        files.push((input.name, input.bytes));
    }
    let review = review(&files).map_err(|(file, errors)| {
        CommandError::user(anyhow::Error::new(errors).context(format!("cannot read `{file}`")))
    })?;
    if review.rollouts.is_empty() && review.findings.is_empty() {
        return Err(CommandError::usage("no IstioCanaryDeployment was given"));
    }
    match args.output {
        Format::Json => printer.data(as_json(&review))?,
        Format::Table => printer.data(as_text(&review))?,
    }
    let is_error = |finding: &Finding| finding.severity == Severity::Error;
    Ok(if review.findings.iter().any(is_error) {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

fn as_text(review: &Review) -> String {
    let mut text = String::new();
    for finding in &review.findings {
        let place = (finding.file(), finding.line(), finding.column());
        let place = match place {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            _ => String::new(),
        };
        let severity = finding.severity.as_str();
        let line = format!(
            "{place}{severity}: {} ({})\n",
            finding.message(),
            finding.rule.id
        );
        text.push_str(&line);
    }
    for (id, peak) in &review.rollouts {
        let peak = peak.map_or_else(|| "not known".to_owned(), |peak| peak.to_string());
        let _ = writeln!(text, "{id}: most pods at once: {peak}");
    }
    text
}

fn as_json(review: &Review) -> String {
    let findings: Vec<Value> = review
        .findings
        .iter()
        .map(|finding| {
            json!({
                "rule": finding.rule.id,
                "severity": finding.severity.as_str(),
                "object": finding.object.as_ref().map(ToString::to_string),
                "field": finding.field,
                "message": finding.message(),
                "file": finding.file(),
                "line": finding.line(),
                "column": finding.column(),
            })
        })
        .collect();
    let rollouts: Vec<Value> = review
        .rollouts
        .iter()
        .map(|(id, peak)| json!({"object": id.to_string(), "peakReplicas": peak}))
        .collect();
    let document = json!({"apiVersion": API_VERSION, "kind": "RolloutLint", "findings": findings, "rollouts": rollouts});
    format!("{document:#}\n")
}
