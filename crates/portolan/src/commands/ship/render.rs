//! `portolan ship render`: the objects that would be deployed.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use portolan_object::counted;
use portolan_ship::{
    BuildResult, RenderedStep, manifests_yaml, render as render_steps, select_steps, unnamed,
};

use super::build_options::BuildOptions;
use super::images::read_images;
use super::project::Project;
use super::project_args::{ArtifactArgs, NamespaceArgs, Place, ProjectArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::secret::SecretArgs;

/// Print the objects of the deploy steps, with the images that were built put in
///
/// Builds the artifacts that the objects name, or takes the images of another build (`--images`). Every reference to the
/// repository of an artifact becomes `repository:tag@sha256:…`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship render
  portolan ship build -o json > images.json && portolan ship render --images images.json
  portolan ship render | kubectl diff -f -")]
pub(crate) struct RenderArgs {
    /// Result of `ship build -o json`, whose images are put in; nothing is built then
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    images: Option<Utf8PathBuf>,

    #[command(flatten)]
    selected: ArtifactArgs,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    secrets: SecretArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn render(args: &RenderArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    args.secrets.apply(printer);
    let place = Place {
        namespace: args.namespace.namespace.clone(),
        ..Place::default()
    };
    let project = args.project.read_for("render", place, printer)?;
    let steps = selected(&project, &args.selected, printer)?;
    let images = match &args.images {
        Some(path) => read_images(path)?,
        None => {
            let names: Vec<String> = steps
                .iter()
                .flat_map(|step| step.artifacts.clone())
                .collect();
            if names.is_empty() {
                BTreeMap::new()
            } else {
                let ((result, _), interrupted) =
                    args.build.run(&project, &names, app, |_, _, _| {})?;
                if interrupted {
                    return Ok(ExitStatus::Interrupted);
                }
                tell_failures(&result, printer);
                images_of(&result)
            }
        }
    };
    let (mut missing, mut hidden) = (false, 0);
    for step in &steps {
        for artifact in step
            .artifacts
            .iter()
            .filter(|name| !images.contains_key(*name))
        {
            printer.warning(&format!(
                "the step `{}` names the image of `{artifact}`, which was not built",
                step.step.name
            ));
            missing = true;
        }
        let objects = step
            .with_images(&project.ship, &images)
            .map_err(CommandError::user)?;
        let written = manifests_yaml(&objects, printer.shows_secrets());
        let (text, count) = written.map_err(CommandError::user)?;
        hidden += count;
        printer.data(text)?;
    }
    if hidden > 0 {
        let secrets = counted(hidden, "Secret");
        printer.note(&format!("the values of {secrets} are hidden, and no cluster takes them like this: --show-secrets shows the values"));
    }
    Ok(if missing {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

/// The steps of a project with their objects.
pub(super) fn rendered(
    project: &Project,
    printer: &Printer,
) -> Result<Vec<RenderedStep>, CommandError> {
    if project.ship.deploy.is_empty() {
        let error = CommandError::usage(format!("`{}` has no `spec.deploy`", project.file));
        return Err(error.hint("add a step: `deploy: [{name: app, manifests: {paths: [deploy]}}]`"));
    }
    let steps = render_steps(&project.ship, &project.directory).map_err(|(step, error)| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot render the step `{step}`")))
    })?;
    for artifact in unnamed(&project.ship, &steps) {
        printer.note(&format!("no object names the image of `{artifact}`"));
    }
    Ok(steps)
}

/// The steps that have to do with the artifacts that are named; all if none is.
pub(super) fn selected(
    project: &Project,
    artifacts: &ArtifactArgs,
    printer: &Printer,
) -> Result<Vec<RenderedStep>, CommandError> {
    let names = artifacts.check(project)?;
    let steps = select_steps(rendered(project, printer)?, names);
    if steps.is_empty() {
        let names = names.join("`, `");
        return Err(CommandError::usage(format!(
            "no deploy step names the image of `{names}`"
        )));
    }
    Ok(steps)
}

/// The images of a result, by artifact.
pub(super) fn images_of(result: &BuildResult) -> BTreeMap<String, String> {
    let good = result
        .artifacts
        .iter()
        .filter(|artifact| artifact.is_good());
    let images = good.filter_map(|artifact| Some((artifact.name.clone(), artifact.image.clone()?)));
    images.collect()
}

fn tell_failures(result: &BuildResult, printer: &Printer) {
    for artifact in &result.artifacts {
        if let Some(error) = &artifact.error {
            printer.warning(&format!("`{}` was not built: {error}", artifact.name));
        }
    }
}

/// The artifacts whose images steps name.
pub(super) fn all_artifacts(steps: &[RenderedStep]) -> BTreeSet<String> {
    let names = steps.iter().flat_map(|step| step.artifacts.iter());
    names.cloned().collect()
}
