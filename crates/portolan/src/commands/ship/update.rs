//! `portolan ship update`: looks base images up anew and pins them.

use portolan_object::API_VERSION;
use portolan_ship::base_names;

use super::output_args::{Format, OutputArgs};
use super::project_args::ProjectArgs;
use super::registry_args::{BasePins, RegistryArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Look base images up anew, and pin what their tags stand for now
///
/// A base image that is named by tag is pinned in `portolan.lock` when it is first used, and stays what it was then until
/// this command moves it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship update
  portolan ship update -o json")]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    registries: RegistryArgs,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn update(args: &UpdateArgs, app: &App) -> CommandResult {
    let project = args.project.read("update", &app.printer)?;
    let registry = args.registries.registry()?;
    let mut pins = BasePins::load(&project.directory)?;
    let images = pins.images(&registry, true);
    for name in base_names(&project.ship) {
        let looked_up = app.runtime()?.block_on(images.look_up(name));
        looked_up.map_err(CommandError::user)?;
    }
    let changed = pins.save(&images)?;
    let lines = images.pins().into_iter().map(|(name, digest)| {
        let is_changed = changed.contains(&name);
        (name, digest.to_string(), is_changed)
    });
    app.printer.data(match args.output.format {
        Format::Json => {
            let images: Vec<_> = lines
                .map(|(name, digest, changed)| {
                    serde_json::json!({"name": name, "digest": digest, "changed": changed})
                })
                .collect();
            let json = serde_json::json!({
                "apiVersion": API_VERSION, "kind": "BaseImageList", "items": images,
            });
            format!("{json:#}\n")
        }
        Format::Text => {
            let lines = lines.map(|(name, digest, changed)| {
                let word = if changed { "moved" } else { "kept" };
                format!("{word}  {name}  {digest}\n")
            });
            lines.collect::<Vec<String>>().concat()
        }
    })?;
    Ok(ExitStatus::Clean)
}
