//! `portolan ship apply`: manifests that `ship render` wrote, brought to a cluster without building anything.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_ship::{
    DeploySetup, DeployStep, RenderedStep, StepStatus, finish_deploy, plan_deploy, read_manifests,
};

use super::build_options::BuildOptions;
use super::deploy_print::{deployed_json, deployed_text};
use super::dry_run::print_plan;
use super::output_args::{Format, OutputArgs};
use super::project_args::ProjectArgs;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// The longest text that is read from standard input.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Bring manifests that `ship render` wrote to a cluster, and wait until they are ready
///
/// Nothing is built and no image is put in; nothing is deleted that is in the files no longer. Secrets must have been rendered
/// with `--show-secrets`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship render --show-secrets > all.yaml && portolan ship apply all.yaml --context staging
  portolan ship apply all.yaml --context staging --dry-run
  portolan ship render --images images.json | portolan ship apply - --context staging")]
pub(crate) struct ApplyArgs {
    /// Files of manifests; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<Utf8PathBuf>,

    /// Say what the cluster would make of each object, and change nothing
    #[arg(long, help_heading = "Cluster")]
    dry_run: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn apply(args: &ApplyArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args
        .project
        .read_for("apply", args.target.place(), printer)?;
    let mut objects = Vec::new();
    for file in &args.files {
        let text = read(file)?;
        objects.extend(read_manifests(&text, file).map_err(CommandError::user)?);
    }
    let cluster = app
        .runtime()?
        .block_on(args.target.connect(&project.ship))?;
    let step = DeployStep {
        namespace: args.target.namespace(),
        ..DeployStep::of_files(
            "apply",
            args.files.iter().map(ToString::to_string).collect(),
        )
    };
    let mut ship = project.ship.clone();
    ship.deploy = vec![step.clone()];
    let (ship, steps) = (Arc::new(ship), [RenderedStep::of_objects(step, objects)]);
    let mut planned = None;
    let ((result, report), interrupted) =
        args.build.run(&project, &[], app, |build, _, units| {
            let setup = DeploySetup {
                build: build.clone(),
                ship,
                cluster: Arc::new(cluster),
                images: Some(BTreeMap::new()),
                is_pushing: false,
                is_testing: false,
                prune_many: false,
                is_trial: args.dry_run,
                objects: Arc::new(Mutex::default()),
            };
            plan_deploy(&steps, &setup, units);
            planned = Some(setup);
        })?;
    let results = planned
        .map(|setup| finish_deploy(&setup, &report))
        .unwrap_or_default();
    if args.dry_run {
        return print_plan(&[], Some(&results), args.output.format, printer);
    }
    match args.output.format {
        Format::Json => {
            let value = deployed_json(&result, &results, "DeployResult")?;
            printer.data(format!("{value:#}\n"))?;
        }
        Format::Text => printer.data(deployed_text(&result, &results, printer))?,
    }
    Ok(
        match results
            .iter()
            .all(|step| step.status == StepStatus::Deployed)
        {
            _ if interrupted => ExitStatus::Interrupted,
            true => ExitStatus::Clean,
            false => ExitStatus::Findings,
        },
    )
}

fn read(file: &Utf8Path) -> Result<String, CommandError> {
    let failed = |error: std::io::Error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot read `{file}`")))
    };
    if file != "-" {
        return std::fs::read_to_string(file).map_err(failed);
    }
    let mut text = String::new();
    let mut input = std::io::stdin().take(MAX_INPUT_BYTES + 1);
    input.read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(CommandError::usage("standard input is longer than 64 MiB"));
    }
    Ok(text)
}
