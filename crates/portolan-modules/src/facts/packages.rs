//! Installed packages and their versions.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::FactSource;

const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn packages(source: &FactSource<'_>) -> Result<Value, String> {
    if let Some(status) = source.read_own("/var/lib/dpkg/status")? {
        return Ok(Value::Object(read_dpkg(&status)));
    }
    if ["/var/lib/rpm", "/usr/lib/sysimage/rpm"]
        .iter()
        .any(|path| source.has_directory(path))
    {
        return rpm(source);
    }
    Err("the machine has no database of dpkg or rpm".to_owned())
}

/// Reads the packages that are installed.
fn read_dpkg(text: &str) -> Map<String, Value> {
    let mut packages = Map::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            let mut lines = paragraph.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let is_installed = field("Status").is_some_and(|status| status.ends_with(" installed"));
        if let (true, Some(name), Some(version)) =
            (is_installed, field("Package"), field("Version"))
        {
            packages.insert(name.to_owned(), json!({"version": version}));
        }
    }
    packages
}

fn rpm(source: &FactSource<'_>) -> Result<Value, String> {
    let root = source.host.program_path("/".into());
    let format = "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n";
    let arguments = ["rpm", "--root", root.as_str(), "-qa", "--qf", format];
    let output = source.output(&arguments, TIMEOUT)?;
    let text = String::from_utf8_lossy(&output);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let packages = lines.map(|(name, version)| (name.to_owned(), json!({"version": version})));
    Ok(Value::Object(packages.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_packages_count() {
        let text = "Package: a\nStatus: install ok installed\nVersion: 1:2.0-1\nDescription: x\n y\n\n\
                    Package: b\nStatus: deinstall ok config-files\nVersion: 3\n\n\
                    Package: c\nStatus: install ok half-installed\nVersion: 4\n";
        let packages = read_dpkg(text);
        assert_eq!(
            Value::Object(packages),
            json!({"a": {"version": "1:2.0-1"}})
        );
    }
}
