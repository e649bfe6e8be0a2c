//! Files that the user gives in place of sources (`--source`), and the charts in them.
//!
//! ```text
//! [[KIND/]NAMESPACE/]NAME ──▶ SourcePattern ──matches──▶ SourceRef ──▶ tree ──▶ chart in it
//! ```
//!
//! A tree replaces the files of a GitRepository, OCIRepository, Bucket or ExternalArtifact, and the charts of a
//! HelmRepository or of an OCIRepository in `chartRef`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_semver::{Constraints, Version};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node, Text};

use crate::api::{Chart, ChartSpec, HelmRelease, SourceRef, SourceSpec};
use crate::cluster::Cluster;
use crate::release::chart::{self, ChartError, Location, ValuesFiles};
use crate::render::Rendering;
use crate::source::artifact::Artifact;
use crate::walk::index::{Index, SOURCE_GROUP};

/// The kinds of sources that files can stand for.
const KINDS: [&str; 6] = [
    "GitRepository",
    "OCIRepository",
    "HelmRepository",
    "HelmChart",
    "Bucket",
    "ExternalArtifact",
];

/// Which sources files stand for: by name, and by namespace and kind where those are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePattern {
    /// The kind; any when not given.
    pub kind: Option<Text>,
    /// The namespace; any when not given.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
}

/// Text that names no source.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` does not name a source: expected NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME, where KIND is one of {kinds}", kinds = KINDS.join(", "))]
pub struct BadSourcePattern(String);

/// Trees by the sources that they stand for.
#[derive(Clone, Default)]
pub struct MappedSources(Vec<(SourcePattern, Arc<Artifact>)>);

// === impl SourcePattern ===

impl SourcePattern {
    /// Whether a source is meant.
    pub fn matches(&self, source: &SourceRef) -> bool {
        let fits =
            |wanted: &Option<Text>, is: &Text| wanted.as_ref().is_none_or(|wanted| wanted == is);
        self.name == source.id.name
            && fits(&self.namespace, &source.id.namespace)
            && fits(&self.kind, &source.kind)
    }

    /// How much is given: of two patterns that match, the one that says more counts.
    fn exactness(&self) -> u8 {
        u8::from(self.namespace.is_some()) + u8::from(self.kind.is_some())
    }
}

impl FromStr for SourcePattern {
    type Err = BadSourcePattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let kind = |written: &str| {
            let found = KINDS.iter().find(|kind| kind.eq_ignore_ascii_case(written));
            found.map(|kind| Text::from_static(kind))
        };
        let bad = || BadSourcePattern(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(bad());
        }
        let (kind, namespace, name) = match parts.as_slice() {
            [name] => (None, None, *name),
            // Namespaces have no capital letters, so this can only be a kind.
            [first, name] if KINDS.contains(first) => (kind(first), None, *name),
            [namespace, name] => (None, Some(*namespace), *name),
            [first, namespace, name] => {
                (Some(kind(first).ok_or_else(bad)?), Some(*namespace), *name)
            }
            _ => return Err(bad()),
        };
        Ok(Self {
            kind,
            namespace: namespace.map(Text::from),
            name: Text::from(name),
        })
    }
}

impl fmt::Display for SourcePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.kind, &self.namespace].into_iter().flatten() {
            write!(f, "{part}/")?;
        }
        f.write_str(&self.name)
    }
}

// === impl MappedSources ===

impl MappedSources {
    pub(crate) fn insert(&mut self, pattern: SourcePattern, tree: Arc<Artifact>) {
        self.0.push((pattern, tree));
        // Stable: of two that say as much, the first one counts.
        self.0
            .sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.exactness()));
    }

    /// The tree that stands for a source.
    pub(crate) fn get(&self, source: &SourceRef) -> Option<&Arc<Artifact>> {
        let mut all = self.0.iter();
        all.find(|(pattern, _)| pattern.matches(source))
            .map(|(_, tree)| tree)
    }
}

// === impl Rendering ===

