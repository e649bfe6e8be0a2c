//! `portolan ship deploy` and `ship delete`: objects brought to a cluster, and taken away again.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use portolan_cluster::PruneOptions;
use portolan_object::{API_VERSION, counted};
use portolan_ship::{
    BuildResult, DeploySetup, ObjectResult, ObjectStatus, StepResult, StepStatus, delete_step,
    finish_deploy, plan_deploy,
};

use super::build::BuildOptions;
use super::build_print::failures_text;
use super::images::read_images;
use super::project::ProjectArgs;
use super::render::rendered;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::table::Tone;

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

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Format,

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

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Format,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    project: ProjectArgs,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each object, failures last
    Text,
    /// One JSON object
    Json,
}

pub(crate) fn deploy(args: &DeployArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args.project.read(printer)?;
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
    match args.output {
        Format::Json => printer.data(json(&result, &results)?)?,
        Format::Text => printer.data(text(&result, &results, printer))?,
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
    let project = args.project.read(printer)?;
    let runtime = app.runtime()?;
    let cluster = runtime.block_on(args.target.connect(&project.ship))?;
    let options = PruneOptions {
        dangerous: args.all,
        many: true,
    };
    let mut results = Vec::new();
    for step in project.ship.deploy.iter().rev() {
        let deleted = runtime.block_on(delete_step(&project.ship, step, &cluster, options));
        results.extend(deleted.map_err(CommandError::user)?);
    }
    printer.data(match args.output {
        Format::Json => {
            let json = serde_json::json!({"apiVersion": API_VERSION, "kind": "DeleteResult", "objects": results});
            format!("{json:#}\n")
        }
        Format::Text => {
            let lines: String = results.iter().map(|object| line(object, printer.canvas().styled)).collect();
            let deleted = results.iter().filter(|object| object.status == ObjectStatus::Pruned).count();
            format!("{lines}{} deleted\n", counted(deleted, "object"))
        }
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

fn json(result: &BuildResult, steps: &[StepResult]) -> Result<String, CommandError> {
    let mut value = serde_json::to_value(result).map_err(CommandError::user)?;
    value["kind"] = "DeployResult".into();
    value["steps"] = serde_json::to_value(steps).map_err(CommandError::user)?;
    Ok(format!("{value:#}\n"))
}

fn text(result: &BuildResult, steps: &[StepResult], printer: &Printer) -> String {
    let styled = printer.canvas().styled;
    let mut text = String::new();
    let (good, bad): (Vec<_>, Vec<_>) = steps
        .iter()
        .partition(|step| step.status == StepStatus::Deployed);
    for step in good.iter().chain(&bad) {
        let name = Tone::Name.paint(&step.name, styled);
        let seconds = step.duration_ms as f64 / 1000.0;
        let _ = match step.status {
            StepStatus::Deployed => writeln!(
                text,
                "{} {name}  deployed in {seconds:.1} s",
                Tone::Good.paint("✓", styled)
            ),
            StepStatus::Failed => writeln!(
                text,
                "{} {name}  failed after {seconds:.1} s",
                Tone::Bad.paint("✗", styled)
            ),
            StepStatus::Skipped => writeln!(text, "- {name}  skipped: {}", step.because.join(", ")),
            StepStatus::Cancelled => writeln!(text, "- {name}  cancelled"),
        };
        for object in &step.objects {
            text.push_str(&line(object, styled));
        }
        if let Some(error) = step.error.as_ref().filter(|_| step.objects.is_empty()) {
            let _ = writeln!(text, "  {error}");
        }
    }
    text.push_str(&failures_text(result, styled));
    let deployed = good.len();
    let _ = writeln!(
        text,
        "{} of {} deployed in {:.1} s",
        deployed,
        counted(steps.len(), "step"),
        result.duration_ms as f64 / 1000.0
    );
    text
}

fn line(object: &ObjectResult, styled: bool) -> String {
    let (word, tone) = match object.status {
        ObjectStatus::Applied => ("applied", Tone::Plain),
        ObjectStatus::Ready => ("ready", Tone::Good),
        ObjectStatus::Failed => ("failed", Tone::Bad),
        ObjectStatus::Pruned => ("deleted", Tone::Warning),
        ObjectStatus::Kept => ("kept", Tone::Plain),
    };
    let message = object
        .message
        .as_ref()
        .map(|message| format!(": {message}"));
    let word = tone.paint(&format!("{word:8}"), styled);
    format!(
        "  {word} {}{}\n",
        object.object,
        message.unwrap_or_default()
    )
}
