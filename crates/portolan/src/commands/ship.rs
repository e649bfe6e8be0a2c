//! `portolan ship`: artifacts built into images, one result for each.

mod announce;
mod apply;
mod artifact_diff;
mod artifact_diff_print;
mod build;
mod build_options;
mod build_print;
mod checks_print;
mod config;
mod deploy;
mod deploy_print;
mod dev;
mod dev_flux;
mod dev_loop;
mod dev_print;
mod dev_stages;
mod document_file;
mod dry_run;
mod explain;
mod gc;
mod images;
mod init;
mod output_args;
mod project;
mod project_args;
mod registry_args;
mod render;
mod run;
mod schema;
mod serving;
mod store_args;
mod target_args;
mod test;
mod update;
mod verify;

pub(crate) use artifact_diff::{ArtifactDiff, diff_artifacts};
pub(crate) use artifact_diff_print::ArtifactFormat;
pub(crate) use dev::{DevArgs, dev};
pub(crate) use dev_flux::{GUARD, run_guard};
pub(crate) use serving::{ServingArgs, serve_files};
pub(crate) use store_args::StoreArgs;

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
    /// Bring manifests that `ship render` wrote to a cluster, and wait until they are ready
    Apply(Later<apply::ApplyArgs>),
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
    /// Build, test, deploy and verify everything
    Run(Later<run::RunArgs>),
    /// Print the JSON schema of the document
    Schema(Later<schema::SchemaArgs>),
    /// Build artifacts that have tests, and test them
    Test(Later<test::TestArgs>),
    /// Look base images up anew, and pin what their tags stand for now
    Update(Later<update::UpdateArgs>),
    /// Verify that what was deployed works
    Verify(Later<verify::VerifyArgs>),
}

pub(crate) fn ship(args: &ShipArgs, app: &App) -> CommandResult {
    match &args.command {
        ShipCommand::Apply(args) => apply::apply(args, app),
        ShipCommand::Build(args) => build::build(args, app),
        ShipCommand::Config(args) => config::config(args, &app.printer),
        ShipCommand::Delete(args) => deploy::delete(args, app),
        ShipCommand::Deploy(args) => deploy::deploy(args, app),
        ShipCommand::Explain(args) => explain::explain(args, app),
        ShipCommand::Gc(args) => gc::gc(args, &app.printer),
        ShipCommand::Init(args) => init::init(args, &app.printer),
        ShipCommand::Render(args) => render::render(args, app),
        ShipCommand::Run(args) => run::run(args, app),
        ShipCommand::Schema(args) => schema::schema(args, &app.printer),
        ShipCommand::Test(args) => test::test(args, app),
        ShipCommand::Update(args) => update::update(args, app),
        ShipCommand::Verify(args) => verify::verify(args, app),
    }
}
