//! `portolan audit`: deprecated and removed APIs, wherever objects are.

mod check_options;
mod cluster;
mod files;
mod fix;
mod patches;
mod print;
mod repo;
mod serve;
mod table;

use super::CommandResult;
use crate::printer::Printer;

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
    Cluster(cluster::ClusterArgs),
    Serve(serve::ServeArgs),
    Table(table::TableArgs),
}

pub(crate) fn audit(args: &AuditArgs, printer: &Printer) -> CommandResult {
    match &args.command {
        AuditCommand::Files(args) => files::files(args, printer),
        AuditCommand::Repo(args) => repo::repo(args, printer),
        AuditCommand::Cluster(args) => cluster::cluster(args, printer),
        AuditCommand::Serve(args) => serve::serve(args, printer),
        AuditCommand::Table(args) => table::table(args, printer),
    }
}
