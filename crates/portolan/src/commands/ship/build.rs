//! `portolan ship build`: builds what changed, and says what came of each artifact.

use portolan_ship::ShipOutcome;

use super::announce::Announcer;
use super::build_options::BuildOptions;
use super::build_print::{print_json, print_text};
use super::dry_run::{plan_artifacts, print_plan};
use super::output_args::{Format, OutputArgs};
use super::project::Project;
use super::project_args::{ArtifactArgs, ProjectArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::events_args::EventsArgs;
use crate::exit::ExitStatus;

/// Build artifacts that changed into the store
///
/// Builds all artifacts, or those named and what they need. An artifact whose inputs are those of an image in the store is
/// not built again. A failure skips what needs it and nothing else; the exit code is 1 if an artifact has no image then.
///
/// The store is an OCI layout: `skopeo copy oci:.portolan:web docker://…` takes an image out of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship build
  portolan ship build web api
  portolan ship build --dry-run
  portolan ship build -o json | jq -r '.artifacts[].image'
  portolan ship build --push --tag v1.2.3 --registry registry.example/team
  portolan ship build --fail-fast --jobs 8 --event-log-file events.jsonl")]
pub(crate) struct BuildArgs {
    /// Artifacts to build; all if none is named
    #[arg(value_name = "ARTIFACT")]
    artifacts: Vec<String>,

    #[command(flatten)]
    selected: ArtifactArgs,

    /// Say what would be built and why, and build nothing
    #[arg(long, help_heading = "Build")]
    dry_run: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    events: EventsArgs,
}

pub(crate) fn build(args: &BuildArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args.project.read("build", printer)?;
    let events = args.events.unless(args.dry_run);
    let announcer = Announcer::start(&events, "build", &project.ship.name, app)?;
    let ended = build_project(args, &project, &announcer, app);
    announcer.end(ended, app)
}

fn build_project(
    args: &BuildArgs,
    project: &Project,
    announcer: &Announcer<'_>,
    app: &App,
) -> CommandResult {
    let printer = &app.printer;
    let names = args.selected.with(&args.artifacts, project)?;
    if args.dry_run {
        let plans = plan_artifacts(project, &names, &args.build, app)?;
        return print_plan(&plans, None, args.output.format, printer);
    }
    let ((result, _), interrupted) = args.build.run(project, &names, app, |_, _, _| {})?;
    announcer.tell(&ShipOutcome {
        command: "build",
        project: &project.ship.name,
        context: None,
        build: &result,
        tests: &[],
        steps: &[],
        verifications: &[],
    });
    match args.output.format {
        Format::Json => print_json(&result, printer)?,
        Format::Text => print_text(&result, printer)?,
    }
    Ok(match result.is_good() {
        _ if interrupted => ExitStatus::Interrupted,
        true => ExitStatus::Clean,
        false => ExitStatus::Findings,
    })
}
