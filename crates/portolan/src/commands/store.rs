//! `portolan store`: backups of the server's store, restores, checks, and the way from one engine to another.

mod access;
mod backup;
mod compact;
mod migrate;
mod restore;
mod verify;

use camino::Utf8Path;
use portolan_store::{BackupError, BackupSummary, StoreError};
use portolan_yaml::Node;

pub(crate) use self::access::EtcdArgs;
use self::backup::BackupArgs;
use self::compact::CompactArgs;
use self::migrate::MigrateArgs;
use self::restore::RestoreArgs;
use self::verify::VerifyArgs;
use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::listing::{Column, Entry, Format, Listing, record};
use crate::printer::Printer;
use crate::table::Cell;

/// Back up, restore, check, compact and move the store of a server
///
/// A store is a directory of a single server (`--data`) or an etcd cluster (`--etcd`). The directory can be open in one process
/// only: stop the server first. A store in etcd can be backed up and checked while its servers run.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerStoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    Backup(BackupArgs),
    Compact(CompactArgs),
    Migrate(MigrateArgs),
    Restore(RestoreArgs),
    Verify(VerifyArgs),
}

pub(crate) fn store(args: &ServerStoreArgs, app: &App) -> CommandResult {
    let runtime = app.runtime()?;
    match &args.command {
        StoreCommand::Backup(args) => runtime.block_on(backup::backup(args, &app.printer)),
        StoreCommand::Compact(args) => runtime.block_on(compact::compact(args, &app.printer)),
        StoreCommand::Migrate(args) => runtime.block_on(migrate::migrate(args, &app.printer)),
        StoreCommand::Restore(args) => runtime.block_on(restore::restore(args, &app.printer)),
        StoreCommand::Verify(args) => runtime.block_on(verify::verify(args, &app.printer)),
    }
}

/// Prints what a backup, a restore or a move was about.
fn print(
    kind: &'static str,
    place: &str,
    summary: &BackupSummary,
    format: Format,
    printer: &Printer,
) -> Result<(), CommandError> {
    let columns = vec![
        Column::Always("PLACE"),
        Column::Always("INCARNATION"),
        Column::Always("REVISION"),
        Column::Always("RECORDS"),
        Column::Wide("SHA256"),
    ];
    let digest = portolan_digest::hex(&summary.sha256);
    let numbers = [summary.incarnation, summary.revision, summary.records];
    let [incarnation, revision, records] = numbers.map(|number| number.to_string());
    let mut listing = Listing::new(kind, columns);
    let count = |number: u64| Node::int(i64::try_from(number).unwrap_or(i64::MAX));
    listing.push(Entry {
        cells: vec![
            Cell::name(place),
            Cell::from(incarnation.as_str()),
            Cell::from(revision.as_str()),
            Cell::from(records.as_str()),
            Cell::from(digest.as_str()),
        ],
        record: record([
            ("place", Node::string(place)),
            ("incarnation", count(summary.incarnation)),
            ("revision", count(summary.revision)),
            ("records", count(summary.records)),
            ("sha256", Node::string(digest.as_str())),
        ]),
        name: place.to_owned(),
    });
    listing.print(format, printer)
}

/// What helps when a directory is open in another process.
const STOP_SERVER: &str = "stop the server that has it open";

/// An error of a store with what helps.
pub(crate) fn store_error(error: StoreError) -> CommandError {
    let hint = match &error {
        StoreError::Stopped { detail } if detail.contains("already open") => Some(STOP_SERVER),
        StoreError::Denied { .. } => Some("check the user, the password file and the certificates"),
        StoreError::Unavailable { .. } => {
            Some("check the addresses, and whether etcd has a leader")
        }
        StoreError::Damaged { .. } => Some("restore the last backup to a new directory"),
        _ => None,
    };
    let error = CommandError::user(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// An error about a backup, with its file.
fn backup_error(path: &Utf8Path, error: BackupError) -> CommandError {
    match error {
        BackupError::Store(error) => store_error(error),
        error @ BackupError::NotEmpty(_) => CommandError::user(error),
        other => CommandError::user(anyhow::Error::new(other).context(format!("`{path}`"))),
    }
}
