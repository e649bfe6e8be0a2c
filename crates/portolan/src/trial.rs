//! Renders a repository with one file changed, to see what comes of it.
//!
//! ```text
//! explain: a line that may decide a field ──changed──▶ rendered ──▶ does the field change?
//! diff:    a line that was edited ────────as it was──▶ rendered ──▶ does the change go away?
//! ```
//!
//! So both name a line only if the rendered field depends on it, whatever lies between.

mod overlay;

use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_engine::Key;
use portolan_flux::{Demand, Rendering, Session, cluster_unit};
use portolan_vfs::Vfs;

use self::overlay::Overlay;
use crate::error::CommandError;
use crate::outside::Outside;
use crate::repository::{Located, RepositoryArgs};
use crate::session;

/// A file as it might be.
pub(crate) struct Trial {
    pub(crate) file: Utf8PathBuf,
    pub(crate) content: Vec<u8>,
}

/// What trials change, and how it is rendered.
pub(crate) struct Bench<'a> {
    pub(crate) files: Arc<dyn Vfs>,
    /// The repository and the directory of its one cluster that is rendered.
    pub(crate) located: Located,
    pub(crate) outside: &'a Outside,
    pub(crate) repository: &'a RepositoryArgs,
}

impl Bench<'_> {
    /// What each trial gives; `None` where the change makes the repository unreadable, which says nothing. All run at
    /// once and share what their change does not reach.
    pub(crate) fn renderings(
        &self,
        trials: impl Iterator<Item = Trial>,
        demand: &Demand,
    ) -> Result<Vec<Option<Arc<Rendering>>>, CommandError> {
        let kept: Arc<Session> = Arc::default();
        let key = |index: usize| Key::from(format!("Trial/{index}"));
        let mut begun = Vec::new();
        let mut count = 0;
        for (index, trial) in trials.enumerate() {
            count = index + 1;
            let changed: Arc<dyn Vfs> = Arc::new(Overlay {
                files: Arc::clone(&self.files),
                path: trial.file,
                content: trial.content,
            });
            let opened = self
                .repository
                .open(&changed, &self.located, self.outside, Some(&kept));
            if let Ok(repo) = opened
                && let [cluster] = repo.clusters()
            {
                begun.push((index, Arc::clone(cluster)));
            }
        }
        let report = session::run_unseen(|run| {
            for (index, cluster) in begun {
                run.add(key(index), &[], cluster_unit(cluster, demand.clone()));
            }
        })?;
        Ok((0..count)
            .map(|index| report.output::<Rendering>(&key(index)))
            .collect())
    }
}
