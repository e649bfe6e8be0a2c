//! The argument that names a store, and the runs that are begun in it.

use std::fs;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_layout::Store;
use portolan_ship::ShipRun;

use super::document_file::{FILE, cannot_use, find_above, real_directory};
use super::project::Project;
use crate::error::CommandError;

/// Where the store is if nothing is said, beside the document.
const STORE: &str = ".portolan";

/// Where images, results and runs are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Directory of images and runs, which is an OCI layout; the default is `.portolan` beside the document
    #[arg(long, value_name = "DIR", help_heading = "Project")]
    pub(crate) store: Option<Utf8PathBuf>,
}

impl StoreArgs {
    /// The directory of the store: the one that is named, or the one beside a document.
    pub(crate) fn directory(
        &self,
        project: Option<&Utf8Path>,
    ) -> Result<Utf8PathBuf, CommandError> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        if let Some(directory) = project {
            return Ok(directory.join(STORE));
        }
        let file = find_above().ok_or_else(|| {
            CommandError::usage(format!("there is no `{FILE}` here or in a directory above"))
                .hint("name the store: `--store DIR`")
        })?;
        Ok(real_directory(&file)?.join(STORE))
    }

    /// The store of a project, made if it is not there.
    pub(super) fn open(&self, project: &Project) -> Result<Store, CommandError> {
        let path = self.directory(Some(&project.directory))?;
        fs::create_dir_all(&path).map_err(|error| cannot_use(&path, error))?;
        // Builders leave the store out of what they read, and compare paths for that.
        let path = path
            .canonicalize_utf8()
            .map_err(|error| cannot_use(&path, error))?;
        let store = Store::open(&path).map_err(CommandError::user)?;
        if self.store.is_none() {
            let ignore = path.join(".gitignore");
            if !ignore.exists() {
                fs::write(&ignore, "*\n").map_err(|error| cannot_use(&ignore, error))?;
            }
        }
        Ok(store)
    }
}

/// Begins a run and its journal in a store.
pub(super) fn begin(store: &Store) -> Result<(ShipRun, portolan_engine::Journal), CommandError> {
    let now = SystemTime::now();
    let run = ShipRun::begin(store.root(), now).map_err(CommandError::user)?;
    let journal = run.journal(now).map_err(CommandError::user)?;
    Ok((run, journal))
}
