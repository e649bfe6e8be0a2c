//! `portolan store backup`: writes a store to one file, once or again and again.

use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_store::{BackupError, backup_into, backup_to_file, try_backup};

use super::access::AccessArgs;
use super::{STOP_SERVER, backup_error, print};
use crate::commands::CommandResult;
use crate::commands::cache::age;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;
use crate::printer::Printer;

/// Write all of a store, as it is at one moment, to a file
///
/// Every backup is restored to a scratch store beside it and compared before it counts. Operation slots and keys with a lease
/// are left out: they belong to processes that run now. With --every, a backup that fails because etcd cannot be reached is
/// told, and the next one is tried at its time; any other failure ends the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan store backup --data /var/lib/portolan --to portolan.backup
  portolan store backup --etcd http://10.0.0.1:2379,http://10.0.0.2:2379 --to portolan.backup
  portolan store backup --etcd https://etcd:2379 --etcd-ca-file ca.pem --to /backups --every 1h --keep 48")]
pub(super) struct BackupArgs {
    #[command(flatten)]
    access: AccessArgs,

    /// File to write; with --every, a directory in which each backup gets a file of its own
    #[arg(long, value_name = "PATH", help_heading = "Backup")]
    to: Utf8PathBuf,

    /// Make a backup now and again after each such time, such as `15m` or `1h`, until it is interrupted
    #[arg(long, value_name = "TIME", value_parser = age, help_heading = "Backup")]
    every: Option<Duration>,

    /// How many backups of --every are kept; the oldest are removed
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 24,
        requires = "every",
        help_heading = "Backup"
    )]
    keep: usize,

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

pub(super) async fn backup(args: &BackupArgs, printer: &Printer) -> CommandResult {
    if args.every.is_some_and(|every| every.is_zero()) {
        return Err(CommandError::usage(
            "`--every` needs a time of at least a second",
        ));
    }
    let opened = args
        .access
        .open(false)
        .map_err(|error| match error.hints[..] {
            [ref hint] if hint == STOP_SERVER => error
                .hint("or let the server make backups itself: `portolan serve --backup-dir DIR`"),
            _ => error,
        })?;
    let store = opened.store();
    let Some(every) = args.every else {
        let path = args.to.as_std_path();
        let told = |error| backup_error(&args.to, error);
        backup_to_file(&store, path).await.map_err(told)?;
        let tried = try_backup(path).await.map_err(told)?;
        print(
            "StoreBackup",
            args.to.as_str(),
            &tried,
            args.output,
            printer,
        )?;
        return Ok(ExitStatus::Clean);
    };
    let mut clock = tokio::time::interval(every);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(ExitStatus::Interrupted),
            _ = clock.tick() => {}
        }
        match backup_into(&store, args.to.as_std_path(), args.keep).await {
            Ok((path, summary)) => {
                let path = path.display().to_string();
                print("StoreBackup", &path, &summary, args.output, printer)?;
            }
            // etcd may be back the next time.
            Err(BackupError::Store(error)) if error.is_temporary() => {
                printer.warning(&format!("no backup this time: {error}"));
            }
            Err(error) => return Err(backup_error(&args.to, error)),
        }
    }
}
