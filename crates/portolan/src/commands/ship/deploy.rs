//! `portolan ship deploy` and `ship delete`: objects brought to a cluster, and taken away again.

use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use portolan_cluster::PruneOptions;
use portolan_ship::{
    DeploySetup, ObjectStatus, StepStatus, delete_step, finish_deploy, plan_deploy,
};

use super::build::BuildOptions;
use super::deploy_print::{deleted_json, deleted_text, deployed_json, deployed_text};
use super::images::read_images;
use super::output_args::{Format, OutputArgs};
use super::project::ProjectArgs;
use super::render::rendered;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Build what the deploy steps name, and bring their objects to a cluster
///
/// Artifacts are built, and pushed with `--push`; then each step is applied with the images put in, waited for until its
/// objects are ready, and what it had before and has no longer is deleted. A step that fails skips what needs it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship deploy --push --context staging
  portolan ship deploy --images images.json
  portolan ship deploy -o json")]
pub(crate) struct DeployArgs {
    /// Result of `ship build -o json`, whose images are deployed; nothing is built then
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    images: Option<Utf8PathBuf>,

    /// Delete what is no longer in a step also if it is more than half of it
    #[arg(long, help_heading = "Cluster")]
    prune_many: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,
}

/// Delete what the deploy steps have in a cluster
///
/// Deletes the objects that `ship deploy` made, in the opposite order. Namespaces, definitions, volumes and claims stay unless
/// `--all` is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship delete --context staging
  portolan ship delete --all")]
pub(crate) struct DeleteArgs {
    /// Delete namespaces, definitions, volumes and claims too
    #[arg(long, help_heading = "Cluster")]
    all: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn deploy(args: &DeployArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args
        .project
        .read_for("deploy", args.target.context(), printer)?;
    let steps = rendered(&project, printer)?;
    let images = args.images.as_deref().map(read_images).transpose()?;
    let cluster = app
        .runtime()?
        .block_on(args.target.connect(&project.ship))?;
    let cluster = Arc::new(cluster);
    let ship = Arc::new(project.ship.clone());
    let names: Vec<String> = match &images {
        Some(_) => Vec::new(),
        None => steps
            .iter()
            .flat_map(|step| step.artifacts.clone())
            .collect(),
    };
    let mut planned = None;
    let (result, interrupted) =
        args.build
            .run(&project, &names, app, |build, is_pushing, units| {
                let setup = DeploySetup {
                    build: build.clone(),
                    ship,
                    cluster,
                    images,
                    is_pushing,
                    is_testing: false,
                    prune_many: args.prune_many,
                    objects: Arc::new(Mutex::default()),
                };
                plan_deploy(&steps, &setup, units);
                planned = Some(setup);
            })?;
    let results = planned
        .map(|setup| finish_deploy(&setup, &result.1))
        .unwrap_or_default();
    let result = result.0;
    match args.output.format {
        Format::Json => {
            let value = deployed_json(&result, &results, "DeployResult")?;
            printer.data(format!("{value:#}\n"))?;
        }
        Format::Text => printer.data(deployed_text(&result, &results, printer))?,
    }
    let is_good = result.is_good()
        && results
            .iter()
            .all(|step| step.status == StepStatus::Deployed);
    Ok(match is_good {
        _ if interrupted => ExitStatus::Interrupted,
        true => ExitStatus::Clean,
        false => ExitStatus::Findings,
    })
}

pub(crate) fn delete(args: &DeleteArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args
        .project
        .read_for("delete", args.target.context(), printer)?;
    let runtime = app.runtime()?;
    let cluster = Arc::new(runtime.block_on(args.target.connect(&project.ship))?);
    let options = PruneOptions {
        dangerous: args.all,
        many: true,
    };
    let mut results = Vec::new();
    for step in project.ship.deploy.iter().rev() {
        let deleted = runtime.block_on(delete_step(&project.ship, step, &cluster, options));
        results.extend(deleted.map_err(CommandError::user)?);
    }
    printer.data(match args.output.format {
        Format::Json => deleted_json(&results),
        Format::Text => deleted_text(&results, printer),
    })?;
    let failed = results
        .iter()
        .any(|object| object.status == ObjectStatus::Failed);
    Ok(if failed {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}
