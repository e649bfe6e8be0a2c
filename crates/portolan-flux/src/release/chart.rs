//! Where a release's chart is, and how it is loaded.
//!
//! ```text
//! HelmRelease ──▶ spec.chart or chartRef ──▶ source object ──▶ Location ──▶ Chart
//! ```

use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::values::Tree;
use portolan_helm::{ChartFile, LoadError, Package};
use portolan_object::Digest;
use portolan_semver::Version;
use portolan_vfs::{Vfs, VfsError, clean, resolve};
use portolan_yaml::Text;

use crate::api::{
    Chart as ChartField, ChartSpec, HelmRelease, HelmRepositoryType, OciRef, Source, SourceRef,
    SourceSpec,
};
use crate::release::chart_dependencies;
use crate::session::fingerprint::Fingerprint;
use crate::source::artifact::Artifact;
use crate::source::outside::{ChartArchive, OutsideError};
use crate::walk::index::Index;

/// The name under which a chart that is an archive in a tree is read.
const ARCHIVE: &str = "chart.tgz";

/// Where a chart lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// In a directory of a source's tree.
    Tree {
        /// The source.
        source: SourceRef,
        /// The directory, as written.
        path: Text,
        /// Files of the tree that stand for the chart's `values.yaml`.
        values: ValuesFiles,
    },
    /// In a repository with an index.
    Repository {
        /// The repository's address.
        url: Text,
        /// The chart's name.
        name: Text,
        /// Which versions will do.
        version: Text,
        /// Files of the chart that stand for its `values.yaml`.
        values: ValuesFiles,
    },
    /// In a registry.
    Registry {
        /// `oci://…`, the chart's name included.
        url: Text,
        /// Which one.
        reference: OciReference,
        /// The media type of the layer that holds it; the first one when none is named.
        layer: Option<Text>,
        /// Whether Flux appends the digest to the version.
        tracks_digest: bool,
        /// Files of the chart that stand for its `values.yaml`.
        values: ValuesFiles,
    },
}

/// Files that stand for a chart's `values.yaml`, later ones over earlier ones; none when it stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValuesFiles {
    /// Their names, as written.
    pub names: Vec<Text>,
    /// Whether those that do not exist are passed over.
    pub ignore_missing: bool,
}

/// Which artifact of a registry is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OciReference {
    /// By content.
    Digest(Text),
    /// The newest version in a range; tags are filtered by the expression first.
    Range {
        /// The range; empty for any.
        range: Text,
        /// The expression.
        filter: Option<Text>,
    },
    /// A tag.
    Tag(Text),
}

/// Why a chart is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// Nothing in the repository declares the source.
    #[error("{0} does not exist in the repository")]
    NoSource(SourceRef),
    /// A source of this kind has no charts.
    #[error("{0} cannot hold a chart")]
    WrongKind(SourceRef),
    /// The source is declared, but its content is not at hand.
    #[error("the content of {0} is not at hand")]
    Unavailable(SourceRef),
    /// The chart lies elsewhere and nothing may be fetched.
    #[error("chart `{0}` is not in the cache")]
    NotCached(String),
    /// What is there is no chart.
    #[error("cannot load chart `{path}`")]
    Load {
        /// Where it lies.
        path: String,
        /// What is wrong with it.
        #[source]
        source: Box<LoadError>,
    },
    /// A chart of the same tree is not there.
    #[error("dependency `{name}` is neither in `charts/` nor in `{directory}`")]
    NoDependency {
        /// The chart's name.
        name: String,
        /// Where it should lie.
        directory: Utf8PathBuf,
    },
    /// A chart of the same tree is not of a version that will do.
    #[error(
        "dependency `{name}` needs version `{range}`, but the chart in `{directory}` has another version"
    )]
    WrongDependency {
        /// The chart's name.
        name: String,
        /// The range.
        range: String,
        /// Where the chart lies.
        directory: Utf8PathBuf,
    },
    /// A values file of the chart cannot be used.
    #[error("cannot read values file `{path}`: {reason}")]
    ValuesFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The chart's own version is none.
    #[error("invalid chart version `{0}`")]
    InvalidVersion(String),
    /// The tag of an artifact names another version than the chart in it.
    #[error("artifact revision `{tag}` does not match chart version `{version}`")]
    OtherVersion {
        /// The tag.
        tag: Text,
        /// The chart's version.
        version: String,
    },
    /// Fetching failed.
    #[error("cannot fetch chart `{chart}`")]
    Fetch {
        /// Which chart.
        chart: String,
        /// Why not.
        #[source]
        source: OutsideError,
    },
}

