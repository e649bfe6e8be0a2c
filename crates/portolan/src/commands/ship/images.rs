//! Images that were built elsewhere, as `ship build -o json` printed them.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde_json::Value;

use crate::error::CommandError;

/// Reads the images of a build result, by artifact.
pub(super) fn read_images(path: &Utf8Path) -> Result<BTreeMap<String, String>, CommandError> {
    let failed =
        |error: anyhow::Error| CommandError::user(error.context(format!("cannot read `{path}`")));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.into()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    if value["kind"] != "BuildResult" {
        let error = CommandError::usage(format!("`{path}` is no result of a build"));
        return Err(error.hint(format!("`portolan ship build -o json > {path}` writes one")));
    }
    let artifacts = value["artifacts"].as_array().into_iter().flatten();
    let images = artifacts.filter_map(|artifact| {
        let text = |key: &str| artifact[key].as_str().map(str::to_owned);
        Some((text("name")?, text("image")?))
    });
    Ok(images.collect())
}
