//! `portolan fetch`: fetches everything remote that a repository needs, once, and pins it.

use portolan_flux::Depth;
use portolan_review::Supply;
use portolan_sources::{Lock, Pin, PinKind, Pinning};
use portolan_yaml::Node;

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::{Column, Entry, Format, Listing, record};
use crate::repository::{RepositoryArgs, tell_fetch_problems};
use crate::session::ShownRuns;
use crate::table::Cell;

/// How pins of base images begin.
pub(crate) const BASE_PIN: &str = "base ";

/// How much of a digest the table shows: enough to tell two apart.
const SHORT_DIGEST: usize = 19;

/// Fetch and pin every remote source and chart that a Flux repository needs
///
/// Puts the content into the cache and writes the exact version of each source to `portolan.lock` in the repository's
/// top directory. Commit that file: every later run then builds the same content, with --offline even without a
/// network. Existing pins stay unless --update is given. If something cannot be fetched, it is reported, the rest is
/// still pinned, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fetch
  portolan fetch --update
  portolan fetch --path clusters/production && portolan build all --offline")]
pub(crate) struct FetchArgs {
    /// Resolve everything again: newest versions in their ranges, current heads of branches
    #[arg(long, help_heading = "Sources and network")]
    update: bool,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,

    #[command(flatten)]
    repository: RepositoryArgs,
}

pub(crate) fn fetch(args: &FetchArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let pinning = if args.update {
        Pinning::Update
    } else {
        Pinning::Prefer
    };
    let repository = args.repository.pinned(pinning, app)?;
    let rendered = repository.render(Depth::Releases, &ShownRuns::new(app))?;
    let status = tell_fetch_problems(&rendered, printer);
    let Some(supply) = &rendered.supply else {
        return Ok(status);
    };
    let pins = supply.sources.pins();
    write(&pins, status, supply)?;
    list(&pins, &supply.lock).print(args.output, printer)?;
    Ok(status)
}

/// Writes the lock file; pins of what could not be asked for this time are kept.
fn write(pins: &Lock, status: ExitStatus, supply: &Supply) -> Result<(), CommandError> {
    let mut lock = pins.clone();
    for (key, pin) in supply.lock.iter() {
        // Base images of `ship` are pinned in the same file.
        let is_kept = status != ExitStatus::Clean || key.starts_with(BASE_PIN);
        if is_kept && lock.get(key).is_none() {
            lock.insert(key.to_owned(), pin.clone());
        }
    }
    if lock == supply.lock {
        return Ok(());
    }
    lock.save(&supply.lock_file).map_err(CommandError::user)
}

fn list(pins: &Lock, before: &Lock) -> Listing {
    let mut listing = Listing::new(
        "PinList",
        vec![
            Column::Always("KIND"),
            Column::Always("SOURCE"),
            Column::Always("VERSION"),
            Column::Always("DIGEST"),
            Column::Always("PIN"),
            Column::Wide("REQUEST"),
        ],
    )
    .otherwise("nothing to fetch: whatever the clusters need lies in the repository");
    for (key, pin) in pins.iter() {
        listing.push(entry(key, pin, before.get(key)));
    }
    listing
}

fn entry(key: &str, pin: &Pin, before: Option<&Pin>) -> Entry {
    let change = match before {
        None => "new",
        Some(old) if old == pin => "kept",
        Some(_) => "changed",
    };
    let digest = pin.digest.get(..SHORT_DIGEST).unwrap_or(&pin.digest);
    Entry {
        cells: vec![
            Cell::from(kind(pin.kind)),
            Cell::name(pin.url.as_str()),
            Cell::from(pin.version.as_str()),
            Cell::from(digest),
            Cell::from(change),
            Cell::from(key),
        ],
        record: record([
            ("request", Node::string(key)),
            ("kind", Node::string(kind(pin.kind))),
            ("url", Node::string(pin.url.as_str())),
            ("version", Node::string(pin.version.as_str())),
            ("digest", Node::string(pin.digest.as_str())),
            ("pin", Node::string(change)),
        ]),
        name: pin.url.clone(),
    }
}

pub(crate) fn kind(kind: PinKind) -> &'static str {
    match kind {
        PinKind::Chart => "chart",
        PinKind::Oci => "oci",
        PinKind::Git => "git",
        PinKind::File => "file",
        PinKind::Bucket => "bucket",
    }
}
