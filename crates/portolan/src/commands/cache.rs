//! `portolan cache`: lists what was fetched before, and removes what is not needed.

mod print;

use std::time::{Duration, SystemTime};

use camino::Utf8PathBuf;
use portolan_sources::{Cache, CacheRules, Lock};

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;
use crate::places;
use crate::printer::Printer;
use crate::units::size;
use print::{print, summary};

pub(crate) use crate::units::age;
#[cfg(feature = "ship")]
pub(crate) use crate::units::shown_size;

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
