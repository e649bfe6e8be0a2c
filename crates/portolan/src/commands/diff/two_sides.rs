//! Both sides rendered in one run, so that what they share is done once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use portolan_engine::{Key, Report};
use portolan_flux::api::SourceRef;
use portolan_flux::{
    CLUSTER_NOT_COVERED, Cluster, Demand, Depth, NotRendered, Pair, Rendering, Repo, Session,
    cluster_unit, not_covered, pair_unit, unskipped_pair_unit,
};
use portolan_object::{Finding, KubeVersion};
use portolan_sources::Pinning;
use portolan_yaml::Text;

use super::{DiffArgs, Trees};
use crate::error::CommandError;
use crate::outside::Outside;
use crate::printer::Printer;
use crate::session;

/// Every cluster of both sides, rendered as far as the sides differ.
pub(super) struct TwoSides {
    /// The clusters that were, by the directory they start from.
    pub(super) old: BTreeMap<Text, ClusterSide>,
    /// The clusters that are to be.
    pub(super) new: BTreeMap<Text, ClusterSide>,
    /// What became of every unit.
    pub(super) report: Report,
    /// What was not looked at, or only nearly.
    pub(super) not_covered: Vec<Finding>,
    /// The oldest release among the clusters: what it serves, no cluster lacks.
    pub(super) kubernetes: KubeVersion,
}

/// One side of one cluster.
pub(super) struct ClusterSide {
    /// The cluster's name.
    pub(super) name: Text,
    /// The source that stands for the repository itself.
    pub(super) source: SourceRef,
    /// The cluster itself.
    pub(super) cluster: Arc<Cluster>,
    rendering: Source,
}

/// Where a rendering is kept.
enum Source {
    Alone(Arc<Rendering>),
    Before(Arc<Pair>),
    After(Arc<Pair>),
}

impl Deref for ClusterSide {
    type Target = Rendering;

    fn deref(&self) -> &Rendering {
        match &self.rendering {
            Source::Alone(rendering) => rendering,
            Source::Before(pair) => &pair.before,
            Source::After(pair) => &pair.after,
        }
    }
}

impl ClusterSide {
    /// What the comparison did not render; `None` for a cluster that only one side has.
    pub(super) fn not_rendered(&self) -> Option<&NotRendered> {
        match &self.rendering {
            Source::Alone(_) => None,
            Source::Before(pair) | Source::After(pair) => Some(&pair.not_rendered),
        }
    }
}

impl TwoSides {
    /// Renders what is asked for as far as the sides differ.
    pub(super) fn render(
        args: &DiffArgs,
        trees: &Trees,
        demand: &Demand,
        printer: &Printer,
    ) -> Result<Self, CommandError> {
        let outside = args
            .repository
            .outside(&trees.located, Pinning::Prefer, printer)?;
        let is_whole = args.sides.no_skip;
        Self::render_outside(args, trees, demand, &outside, is_whole, printer)
    }

    /// Renders everything for which no chart has to be fetched.
    pub(super) fn render_whole(
        args: &DiffArgs,
        trees: &Trees,
        printer: &Printer,
    ) -> Result<Self, CommandError> {
        let pinning = Pinning::Prefer;
        let mut outside = args.repository.outside(&trees.located, pinning, printer)?;
        outside.fetches_charts = false;
        let demand = Depth::Releases.into();
        Self::render_outside(args, trees, &demand, &outside, true, printer)
    }

    fn render_outside(
        args: &DiffArgs,
        trees: &Trees,
        demand: &Demand,
        outside: &Outside,
        is_whole: bool,
        printer: &Printer,
    ) -> Result<Self, CommandError> {
        let session = Arc::<Session>::default();
        let new = args
            .repository
            .open(&trees.new, &trees.located, outside, Some(&session))?;
        let old = open_old(args, trees, outside, &session)?;
        let mut uncovered = not_covered(&new);
        let before = old.iter().flat_map(not_covered);
        // A version that was chosen before counts no more; a cluster may have been where nobody looks.
        let before = before.filter(|finding| finding.rule == &CLUSTER_NOT_COVERED);
        for finding in before {
            if !uncovered.contains(&finding) {
                uncovered.push(finding);
            }
        }
        let (old, new) = (by_path(old.as_ref(), trees), by_path(Some(&new), trees));
        let paths: BTreeSet<&Text> = old.keys().chain(new.keys()).collect();
        let key = |path: &Text| Key::from(format!("Cluster/{path}"));
        let releases = new
            .values()
            .map(|cluster| cluster.kubernetes.value.release());
        let kubernetes = releases.min().unwrap_or(KubeVersion::DEFAULT);
        let report = session::run(printer, |run| {
            for path in &paths {
                let unit = match (old.get(*path).cloned(), new.get(*path).cloned()) {
                    (Some(old), Some(new)) if is_whole => {
                        unskipped_pair_unit(old, new, demand.clone())
                    }
                    (Some(old), Some(new)) => pair_unit(old, new, demand.clone()),
                    (Some(only), None) | (None, Some(only)) => cluster_unit(only, demand.clone()),
                    (None, None) => continue,
                };
                run.add(key(path), &[], unit);
            }
        })?;
        args.check_sources(old.values().chain(new.values()))?;
        let mut two_sides = Self {
            old: BTreeMap::new(),
            new: BTreeMap::new(),
            report,
            not_covered: uncovered,
            kubernetes,
        };
        for path in paths {
            two_sides.take(path, &key(path), old.get(path), new.get(path))?;
        }
        Ok(two_sides)
    }

