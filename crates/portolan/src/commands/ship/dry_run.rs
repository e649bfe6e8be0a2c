//! What `--dry-run` answers: what would be built, deployed or deleted, without doing it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portolan_engine::{CancellationToken, Limits};
use portolan_object::{API_VERSION, counted};
use portolan_ship::{ArtifactPlan, StepResult, StepStatus, finish_plans, plan_explain};
use serde_json::{Value, json};

use super::build_options::BuildOptions;
use super::deploy_print::object_line;
use super::output_args::Format;
use super::project::Project;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::session::ShownRun;
use crate::table::Tone;

/// Finds out what a build of artifacts would do.
pub(super) fn plan_artifacts(
    project: &Project,
    names: &[String],
    options: &BuildOptions,
    app: &App,
) -> Result<Vec<ArtifactPlan>, CommandError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let (setup, run, journal) = options.look(project)?;
    let shown = ShownRun {
        journal,
        limits: Limits::default(),
        style: app.printer.progress_style(),
    };
    let token = CancellationToken::new();
    let report = shown.finish(&token, app, |units| {
        // Every name is known.
        let _ = plan_explain(&project.ship, names, &setup, units);
    })?;
    // Nothing was built: whoever looks at the newest run means another one.
    run.remove().map_err(CommandError::user)?;
    if token.is_cancelled() {
        return Err(CommandError::interrupted(&report));
    }
    Ok(finish_plans(&project.ship, &report))
}

/// The images that are there, by artifact.
pub(super) fn known_images(plans: &[ArtifactPlan]) -> BTreeMap<String, String> {
    let known = plans
        .iter()
        .filter_map(|plan| Some((plan.name.clone(), plan.image.clone()?)));
    known.collect()
}

/// Prints what would be done; 1 if something could not be found out.
pub(super) fn print_plan(
    plans: &[ArtifactPlan],
    steps: Option<&[StepResult]>,
    format: Format,
    printer: &Printer,
) -> CommandResult {
    printer.data(match format {
        Format::Json => plan_json(plans, steps)?,
        Format::Text => plan_text(plans, steps.unwrap_or_default(), printer),
    })?;
    let is_good = plans.iter().all(|plan| plan.error.is_none())
        && steps
            .unwrap_or_default()
            .iter()
            .all(|step| step.status == StepStatus::Deployed);
    Ok(if is_good {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

fn plan_json(plans: &[ArtifactPlan], steps: Option<&[StepResult]>) -> Result<String, CommandError> {
    let mut value = json!({"apiVersion": API_VERSION, "kind": "Plan", "artifacts": plans});
    if let Some(steps) = steps {
        let mut steps = serde_json::to_value(steps).map_err(CommandError::user)?;
        for step in steps.as_array_mut().into_iter().flatten() {
            if step["status"] == "deployed" {
                step["status"] = Value::from("planned");
            }
        }
        value["steps"] = steps;
    }
    Ok(format!("{value:#}\n"))
}

fn plan_text(plans: &[ArtifactPlan], steps: &[StepResult], printer: &Printer) -> String {
    let styled = printer.canvas().styled;
    let mut text = String::new();
    let width = plans.iter().map(|plan| plan.name.len()).max().unwrap_or(0);
    for plan in plans {
        let name = Tone::Name.paint(&format!("{:width$}", plan.name), styled);
        let words = match (plan.status, &plan.error) {
            (_, Some(error)) => format!("cannot be built: {error}"),
            ("cached", _) => format!("is there: {}", plan.image.as_deref().unwrap_or_default()),
            _ => "would be built".to_owned(),
        };
        let _ = writeln!(text, "{name}  {words}");
        if !plan.because.is_empty() {
            let because = plan.because.join(", ");
            let _ = writeln!(text, "{:width$}  because {because}", "");
        }
    }
    for step in steps {
        let name = Tone::Name.paint(&step.name, styled);
        let _ = match step.status {
            StepStatus::Deployed => writeln!(text, "step {name}"),
            StepStatus::Failed => writeln!(text, "step {name} would fail"),
            StepStatus::Skipped => {
                writeln!(
                    text,
                    "step {name} would be skipped: {}",
                    step.because.join(", ")
                )
            }
            StepStatus::Cancelled => writeln!(text, "step {name}: called off"),
        };
        for object in &step.objects {
            text.push_str(&object_line(object, styled));
        }
        let error = step.error.iter().filter(|_| step.objects.is_empty());
        for line in error.chain(&step.note) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let built = plans.iter().filter(|plan| plan.status == "build").count();
    let _ = writeln!(
        text,
        "nothing was done; {} would be built",
        counted(built, "artifact")
    );
    text
}
