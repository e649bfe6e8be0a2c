//! `portolan ship deploy` and `ship delete`: objects brought to a cluster, and taken away again.

use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use portolan_cluster::PruneOptions;
use portolan_ship::{
    DeploySetup, ObjectStatus, ShipOutcome, StepStatus, delete_step, finish_deploy, plan_deploy,
    try_delete_step,
};

use super::announce::Announcer;
use super::build_options::BuildOptions;
use super::deploy_print::{deleted_json, deleted_text, deployed_json, deployed_text};
use super::dry_run::{known_images, plan_artifacts, print_plan};
use super::images::read_images;
use super::output_args::{Format, OutputArgs};
use super::project::Project;
use super::project_args::{ArtifactArgs, ProjectArgs};
use super::render::selected;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::events_args::EventsArgs;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Build what the deploy steps name, and bring their objects to a cluster
///
/// Artifacts are built, and pushed with `--push`; then each step is applied with the images put in, waited for until its
/// objects are ready, and what it had before and has no longer is deleted. A step that fails skips what needs it.
///
/// With `-a` only steps that name the image of such an artifact are deployed, and nothing is deleted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship deploy --push --context staging
  portolan ship deploy -a web -n try --registry localhost:5000 --push
  portolan ship deploy --images images.json --dry-run
  portolan ship deploy -o json")]
pub(crate) struct DeployArgs {
    /// Result of `ship build -o json`, whose images are deployed; nothing is built then
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    images: Option<Utf8PathBuf>,

    /// Delete what is no longer in a step also if it is more than half of it
    #[arg(long, help_heading = "Cluster")]
    prune_many: bool,

    /// Say what would be built and what the cluster would make of each object, and change nothing
    #[arg(long, help_heading = "Cluster")]
    dry_run: bool,

    #[command(flatten)]
    selected: ArtifactArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    events: EventsArgs,
}

/// Delete what the deploy steps have in a cluster
///
/// Deletes the objects that `ship deploy` made, in the opposite order. Namespaces, definitions, volumes and claims stay unless
/// `--all` is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship delete --context staging
  portolan ship delete --all --dry-run")]
pub(crate) struct DeleteArgs {
    /// Delete namespaces, definitions, volumes and claims too
    #[arg(long, help_heading = "Cluster")]
    all: bool,

    /// Say what would be deleted, and delete nothing
    #[arg(long, help_heading = "Cluster")]
    dry_run: bool,

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
        .read_for("deploy", args.target.place(), printer)?;
    let events = args.events.unless(args.dry_run);
    let announcer = Announcer::start(&events, "deploy", &project.ship.name, app)?;
    let ended = deploy_project(args, &project, &announcer, app);
    announcer.end(ended, app)
}

fn deploy_project(
    args: &DeployArgs,
    project: &Project,
    announcer: &Announcer<'_>,
    app: &App,
) -> CommandResult {
    let printer = &app.printer;
    let steps = selected(project, &args.selected, printer)?;
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
    let mut plans = Vec::new();
    let mut built = names;
    let mut images = images;
    if args.dry_run {
        plans = plan_artifacts(project, &std::mem::take(&mut built), &args.build, app)?;
        images = Some(images.unwrap_or_else(|| known_images(&plans)));
    }
    let mut planned = None;
    let (result, interrupted) =
        args.build
            .run(project, &built, app, |build, is_pushing, units| {
                let setup = DeploySetup {
                    build: build.clone(),
                    ship,
                    cluster,
                    images,
                    is_pushing,
                    is_testing: false,
                    prune_many: args.prune_many,
                    is_trial: args.dry_run,
                    objects: Arc::new(Mutex::default()),
                };
                plan_deploy(&steps, &setup, units);
                planned = Some(setup);
            })?;
    let results = planned
        .map(|setup| finish_deploy(&setup, &result.1))
        .unwrap_or_default();
    let result = result.0;
    if args.dry_run {
        return print_plan(&plans, Some(&results), args.output.format, printer);
    }
    announcer.tell(&ShipOutcome {
        command: "deploy",
        project: &project.ship.name,
        context: project.asked.context.as_deref(),
        build: &result,
        tests: &[],
        steps: &results,
        verifications: &[],
    });
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
        .read_for("delete", args.target.place(), printer)?;
    let runtime = app.runtime()?;
    let cluster = Arc::new(runtime.block_on(args.target.connect(&project.ship))?);
    let options = PruneOptions {
        dangerous: args.all,
        many: true,
    };
    let mut results = Vec::new();
    for step in project.ship.deploy.iter().rev() {
        let deleted = if args.dry_run {
            runtime.block_on(try_delete_step(&project.ship, step, &cluster, options))
        } else {
            runtime.block_on(delete_step(&project.ship, step, &cluster, options))
        };
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
