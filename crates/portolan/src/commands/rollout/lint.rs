//! `portolan rollout lint`: rollouts in files or in a Flux repository, before a cluster sees them.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use portolan_canary::{Review, review, review_objects};
use portolan_check::place_of;
use portolan_flux::Depth;
use portolan_object::{API_VERSION, Finding, Severity};
use portolan_review::inventory;
use serde_json::{Value, json};

use super::output_args::{Format, OutputArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::printer::Printer;
use crate::repository::{RepositoryArgs, end, tell_problems};

/// Check rollouts, and tell the most pods that each has at once
///
/// Without a file, the Flux repository is rendered and the rollouts in it are checked. Every rule of the definition is
/// tried, those in CEL included, and advice is given on what is allowed and still not wise. `portolan test` says the same
/// and much more of a repository. The exit code is 1 when there are errors, also when something could not be rendered.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout lint
  portolan rollout lint --path clusters/production
  portolan rollout lint rollout.yaml
  portolan build | portolan rollout lint -
  portolan rollout lint rollout.yaml -o json")]
pub(crate) struct LintArgs {
    /// Files; `-` is standard input; the Flux repository when none is given
    #[arg(value_name = "FILE")]
    files: Vec<Utf8PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

pub(crate) fn lint(args: &LintArgs, app: &App) -> CommandResult {
    if args.files.is_empty() {
        return lint_repository(args, app);
    }
    let mut files = Vec::new();
    for file in &args.files {
        if file.is_dir() {
            let error = CommandError::usage(format!("`{file}` is a directory"));
            return Err(error.hint(format!(
                "`portolan rollout lint --path {file}` renders the Flux repository that it belongs to"
            )));
        }
        let input = Input::read(file)?;
        files.push((input.name, input.bytes));
    }
    let review = review(&files).map_err(|(file, errors)| {
        CommandError::user(anyhow::Error::new(errors).context(format!("cannot read `{file}`")))
    })?;
    if review.rollouts.is_empty() && review.findings.is_empty() {
        return Err(CommandError::usage("no IstioCanaryDeployment was given"));
    }
    write(&review, args.output.format, &app.printer)
}

/// The rollouts of every cluster of a repository. What could not be rendered is told, and fails too.
fn lint_repository(args: &LintArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let rendered = args.repository.render(Depth::Releases, app)?;
    let objects = inventory::objects(&rendered);
    let mut all = Review::default();
    for (cluster, _) in &rendered.clusters {
        let placed = objects
            .iter()
            .filter(|placed| std::ptr::eq(placed.cluster, cluster.as_ref()));
        let placed: Vec<_> = placed
            .map(|placed| (placed.id.clone(), placed.object))
            .collect();
        let found = review_objects(&placed, |index, field| {
            place_of(rendered.files(), placed[index].1, field)
        });
        all.findings.extend(found.findings);
        all.rollouts.extend(found.rollouts);
    }
    let unrendered = tell_problems(&rendered, printer);
    if all.rollouts.is_empty() && all.findings.is_empty() {
        printer.say_unless_quiet("no IstioCanaryDeployment in the repository");
    }
    let status = write(&all, args.output.format, printer)?;
    let status = if unrendered == ExitStatus::Clean {
        status
    } else {
        unrendered
    };
    Ok(end(rendered, status))
}

fn write(review: &Review, format: Format, printer: &Printer) -> CommandResult {
    match format {
        Format::Json => printer.data(as_json(review))?,
        Format::Table => printer.data(as_text(review))?,
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
