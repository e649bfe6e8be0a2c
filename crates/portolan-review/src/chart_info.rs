//! Describes which chart a release is rendered from, and where the chart comes from.

use camino::Utf8Path;
use portolan_flux::api::{Chart, SourceRef};
use portolan_flux::{Location, OciReference, RenderedRelease};

/// Which chart a release is rendered from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChartInfo {
    /// The chart's name; its path when it lies in a tree.
    pub name: String,
    /// The version that was rendered, or else the one that is asked for.
    pub version: String,
    /// The object that says where it comes from.
    pub source: String,
    /// Its address; empty when it lies in a tree.
    pub url: String,
}

impl ChartInfo {
    /// What a release says of its chart.
    pub fn of(release: &RenderedRelease) -> Self {
        let (name, asked, url) = match &release.location {
            Some(Location::Tree { path, .. }) => (last_part(path), String::new(), String::new()),
            Some(Location::Repository {
                url, name, version, ..
            }) => (name.to_string(), version.to_string(), url.to_string()),
            Some(Location::Registry { url, reference, .. }) => {
                (last_part(url), asked_for(reference), url.to_string())
            }
            None => (String::new(), String::new(), String::new()),
        };
        let (written, source) = match release.spec.as_ref().map(|spec| &spec.chart) {
            Ok(Chart::Spec(spec)) => (last_part(&spec.chart), Some(&spec.source)),
            Ok(Chart::Reference(reference)) => (String::new(), Some(reference)),
            Err(_) => (String::new(), None),
        };
        let namespace = release.definition.namespace();
        Self {
            name: if name.is_empty() { written } else { name },
            version: release
                .chart
                .as_ref()
                .map_or(asked, |chart| chart.version().to_owned()),
            source: source.map_or_else(String::new, |source| source_name(source, namespace)),
            url,
        }
    }
}

fn last_part(path: &str) -> String {
    let path = Utf8Path::new(path);
    path.file_name().unwrap_or(path.as_str()).to_owned()
}

fn asked_for(reference: &OciReference) -> String {
    match reference {
        OciReference::Digest(text) | OciReference::Tag(text) => text.to_string(),
        OciReference::Range { range, .. } => range.to_string(),
    }
}

/// `GitRepository/flux-system`, with the namespace when it is another.
pub fn source_name(source: &SourceRef, namespace: &str) -> String {
    if source.id.namespace == namespace {
        format!("{}/{}", source.kind, source.id.name)
    } else {
        format!("{}/{}", source.kind, source.id)
    }
}
