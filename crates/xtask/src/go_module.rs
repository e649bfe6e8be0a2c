//! Files of published Go modules, fetched by the `go` command.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The directory a module version is unpacked in; downloads it when needed.
pub(crate) fn directory(module: &str, version: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("{module}@{version}")])
        .current_dir(std::env::temp_dir())
        .output()
        .context("cannot run `go`")?;
    let answer: Value =
        serde_json::from_slice(&output.stdout).context("cannot read go's answer")?;
    match answer["Dir"].as_str() {
        Some(directory) => Ok(PathBuf::from(directory)),
        None => bail!("no module {module}@{version}: {}", answer["Error"]),
    }
}

/// A JSON file of a module.
pub(crate) fn json(module: &str, version: &str, path: &str) -> Result<Value> {
    let file = directory(module, version)?.join(path);
    let text = std::fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot parse `{}`", file.display()))
}