    fn take(
        &mut self,
        path: &Text,
        key: &Key,
        old: Option<&Arc<Cluster>>,
        new: Option<&Arc<Cluster>>,
    ) -> Result<(), CommandError> {
        let failed = || CommandError::usage(self.report.to_string());
        let cluster_side = |cluster: &Arc<Cluster>, rendering| ClusterSide {
            name: cluster.name.clone(),
            source: cluster.root.source.clone(),
            cluster: Arc::clone(cluster),
            rendering,
        };
        match (old, new) {
            (Some(old), Some(new)) => {
                let pair = self.report.output::<Pair>(key).ok_or_else(failed)?;
                let before = cluster_side(old, Source::Before(Arc::clone(&pair)));
                self.old.insert(path.clone(), before);
                self.new
                    .insert(path.clone(), cluster_side(new, Source::After(pair)));
            }
            (Some(only), None) | (None, Some(only)) => {
                let rendering = self.report.output::<Rendering>(key).ok_or_else(failed)?;
                let side = if new.is_some() {
                    &mut self.new
                } else {
                    &mut self.old
                };
                side.insert(path.clone(), cluster_side(only, Source::Alone(rendering)));
            }
            (None, None) => {}
        }
        Ok(())
    }
}

impl DiffArgs {
    /// Refuses a mapping for a source that neither side has. A comparison does not build what is equal on both sides, so
    /// all Kustomizations are built for this question, where it is asked.
    fn check_sources<'a>(
        &self,
        clusters: impl Iterator<Item = &'a Arc<Cluster>>,
    ) -> Result<(), CommandError> {
        if !self.repository.maps_sources() {
            return Ok(());
        }
        let clusters: Vec<&Arc<Cluster>> = clusters.collect();
        let key = |index: usize| Key::from(format!("Sources/{index}"));
        let report = session::run_unseen(|run| {
            for (index, cluster) in clusters.iter().enumerate() {
                let unit = cluster_unit(Arc::clone(cluster), Depth::Kustomizations);
                run.add(key(index), &[], unit);
            }
        })?;
        let renderings = (0..clusters.len()).filter_map(|index| report.output(&key(index)));
        let renderings: Vec<Arc<Rendering>> = renderings.collect();
        self.repository
            .check_sources(renderings.iter().map(AsRef::as_ref))
    }
}

/// The repository of the old side; one that had no cluster yet has nothing to compare with.
fn open_old(
    args: &DiffArgs,
    trees: &Trees,
    outside: &Outside,
    session: &Arc<Session>,
) -> Result<Option<Repo>, CommandError> {
    let Some(files) = &trees.old else {
        return Ok(None);
    };
    match args
        .repository
        .open(files, &trees.old_located(), outside, Some(session))
    {
        Ok(repo) => Ok(Some(repo)),
        // A commit may be older than the cluster; a directory that was named has to hold it.
        Err(error) if error.is_no_cluster() && args.sides.path_orig.is_none() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The clusters by the directory they start from; when one was asked for, it is the same wherever it lies.
fn by_path(repo: Option<&Repo>, trees: &Trees) -> BTreeMap<Text, Arc<Cluster>> {
    let clusters = repo.into_iter().flat_map(Repo::clusters);
    let path = |cluster: &Cluster| match trees.located.root {
        Some(_) => Text::from_static("the one asked for"),
        None => cluster.root.path.clone(),
    };
    clusters
        .map(|cluster| (path(cluster), Arc::clone(cluster)))
        .collect()
}
