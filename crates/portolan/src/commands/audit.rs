//! `portolan audit`: deprecated and removed APIs, wherever objects are.

mod check_options;
#[cfg(feature = "cluster")]
mod cluster;
mod files;
mod fix;
mod judge_options;
mod patches;
mod print;
mod repo;
#[cfg(feature = "cluster")]
mod serve;
mod table;

use super::CommandResult;
use crate::app::App;

/// Find deprecated and removed Kubernetes APIs
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    Files(files::FilesArgs),
    Repo(repo::RepoArgs),
    #[cfg(feature = "cluster")]
    Cluster(cluster::ClusterArgs),
    #[cfg(feature = "cluster")]
    Serve(serve::ServeArgs),
    Table(table::TableArgs),
}

pub(crate) fn audit(args: &AuditArgs, app: &App) -> CommandResult {
    match &args.command {
        AuditCommand::Files(args) => files::files(args, app),
        AuditCommand::Repo(args) => repo::repo(args, app),
        #[cfg(feature = "cluster")]
        AuditCommand::Cluster(args) => cluster::cluster(args, app),
        #[cfg(feature = "cluster")]
        AuditCommand::Serve(args) => serve::serve(args, app),
        AuditCommand::Table(args) => table::table(args, &app.printer),
    }
}
