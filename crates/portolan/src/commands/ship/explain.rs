//! `portolan ship explain`: whether an artifact would be built, and why.

use std::fmt::Write as _;
use std::sync::Arc;

use portolan_engine::{CancellationToken, Limits};
use portolan_object::{API_VERSION, counted};
use portolan_ship::{ArtifactExplanation, finish_explain, plan_explain};

use super::output_args::{Format, OutputArgs};
use super::project_args::ProjectArgs;
use super::registry_args::{BasePins, RegistryArgs};
use super::store_args::{StoreArgs, begin};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::session::ShownRun;

/// Say whether an artifact would be built, and which of its inputs changed
///
/// Reads what the artifact and those it needs are made of, and compares it with what the image in the store was made of.
/// Builds nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship explain web
  portolan ship explain web -o json")]
pub(crate) struct ExplainArgs {
    /// Artifact to look at
    #[arg(value_name = "ARTIFACT")]
    artifact: String,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    registries: RegistryArgs,

    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn explain(args: &ExplainArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args.project.read("explain", printer)?;
    if project.ship.artifact(&args.artifact).is_none() {
        return Err(project.no_artifact(&project.ship.unknown_artifact(&args.artifact)));
    }
    let store = args.store.open(&project)?;
    let (run, journal) = begin(&store)?;
    let registry = args.registries.registry()?;
    let bases = BasePins::load(&project.directory)?.images(&registry, false);
    let setup = project.setup(Arc::new(store), run.clone(), Arc::new(bases), 1);
    let shown = ShownRun {
        journal,
        limits: Limits::default(),
        style: printer.progress_style(),
    };
    let token = CancellationToken::new();
    let report = shown.finish(&token, app, |units| {
        // The name is known.
        let names = std::slice::from_ref(&args.artifact);
        let _ = plan_explain(&project.ship, names, &setup, units);
    })?;
    // Nothing was built: whoever looks at the newest run means another one.
    run.remove().map_err(CommandError::user)?;
    if token.is_cancelled() {
        return Err(CommandError::interrupted(&report));
    }
    let found = finish_explain(&args.artifact, &report).map_err(CommandError::usage)?;
    printer.data(match args.output.format {
        Format::Json => json(&found)?,
        Format::Text => text(&found),
    })?;
    Ok(ExitStatus::Clean)
}

fn json(found: &ArtifactExplanation) -> Result<String, CommandError> {
    let mut value = serde_json::to_value(found).map_err(CommandError::user)?;
    if let Some(map) = value.as_object_mut() {
        map.insert("apiVersion".to_owned(), API_VERSION.into());
        map.insert("kind".to_owned(), "ArtifactExplanation".into());
    }
    Ok(format!("{value:#}\n"))
}

fn text(found: &ArtifactExplanation) -> String {
    let name = &found.name;
    let mut text = match &found.digest {
        Some(digest) => format!("{name} is up to date: {digest}\n"),
        None => format!("{name} would be built:\n"),
    };
    for line in &found.because {
        let _ = writeln!(text, "  {line}");
    }
    let (files, settings) = (
        counted(found.files, "file"),
        counted(found.settings, "setting"),
    );
    let key = found.key.get(..12).unwrap_or_default();
    let _ = writeln!(text, "made of {files} and {settings} (key {key})");
    text
}
