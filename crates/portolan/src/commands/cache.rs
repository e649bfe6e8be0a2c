//! `portolan cache`: lists what was fetched before, and removes what is not needed.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use camino::Utf8PathBuf;
use portolan_object::Day;
use portolan_sources::{Cache, CacheEntry, CacheRules, Collected, Lock};
use portolan_yaml::Node;

use super::CommandResult;
use super::fetch::kind;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::{Column, Entry, Format, Listing, record};
use crate::places;
use crate::printer::Printer;
use crate::table::Cell;

/// Show what was fetched before, and make room
///
/// Charts, artifacts, files and git repositories are kept in `$PORTOLAN_CACHE`, or in `portolan` below the user's cache
/// directory.
#[derive(Debug, clap::Args)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CacheCommand {
    /// List what is in the cache, the least recently used first
    #[command(after_help = "\
Examples:
  portolan cache list
  portolan cache list -o json")]
    List(ListArgs),
    /// Remove entries that are old, exceed a total size, or that no lock file needs
    ///
    /// Without options, removes everything that was not used for 30 days. Never removes what a running process uses.
    #[command(after_help = "\
Examples:
  portolan cache gc
  portolan cache gc --max-age 7d --max-size 2GB
  portolan cache gc --lock portolan.lock --dry-run")]
    Gc(GcArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
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

#[derive(Debug, clap::Args)]
struct GcArgs {
    /// Remove entries that were not used for this time, such as `12h` or `30d`
    #[arg(long, value_name = "AGE", value_parser = age, help_heading = "Selection")]
    max_age: Option<Duration>,

    /// Remove the least recently used entries until the cache has at most this size, such as `500MB` or `2GiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Selection")]
    max_size: Option<u64>,

    /// Remove entries that this lock file does not need; if repeated, an entry that any of the files needs is kept
    #[arg(long, value_name = "FILE", help_heading = "Selection")]
    lock: Vec<Utf8PathBuf>,

    /// Say what would be removed, and remove nothing
    #[arg(long, help_heading = "Selection")]
    dry_run: bool,

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

/// What is removed when nothing else is asked for.
const DEFAULT_AGE: Duration = Duration::from_hours(30 * 24);

pub(crate) fn cache(args: &CacheArgs, printer: &Printer) -> CommandResult {
    let cache = Cache::new(places::cache_directory());
    match &args.command {
        CacheCommand::List(args) => {
            let entries = cache.entries().map_err(CommandError::user)?;
            print("CacheList", &entries, args.output, printer)?;
        }
        CacheCommand::Gc(args) => {
            let rules = args.rules()?;
            let collected = cache.collect(&rules, SystemTime::now(), args.dry_run);
            let collected = collected.map_err(CommandError::user)?;
            print("CacheRemovals", &collected.removed, args.output, printer)?;
            printer.say_unless_quiet(&summary(&collected, args.dry_run));
        }
    }
    Ok(ExitStatus::Clean)
}

impl GcArgs {
    fn rules(&self) -> Result<CacheRules, CommandError> {
        let mut locks = Vec::new();
        for path in &self.lock {
            // A lock file that is not there needs nothing, so that everything would go.
            if !path.is_file() {
                return Err(CommandError::usage(format!(
                    "there is no lock file `{path}`"
                )));
            }
            locks.push(Lock::load(path).map_err(CommandError::user)?);
        }
        let is_bare = self.max_age.is_none() && self.max_size.is_none() && locks.is_empty();
        Ok(CacheRules {
            max_age: self.max_age.or(is_bare.then_some(DEFAULT_AGE)),
            max_size: self.max_size,
            locks,
        })
    }
}

fn print(
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

fn summary(collected: &Collected, dry_run: bool) -> String {
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

pub(crate) fn shown_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!(
        "{value:.1} {}",
        UNITS.get(unit).copied().unwrap_or_default()
    )
}

/// Reads `30d`, `12h`, `15m` or `20s`.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not an age such as `12h` or `30d`");
    let (number, unit) = split_unit(text);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    let seconds = number.checked_mul(seconds).ok_or_else(bad)?;
    Ok(Duration::from_secs(seconds))
}

/// Reads `500MB`, `2GiB` or plain bytes.
fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a size such as `500MB` or `2GiB`");
    let (number, unit) = split_unit(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(factor).ok_or_else(bad)
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_read_with_their_units() {
        assert_eq!(age("30d"), Ok(DEFAULT_AGE));
        assert_eq!(age("12h"), Ok(Duration::from_hours(12)));
        assert_eq!(size("500MB"), Ok(500_000_000));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("17"), Ok(17));
        for bad in ["", "d", "3w", "-1d", "99999999999999999999d"] {
            assert!(age(bad).is_err(), "{bad}");
        }
        assert!(size("2 GB").is_err() && size("99999999999GiB").is_err());
    }

    #[test]
    fn sizes_are_shown_short() {
        assert_eq!(shown_size(999), "999 B");
        assert_eq!(shown_size(1_500_000), "1.5 MB");
    }
}
