//! `portolan ship run`: everything, from the files of a project to what was deployed and verified.

use std::sync::{Arc, Mutex};

use portolan_ship::{
    CheckResult, DeploySetup, ShipOutcome, StepStatus, VerifySetup, finish_deploy, finish_tests,
    finish_verify, plan_deploy, plan_tests, plan_verify, select_verifications,
};

use super::announce::Announcer;
use super::build_options::BuildOptions;
use super::checks_print::checks_text;
use super::deploy_print::{deployed_json, deployed_text};
use super::dry_run::{known_images, plan_artifacts, print_plan};
use super::output_args::{Format, OutputArgs};
use super::project::Project;
use super::project_args::{ArtifactArgs, ProjectArgs};
use super::render::{all_artifacts, selected};
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::events_args::EventsArgs;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Build, test, deploy and verify everything
///
/// All artifacts are built, and pushed with `--push`; each is tested; each deploy step is done when its artifacts have passed
/// their tests; verifications come last. A failure skips what needs it and nothing else. The exit code is 1 if something
/// failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship run --push --context staging
  portolan ship run -a web -n try
  portolan ship run -o json")]
pub(crate) struct RunArgs {
    /// Delete what is no longer in a step also if it is more than half of it
    #[arg(long, help_heading = "Cluster")]
    prune_many: bool,

    /// Say what would be built and what the cluster would make of each object, and change nothing; tests do not run
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

pub(crate) fn run(args: &RunArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args.project.read_for("run", args.target.place(), printer)?;
    let events = args.events.unless(args.dry_run);
    let announcer = Announcer::start(&events, "run", &project.ship.name, app)?;
    let ended = run_project(args, &project, &announcer, app);
    announcer.end(ended, app)
}

fn run_project(
    args: &RunArgs,
    project: &Project,
    announcer: &Announcer<'_>,
    app: &App,
) -> CommandResult {
    let printer = &app.printer;
    let steps = selected(project, &args.selected, printer)?;
    let ship = Arc::new(select_verifications(&project.ship, &steps));
    let connected = args.target.connect(&project.ship);
    let cluster = Arc::new(app.runtime()?.block_on(connected)?);
    let named: Vec<String> = if args.selected.names.is_empty() {
        Vec::new()
    } else {
        all_artifacts(&steps).into_iter().collect()
    };
    let mut names = args.selected.with(&named, project)?;
    let mut plans = Vec::new();
    if args.dry_run {
        plans = plan_artifacts(project, &std::mem::take(&mut names), &args.build, app)?;
    }
    let images = args.dry_run.then(|| known_images(&plans));
    let mut planned = None;
    let planned_ship = Arc::clone(&ship);
    let ((result, report), interrupted) =
        args.build
            .run(project, &names, app, |build, is_pushing, units| {
                plan_tests(&planned_ship, &names, build, units);
                let setup = DeploySetup {
                    build: build.clone(),
                    ship: Arc::clone(&planned_ship),
                    cluster: Arc::clone(&cluster),
                    images,
                    is_pushing,
                    is_testing: true,
                    prune_many: args.prune_many,
                    is_trial: args.dry_run,
                    objects: Arc::new(Mutex::default()),
                };
                plan_deploy(&steps, &setup, units);
                planned = Some(setup);
                if args.dry_run {
                    return;
                }
                let verify = VerifySetup {
                    build: build.clone(),
                    ship: Arc::clone(&planned_ship),
                    cluster: Some(Arc::clone(&cluster)),
                    is_deploying: true,
                };
                plan_verify(&verify, units);
            })?;
    let steps = planned
        .map(|setup| finish_deploy(&setup, &report))
        .unwrap_or_default();
    if args.dry_run {
        return print_plan(&plans, Some(&steps), args.output.format, printer);
    }
    let (tests, verifications) = (finish_tests(&ship, &report), finish_verify(&ship, &report));
    announcer.tell(&ShipOutcome {
        command: "run",
        project: &project.ship.name,
        context: project.asked.context.as_deref(),
        build: &result,
        tests: &tests,
        steps: &steps,
        verifications: &verifications,
    });
    match args.output.format {
        Format::Json => {
            let mut value = deployed_json(&result, &steps, "RunResult")?;
            value["tests"] = serde_json::to_value(&tests).map_err(CommandError::user)?;
            value["verifications"] =
                serde_json::to_value(&verifications).map_err(CommandError::user)?;
            printer.data(format!("{value:#}\n"))?;
        }
        Format::Text => {
            let styled = printer.canvas().styled;
            printer.data(checks_text(&tests, "test", styled))?;
            printer.data(deployed_text(&result, &steps, printer))?;
            printer.data(checks_text(&verifications, "verification", styled))?;
        }
    }
    let is_good = result.is_good()
        && steps.iter().all(|step| step.status == StepStatus::Deployed)
        && tests.iter().chain(&verifications).all(CheckResult::is_good);
    Ok(match is_good {
        _ if interrupted => ExitStatus::Interrupted,
        true => ExitStatus::Clean,
        false => ExitStatus::Findings,
    })
}
