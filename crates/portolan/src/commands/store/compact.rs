//! `portolan store compact`: removes the history of a store, so that there is room again.

use portolan_store::StoreError;
use portolan_yaml::Node;

use super::access::{AccessArgs, Opened};
use super::store_error;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::listing::{Column, Entry, Format, Listing, record};
use crate::printer::Printer;
use crate::table::Cell;
use crate::units::shown_size;

/// Remove the history of a store: everything but the newest revision of each record
///
/// A store removes its history itself, after ten minutes and ten thousand revisions. One that is full, and from which things were
/// deleted to make room, may need it sooner. Watches that are behind are told that their history is gone, and list again. A
/// directory must not be open in a server. In etcd, servers may run; afterwards etcd has to be defragmented and its alarm
/// disarmed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan store compact --data /var/lib/portolan
  portolan store compact --etcd http://10.0.0.1:2379,http://10.0.0.2:2379")]
pub(super) struct CompactArgs {
    #[command(flatten)]
    access: AccessArgs,

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

pub(super) async fn compact(args: &CompactArgs, printer: &Printer) -> CommandResult {
    let opened = args.access.open(false)?;
    let store = opened.store();
    let before = store.status().await.map_err(store_error)?;
    match store.compact(before.revision).await {
        // There is no history.
        Ok(()) | Err(StoreError::Compacted { .. }) => {}
        Err(error) => return Err(store_error(error)),
    }
    if let Opened::Embedded(engine) = &opened {
        engine.history_removed().await.map_err(store_error)?;
    }
    let after = store.status().await.map_err(store_error)?;
    if let Opened::Etcd(_) = &opened {
        let next = "next, for each member: `etcdctl defrag`, then once `etcdctl alarm disarm`";
        printer.say_unless_quiet(next);
    }
    let columns = ["PLACE", "REVISION", "BEFORE", "AFTER"];
    let mut listing = Listing::new("StoreCompaction", columns.map(Column::Always).to_vec());
    let place = args.access.place();
    let count = |number: u64| Node::int(i64::try_from(number).unwrap_or(i64::MAX));
    listing.push(Entry {
        cells: vec![
            Cell::name(place.as_str()),
            Cell::from(before.revision.to_string()),
            Cell::from(shown_size(before.bytes)),
            Cell::from(shown_size(after.bytes)),
        ],
        record: record([
            ("place", Node::string(place.as_str())),
            ("revision", count(before.revision)),
            ("bytesBefore", count(before.bytes)),
            ("bytesAfter", count(after.bytes)),
        ]),
        name: place.clone(),
    });
    listing.print(args.output, printer)?;
    Ok(ExitStatus::Clean)
}
