//! `portolan audit repo`: what a Flux repository renders to.

use camino::Utf8Path;
use portolan_audit::{
    Checker, Counts, Evidence, Finding, Level, Report, Site, Subject, Target, merge, unreadable,
};
use portolan_flux::Depth;
use portolan_flux::api::NamespacedName;
use portolan_object::{Act, Object, Origin};
use portolan_review::RenderedRepository;
use portolan_vfs::Vfs;
use portolan_yaml::Position;

use super::check_options::CheckOptions;
use super::fix::fix;
use super::patches::Patches;
use super::print::print;
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::repository::{RepositoryArgs, tell_problems};

/// Find deprecated and removed APIs in what a Flux repository renders to
///
/// Kustomizations and HelmReleases are rendered as `portolan build` does, and every object is checked; a finding names
/// the file that the object comes from. What cannot be rendered cannot be checked: it is a finding of the level
/// `unparsed`, and is not counted as checked. The exit code is 1 when there are findings at or above --fail-on, or when
/// something cannot be rendered.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan audit repo --target 1.34
  portolan audit repo --path clusters/production --from 1.31 --target 1.34 -o markdown
  portolan audit repo --target 1.34 --fix | git apply")]
pub(crate) struct RepoArgs {
    #[command(flatten)]
    repository: RepositoryArgs,

    #[command(flatten)]
    check: CheckOptions,

    /// Print a patch that rewrites what can be rewritten without changing its meaning
    ///
    /// Rewrites only objects in files of the repository. Change by hand what a chart or a generator produces, and what
    /// a patch selects by its API version.
    #[arg(long, help_heading = "Output")]
    fix: bool,
}

pub(crate) fn repo(args: &RepoArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    // Options that cannot be used are told before the work begins.
    args.check.checker()?;
    let rendered = args.repository.render(Depth::Releases, app)?;
    let clusters = rendered.clusters.iter();
    let releases = clusters.map(|(cluster, _)| cluster.kubernetes.value.release());
    let target = releases
        .max()
        .map_or_else(Target::default, Target::kubernetes);
    let (checker, mut warnings) = args.check.checker_for(target)?;
    let mut counts = Counts::default();
    let mut findings = merge(check(&checker, &rendered, &mut counts));
    warnings.extend(args.check.accept(&mut findings)?);
    if args.fix {
        return patch(&checker, findings, rendered.files(), printer);
    }
    let mut report = Report::new(findings, counts, &checker.target);
    report.not_checked = not_checked(&report.findings);
    report.warnings.extend(warnings);
    print(&report, args.check.output, printer)?;
    let broken = tell_problems(&rendered, printer);
    match args.check.status(&report) {
        ExitStatus::Clean => Ok(broken),
        status => Ok(status),
    }
}

fn check(checker: &Checker, rendered: &RenderedRepository, counts: &mut Counts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut take = |unit: String, objects: &[Object]| {
        for object in objects {
            counts.objects += 1;
            findings.extend(check_object(checker, object, &unit));
        }
    };
    let (mut releases, mut not_checked) = (0, Vec::new());
    for (_, rendering) in &rendered.clusters {
        for (id, walked) in &rendering.walk.kustomizations {
            match &walked.built {
                Some(built) => take(format!("Kustomization {id}"), &built.objects),
                None => not_checked.push(not_rendered("Kustomization", id)),
            }
        }
        for (id, release) in &rendering.releases {
            match &release.objects {
                Some(objects) => {
                    releases += 1;
                    take(format!("HelmRelease {id}"), objects);
                }
                None => not_checked.push(not_rendered("HelmRelease", id)),
            }
        }
    }
    counts.releases = releases;
    findings.extend(not_checked);
    findings
}

/// A finding for what could not be rendered, and so could not be looked at.
fn not_rendered(kind: &str, id: &NamespacedName) -> Finding {
    let site = Site {
        evidence: vec![Evidence::Unit {
            unit: format!("{kind} {id}"),
            origin: String::new(),
        }],
        ..Site::default()
    };
    let message = "it could not be rendered, so what it applies was not checked";
    let mut finding = unreadable(&site, Position::default(), message);
    finding.subject = Subject {
        api_version: String::new(),
        kind: kind.to_owned(),
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
    };
    finding.with_id()
}

/// The units among the findings that were not checked, by name.
fn not_checked(findings: &[Finding]) -> Vec<String> {
    let unit = |finding: &Finding| match finding.evidence.first() {
        Some(Evidence::Unit { unit, .. }) if finding.level == Level::Unparsed => Some(unit.clone()),
        _ => None,
    };
    findings.iter().filter_map(unit).collect()
}

/// The lines of a rendered text say nothing to a reader: a finding points to where the object was first written.
fn check_object(checker: &Checker, object: &Object, unit: &str) -> Vec<Finding> {
    let site = Site {
        file: None,
        evidence: vec![Evidence::Unit {
            unit: unit.to_owned(),
            origin: object.origin().to_relative(),
        }],
        namespace: String::new(),
    };
    let place = object.place();
    let mut findings = checker.check(object.node(), &site);
    for finding in &mut findings {
        finding.fixable &= is_written_out(&object.origin());
        if let Some(place) = &place {
            finding.file = Some(place.file.trim_start_matches('/').to_owned());
            finding.line = Some(place.at.line).filter(|line| *line > 0);
            finding.column = finding.line.map(|_| place.at.column.max(1));
        }
    }
    findings.into_iter().map(Finding::with_id).collect()
}

/// Prints a patch for the files of the repository.
fn patch(
    checker: &Checker,
    mut findings: Vec<Finding>,
    files: &dyn Vfs,
    printer: &Printer,
) -> CommandResult {
    let patches = Patches::find(files, &findings);
    for finding in &mut findings {
        finding.fixable &= !patches.name(&finding.subject);
    }
    let read =
        |file: &str| String::from_utf8(files.read(&Utf8Path::new("/").join(file)).ok()?).ok();
    fix(checker, &findings, read, printer)
}

/// Whether an object stands in a file, and was not made by a chart or a generator.
fn is_written_out(origin: &Origin) -> bool {
    let first = origin.steps().first().map(|step| step.act);
    first == Some(Act::Read)
}
