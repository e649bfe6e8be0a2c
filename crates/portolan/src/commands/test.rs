//! `portolan test`: whether a Flux repository builds, and whether a cluster would take what it builds.
//!
//! ```text
//! repository ──render──▶ build problems ┐
//!                    └─▶ objects ──check──▶ findings ──▶ Verdicts ──▶ table, json, junit, sarif, github
//! ```

mod judged_for;
#[cfg(feature = "rollout")]
mod rollouts;
mod verdict;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use portolan_check::{MISSING_REFERENCE, Settings, Subject, check, lower_follow_ons};
use portolan_flux::api::NamespacedName;
use portolan_flux::{Cluster, Emitter, Rendering, Selection};
use portolan_object::{ObjectId, Owner, Rule, nearest};
use portolan_schema::Catalogue;

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::inventory::{self, Placed};
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs, unrendered};
use crate::selection::{OwnersWord, SelectionArgs, Word, selectable};
use crate::settings_file::SettingsFile;
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
  portolan test hr podinfo -n apps
  portolan test -o junit > report.xml
  portolan test --fail-on warning
  portolan test --explain schema/unknown-field")]
pub(crate) struct TestArgs {
    /// What to report on; all when it is not given, and a name may stand here too
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

pub(crate) fn test(args: &TestArgs, printer: &Printer) -> CommandResult {
    if let Some(id) = &args.report.explain {
        return explain(id, printer);
    }
    let rendered = args.repository.render_to_judge(printer)?;
    let settings = SettingsFile::read(rendered.files())?.findings(&rules())?;
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
    Ok(rendered.end(if failed {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    }))
}

/// Leaves what is selected; refuses a selection that nothing fits.
fn select(
    verdicts: &mut Verdicts,
    selection: &Selection,
    rendered: &Rendered,
) -> Result<(), CommandError> {
    let objects = inventory::objects(rendered);
    let there = selectable(rendered, &objects);
    selection.check(&there)?;
    let is_owner_meant =
        |owner: &Emitter| selection.selects_owner(&there.kinds, owner.owner_kind(), owner.id());
    let is_meant = |placed: &&Placed<'_>| {
        let is_owner_meant = is_owner_meant(&placed.owner);
        selection.selects_object(&there.kinds, is_owner_meant, &placed.id, placed.object)
    };
    let meant = objects.iter().filter(is_meant);
    let meant = meant.map(|placed| (placed.owner.owner(&placed.cluster.name), placed.id.clone()));
    let meant: BTreeSet<(Owner, ObjectId)> = meant.collect();
    verdicts.retain(|owner, object| match object {
        Some(id) => meant.contains(&(owner.clone(), id.clone())),
        None => {
            let id = NamespacedName::new(owner.namespace.clone(), owner.name.clone());
            selection.selects_owner(&there.kinds, owner.kind, &id)
        }
    });
    Ok(())
}

/// Everything checked, cluster by cluster.
fn judge(rendered: &Rendered, settings: &Settings) -> Verdicts {
    let not_covered = rendered.not_covered.iter();
    let mut verdicts = Verdicts {
        found: not_covered
            .filter(|finding| settings.wants_finding(finding))
            .cloned()
            .collect(),
        ..Verdicts::default()
    };
    let objects = inventory::objects(rendered);
    for (cluster, rendering) in &rendered.clusters {
        verdicts.add_builds(rendered, cluster, rendering, settings);
        let placed: Vec<&Placed<'_>> = objects
            .iter()
            .filter(|placed| std::ptr::eq(placed.cluster, cluster.as_ref()))
            .collect();
        let catalogue = catalogue(cluster, &placed);
        let unrendered = unrendered(&cluster.name, rendering);
        for subjects in by_target(&placed, rendering) {
            let files = rendered.files();
            let mut findings = check(&subjects, &catalogue, settings, &unrendered, files);
            #[cfg(feature = "rollout")]
            findings.extend(rollouts::findings(&subjects, settings, files));
            lower_follow_ons(&mut findings, &[&MISSING_REFERENCE], &unrendered);
            verdicts.found.extend(findings);
            verdicts.add_objects(&subjects);
        }
    }
    verdicts
}

/// The objects by the cluster that they are applied to: objects in two clusters neither collide nor refer to each other.
fn by_target<'a>(placed: &[&Placed<'a>], rendering: &Rendering) -> Vec<Vec<Subject<'a>>> {
    let mut targets: BTreeMap<Option<String>, Vec<Subject<'a>>> = BTreeMap::new();
    let mut known: BTreeMap<&Emitter, Option<String>> = BTreeMap::new();
    for placed in placed {
        let target = known
            .entry(&placed.owner)
            .or_insert_with(|| rendering.remote_cluster(&placed.owner));
        targets
            .entry(target.clone())
            .or_default()
            .push(subject(placed));
    }
    targets.into_values().collect()
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
    let mut catalogue = if cluster.kubernetes.is_chosen() {
        Catalogue::of(cluster.kubernetes.value.release())
    } else {
        Catalogue::assumed()
    };
    #[cfg(feature = "rollout")]
    for definition in portolan_canary::definitions() {
        catalogue.define(&definition);
    }
    for placed in placed {
        catalogue.define(placed.object.node());
    }
    catalogue
}

/// Every rule that a finding of this command may name, by id.
fn rules() -> Vec<&'static Rule> {
    let mut rules = [portolan_check::RULES, portolan_flux::RULES].concat();
    #[cfg(feature = "rollout")]
    rules.extend(portolan_canary::RULES);
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
