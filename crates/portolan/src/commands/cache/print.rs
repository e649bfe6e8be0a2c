//! Entries of the cache as a list, and what became of them.

use std::fmt::Write as _;
use std::time::SystemTime;

use portolan_object::Day;
use portolan_sources::{CacheEntry, Collected};
use portolan_yaml::Node;

use crate::commands::fetch::kind;
use crate::error::CommandError;
use crate::listing::{Column, Entry, Format, Listing, record};
use crate::printer::Printer;
use crate::table::Cell;
use crate::units::shown_size;

/// Prints entries of the cache.
pub(super) fn print(
    list_kind: &'static str,
    entries: &[CacheEntry],
    format: Format,
    printer: &Printer,
) -> Result<(), CommandError> {
    let columns = vec![
        Column::Always("KIND"),
        Column::Always("SOURCE"),
        Column::Always("VERSION"),
        Column::Always("SIZE"),
        Column::Always("LAST USED"),
        Column::Wide("DIGEST"),
    ];
    let mut listing = Listing::new(list_kind, columns).otherwise("nothing in the cache that fits");
    for entry in entries {
        listing.push(Entry {
            cells: vec![
                Cell::from(entry_kind(entry)),
                Cell::name(entry.source.as_str()),
                Cell::from(entry.version.as_str()),
                Cell::from(shown_size(entry.size).as_str()),
                Cell::from(day(entry.last_used).as_str()),
                Cell::from(entry.digest.as_str()),
            ],
            record: item(entry),
            name: match entry.digest.as_str() {
                "" => entry.source.clone(),
                digest => digest.to_owned(),
            },
        });
    }
    listing.print(format, printer)
}

fn item(entry: &CacheEntry) -> Node {
    let size = i64::try_from(entry.size).unwrap_or(i64::MAX);
    record([
        ("kind", Node::string(entry_kind(entry))),
        ("source", Node::string(entry.source.as_str())),
        ("version", Node::string(entry.version.as_str())),
        ("digest", Node::string(entry.digest.as_str())),
        ("bytes", Node::int(size)),
        ("lastUsed", Node::string(day(entry.last_used))),
    ])
}

/// A content that no request in the cache leads to is of no known kind.
fn entry_kind(entry: &CacheEntry) -> &'static str {
    entry.kind.map_or("content", kind)
}

/// What was removed and what stays, in a line.
pub(super) fn summary(collected: &Collected, dry_run: bool) -> String {
    let sum = |entries: &[CacheEntry]| entries.iter().map(|entry| entry.size).sum();
    let verb = if dry_run { "would remove" } else { "removed" };
    let mut text = format!(
        "{verb} {} of {} ({} of {})",
        collected.removed.len(),
        collected.removed.len() + collected.in_use.len() + collected.kept.len(),
        shown_size(sum(&collected.removed)),
        shown_size(sum(&collected.removed) + sum(&collected.in_use) + sum(&collected.kept)),
    );
    if !collected.in_use.is_empty() {
        let count = collected.in_use.len();
        let _ = write!(text, "; {count} stay because they are in use");
    }
    text
}

fn day(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    Day::of_unix_seconds(since.map_or(0, |since| since.as_secs())).to_string()
}
