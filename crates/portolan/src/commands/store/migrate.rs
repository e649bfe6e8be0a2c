//! `portolan store migrate`: moves a store from one engine to the other.

use camino::Utf8PathBuf;
use portolan_store::copy_store;

use super::access::{EtcdArgs, open_directory};
use super::{backup_error, print};
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;
use crate::printer::Printer;

/// Copy a store from a directory to etcd, or back
///
/// Stop every server first: what is written during the copy is not in it. The new store must be empty and begins a new
/// incarnation; the old one is left as it is. Both are compared with the copy at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan store migrate --from embedded --to etcd --data /var/lib/portolan --etcd http://10.0.0.1:2379
  portolan store migrate --from etcd --to embedded --etcd http://10.0.0.1:2379 --data /var/lib/portolan-new")]
pub(super) struct MigrateArgs {
    /// Engine of the store that is there
    #[arg(long, value_name = "ENGINE", help_heading = "Store")]
    from: EngineName,

    /// Engine of the store that is filled
    #[arg(long, value_name = "ENGINE", help_heading = "Store")]
    to: EngineName,

    /// Data directory of the embedded store
    #[arg(long, value_name = "DIR", help_heading = "Store")]
    data: Utf8PathBuf,

    #[command(flatten)]
    etcd: EtcdArgs,

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EngineName {
    /// A directory of a single server
    Embedded,
    /// An etcd cluster
    Etcd,
}

pub(super) async fn migrate(args: &MigrateArgs, printer: &Printer) -> CommandResult {
    if args.from == args.to || args.etcd.etcd.is_empty() {
        return Err(CommandError::usage(
            "a store is moved from `embedded` to `etcd` or back, and both `--data` and `--etcd` are needed",
        ));
    }
    let is_to_etcd = args.to == EngineName::Etcd;
    let directory = open_directory(&args.data, !is_to_etcd)?.store();
    let etcd = args.etcd.open()?.store();
    let (from, to) = if is_to_etcd {
        (&directory, &etcd)
    } else {
        (&etcd, &directory)
    };
    let copied = copy_store(from, to, args.data.as_std_path()).await;
    let summary = copied.map_err(|error| backup_error(&args.data, error))?;
    let place = if is_to_etcd {
        args.etcd.etcd.join(",")
    } else {
        args.data.to_string()
    };
    print("StoreMigration", &place, &summary, args.output, printer)?;
    Ok(ExitStatus::Clean)
}
