//! A project that was read, and what its builders get.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8PathBuf;
use portolan_layout::Store;
use portolan_ship::{Adjustments, BaseImages, BuildSetup, Ship, ShipRun, UnknownArtifact};

use crate::error::CommandError;

/// A project that was read.
pub(super) struct Project {
    /// What its document says.
    pub(super) ship: Ship,
    /// The document's file as messages have it.
    pub(super) file: Utf8PathBuf,
    /// The document's text.
    pub(super) text: String,
    /// The directory of the document, without links.
    pub(super) directory: Utf8PathBuf,
    /// The environment, of which commands get what the document names.
    pub(super) env: Arc<BTreeMap<String, String>>,
    /// What was laid over the document.
    pub(super) asked: Adjustments,
}

impl Project {
    /// What builders of a run have.
    pub(super) fn setup(
        &self,
        store: Arc<Store>,
        run: ShipRun,
        bases: Arc<BaseImages>,
        jobs: usize,
    ) -> BuildSetup {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        BuildSetup {
            directory: self.directory.clone(),
            store,
            run: Arc::new(run),
            bases,
            writes_sbom: false,
            git: Arc::default(),
            threads: (cores / jobs.max(1)).max(1),
            now: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            env: Arc::clone(&self.env),
        }
    }

    /// An artifact of that name is not there; says which may be meant.
    pub(super) fn no_artifact(&self, unknown: &UnknownArtifact) -> CommandError {
        let (file, name) = (&self.file, &unknown.name);
        CommandError::usage(format!("`{file}` has no artifact `{name}`")).hint(&unknown.hint)
    }
}
