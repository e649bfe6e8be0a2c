//! `portolan test`: whether a Flux repository builds, and whether a cluster would take what it builds.
//!
//! ```text
//! repository ──render──▶ build problems ┐
//!                    └─▶ objects ──check──▶ findings ──▶ Verdicts ──▶ table, json, junit, sarif, github
//! ```

mod verdict;
mod write;

use portolan_check::{MISSING_REFERENCE, Settings, Subject, check, lower_follow_ons};
use portolan_flux::{Cluster, Depth};
use portolan_object::{KubeVersion, Rule};
use portolan_schema::Catalogue;

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::inventory::{self, Placed};
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs, unrendered};
use crate::suggestion;
use verdict::Verdicts;
use write::Format;

/// Check that a Flux repository builds, and that a cluster would take it
///
/// Every Kustomization and HelmRelease is built as Flux would; every object is held against the types of the chosen
/// Kubernetes, of Flux and of the repository's own definitions, rules in CEL included; and objects that two owners bring
/// or that refer to nothing are found. Each finding has an id that --explain tells about. One is switched off for an
/// object by the annotation `portolan.dev/ignore: ID`, for more in the `test` part of `portolan.yaml`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan test
  portolan test --path clusters/production --kube-version 1.34
  portolan test -o junit > report.xml
  portolan test --fail-on warning
  portolan test --explain schema/unknown-field")]
pub(crate) struct TestArgs {
    /// In which form
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,

    /// What makes the exit code 1
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    fail_on: FailOn,

    /// Tell what a finding means, and do nothing else; `all` lists every id
    #[arg(long, value_name = "ID")]
    explain: Option<String>,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// The least grave finding that fails the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Errors only
    Error,
    /// Warnings too
    Warning,
}

pub(crate) fn test(args: &TestArgs, printer: &Printer) -> CommandResult {
    if let Some(id) = &args.explain {
        return explain(id, printer);
    }
    let rendered = args.repository.render(Depth::Releases, printer)?;
    let settings = settings(&rendered)?;
    let verdicts = judge(&rendered, &settings);
    write::write(&verdicts, &rendered, args.output, printer)?;
    let failed = match args.fail_on {
        FailOn::Error => verdicts.errors() > 0,
        FailOn::Warning => verdicts.errors() + verdicts.warnings() > 0,
    };
    Ok(rendered.end(if failed {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    }))
}

/// Everything checked, cluster by cluster.
fn judge(rendered: &Rendered, settings: &Settings) -> Verdicts {
    let mut verdicts = Verdicts::default();
    let objects = inventory::objects(rendered);
    for (cluster, rendering) in &rendered.clusters {
        verdicts.add_builds(rendered, cluster, rendering, settings);
        let placed: Vec<&Placed<'_>> = objects
            .iter()
            .filter(|placed| std::ptr::eq(placed.cluster, cluster.as_ref()))
            .collect();
        let catalogue = catalogue(cluster, &placed);
        let subjects: Vec<Subject<'_>> = placed.iter().map(|placed| subject(placed)).collect();
        let mut findings = check(&subjects, &catalogue, settings, rendered.files());
        let unrendered = unrendered(&cluster.name, rendering);
        lower_follow_ons(&mut findings, &[&MISSING_REFERENCE], &unrendered);
        verdicts.found.extend(findings);
        verdicts.add_objects(&subjects);
    }
    verdicts
}

fn subject<'a>(placed: &Placed<'a>) -> Subject<'a> {
    Subject {
        owner: placed.owner.owner(&placed.cluster.name),
        id: placed.id.clone(),
        object: placed.object,
    }
}

/// The types that the cluster would know: its Kubernetes, Flux, and everything that the repository defines.
fn catalogue(cluster: &Cluster, placed: &[&Placed<'_>]) -> Catalogue {
    let version = cluster.capabilities.kube_version.version.parse();
    let mut catalogue = Catalogue::of(version.unwrap_or(KubeVersion::new(1, u32::MAX)));
    for placed in placed {
        catalogue.define(placed.object.node());
    }
    catalogue
}

/// The name of the file with a repository's settings.
const SETTINGS: &str = "/portolan.yaml";

fn settings(rendered: &Rendered) -> Result<Settings, CommandError> {
    let Ok(bytes) = rendered.files().read(SETTINGS.into()) else {
        return Ok(Settings::default());
    };
    let text = String::from_utf8_lossy(&bytes);
    Settings::read(&text, &rules()).map_err(|error| {
        let hint = format!("`{}:{}`: {}", &SETTINGS[1..], error.at().line, error.hint());
        CommandError::user(error).hint(hint)
    })
}

/// Every rule that a finding of this command may name, by id.
fn rules() -> Vec<&'static Rule> {
    let mut rules = [portolan_check::RULES, portolan_flux::RULES].concat();
    rules.sort_by_key(|rule| rule.id);
    rules
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
        let near = suggestion::nearest(&[id.to_owned()], rules.iter(), |rule| rule.id);
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
