//! Renders a repository with one file changed, to see the effect.
//!
//! ```text
//! explain: a line that may decide a field ──changed──▶ rendered ──▶ does the field change?
//! compare: a line that was edited ────────as it was──▶ rendered ──▶ does the change go away?
//! ```
//!
//! So both name a line only if the rendered field depends on it, whatever is between them.

use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_engine::Key;
use portolan_flux::{Demand, Rendering, Session, cluster_unit};
use portolan_vfs::{Overlay, Vfs};

use crate::{FluxRepository, Runner};

/// A file as it might be.
pub(crate) struct ChangedFile {
    pub(crate) path: Utf8PathBuf,
    pub(crate) content: Vec<u8>,
}

/// What is changed, and how it is rendered: a repository with the directory of its one cluster.
pub(crate) struct Experiment<'a> {
    pub(crate) files: Arc<dyn Vfs>,
    pub(crate) repository: &'a FluxRepository,
}

impl Experiment<'_> {
    /// What comes of each changed file; `None` where the change makes the repository unreadable, which says nothing. All
    /// run at once and share what their change does not reach.
    pub(crate) fn renderings<R: Runner>(
        &self,
        changes: impl Iterator<Item = ChangedFile>,
        demand: &Demand,
        runner: &R,
    ) -> Result<Vec<Option<Arc<Rendering>>>, R::Error> {
        let kept: Arc<Session> = Arc::default();
        let key = |index: usize| Key::from(format!("Experiment/{index}"));
        let mut begun = Vec::new();
        let mut count = 0;
        for (index, change) in changes.enumerate() {
            count = index + 1;
            let changed: Arc<dyn Vfs> = Arc::new(Overlay {
                files: Arc::clone(&self.files),
                path: change.path,
                content: change.content,
            });
            if let Ok(repo) = self.repository.open(&changed, Some(&kept))
                && let [cluster] = repo.clusters()
            {
                begun.push((index, Arc::clone(cluster)));
            }
        }
        let report = runner.run_unseen(&mut |run| {
            for (index, cluster) in &begun {
                let unit = cluster_unit(Arc::clone(cluster), demand.clone());
                run.add(key(*index), &[], unit);
            }
        })?;
        Ok((0..count)
            .map(|index| report.output::<Rendering>(&key(index)))
            .collect())
    }
}
