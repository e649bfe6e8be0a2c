//! Results that are kept beyond one render, by the content of their inputs.
//!
//! A caller that renders several trees (both sides of a diff, several clusters, the same directory again after a file
//! was saved) opens all of them with one [`Session`]. Then Kustomizations, charts and releases with equal inputs are
//! made only once:
//!
//! ```text
//! Kustomization: spec + variables ──▶ results with the files each one read (Trace) ──▶ the one whose files are equal
//! chart:         digest of its files ──▶ Chart
//! release:       digest of chart, values, names, capabilities, post-renderers ──▶ results with what each one looked up
//!                                                                              ──▶ the one whose answers are equal
//! ```
//!
//! If two units need the same result at the same time, one makes it and the other waits.

pub(crate) mod fingerprint;
pub(crate) mod memo;
pub(crate) mod trace;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use portolan_engine::{Key, ResultCounts, ResultLimits, ResultSlot, Results};
use portolan_object::{Digest, PackDictionary};

use crate::discover::Mentioned;
use crate::kustomization::build::Built;
use crate::release::Released;
use crate::release::loaded_chart::LoadedChart;
use crate::release::lookup::Answers;
use crate::release::quick_scan::QuickScans;
use crate::session::memo::Memo;
use crate::session::trace::Trace;
use crate::source::artifact::{Artifact, IgnoreFile};

/// Results that are shared between renders.
pub struct Session {
    builds: Results<KeptBuild>,
    charts: Results<LoadedChart>,
    releases: Results<Released>,
    /// What releases that failed had looked up, by their units.
    asked: Mutex<HashMap<Key, Arc<Answers>>>,
    pub(crate) ignore_files: Memo<IgnoreFile>,
    pub(crate) declared: Memo<Mentioned>,
    pub(crate) chart_places: Memo<Utf8PathBuf>,
    pub(crate) scans: QuickScans,
    /// What the objects of Kustomizations have in common, for those that are packed.
    pub(crate) build_dictionary: PackDictionary,
    trees: AtomicU64,
}

/// How much a session keeps: more than the largest repositories have of anything, and of one digest as many results as
/// there are trees and answers in use at a time.
const LIMITS: ResultLimits = ResultLimits {
    digests: 1 << 16,
    variants: 8,
};

/// What a unit gives that the session keeps as well.
pub(crate) struct SessionResult<T>(pub(crate) Arc<T>);

/// A Kustomization's result, and the files it holds for.
pub(crate) struct KeptBuild {
    tree: u64,
    trace: Trace,
    built: Arc<Built>,
}

/// How much was done since the session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Kustomizations built.
    pub kustomizations: usize,
    /// Charts loaded.
    pub charts: usize,
    /// Releases rendered.
    pub releases: usize,
}

// === impl Session ===

impl Session {
    /// What was really done, not shared.
    pub fn made(&self) -> Work {
        self.work(|counts| counts.made)
    }

    /// What was asked for and found done.
    pub fn shared(&self) -> Work {
        self.work(|counts| counts.found)
    }

    fn work(&self, which: impl Fn(ResultCounts) -> u64) -> Work {
        let count = |counts| which(counts) as usize;
        Work {
            kustomizations: count(self.builds.counts()),
            charts: count(self.charts.counts()),
            releases: count(self.releases.counts()),
        }
    }

    /// Drops results that nobody asked for since the last call; for those who render again and again.
    pub fn forget_unused(&self) {
        self.builds.forget_unused();
        self.charts.forget_unused();
        self.releases.forget_unused();
        self.lock_asked().clear();
    }

    /// The builds of a Kustomization; one unit at a time has them.
    pub(crate) async fn builds(&self, inputs: &Digest) -> ResultSlot<KeptBuild> {
        self.builds.of(by_bytes(inputs)).await
    }

    /// A chart; one unit at a time has it.
    pub(crate) async fn charts(&self, inputs: &Digest) -> ResultSlot<LoadedChart> {
        self.charts.of(by_bytes(inputs)).await
    }

    /// What a release gave; one unit at a time has it.
    pub(crate) async fn releases(&self, inputs: &Digest) -> ResultSlot<Released> {
        self.releases.of(by_bytes(inputs)).await
    }

    /// Remembers what a unit that failed had looked up.
    pub(crate) fn note_asked(&self, unit: &Key, answers: &Arc<Answers>) {
        let answers = Arc::clone(answers);
        self.lock_asked().insert(unit.clone(), answers);
    }

    /// What a unit that failed had looked up.
    pub(crate) fn asked_by(&self, unit: &Key) -> Option<Arc<Answers>> {
        self.lock_asked().get(unit).map(Arc::clone)
    }

    fn lock_asked(&self) -> MutexGuard<'_, HashMap<Key, Arc<Answers>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a tree that is opened.
    pub(crate) fn number_tree(&self) -> u64 {
        self.trees.fetch_add(1, Ordering::Relaxed)
    }
}

impl Default for Session {
    fn default() -> Self {
        Self {
            builds: Results::new(LIMITS),
            charts: Results::new(LIMITS),
            releases: Results::new(LIMITS),
            asked: Mutex::default(),
            ignore_files: Memo::default(),
            declared: Memo::default(),
            chart_places: Memo::default(),
            scans: QuickScans::default(),
            build_dictionary: PackDictionary::default(),
            trees: AtomicU64::new(0),
        }
    }
}

fn by_bytes(digest: &Digest) -> portolan_engine::Digest {
    portolan_engine::Digest::from_bytes(&digest.0)
}

// === impl KeptBuild ===

impl KeptBuild {
    pub(crate) fn new(artifact: &Artifact, trace: Trace, built: &Arc<Built>) -> Self {
        Self {
            tree: artifact.number(),
            trace,
            built: Arc::clone(built),
        }
    }

    /// Whether the tree has the same files as the one it was made from.
    pub(crate) fn holds_for(&self, artifact: &Artifact) -> bool {
        self.tree == artifact.number() || self.trace.holds_for(artifact)
    }

    /// The result.
    pub(crate) fn built(&self) -> Arc<Built> {
        Arc::clone(&self.built)
    }
}