/// Finds where a release's chart lies.
pub(crate) fn locate(release: &HelmRelease, index: &Index) -> Result<Location, ChartError> {
    match &release.chart {
        ChartField::Spec(spec) => locate_spec(spec, index),
        ChartField::Reference(reference) if reference.kind == "ExternalArtifact" => {
            Ok(Location::Tree {
                source: reference.clone(),
                path: Text::default(),
                values: ValuesFiles::default(),
            })
        }
        ChartField::Reference(reference) => match source(reference, index)?.spec {
            SourceSpec::HelmChart(spec) => locate_spec(&spec, index),
            SourceSpec::Oci {
                url,
                reference,
                layer_media_type,
                ..
            } => Ok(Location::Registry {
                url,
                reference: OciReference::from(reference),
                layer: layer_media_type,
                tracks_digest: true,
                values: ValuesFiles::default(),
            }),
            _ => Err(ChartError::WrongKind(reference.clone())),
        },
    }
}

/// The source object that a release's chart comes from: the one that says how it is reached.
pub(crate) fn source_of(release: &HelmRelease, index: &Index) -> Result<Source, ChartError> {
    match &release.chart {
        ChartField::Spec(spec) => source(&spec.source, index),
        ChartField::Reference(reference) => {
            let named = source(reference, index)?;
            match &named.spec {
                SourceSpec::HelmChart(spec) => source(&spec.source, index),
                _ => Ok(named),
            }
        }
    }
}

fn locate_spec(spec: &ChartSpec, index: &Index) -> Result<Location, ChartError> {
    let values = ValuesFiles {
        names: spec.values_files.clone(),
        ignore_missing: spec.ignore_missing_values_files,
    };
    if matches!(spec.source.kind.as_str(), "GitRepository" | "Bucket") {
        return Ok(Location::Tree {
            source: spec.source.clone(),
            path: spec.chart.clone(),
            values,
        });
    }
    let SourceSpec::HelmRepository { url, kind, .. } = source(&spec.source, index)?.spec else {
        return Err(ChartError::WrongKind(spec.source.clone()));
    };
    Ok(match kind {
        HelmRepositoryType::Default => Location::Repository {
            url,
            name: spec.chart.clone(),
            version: spec.version.clone(),
            values,
        },
        HelmRepositoryType::Oci => Location::Registry {
            url: format!("{}/{}", url.trim_end_matches('/'), spec.chart).into(),
            reference: OciReference::Range {
                range: spec.version.clone(),
                filter: None,
            },
            layer: None,
            tracks_digest: false,
            values,
        },
    })
}

/// The source that a reference names.
fn source(reference: &SourceRef, index: &Index) -> Result<Source, ChartError> {
    index
        .source(reference)
        .ok_or_else(|| ChartError::NoSource(reference.clone()))
}

/// A digest that names the files of a chart in a tree, where they are known without reading them.
pub(crate) fn identity(artifact: &Artifact, location: &Location) -> Option<Digest> {
    let Location::Tree { path, values, .. } = location else {
        return None;
    };
    let mut digest = Fingerprint::of("chart by identity");
    digest.add(location);
    let written = [path].into_iter().chain(&values.names);
    let local = chart_dependencies::local_directories(artifact, path);
    for part in written.map(|written| in_tree(written)).chain(local) {
        artifact.identity(&part)?.fingerprint(&mut digest);
    }
    Some(digest.finish())
}

