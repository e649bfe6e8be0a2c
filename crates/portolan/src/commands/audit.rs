//! `portolan audit`: deprecated and removed APIs, wherever objects are.

mod check_options;
mod files;
mod fix;
mod patches;
mod print;
mod repo;
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
    Table(table::TableArgs),
}

pub(crate) fn audit(args: &AuditArgs, printer: &Printer) -> CommandResult {
    match &args.command {
        AuditCommand::Files(args) => files::files(args, printer),
        AuditCommand::Repo(args) => repo::repo(args, printer),
        AuditCommand::Table(args) => table::table(args, printer),
    }
}
