//! The charts in a repository's own tree, as far as they can be found without any release.
//!
//! A release names a chart of the tree by its path: a text without the last part of the path does not use the chart.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::Vfs;
use portolan_yaml::Text;

use crate::release::chart_dependencies::local_directories;
use crate::release::quick_scan::{self, QuickScan};
use crate::session::Session;
use crate::source::artifact::Artifact;

/// How deep directories are searched.
const MAX_DEPTH: usize = 64;

/// The charts of two trees.
pub(crate) struct TreeCharts {
    after: Arc<Artifact>,
    /// Directories and archives, with what they may do; those that are part of another chart are looked at with it.
    charts: Vec<(Utf8PathBuf, QuickScan)>,
    /// Every place of a chart in either tree.
    places: BTreeSet<Utf8PathBuf>,
    /// The places that differ, or that are made of some that do.
    touched: BTreeSet<Utf8PathBuf>,
}

impl TreeCharts {
    /// Finds and looks at the charts of both trees.
    pub(crate) fn of(before: &Artifact, after: &Arc<Artifact>, session: &Session) -> Self {
        let mut found = Vec::new();
        for tree in [before.tree(), after.tree()] {
            search(tree, Utf8Path::new("/"), MAX_DEPTH, session, &mut found);
        }
        let places: BTreeSet<Utf8PathBuf> = found.into_iter().collect();
        let scan = |place: &Utf8PathBuf| {
            let scan = session.scans.of_tree(after, place.as_str());
            (place.clone(), scan)
        };
        let whole = places.iter().filter(|place| !is_part(place, &places));
        Self {
            charts: whole.map(scan).collect(),
            touched: touched(&places, before, after),
            after: Arc::clone(after),
            places,
        }
    }

    /// The names of charts whose releases have to be looked at: those that differ, or that may print objects of Flux.
    pub(crate) fn mattering(&self) -> BTreeSet<String> {
        let emitting = self.charts.iter().filter(|(_, scan)| scan.may_emit_flux);
        let emitting = emitting.flat_map(|(place, _)| self.names_at(place));
        let touched = self.touched.iter().map(|place| name_of(place));
        touched.chain(emitting).collect()
    }

    /// The names of charts that may look up objects of some kinds.
    pub(crate) fn looking_up(&self, kinds: &BTreeSet<Text>) -> BTreeSet<String> {
        let may_find = |(_, scan): &&(Utf8PathBuf, QuickScan)| scan.looked_up.includes_any(kinds);
        let looking_up = self.charts.iter().filter(may_find);
        looking_up
            .flat_map(|(place, _)| self.names_at(place))
            .collect()
    }

    /// The names of charts that may define kinds of some groups.
    pub(crate) fn defining(&self, groups: &BTreeSet<String>) -> BTreeSet<String> {
        let defines = |(place, scan): &&(Utf8PathBuf, QuickScan)| {
            scan.may_define_kinds
                && quick_scan::may_define(self.after.tree(), place.as_str(), groups)
        };
        let defining = self.charts.iter().filter(defines);
        defining
            .flat_map(|(place, _)| self.names_at(place))
            .collect()
    }

    /// The names of a chart and of all that are part of it.
    fn names_at<'a>(&'a self, place: &'a Utf8Path) -> impl Iterator<Item = String> + 'a {
        let below = self
            .places
            .iter()
            .filter(move |other| other.starts_with(place));
        below.map(|place| name_of(place))
    }
}

/// What a path to a chart ends in; nothing for the top of the tree.
fn name_of(place: &Utf8Path) -> String {
    place.file_name().unwrap_or_default().to_owned()
}

/// Whether a chart lies among the subcharts of another.
fn is_part(place: &Utf8Path, places: &BTreeSet<Utf8PathBuf>) -> bool {
    let charts = place.parent();
    let charts = charts.filter(|charts| charts.file_name() == Some("charts"));
    let above = charts.and_then(Utf8Path::parent);
    above.is_some_and(|above| places.contains(above))
}

fn search(
    files: &dyn Vfs,
    directory: &Utf8Path,
    depth: usize,
    session: &Session,
    found: &mut Vec<Utf8PathBuf>,
) {
    let stamp = files.stamp(directory);
    let Ok(()) = session
        .chart_places
        .extend(found, directory, stamp, |found| {
            let listed = files.list(directory);
            let Some(entries) = listed.ok().filter(|_| depth > 0) else {
                // What cannot be looked into may be anything.
                found.push(directory.to_owned());
                return Ok(());
            };
            for entry in entries.iter().filter(|entry| !entry.is_symlink) {
                let path = directory.join(&entry.name);
                if entry.is_directory && entry.name != ".git" {
                    search(files, &path, depth - 1, session, found);
                } else if entry.name == "Chart.yaml" {
                    found.push(directory.to_owned());
                } else if path.extension() == Some("tgz") {
                    found.push(path);
                }
            }
            Ok::<_, Infallible>(())
        });
}

/// The charts that differ between two trees, and those that name them as dependencies.
fn touched(
    places: &BTreeSet<Utf8PathBuf>,
    before: &Artifact,
    after: &Artifact,
) -> BTreeSet<Utf8PathBuf> {
    let differs = |place: &&Utf8PathBuf| before.identity(place) != after.identity(place);
    let mut touched: BTreeSet<_> = places.iter().filter(differs).cloned().collect();
    if touched.is_empty() {
        return touched;
    }
    let depends = |place: &Utf8PathBuf, touched: &BTreeSet<Utf8PathBuf>| {
        let local = |tree: &dyn Vfs| local_directories(tree, place.as_str());
        let local = local(before.tree()).into_iter().chain(local(after.tree()));
        local.into_iter().any(|local| touched.contains(&local))
    };
    loop {
        let more: Vec<_> = places
            .iter()
            .filter(|place| !touched.contains(*place) && depends(place, &touched))
            .cloned()
            .collect();
        if more.is_empty() {
            return touched;
        }
        touched.extend(more);
    }
}
