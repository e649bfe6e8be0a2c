//! `portolan store verify`: checks every record of a store, or a backup.

use camino::Utf8PathBuf;
use portolan_server::verify_server_audit;
use portolan_store::keys::{OPERATIONS, ROOT};
use portolan_store::{Incarnation, Span, try_backup};
use portolan_yaml::Node;

use super::access::{AccessArgs, Opened};
use super::{backup_error, print, store_error};
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::{Column, Entry, Format, Listing, record, texts};
use crate::printer::Printer;
use crate::table::Cell;

/// Check every record of a store, or restore a backup to a scratch store and compare
///
/// In a directory, each record's own checksum and the digest of each kind are computed again, and the server's audit log is read
/// from its oldest file to its newest. etcd checks its own data; there, every record is read once, and each member is asked for
/// its release. Exits with 1 if there are warnings.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan store verify --data /var/lib/portolan
  portolan store verify --etcd http://10.0.0.1:2379,http://10.0.0.2:2379
  portolan store verify --backup portolan.backup")]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    access: AccessArgs,

    /// Backup to check instead of a store
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "etcd"], help_heading = "Backup")]
    backup: Option<Utf8PathBuf>,

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

pub(super) async fn verify(args: &VerifyArgs, printer: &Printer) -> CommandResult {
    if let Some(path) = &args.backup {
        let tried = try_backup(path.as_std_path()).await;
        let summary = tried.map_err(|error| backup_error(path, error))?;
        print("StoreBackup", path.as_str(), &summary, args.output, printer)?;
        return Ok(ExitStatus::Clean);
    }
    let opened = args.access.open(false)?;
    let warnings = check(&opened, args, printer).await?;
    for warning in &warnings {
        printer.warning(warning);
    }
    Ok(if warnings.is_empty() {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

/// Checks a store and prints what was looked at. Returns warnings.
async fn check(
    opened: &Opened,
    args: &VerifyArgs,
    printer: &Printer,
) -> Result<Vec<String>, CommandError> {
    let store = opened.store();
    let incarnation = Incarnation::open(&store).await.map_err(store_error)?;
    let mut warnings = store.status().await.map_err(store_error)?.warnings;
    match opened {
        Opened::Embedded(engine) => {
            engine.verify().await.map_err(store_error)?;
            if let Some(data) = &args.access.data {
                let audited = verify_server_audit(&store, data.as_std_path()).await;
                audited.map_err(CommandError::user)?;
            }
        }
        Opened::Etcd(etcd) => {
            // One member tells of itself in its status, and all tell here.
            warnings.retain(|warning| !warning.contains(" has a bug: "));
            for member in etcd.members().await {
                match &member.version {
                    Err(why) => warnings.push(format!(
                        "etcd at {} does not answer: {why}",
                        member.endpoint
                    )),
                    Ok(version) => warnings.extend(member.bugs.iter().map(|bug| {
                        format!("etcd {version} at {} has a bug: {bug}", member.endpoint)
                    })),
                }
            }
        }
    }
    let mut records = 0_i64;
    let all = Span::prefix(ROOT);
    let scanned = store.scan(&all, None, |record| {
        // What a backup counts too: operation slots come and go with processes.
        records += i64::from(!record.key.starts_with(OPERATIONS.as_bytes()));
        Ok(())
    });
    let revision = scanned.await.map_err(store_error)?;
    let columns = ["PLACE", "INCARNATION", "REVISION", "RECORDS", "WARNINGS"];
    let mut listing = Listing::new("StoreCheck", columns.map(Column::Always).to_vec());
    let place = args.access.place();
    let cells = [
        incarnation.number.to_string(),
        revision.to_string(),
        records.to_string(),
        warnings.len().to_string(),
    ];
    let count = |number: u64| Node::int(i64::try_from(number).unwrap_or(i64::MAX));
    listing.push(Entry {
        cells: std::iter::once(Cell::name(place.as_str()))
            .chain(cells.iter().map(|cell| Cell::from(cell.as_str())))
            .collect(),
        record: record([
            ("place", Node::string(place.as_str())),
            ("incarnation", count(incarnation.number)),
            ("revision", count(revision)),
            ("records", Node::int(records)),
            ("warnings", texts(&warnings)),
        ]),
        name: place.clone(),
    });
    listing.print(args.output, printer)?;
    Ok(warnings)
}
