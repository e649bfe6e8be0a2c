//! Units of the service manager: whether they start by themselves, whether they run, and in which state they are.

use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Map, Value, json};

use super::FactSource;

const TIMEOUT: Duration = Duration::from_secs(30);

/// There when systemd is the machine's service manager.
const MANAGER: &str = "/run/systemd/system";

pub(super) fn services(source: &FactSource<'_>) -> Result<Value, String> {
    let root = source.host.root.path();
    let rooted = ["--root", root.as_str()];
    let rooted = if source.host.is_rooted() {
        &rooted[..]
    } else {
        &[]
    };
    let files = [&["list-unit-files", "--type=service"], rooted].concat();
    let mut services = Map::new();
    for words in lines(source, &files)? {
        if let [unit, enabled, ..] = words.as_slice() {
            let is_enabled = enabled == "enabled" || enabled == "enabled-runtime";
            services.insert(name(unit), json!({"enabled": is_enabled}));
        }
    }
    // What runs is known by a manager only.
    if !source.host.is_rooted() && Utf8Path::new(MANAGER).is_dir() {
        // The manager has forgotten units that have not run for a while.
        for service in services.values_mut() {
            service["running"] = false.into();
            service["state"] = state("inactive").into();
        }
        for words in lines(source, &["list-units", "--type=service", "--all"])? {
            if let [unit, _, active, ..] = words.as_slice() {
                let service = services.entry(name(unit)).or_insert_with(|| json!({}));
                service["running"] = (active == "active").into();
                service["state"] = state(active).into();
            }
        }
    }
    Ok(Value::Object(services))
}

/// The words that the module `service` has for the states of systemd; what lies between them keeps systemd's.
fn state(active: &str) -> &str {
    match active {
        "active" => "running",
        "inactive" => "stopped",
        other => other,
    }
}

fn name(unit: &str) -> String {
    unit.strip_suffix(".service").unwrap_or(unit).to_owned()
}

fn lines(source: &FactSource<'_>, arguments: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let plain = ["systemctl", "--no-legend", "--no-pager", "--plain"];
    let arguments = [&plain[..], arguments].concat();
    let output = source.output(&arguments, TIMEOUT)?;
    let text = String::from_utf8_lossy(&output);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    Ok(text.lines().map(words).collect())
}
