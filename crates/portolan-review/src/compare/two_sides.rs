//! Renders both sides in one run, so what they share is done once.

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
use portolan_yaml::Text;

use super::Trees;
use crate::repository::check_settings;
use crate::source_check::refuse_unknown_sources;
use crate::{FluxRepository, ReviewError, Runner};

/// Every cluster of both sides, rendered as far as the sides differ.
pub struct TwoSides {
    /// The clusters that were, by the directory they start from.
    pub old: BTreeMap<Text, ClusterSide>,
    /// The clusters that are to be.
    pub new: BTreeMap<Text, ClusterSide>,
    /// What became of every unit.
    pub report: Report,
    /// What was not looked at, or only nearly.
    pub not_covered: Vec<Finding>,
    /// The oldest release among the clusters: what it serves, no cluster lacks.
    pub kubernetes: KubeVersion,
}

/// Whether work is skipped that cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Skipping {
    /// What has equal inputs on both sides is not rendered.
    #[default]
    On,
    /// Both sides are rendered in full: the answer is the same.
    Off,
}

/// One side of one cluster.
pub struct ClusterSide {
    /// The cluster's name.
    pub name: Text,
    /// The source that stands for the repository itself.
    pub source: SourceRef,
    /// The cluster itself.
    pub cluster: Arc<Cluster>,
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
    /// Renders what is asked for as far as the sides differ, or in full.
    pub(super) fn render<R: Runner>(
        repository: &FluxRepository,
        trees: &Trees,
        demand: &Demand,
        skipping: Skipping,
        runner: &R,
    ) -> Result<Self, R::Error> {
        check_settings(trees.new.as_ref())?;
        let session = Arc::<Session>::default();
        let new = repository.open(&trees.new, Some(&session))?;
        let old = open_old(repository, trees, &session)?;
        let mut uncovered = not_covered(&new);
        let before = old.iter().flat_map(not_covered);
        // A version that was chosen before counts no more; a cluster may have been where nobody looks.
        let before = before.filter(|finding| finding.rule == &CLUSTER_NOT_COVERED);
        for finding in before {
            if !uncovered.contains(&finding) {
                uncovered.push(finding);
            }
        }
        let (old, new) = (
            by_path(old.as_ref(), repository),
            by_path(Some(&new), repository),
        );
        let paths: BTreeSet<&Text> = old.keys().chain(new.keys()).collect();
        let releases = new
            .values()
            .map(|cluster| cluster.kubernetes.value.release());
        let kubernetes = releases.min().unwrap_or(KubeVersion::DEFAULT);
        let report = runner.run(&mut |run| {
            for path in &paths {
                match (old.get(*path).cloned(), new.get(*path).cloned()) {
                    (Some(old), Some(new)) => {
                        let unit = if skipping == Skipping::Off {
                            unskipped_pair_unit(old, new, demand.clone())
                        } else {
                            pair_unit(old, new, demand.clone())
                        };
                        run.add(unit_key(path), &[], unit);
                    }
                    (Some(only), None) | (None, Some(only)) => {
                        let unit = cluster_unit(only, demand.clone());
                        run.add(unit_key(path), &[], unit);
                    }
                    (None, None) => {}
                }
            }
        })?;
        check_sources(repository, old.values().chain(new.values()), runner)?;
        let mut two_sides = Self {
            old: BTreeMap::new(),
            new: BTreeMap::new(),
            report,
            not_covered: uncovered,
            kubernetes,
        };
        for path in paths {
            two_sides.take(path, old.get(path), new.get(path))?;
        }
        Ok(two_sides)
    }

    fn take(
        &mut self,
        path: &Text,
        old: Option<&Arc<Cluster>>,
        new: Option<&Arc<Cluster>>,
    ) -> Result<(), ReviewError> {
        let failed = || ReviewError::refused(&self.report);
        let cluster_side = |cluster: &Arc<Cluster>, rendering| ClusterSide {
            name: cluster.name.clone(),
            source: cluster.root.source.clone(),
            cluster: Arc::clone(cluster),
            rendering,
        };
        match (old, new) {
            (Some(old), Some(new)) => {
                let pair = self.report.output::<Pair>(&unit_key(path));
                let pair = pair.ok_or_else(failed)?;
                let before = cluster_side(old, Source::Before(Arc::clone(&pair)));
                self.old.insert(path.clone(), before);
                self.new
                    .insert(path.clone(), cluster_side(new, Source::After(pair)));
            }
            (Some(only), None) | (None, Some(only)) => {
                let rendering = self.report.output::<Rendering>(&unit_key(path));
                let rendering = rendering.ok_or_else(failed)?;
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

/// Refuses a mapping for a source that neither side has. A comparison does not build what is equal on both sides, so
/// all Kustomizations are built for this question, where it is asked.
fn check_sources<'a, R: Runner>(
    repository: &FluxRepository,
    clusters: impl Iterator<Item = &'a Arc<Cluster>>,
    runner: &R,
) -> Result<(), R::Error> {
    if repository.settings.sources.is_empty() {
        return Ok(());
    }
    let clusters: Vec<&Arc<Cluster>> = clusters.collect();
    let key = |index: usize| Key::from(format!("Sources/{index}"));
    let report = runner.run_unseen(&mut |run| {
        for (index, cluster) in clusters.iter().enumerate() {
            let unit = cluster_unit(Arc::clone(cluster), Depth::Kustomizations);
            run.add(key(index), &[], unit);
        }
    })?;
    let renderings = (0..clusters.len()).filter_map(|index| report.output(&key(index)));
    let renderings: Vec<Arc<Rendering>> = renderings.collect();
    let renderings = renderings.iter().map(AsRef::as_ref);
    Ok(refuse_unknown_sources(
        &repository.settings.sources,
        renderings,
    )?)
}

/// The key of the unit that compares or renders the cluster at a path.
fn unit_key<T>(path: &Text) -> Key<T> {
    Key::from(format!("Cluster/{path}"))
}

/// The repository of the old side; one that had no cluster yet has nothing to compare with.
fn open_old(
    repository: &FluxRepository,
    trees: &Trees,
    session: &Arc<Session>,
) -> Result<Option<Repo>, ReviewError> {
    let Some(files) = &trees.old else {
        return Ok(None);
    };
    let root = trees.old_root.clone().or_else(|| repository.root.clone());
    match repository.rooted(root).open(files, Some(session)) {
        Ok(repo) => Ok(Some(repo)),
        // A commit may be older than the cluster; a directory that was named has to hold it.
        Err(error) if error.is_no_cluster() && !trees.is_old_named => Ok(None),
        Err(error) => Err(error),
    }
}

/// The clusters by the directory they start from; when one was asked for, it is the same wherever it lies.
fn by_path(repo: Option<&Repo>, repository: &FluxRepository) -> BTreeMap<Text, Arc<Cluster>> {
    let clusters = repo.into_iter().flat_map(Repo::clusters);
    let path = |cluster: &Cluster| match repository.root {
        Some(_) => Text::from_static("the one asked for"),
        None => cluster.root.path.clone(),
    };
    clusters
        .map(|cluster| (path(cluster), Arc::clone(cluster)))
        .collect()
}
