//! `portolan helm dependency build`: fills a chart's `charts/` directory.

use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, file_name};
use portolan_helm::Package;
use portolan_helm::lock::build_plan;
use portolan_sources::{VendoredChart, lock_text};
use portolan_vfs::Disk;

use super::access_options::AccessOptions;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Work with the charts that a chart depends on
#[derive(Debug, clap::Args)]
pub(crate) struct DependencyArgs {
    #[command(subcommand)]
    command: DependencyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum DependencyCommand {
    Build(BuildArgs),
}

/// Fetch what Chart.lock names into `charts/`
///
/// Without a lock the ranges of Chart.yaml are resolved and the lock is written. Other versions of the same charts in
/// `charts/` are removed once all are fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan helm dependency build ./charts/web")]
struct BuildArgs {
    /// The chart's directory
    #[arg(default_value = ".")]
    chart: Utf8PathBuf,

    #[command(flatten)]
    access: AccessOptions,
}

pub(crate) fn dependency(args: &DependencyArgs, app: &App) -> CommandResult {
    match &args.command {
        DependencyCommand::Build(args) => build(args, app),
    }
}

fn build(args: &BuildArgs, app: &App) -> CommandResult {
    for path in bring(&args.chart, &args.access, app)? {
        app.printer.data(format!("{path}\n"))?;
    }
    Ok(ExitStatus::Clean)
}

/// Fills a chart's `charts/` directory and tells what was put there.
pub(super) fn bring(
    chart: &Utf8Path,
    access_options: &AccessOptions,
    app: &App,
) -> Result<Vec<Utf8PathBuf>, CommandError> {
    // Dependencies at `file://` may lie beside the chart, so its directory cannot be the root.
    let directory = chart.canonicalize_utf8()?;
    let disk = Disk::machine();
    let package = Package::load(&disk, &directory).map_err(CommandError::user)?;
    let wanted = build_plan(&package).map_err(CommandError::user)?;
    let sources = access_options.sources();
    let access = access_options.access()?;
    let brought = sources.dependencies(&disk, &directory, &wanted, &access);
    let brought = app.wait(brought)?.map_err(CommandError::user)?;
    let output = OutputDir::create(chart)?;
    let mut written = Vec::new();
    for brought in &brought {
        let path = Utf8Path::new("charts").join(file_name(&brought.file_name()));
        written.push(output.write(&path, &brought.content)?);
    }
    remove_others(&chart.join("charts"), &brought)?;
    if package.lock.is_none() && !wanted.is_empty() {
        write_lock(chart, &package, &brought)?;
    }
    Ok(written)
}

/// Removes archives of the same charts in other versions.
fn remove_others(charts: &Utf8Path, brought: &[VendoredChart]) -> Result<(), CommandError> {
    let Ok(entries) = charts.read_dir_utf8() else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path().to_owned();
        let is_current = brought
            .iter()
            .any(|chart| path.file_name() == Some(chart.file_name().as_str()));
        if is_current || path.extension() != Some("tgz") {
            continue;
        }
        // What cannot be read is not ours to remove.
        let Ok(package) = Package::from_archive(&std::fs::read(&path)?) else {
            continue;
        };
        if brought.iter().any(|chart| chart.name == package.name()) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn write_lock(
    chart: &Utf8Path,
    package: &Package,
    brought: &[VendoredChart],
) -> Result<(), CommandError> {
    let listed = package.metadata.dependencies.as_deref().unwrap_or_default();
    let name = match package.metadata.api_version.as_str() {
        "v1" => "requirements.lock",
        _ => "Chart.lock",
    };
    let text = lock_text(listed, brought, SystemTime::now());
    OutputDir::create(chart)?.write(name.into(), text.as_bytes())?;
    Ok(())
}
