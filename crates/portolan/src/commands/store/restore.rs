//! `portolan store restore`: fills an empty store from a backup.

use camino::Utf8PathBuf;
use portolan_store::{check_file, compare_file, restore_file};

use super::access::AccessArgs;
use super::{backup_error, print};
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::listing::Format;
use crate::printer::Printer;

/// Fill an empty store from a backup
///
/// The backup is read whole and checked before anything is written, and the store is compared with it afterwards. The store
/// begins a new incarnation: clients that knew the one before are told to list again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan store restore --from portolan.backup --data /var/lib/portolan-new
  portolan store restore --from portolan.backup --etcd http://10.0.0.1:2379")]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    access: AccessArgs,

    /// Backup to read
    #[arg(long, value_name = "FILE", help_heading = "Backup")]
    from: Utf8PathBuf,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,
}

pub(super) async fn restore(args: &RestoreArgs, printer: &Printer) -> CommandResult {
    let path = args.from.as_std_path();
    let told = |error| backup_error(&args.from, error);
    // Before a directory is made for it.
    check_file(path).map_err(told)?;
    let opened = args.access.open(true)?;
    let store = opened.store();
    restore_file(&store, path).await.map_err(told)?;
    let summary = compare_file(&store, path).await.map_err(told)?;
    print(
        "StoreRestore",
        &args.access.place(),
        &summary,
        args.output,
        printer,
    )?;
    Ok(ExitStatus::Clean)
}
