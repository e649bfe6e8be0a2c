//! The disks of the machine.

use camino::Utf8Path;
use serde_json::{Value, json};

use super::FactSource;

const BLOCK_DEVICES: &str = "/sys/block";

/// Sizes are told in sectors of so many bytes, whatever the disk has.
const SECTOR: u64 = 512;

pub(super) fn disks(_: &FactSource<'_>) -> Result<Value, String> {
    let failed = |error| format!("cannot read `{BLOCK_DEVICES}`: {error}");
    let entries = Utf8Path::new(BLOCK_DEVICES)
        .read_dir_utf8()
        .map_err(failed)?;
    let mut disks = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_owned();
        let read = |file: &str| {
            let text = std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            text.trim().parse::<u64>().unwrap_or(0)
        };
        let is_made_of_memory = ["loop", "ram", "zram"]
            .iter()
            .any(|start| name.starts_with(start));
        if !is_made_of_memory && read("size") > 0 {
            disks.push((name, read("size") * SECTOR, read("queue/rotational") == 1));
        }
    }
    disks.sort();
    let disks = disks.into_iter().map(
        |(name, bytes, rotational)| json!({"name": name, "bytes": bytes, "rotational": rotational}),
    );
    Ok(disks.collect())
}
