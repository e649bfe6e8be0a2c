//! Fetches the dependencies of a chart for its `charts/` directory.
//!
//! ```text
//!   Chart.lock, or else Chart.yaml ──▶ [Fetch] ──▶ repository, registry or directory ──▶ [VendoredChart]
//! ```

use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use flate2::{Compression, write::GzEncoder};
use portolan_helm::lock::{Fetch, digest};
use portolan_helm::{ChartFile, Dependency, Package};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{List, Map, Node, Value};

use crate::time::Moment;
use crate::{Access, ChartRequest, SourceError, Sources};

/// A chart for the `charts/` directory.
#[derive(Debug, Clone)]
pub struct VendoredChart {
    /// The chart's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The repository as the dependency names it.
    pub repository: String,
    /// The archive: a gzip-compressed tar.
    pub content: Vec<u8>,
}

impl VendoredChart {
    /// The name of the archive in `charts/`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.tgz", self.name, self.version)
    }
}

impl Sources {
    /// Brings dependencies of the chart at `chart` in `files`, in their order.
    ///
    /// Those without a repository lie in `charts/` already and are left out.
    pub async fn dependencies(
        &self,
        files: &dyn Vfs,
        chart: &Utf8Path,
        wanted: &[Fetch],
        access: &Access,
    ) -> Result<Vec<VendoredChart>, SourceError> {
        let mut vendored = Vec::new();
        for dependency in wanted {
            let repository = dependency.repository.as_str();
            if let Some(path) = repository.strip_prefix("file://") {
                vendored.push(packed(files, &resolve(chart, path), dependency)?);
            } else if repository.starts_with('@') || repository.starts_with("alias:") {
                return Err(refused(
                    dependency,
                    "repositories by name are known to Helm alone; write the address",
                ));
            } else if !repository.is_empty() {
                vendored.push(self.dependency(dependency, access).await?);
            }
        }
        Ok(vendored)
    }

    async fn dependency(
        &self,
        dependency: &Fetch,
        access: &Access,
    ) -> Result<VendoredChart, SourceError> {
        let request = ChartRequest {
            repository: dependency.repository.clone(),
            name: dependency.name.clone(),
            version: dependency.version.clone(),
            access: access.clone(),
        };
        let chart = self.chart(&request).await?;
        Ok(VendoredChart {
            name: dependency.name.clone(),
            version: chart.version,
            repository: dependency.repository.clone(),
            content: chart.content,
        })
    }
}

/// A chart directory as an archive, as Helm packs dependencies at `file://`.
fn packed(
    files: &dyn Vfs,
    directory: &Utf8Path,
    dependency: &Fetch,
) -> Result<VendoredChart, SourceError> {
    let broken = |error: portolan_helm::LoadError| refused(dependency, &error.to_string());
    let package = Package::load(files, directory).map_err(broken)?;
    let contents = Package::directory_files(files, directory).map_err(broken)?;
    let name = package.name().to_owned();
    let content = pack(&name, &contents);
    Ok(VendoredChart {
        version: package.metadata.version.clone(),
        content: content.map_err(|error| refused(dependency, &error.to_string()))?,
        repository: dependency.repository.clone(),
        name,
    })
}

/// Packs files below one directory; the same files give the same bytes.
fn pack(name: &str, files: &[ChartFile]) -> std::io::Result<Vec<u8>> {
    let encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut builder = tar::Builder::new(encoder);
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(0o644);
        let path = Utf8PathBuf::from(name).join(&file.name);
        builder.append_data(&mut header, path, file.content.as_ref())?;
    }
    builder.into_inner()?.finish()
}

/// The text of a `Chart.lock` for dependencies as listed, and as [`Sources::dependencies`] brought them.
pub fn lock_text(
    listed: &[Dependency],
    brought: &[VendoredChart],
    generated: SystemTime,
) -> String {
    let mut brought = brought.iter();
    let locked: Vec<Dependency> = listed
        .iter()
        .map(|dependency| Dependency {
            name: dependency.name.clone(),
            version: match dependency.repository.as_str() {
                // It lies in `charts/`, and nothing was brought for it.
                "" => dependency.version.clone(),
                _ => brought
                    .next()
                    .map_or_else(String::new, |chart| chart.version.clone()),
            },
            repository: dependency.repository.clone(),
            ..Dependency::default()
        })
        .collect();
    let texts = |fields: &[(&str, &str)]| {
        let mut map = Map::new();
        for (key, value) in fields {
            map.insert(*key, Node::string(*value));
        }
        map
    };
    let entries = locked.iter().map(|dependency| {
        Node::new(Value::Map(texts(&[
            ("name", &dependency.name),
            ("repository", &dependency.repository),
            ("version", &dependency.version),
        ])))
    });
    let entries = List::from_items(entries.collect());
    let digest = digest(listed, &locked);
    let mut lock = texts(&[
        ("digest", &digest),
        ("generated", &Moment::of(generated).rfc3339()),
    ]);
    lock.insert("dependencies", Node::new(Value::List(entries)));
    portolan_yaml::write_v2(&Node::new(Value::Map(lock)))
        .expect("texts, lists and maps can be written")
}

fn refused(dependency: &Fetch, reason: &str) -> SourceError {
    SourceError::Dependency {
        name: dependency.name.clone(),
        repository: dependency.repository.clone(),
        reason: reason.to_owned(),
    }
}