impl Rendering {
    /// Every source that the repository declares or refers to.
    pub fn sources(&self) -> BTreeSet<SourceRef> {
        let index = &self.walk.index;
        let declared = KINDS.into_iter().flat_map(|kind| {
            index
                .of_kind(SOURCE_GROUP, kind)
                .map(move |(_, object)| SourceRef {
                    kind: Text::from_static(kind),
                    id: crate::walk::index::name_of(object),
                })
        });
        let kustomizations = self.walk.kustomizations.values();
        let built =
            kustomizations.filter_map(|walked| Some(walked.spec.as_ref().ok()?.source.clone()));
        let releases = self.releases.values();
        let rendered = releases.filter_map(|release| match &release.spec.as_ref().ok()?.chart {
            Chart::Spec(spec) => Some(spec.source.clone()),
            Chart::Reference(reference) => Some(reference.clone()),
        });
        declared.chain(built).chain(rendered).collect()
    }
}

// === impl Cluster ===

impl Cluster {
    /// The tree that is at hand for a source: the repository's own, or one that the user let stand for it.
    pub(crate) fn at_hand(&self, source: &SourceRef) -> Option<&Arc<Artifact>> {
        self.sources.get(source).or_else(|| self.mapped.get(source))
    }

    /// Finds where a release's chart lies: in files that stand for its source, or where the source says.
    pub(crate) fn locate_chart(
        &self,
        release: &HelmRelease,
        index: &Index,
    ) -> Result<Location, ChartError> {
        match self.mapped_chart(release, index) {
            Some(location) => Ok(location),
            None => chart::locate(release, index),
        }
    }

    fn mapped_chart(&self, release: &HelmRelease, index: &Index) -> Option<Location> {
        let reference = match &release.chart {
            Chart::Spec(spec) => return self.mapped_spec(spec),
            Chart::Reference(reference) => reference,
        };
        let declared = index.source(reference).map(|source| source.spec);
        let Some(tree) = self.mapped.get(reference) else {
            return match declared {
                Some(SourceSpec::HelmChart(spec)) => self.mapped_spec(&spec),
                _ => None,
            };
        };
        // An ExternalArtifact is itself the chart, as everywhere else.
        if reference.kind == "ExternalArtifact" {
            return None;
        }
        let name = match &declared {
            Some(SourceSpec::Oci { url, .. }) => last_part(url),
            Some(SourceSpec::HelmChart(spec)) => last_part(&spec.chart),
            _ => &reference.id.name,
        };
        let path = only_chart(tree.as_ref()).unwrap_or_else(|| chart_path(tree.as_ref(), name, ""));
        Some(Location::Tree {
            source: reference.clone(),
            path: Text::from(path.as_str()),
            values: ValuesFiles::default(),
        })
    }

    /// A chart of a HelmRepository that a tree stands for; charts in trees are found there by their path anyway.
    fn mapped_spec(&self, spec: &ChartSpec) -> Option<Location> {
        if spec.source.kind != "HelmRepository" {
            return None;
        }
        let tree = self.mapped.get(&spec.source)?;
        let path = chart_path(tree.as_ref(), last_part(&spec.chart), &spec.version);
        // Values files of a chart from a repository are named from the chart's own directory.
        let below = |name: &Text| Text::from(path.join(name.trim_start_matches('/')).as_str());
        Some(Location::Tree {
            source: spec.source.clone(),
            values: ValuesFiles {
                names: spec.values_files.iter().map(below).collect(),
                ignore_missing: spec.ignore_missing_values_files,
            },
            path: Text::from(path.as_str()),
        })
    }
}

