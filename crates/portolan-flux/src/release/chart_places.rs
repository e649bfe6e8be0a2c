//! Maps the names that Helm gives to a chart's files to their places: in the repository, or in a fetched chart.
//!
//! ```text
//! web/templates/a.yaml            ──▶ /charts/web/templates/a.yaml
//! web/charts/alias/templates/b.yaml ──▶ /charts/web/charts/base/templates/b.yaml, or /charts/base/… of `file://../base`
//! web/templates/a.yaml            ──▶ chart web 1.0.0: templates/a.yaml, where the chart was fetched
//! ```

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::{ChartFile, Package};
use portolan_object::Place;
use portolan_yaml::{Dialect, Node, Position};

/// The file that says what a chart is called.
const CHART_FILE: &str = "Chart.yaml";

/// The files of a chart in the repository, by the names that Helm gives them.
#[derive(Debug, Default)]
pub(crate) struct ChartPlaces(BTreeMap<String, Utf8PathBuf>);

/// The files of a chart and of the charts beside it that it names, as they lie in a tree.
#[derive(Debug, Default)]
pub(crate) struct ChartTree {
    directory: Utf8PathBuf,
    files: BTreeSet<Utf8PathBuf>,
    /// The directories of charts, by the name of the chart.
    charts: BTreeMap<String, BTreeSet<Utf8PathBuf>>,
}

impl ChartTree {
    /// Of the chart in a directory.
    pub(crate) fn new(directory: Utf8PathBuf) -> Self {
        Self {
            directory,
            ..Self::default()
        }
    }

    /// Takes in the files of a chart in a directory.
    pub(crate) fn add(&mut self, directory: &Utf8Path, files: &[ChartFile]) {
        for file in files {
            let path = directory.join(&file.name);
            if path.file_name() == Some(CHART_FILE)
                && let (Some(name), Some(above)) = (chart_name(&file.content), path.parent())
            {
                let directories = self.charts.entry(name).or_default();
                directories.insert(above.to_owned());
            }
            self.files.insert(path);
        }
    }

    /// The directory of a chart that is part of the one in another directory: below its `charts/`, or beside it.
    fn part(&self, above: &Utf8Path, name: &str) -> Option<Utf8PathBuf> {
        let charts = above.join("charts");
        let named = self.charts.get(name)?;
        let below = named.iter().find(|at| at.parent() == Some(&charts));
        let beside = || {
            let mut others = named.iter();
            others.find(|at| !at.starts_with(&self.directory))
        };
        below.or_else(beside).cloned()
    }
}

impl ChartPlaces {
    /// Finds the files of a chart in the tree that it was read from; `place` leads from there to the repository.
    pub(crate) fn find(
        package: &Package,
        tree: &ChartTree,
        place: impl Fn(&Utf8Path) -> Utf8PathBuf,
    ) -> Self {
        let mut found = BTreeMap::new();
        add(package, package.name(), &tree.directory, tree, &mut found);
        for path in found.values_mut() {
            *path = place(path);
        }
        Self(found)
    }

    /// The place of a line of a chart's file, which is called as Helm calls it.
    pub(crate) fn place(&self, (name, version): (&str, &str), file: &str, at: Position) -> Place {
        if let Some(path) = self.0.get(file) {
            return Place::new(path.as_str(), at);
        }
        // The chart's name comes first in the names of its files.
        let inside = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('/'));
        Place::new(
            format!("chart {name} {version}: {}", inside.unwrap_or(file)),
            at,
        )
    }
}

fn add(
    package: &Package,
    named: &str,
    directory: &Utf8Path,
    tree: &ChartTree,
    found: &mut BTreeMap<String, Utf8PathBuf>,
) {
    for file in package.templates.iter().chain(&package.files) {
        let path = directory.join(&file.name);
        if tree.files.contains(&path) {
            found.insert(format!("{named}/{}", file.name), path);
        }
    }
    for part in &package.subcharts {
        let Some(directory) = tree.part(directory, part.name()) else {
            continue;
        };
        for name in names(package, part) {
            add(
                part,
                &format!("{named}/charts/{name}"),
                &directory,
                tree,
                found,
            );
        }
    }
}

/// The names that a chart has as a part of another: its own, and those that it is given there.
pub(crate) fn names<'a>(package: &'a Package, part: &'a Package) -> impl Iterator<Item = &'a str> {
    let dependencies = package.metadata.dependencies.iter().flatten();
    let aliases = dependencies
        .filter(|dependency| dependency.name == part.name())
        .map(|dependency| dependency.alias.as_str());
    let names = aliases.chain([part.name()]);
    names.filter(|name| !name.is_empty())
}

fn chart_name(text: &[u8]) -> Option<String> {
    let documents = portolan_yaml::parse_bytes(text, Dialect::Helm).ok()?;
    let name = documents.first()?.get("name").and_then(Node::as_str);
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> ChartFile {
        ChartFile::new(name.to_owned(), text.as_bytes())
    }

    fn shown(places: &ChartPlaces, package: &Package, file: &str) -> String {
        let at = Position { line: 3, column: 1 };
        let chart = (package.name(), package.metadata.version.as_str());
        places.place(chart, file, at).to_string()
    }

    #[test]
    fn files_are_found_in_the_directories_of_their_charts() {
        let dependencies = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: base, alias: first, version: 1.0.0, repository: ''}\n- {name: beside, version: 1.0.0, repository: 'file://../beside'}\n";
        let files = vec![
            file("Chart.yaml", dependencies),
            file("templates/a.yaml", "a"),
            file(
                "charts/renamed/Chart.yaml",
                "apiVersion: v2\nname: base\nversion: 1.0.0\n",
            ),
            file("charts/renamed/templates/b.yaml", "b"),
        ];
        let beside = vec![
            file(
                "Chart.yaml",
                "apiVersion: v2\nname: beside\nversion: 1.0.0\n",
            ),
            file("templates/c.yaml", "c"),
        ];
        let mut tree = ChartTree::new("/charts/web".into());
        tree.add(Utf8Path::new("/charts/web"), &files);
        tree.add(Utf8Path::new("/charts/beside"), &beside);
        let mut package = Package::from_files(files).unwrap();
        let part = Package::from_files(beside).unwrap();
        package.subcharts.push(part.into());
        let places = ChartPlaces::find(&package, &tree, Utf8Path::to_owned);
        let shown = |file: &str| shown(&places, &package, file);
        assert_eq!(
            shown("web/templates/a.yaml"),
            "/charts/web/templates/a.yaml:3"
        );
        assert_eq!(
            shown("web/charts/first/templates/b.yaml"),
            "/charts/web/charts/renamed/templates/b.yaml:3"
        );
        assert_eq!(
            shown("web/charts/beside/templates/c.yaml"),
            "/charts/beside/templates/c.yaml:3"
        );
    }

    #[test]
    fn what_was_fetched_is_named_by_its_chart() {
        let files = vec![
            file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            file("templates/a.yaml", "a"),
        ];
        let package = Package::from_files(files).unwrap();
        let places = ChartPlaces::default();
        assert_eq!(
            shown(&places, &package, "web/templates/a.yaml"),
            "chart web 1.0.0: templates/a.yaml:3"
        );
    }
}
