//! `portolan test`: whether a Flux repository builds, and whether a cluster would accept what it builds.
//!
//! ```text
//! repository ──render──▶ judge ──▶ Verdicts ──▶ table, json, junit, sarif, github
//! ```

mod write;

use portolan_object::{Rule, nearest};
use portolan_review::judge::{finding_settings, judge, rules, select};

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::repository::{RepositoryArgs, end};
use crate::selection::{OwnersWord, SelectionArgs, Word};
use write::Format;

/// Check that a Flux repository builds, and that a cluster would accept it
///
/// Builds every Kustomization and HelmRelease as Flux does and checks every object against the types of the chosen
/// Kubernetes, of Flux and of the repository's own CRDs, including CEL rules. Also reports objects with two owners and
/// references to missing objects. `--explain ID` explains a finding. The annotation `portolan.dev/ignore: ID` switches
/// a finding off for one object, the `test` section of `portolan.yaml` for several.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan test
  portolan test --path clusters/production --kube-version 1.34
  portolan test hr podinfo -n apps
  portolan test -o junit > report.xml
  portolan test --fail-on warning
  portolan test --explain schema/unknown-field")]
pub(crate) struct TestArgs {
    /// What to report on [default: all]; may also be a name
    #[arg(value_name = "WHAT")]
    what: Option<Word<OwnersWord>>,

    /// Names of Kustomizations and HelmReleases, or of objects with their kind; all when none is given
    ///
    /// As in NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME: `podinfo`, `apps/podinfo`, `hr/podinfo`,
    /// `deploy/web`. Everything is rendered all the same, for objects refer to each other.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    selection: SelectionArgs,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// How the result is told.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct ReportArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,

    /// What makes the exit code 1
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    fail_on: FailOn,

    /// Tell what a finding means, and do nothing else; `all` lists every id
    #[arg(long, value_name = "ID")]
    explain: Option<String>,

    /// Values of Secrets are always hidden; other tools have to be told
    #[arg(long, hide = true)]
    wipe_secrets: bool,
}

/// The least grave finding that fails the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Errors only
    Error,
    /// Warnings too
    Warning,
}

pub(crate) fn test(args: &TestArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    if let Some(id) = &args.report.explain {
        return explain(id, printer);
    }
    let rendered = args.repository.render_to_judge(app)?;
    let settings = finding_settings(&rendered)?;
    let mut verdicts = judge(&rendered, &settings);
    let (what, names) = Word::split(args.what.as_ref(), &args.names, OwnersWord::All);
    let selection = args.selection.owners(what.kinds(), &names);
    if !selection.is_everything() {
        select(&mut verdicts, &selection, &rendered)?;
    }
    write::write(&verdicts, &rendered, args.report.output, printer)?;
    let failed = match args.report.fail_on {
        FailOn::Error => verdicts.errors() > 0,
        FailOn::Warning => verdicts.errors() + verdicts.warnings() > 0,
    };
    let status = if failed {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    };
    Ok(end(rendered, status))
}

fn explain(id: &str, printer: &Printer) -> CommandResult {
    let rules = rules();
    if id == "all" {
        let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
        let lines: Vec<String> = rules
            .iter()
            .map(|rule| format!("{:width$}   {}\n", rule.id, rule.summary))
            .collect();
        printer.data(lines.concat())?;
        return Ok(ExitStatus::Clean);
    }
    let Some(Rule {
        id, summary, help, ..
    }) = rules.iter().find(|rule| rule.id == id)
    else {
        let error = CommandError::usage(format!("no finding is called `{id}`"));
        let near = nearest(&[id], rules.iter(), |rule| rule.id);
        return Err(match near {
            Some(rule) => error.hint(format!(
                "did you mean `{}`? `--explain all` lists every id",
                rule.id
            )),
            None => error,
        });
    };
    printer.data(format!("{id}: {summary}\n\n{help}\n"))?;
    Ok(ExitStatus::Clean)
}
