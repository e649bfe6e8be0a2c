//! `portolan ship gc`: removes what nothing needs any more.

use std::time::{Duration, SystemTime};

use portolan_layout::Store;
use portolan_object::{API_VERSION, counted};
use portolan_ship::ShipRun;

use super::output_args::{Format, OutputArgs};
use super::store_args::StoreArgs;
use crate::commands::CommandResult;
use crate::commands::cache::{age, shown_size};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Remove images and runs that nothing needs any more
///
/// The newest image of each artifact stays, what was used lately, and whatever a running build uses.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship gc
  portolan ship gc --max-age 0s
  portolan ship gc --store /var/cache/ship --max-age 7d -o json")]
pub(crate) struct GcArgs {
    /// Keep what was used within this time, as in `12h` or `30d`
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = age, help_heading = "Selection")]
    max_age: Duration,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn gc(args: &GcArgs, printer: &Printer) -> CommandResult {
    let path = args.store.directory(None)?;
    if !path.join("oci-layout").is_file() {
        let error = CommandError::usage(format!("`{path}` is no store"));
        return Err(error.hint("`portolan ship build` makes one; `--store DIR` names another"));
    }
    let store = Store::open(&path).map_err(CommandError::user)?;
    let now = SystemTime::now();
    let before = now
        .checked_sub(args.max_age)
        .unwrap_or(SystemTime::UNIX_EPOCH);
    let runs = ShipRun::remove_old(&path, before, now).map_err(CommandError::user)?;
    let collected = store.collect(before).map_err(CommandError::user)?;
    let (blobs, bytes) = (collected.blobs, collected.bytes);
    printer.data(match args.output.format {
        Format::Json => {
            let json = serde_json::json!({
                "apiVersion": API_VERSION, "kind": "StoreRemovals",
                "blobs": blobs, "bytes": bytes, "records": collected.records, "runs": runs,
            });
            format!("{json:#}\n")
        }
        Format::Text => format!(
            "removed {} ({}), {} and {}\n",
            counted(blobs, "blob"),
            shown_size(bytes),
            counted(collected.records, "record"),
            counted(runs, "run"),
        ),
    })?;
    Ok(ExitStatus::Clean)
}
