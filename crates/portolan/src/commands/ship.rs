//! `portolan ship`: artifacts built into images, one result for each.

mod build;
mod build_print;
mod config;
mod deploy;
mod explain;
mod gc;
mod images;
mod init;
mod project;
mod registry_args;
mod render;
mod schema;
mod serving;
mod target_args;
mod update;

pub(crate) use project::StoreArgs;

use super::CommandResult;
use crate::app::App;
use crate::cli::Later;

/// Build the artifacts of a project into images and deploy them, one result for each
///
/// The document of `kind: Ship` in `portolan.yaml` names them; `portolan ship init` writes one.
#[derive(Debug, clap::Args)]
pub(crate) struct ShipArgs {
    #[command(subcommand)]
    command: ShipCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ShipCommand {
    /// Build artifacts that changed into the store
    Build(Later<build::BuildArgs>),
    /// Print the document as it is understood, each value with where it comes from
    Config(Later<config::ConfigArgs>),
    /// Delete what the deploy steps have in a cluster
    Delete(Later<deploy::DeleteArgs>),
    /// Build what the deploy steps name, and bring their objects to a cluster
    Deploy(Later<deploy::DeployArgs>),
    /// Say whether an artifact would be built, and which of its inputs changed
    Explain(Later<explain::ExplainArgs>),
    /// Remove images and runs that nothing needs any more
    Gc(Later<gc::GcArgs>),
    /// Write a document for what is found in a directory
    Init(Later<init::InitArgs>),
    /// Print the objects of the deploy steps, with the images that were built put in
    Render(Later<render::RenderArgs>),
    /// Print the JSON schema of the document
    Schema(Later<schema::SchemaArgs>),
    /// Look base images up anew, and pin what their tags stand for now
    Update(Later<update::UpdateArgs>),
}

pub(crate) fn ship(args: &ShipArgs, app: &App) -> CommandResult {
    match &args.command {
        ShipCommand::Build(args) => build::build(args, app),
        ShipCommand::Config(args) => config::config(args, &app.printer),
        ShipCommand::Delete(args) => deploy::delete(args, app),
        ShipCommand::Deploy(args) => deploy::deploy(args, app),
        ShipCommand::Explain(args) => explain::explain(args, app),
        ShipCommand::Gc(args) => gc::gc(args, &app.printer),
        ShipCommand::Init(args) => init::init(args, &app.printer),
        ShipCommand::Render(args) => render::render(args, app),
        ShipCommand::Schema(args) => schema::schema(args, &app.printer),
        ShipCommand::Update(args) => update::update(args, app),
    }
}
