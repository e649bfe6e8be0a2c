//! `portolan audit files`: manifests and charts on disk.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_audit::{Baseline, Checker, Counts, Report, Scanned, Site, merge, plan_scan};

use super::check_options::CheckOptions;
use super::fix::fix;
use super::judge_options::today;
use super::print::print;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::session;

/// Find deprecated and removed APIs in files
///
/// Directories are searched for YAML and JSON; a directory with a Chart.yaml is rendered as a chart. What cannot be read
/// is a finding too. The exit code is 1 when there are findings at or above --fail-on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan audit files manifests --target 1.32
  portolan audit files . --from 1.29 --target 1.34 -o json
  portolan audit files apps charts/web --fail-on deprecated --baseline audit.yaml
  portolan audit files apps --target 1.34 --fix | git apply
  helm template web | portolan audit files -")]
pub(crate) struct FilesArgs {
    /// Files, directories and charts; `-` is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<Utf8PathBuf>,

    #[command(flatten)]
    check: CheckOptions,

    /// Print a patch that rewrites what can be rewritten without changing its meaning
    #[arg(long, help_heading = "Output")]
    fix: bool,

    /// Write a baseline that accepts everything found, until this day
    #[arg(long, value_name = "DAY", requires = "reason", help_heading = "Output")]
    write_baseline: Option<portolan_audit::Day>,

    /// The reason that --write-baseline gives
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    reason: Option<String>,
}

pub(crate) fn files(args: &FilesArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let (checker, mut warnings) = args.check.checker()?;
    let checker = Arc::new(checker);
    let scanned = scan_all(args, &checker, app)?;
    let mut findings = merge(scanned.findings);
    warnings.extend(args.check.accept(&mut findings)?);
    if args.fix {
        let read = |file: &str| fs::read_to_string(file).ok();
        return fix(&checker, &findings, read, printer);
    }
    if let (Some(until), Some(reason)) = (args.write_baseline, &args.reason) {
        printer.data(Baseline::text(&findings, reason, until.max(today())))?;
        return Ok(ExitStatus::Clean);
    }
    if scanned.files + scanned.charts == 0 {
        warnings.push("nothing was checked: there is neither YAML nor JSON".to_owned());
    }
    let counts = Counts {
        objects: scanned.objects,
        files: scanned.files,
        charts: scanned.charts,
        releases: 0,
    };
    let mut report = Report::new(findings, counts, &checker.target);
    report.warnings.extend(warnings);
    print(&report, args.check.output, printer)?;
    Ok(args.check.status(&report))
}

fn scan_all(args: &FilesArgs, checker: &Arc<Checker>, app: &App) -> Result<Scanned, CommandError> {
    let (piped, paths): (Vec<&Utf8PathBuf>, Vec<&Utf8PathBuf>) =
        args.paths.iter().partition(|path| *path == "-");
    // What a directory holds and cannot be read is a finding; a path that was misspelt is none.
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_err()) {
        return Err(CommandError::usage(format!("there is no `{path}`")));
    }
    let paths: Vec<PathBuf> = paths
        .into_iter()
        .map(|path| path.as_std_path().to_owned())
        .collect();
    let mut plan = None;
    let report = session::run(app, |run| plan = Some(plan_scan(run, checker, &paths)))?;
    let mut scanned = plan.map(|plan| plan.scanned(&report)).unwrap_or_default();
    if let Some(path) = piped.first() {
        let input = Input::read(path)?;
        let site = Site {
            file: Some("-".to_owned()),
            ..Site::default()
        };
        let checked = checker.check_text(&input.bytes, &site);
        scanned.files += 1;
        scanned.objects += checked.objects;
        scanned.findings.extend(checked.findings);
    }
    Ok(scanned)
}
