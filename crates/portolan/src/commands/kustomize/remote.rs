//! Remote bases, files and charts of a build: from the cache, with the pins of a repository's lock file.

use std::sync::Arc;

use camino::Utf8Path;
use portolan_sources::{Lock, Options, Sources, Watch};
use portolan_supply::Remote;

use crate::app::App;
use crate::error::CommandError;
use crate::outside::{LOCK_FILE, docker_config, netrc};
use crate::places;

/// What brings remote things.
pub(super) struct Outside {
    /// Brings charts.
    pub(super) sources: Arc<Sources>,
    /// Brings bases and files.
    pub(super) remote: Remote,
}

impl Outside {
    /// Makes ready what a build of the directory may need; nothing is fetched yet.
    pub(super) fn open(
        directory: &Utf8Path,
        offline: bool,
        app: &App,
    ) -> Result<Self, CommandError> {
        let options = Options {
            offline,
            docker_config: Arc::new(docker_config()),
            allow_local_git: true,
            watch: Watch::new(app.printer.announcer()),
            ..Options::default()
        };
        let lock = lock(directory)?;
        let sources = Arc::new(Sources::open(&places::cache_directory(), lock, options));
        Ok(Self {
            remote: Remote::new(
                Arc::clone(&sources),
                netrc(),
                None,
                app.lazy_runtime().clone(),
            ),
            sources,
        })
    }
}

/// The lock file of the repository that the directory lies in; outside of one nothing is pinned.
fn lock(directory: &Utf8Path) -> Result<Lock, CommandError> {
    let mut above = directory.ancestors();
    let top = above.find(|directory| directory.join(".git").exists());
    match top {
        Some(top) => Lock::load(&top.join(LOCK_FILE)).map_err(CommandError::user),
        None => Ok(Lock::default()),
    }
}
