//! Results that outlive one render, by the content of what they were made from.
//!
//! Whoever renders several trees – both sides of a diff, several clusters, the same directory again after a file was
//! saved – opens all of them with one [`Session`]. Then every Kustomization, chart and release whose inputs are equal is
//! made once:
//!
//! ```text
//! Kustomization: spec + variables ──▶ results with the files each one read (Trace) ──▶ the one whose files are equal
//! chart:         digest of its files ──▶ Chart
//! release:       digest of chart, values, names, capabilities, post-renderers ──▶ results with what each one looked up
//!                                                                              ──▶ the one whose answers are equal
//! ```
//!
//! Two units that want the same at the same time wait for each other instead of doing it twice.

pub(crate) mod fingerprint;
pub(crate) mod memo;
pub(crate) mod trace;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use portolan_engine::Key;
use portolan_object::Digest;
use tokio::sync::Mutex as Turn;

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
#[derive(Default)]
pub struct Session {
    pub(crate) builds: Slots<Vec<KeptBuild>>,
    pub(crate) charts: Slots<Option<Arc<LoadedChart>>>,
    pub(crate) releases: Slots<Vec<Arc<Released>>>,
    /// What releases that failed had looked up, by their units.
    asked: Mutex<HashMap<Key, Arc<Answers>>>,
    pub(crate) ignore_files: Memo<IgnoreFile>,
    pub(crate) declared: Memo<Mentioned>,
    pub(crate) chart_places: Memo<Utf8PathBuf>,
    pub(crate) scans: QuickScans,
    made: Tally,
    shared: Tally,
    generation: AtomicU64,
    trees: AtomicU64,
}

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

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) kustomizations: AtomicUsize,
    pub(crate) charts: AtomicUsize,
    pub(crate) releases: AtomicUsize,
}

/// One place per key, which one unit at a time may fill.
pub(crate) struct Slots<T>(Mutex<HashMap<Digest, Slot<T>>>);

struct Slot<T> {
    content: Arc<Turn<T>>,
    last_used: u64,
}

// === impl Session ===

impl Session {
    /// What was really done, not shared.
    pub fn made(&self) -> Work {
        self.made.work()
    }

    /// What was asked for and found done.
    pub fn shared(&self) -> Work {
        self.shared.work()
    }

    /// Drops results that nobody asked for since the last call; for those who render again and again.
    pub fn forget_unused(&self) {
        let now = self.generation.fetch_add(1, Ordering::Relaxed);
        self.builds.keep_since(now);
        self.charts.keep_since(now);
        self.releases.keep_since(now);
        self.lock_asked().clear();
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
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

    /// Counts a piece of work, done now or found done.
    pub(crate) fn count(&self, which: impl Fn(&Tally) -> &AtomicUsize, is_made: bool) {
        let tally = if is_made { &self.made } else { &self.shared };
        which(tally).fetch_add(1, Ordering::Relaxed);
    }
}

impl Tally {
    fn work(&self) -> Work {
        Work {
            kustomizations: self.kustomizations.load(Ordering::Relaxed),
            charts: self.charts.load(Ordering::Relaxed),
            releases: self.releases.load(Ordering::Relaxed),
        }
    }
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

    /// The result, if the tree has the same files as the one it was made from.
    pub(crate) fn for_tree(&self, artifact: &Artifact) -> Option<&Arc<Built>> {
        let holds = self.tree == artifact.number() || self.trace.holds_for(artifact);
        holds.then_some(&self.built)
    }
}

// === impl Slots ===

impl<T: Default> Slots<T> {
    /// The place for a key; whoever locks it first fills it.
    pub(crate) fn get(&self, key: Digest, generation: u64) -> Arc<Turn<T>> {
        let mut slots = self.lock();
        let slot = slots.entry(key).or_default();
        slot.last_used = generation;
        Arc::clone(&slot.content)
    }

    fn keep_since(&self, generation: u64) {
        self.lock().retain(|_, slot| slot.last_used >= generation);
    }
}

impl<T> Slots<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Slot<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> Default for Slot<T> {
    fn default() -> Self {
        Self {
            content: Arc::default(),
            last_used: 0,
        }
    }
}