/// Where a path that is written from the top of a source leads.
pub(crate) fn in_tree(written: &str) -> Utf8PathBuf {
    resolve(Utf8Path::new("/"), written.trim_start_matches('/'))
}

/// The files of a chart that lies in a tree.
pub(crate) fn read_from_tree(files: &dyn Vfs, path: &str) -> Result<Vec<ChartFile>, ChartError> {
    let failed = |source| ChartError::Load {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let directory = in_tree(path);
    if files.is_directory(&directory) {
        return Package::directory_files(files, &directory).map_err(failed);
    }
    let content = files.read(&directory);
    let content = content.map_err(|error| failed(LoadError::File(error)))?;
    Ok(vec![ChartFile::new(ARCHIVE.to_owned(), &content)])
}

/// The digest of a chart's files.
pub(crate) fn digest(files: &[ChartFile]) -> Digest {
    let mut digest = Fingerprint::of("chart");
    for file in files {
        digest.text(&file.name);
        digest.bytes(&file.content);
    }
    digest.finish()
}

/// Assembles a chart from its files.
pub(crate) fn assemble(files: Vec<ChartFile>, path: &str) -> Result<Package, ChartError> {
    let package = match files.as_slice() {
        [archive] if archive.name == ARCHIVE => Package::from_archive(&archive.content),
        _ => Package::from_files(files),
    };
    package.map_err(|source| ChartError::Load {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// Assembles a chart that was brought from a repository or registry.
pub(crate) fn assemble_archive(
    archive: &ChartArchive,
    location: &Location,
) -> Result<Package, ChartError> {
    let mut package =
        Package::from_archive(&archive.content).map_err(|source| ChartError::Load {
            path: location.to_string(),
            source: Box::new(source),
        })?;
    if let Location::Repository { values, .. } | Location::Registry { values, .. } = location {
        values.replace_in(&mut package, |package, name| {
            let path = clean(&Utf8Path::new("/").join(name));
            if path == "/values.yaml" {
                return Some(Ok(package.values.clone()));
            }
            let mut files = package.files.iter();
            let found = files.find(|file| Some(file.name.as_str()) == path.as_str().get(1..))?;
            Some(Tree::read_table(&found.content))
        })?;
    }
    if location.tracks_digest() {
        package.metadata.version = tracked_version(&package.metadata.version, archive)?;
    }
    Ok(package)
}

/// A version with the beginning of the artifact's digest as build metadata, by which Flux notices changed content.
///
/// A tag that is a version itself must be the chart's. Tags cannot hold the `+` of build metadata and have `_` instead.
fn tracked_version(version: &str, archive: &ChartArchive) -> Result<String, ChartError> {
    let invalid = || ChartError::InvalidVersion(version.to_owned());
    let own = Version::parse(version).map_err(|_| invalid())?;
    let tag = Version::parse(&archive.tag.replace('_', "+"));
    if tag.is_ok_and(|tag| tag != own) {
        return Err(ChartError::OtherVersion {
            tag: archive.tag.clone(),
            version: version.to_owned(),
        });
    }
    let hex = archive.digest.rsplit(':').next().unwrap_or_default();
    let short = hex.get(..12).unwrap_or(hex);
    let tracked = own.with_metadata(short).map_err(|_| invalid())?;
    Ok(tracked.to_string())
}

/// Puts the values files of a chart in a tree in the place of its values; they are named from the root of the tree.
pub(crate) fn replace_values(
    package: &mut Package,
    values: &ValuesFiles,
    texts: &[Option<Vec<u8>>],
) -> Result<(), ChartError> {
    let mut texts = texts.iter();
    values.replace_in(package, |_, _| {
        let text = texts.next()?.as_ref()?;
        Some(Tree::read_table(text))
    })
}

impl ValuesFiles {
    /// The texts of the files in a tree; `None` for those that do not exist.
    pub(crate) fn read(&self, files: &dyn Vfs) -> Result<Vec<Option<Vec<u8>>>, ChartError> {
        let read = |name: &Text| match files.read(&in_tree(name)) {
            Ok(text) => Ok(Some(text)),
            Err(VfsError::NotFound(_)) => Ok(None),
            Err(error) => Err(unusable(name, error.to_string())),
        };
        self.names.iter().map(read).collect()
    }

    /// Puts the files, merged in order, in the place of a chart's values.
    fn replace_in(
        &self,
        package: &mut Package,
        mut values_of: impl FnMut(&Package, &str) -> Option<Result<Tree, String>>,
    ) -> Result<(), ChartError> {
        if self.names.is_empty() {
            return Ok(());
        }
        let mut merged = Tree::empty_table();
        for name in &self.names {
            match values_of(package, name) {
                Some(Ok(values)) => merged = merged.overlay(&values),
                Some(Err(reason)) => return Err(unusable(name, reason)),
                None if self.ignore_missing => {}
                None => return Err(unusable(name, "it does not exist".to_owned())),
            }
        }
        package.values = merged;
        package.merged_values = None;
        Ok(())
    }
}

fn unusable(name: &Text, reason: String) -> ChartError {
    ChartError::ValuesFile {
        path: name.to_string(),
        reason,
    }
}

impl Location {
    /// Whether Flux appends the artifact's digest to the chart's version.
    pub(crate) fn tracks_digest(&self) -> bool {
        matches!(
            self,
            Self::Registry {
                tracks_digest: true,
                ..
            }
        )
    }
}

impl From<OciRef> for OciReference {
    fn from(reference: OciRef) -> Self {
        match reference {
            OciRef {
                digest: Some(digest),
                ..
            } => Self::Digest(digest),
            OciRef {
                semver: Some(range),
                semver_filter: filter,
                ..
            } => Self::Range { range, filter },
            OciRef { tag: Some(tag), .. } => Self::Tag(tag),
            _ => Self::Tag(Text::from_static("latest")),
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tree { source, path, .. } => write!(f, "{path} of {source}"),
            Self::Repository {
                url, name, version, ..
            } if version.is_empty() => write!(f, "{name} of {url}"),
            Self::Repository {
                url, name, version, ..
            } => write!(f, "{name} {version} of {url}"),
            Self::Registry { url, reference, .. } => match reference {
                OciReference::Digest(digest) => write!(f, "{url}@{digest}"),
                OciReference::Range { range, .. } => write!(f, "{url} {range}"),
                OciReference::Tag(tag) => write!(f, "{url}:{tag}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(version: &str, tag: &str) -> Result<String, String> {
        let archive = ChartArchive {
            content: Vec::new().into(),
            digest: Text::from_static("sha256:0123456789abcdef"),
            tag: Text::from(tag),
        };
        tracked_version(version, &archive).map_err(|error| error.to_string())
    }

    #[test]
    fn the_digest_takes_the_place_of_build_metadata() {
        assert_eq!(
            tracked("1.2.0", "1.2.0"),
            Ok("1.2.0+0123456789ab".to_owned())
        );
        assert_eq!(
            tracked("v1.2+old", "1.2.0_new"),
            Ok("1.2.0+0123456789ab".to_owned())
        );
    }

    #[test]
    fn a_tag_that_is_no_version_may_be_any() {
        assert_eq!(
            tracked("1.2.0", "latest"),
            Ok("1.2.0+0123456789ab".to_owned())
        );
        assert_eq!(tracked("1.2.0", ""), Ok("1.2.0+0123456789ab".to_owned()));
    }

    /// In the words of helm-controller.
    #[test]
    fn a_tag_of_another_version_is_refused() {
        let refused = "artifact revision `1.3.0` does not match chart version `1.2.0`";
        assert_eq!(tracked("1.2.0", "1.3.0"), Err(refused.to_owned()));
        assert_eq!(
            tracked("one", "1.3.0"),
            Err("invalid chart version `one`".to_owned())
        );
    }
}