fn last_part(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// Where a chart of this name lies in a tree: the tree itself, a directory, or an archive, in the top or in `charts`.
///
/// A chart that is nowhere is looked for where it should be, so that the error names the place.
fn chart_path(tree: &dyn Vfs, name: &str, range: &str) -> Utf8PathBuf {
    let top = Utf8Path::new("/");
    if chart_name(tree, top).is_some_and(|found| found == name) {
        return top.to_owned();
    }
    for directory in [top, Utf8Path::new("/charts")] {
        let path = directory.join(name);
        if is_chart(tree, &path) {
            return path;
        }
        if let Some(archive) = archive(tree, directory, name, range) {
            return archive;
        }
    }
    top.join(name)
}

/// The one chart in a tree that holds nothing else: itself, or the only directory or archive in its top.
fn only_chart(tree: &dyn Vfs) -> Option<Utf8PathBuf> {
    let top = Utf8Path::new("/");
    if is_chart(tree, top) {
        return Some(top.to_owned());
    }
    let entries = tree.list(top).ok()?;
    let paths = entries.iter().map(|entry| top.join(entry.name.as_str()));
    let mut charts = paths.filter(|path| is_chart(tree, path) || is_archive(path));
    let only = charts.next()?;
    charts.next().is_none().then_some(only)
}

fn is_chart(tree: &dyn Vfs, directory: &Utf8Path) -> bool {
    tree.is_file(&directory.join("Chart.yaml"))
}

fn is_archive(path: &Utf8Path) -> bool {
    path.extension() == Some("tgz")
}

fn chart_name(tree: &dyn Vfs, directory: &Utf8Path) -> Option<String> {
    let text = tree.read(&directory.join("Chart.yaml")).ok()?;
    let documents = portolan_yaml::parse_bytes(&text, Dialect::Helm).ok()?;
    let name = documents.first()?.get("name").and_then(Node::as_str)?;
    Some(name.to_owned())
}

/// The newest archive `NAME-VERSION.tgz` of a directory whose version lies in the range.
fn archive(tree: &dyn Vfs, directory: &Utf8Path, name: &str, range: &str) -> Option<Utf8PathBuf> {
    let range = match range {
        "" => Constraints::parse("*").ok()?,
        range => Constraints::parse(range).ok()?,
    };
    let entries = tree.list(directory).ok()?;
    let versions = entries.iter().filter_map(|entry| {
        let rest = entry.name.strip_prefix(name)?.strip_prefix('-')?;
        let version = Version::parse(rest.strip_suffix(".tgz")?).ok()?;
        range.check(&version).then_some((version, &entry.name))
    });
    let (_, file) = versions.max_by(|(one, _), (two, _)| one.cmp(two))?;
    Some(directory.join(file.as_str()))
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;
    use crate::api::NamespacedName;

    fn tree(paths: &[&str]) -> Memory {
        let mut tree = Memory::new();
        for path in paths {
            tree.insert(*path, b"name: web\nversion: 1.0.0\n".to_vec());
        }
        tree
    }

    fn pattern(text: &str) -> SourcePattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_is_named_by_as_much_as_tells_it_apart() {
        let source = SourceRef {
            kind: Text::from_static("OCIRepository"),
            id: NamespacedName::new("apps", "web"),
        };
        for matching in [
            "web",
            "apps/web",
            "OCIRepository/apps/web",
            "ocirepository/apps/web",
            "OCIRepository/web",
        ] {
            assert!(pattern(matching).matches(&source), "{matching}");
        }
        for other in ["db", "flux-system/web", "Bucket/apps/web", "Bucket/web"] {
            assert!(!pattern(other).matches(&source), "{other}");
        }
    }

    #[test]
    fn what_names_no_source_is_refused() {
        for bad in ["", "/web", "apps/", "Deployment/apps/web", "a/b/c/d"] {
            assert!(bad.parse::<SourcePattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chart_is_found_as_the_tree_a_directory_or_an_archive() {
        let cases: [(&[&str], &str); 6] = [
            (&["/Chart.yaml"], "/"),
            (&["/web/Chart.yaml", "/db/Chart.yaml"], "/web"),
            (&["/charts/web/Chart.yaml"], "/charts/web"),
            (
                &["/web-1.2.0.tgz", "/web-1.10.0.tgz", "/web-ui-9.0.0.tgz"],
                "/web-1.10.0.tgz",
            ),
            (
                &["/charts/web-2.0.0.tgz", "/web-1.2.0.tgz"],
                "/web-1.2.0.tgz",
            ),
            (&["/db/Chart.yaml"], "/web"),
        ];
        for (paths, expected) in cases {
            assert_eq!(chart_path(&tree(paths), "web", "^1"), expected, "{paths:?}");
        }
    }

    #[test]
    fn the_only_chart_of_a_tree_needs_no_name() {
        assert_eq!(only_chart(&tree(&["/Chart.yaml"])).unwrap(), "/");
        let packed = tree(&["/web/Chart.yaml", "/web/values.yaml"]);
        assert_eq!(only_chart(&packed).unwrap(), "/web");
        assert_eq!(only_chart(&tree(&["/a/Chart.yaml", "/b/Chart.yaml"])), None);
    }
}
