//! Renders a repository again whenever its files change, and gives the differences from the last state that could be
//! rendered.
//!
//! ```text
//! Snapshot ──(files differ)──▶ render with one Session ──▶ LastState ──▶ difference, problems that are new or fixed
//! ```
//!
//! The session keeps what was built, so a render costs only what depends on the changed files. The caller decides
//! when to look.

mod last_state;
mod snapshot;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_diff::{Options, Report, StripAttributes};
use portolan_flux::{Cluster, Depth, Session, Work, cluster_unit};
use portolan_object::Finding;
use portolan_vfs::{Disk, Frozen, Lineage, Vfs};

use crate::repository::RenderOptions;
use crate::{FluxRepository, RenderedRepository, Runner};
use last_state::LastState;
use snapshot::Snapshot;

/// A repository that is watched.
pub struct RepositoryWatch {
    disk: Disk,
    session: Arc<Session>,
    /// Which files were touched when, so that nothing else is looked at again.
    lineage: Lineage,
    snapshot: Snapshot,
    last: LastState,
}

/// What a render showed.
pub struct WatchedState {
    /// What was rendered.
    pub rendered: RenderedRepository,
    /// What differs from the last state; `None` for the first one.
    pub report: Option<Report>,
    /// What is wrong and was not before.
    pub new_problems: Vec<Finding>,
    /// What was wrong and is no more, each as a sentence.
    pub fixed: Vec<String>,
}

impl RepositoryWatch {
    /// Begins with the files as they are now.
    pub fn begin(repository: &FluxRepository) -> Self {
        let disk = repository.disk.clone();
        Self {
            snapshot: Snapshot::of(disk.root()),
            disk,
            session: Arc::default(),
            lineage: Lineage::begin(),
            last: LastState::default(),
        }
    }

    /// The directory that is watched.
    pub fn root(&self) -> &Utf8Path {
        self.disk.root()
    }

    /// How much was done since the beginning.
    pub fn made(&self) -> Work {
        self.session.made()
    }

    /// The files that were written, added or taken away since the last look.
    pub fn touched(&mut self) -> Vec<Utf8PathBuf> {
        let snapshot = Snapshot::of(self.disk.root());
        let touched = snapshot.since(&self.snapshot);
        self.snapshot = snapshot;
        if !touched.is_empty() {
            let inside = |path: &Utf8PathBuf| Utf8Path::new("/").join(path);
            let paths: Vec<_> = touched.iter().map(inside).collect();
            let paths = paths.iter().map(Utf8PathBuf::as_path);
            self.lineage = self.lineage.followed_by(paths);
        }
        touched
    }

    /// Renders the files as they are.
    pub fn render<R: Runner>(
        &mut self,
        repository: &FluxRepository,
        runner: &R,
    ) -> Result<WatchedState, R::Error> {
        let files = Frozen::new(self.disk.clone()).with_lineage(self.lineage.clone());
        let files: Arc<dyn Vfs> = Arc::new(files);
        let options = RenderOptions {
            session: Some(Arc::clone(&self.session)),
        };
        let unit = |cluster: &Arc<Cluster>, _: Option<&str>| {
            cluster_unit(Arc::clone(cluster), Depth::Releases)
        };
        let rendered = repository.render_files(files, &options, unit, runner)?;
        Ok(self.take(rendered))
    }

    fn take(&mut self, rendered: RenderedRepository) -> WatchedState {
        let is_first = self.last.is_empty();
        let before = self.last.batches();
        self.last.take(&rendered);
        let (new_problems, fixed) = self.last.take_problems(&rendered);
        let report = (!is_first).then(|| {
            let options = Options {
                strip: StripAttributes::common(),
                ..Options::default()
            };
            portolan_diff::diff(&before, &self.last.batches(), &options)
        });
        // In the middle of an edit, what is not asked for now is wanted again in a moment.
        if !is_first && self.last.is_fine() {
            self.session.forget_unused();
        }
        WatchedState {
            rendered,
            report,
            new_problems,
            fixed,
        }
    }
}
