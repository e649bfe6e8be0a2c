//! A chart directory as a list of files: everything below it, sorted by path, without what `.helmignore` excludes.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{Vfs, VfsError};

use super::archive::{MAX_CHART_FILE_BYTES, MAX_CHART_FILES};
use super::ignore::IgnoreRules;
use super::{ChartFile, LoadError};
use crate::parallel;

/// How deep directories may lie in each other: symbolic links that lead in circles end here.
const MAX_DEPTH: usize = 64;

/// What opening and reading a file costs, in bytes that could be parsed meanwhile.
const COST_OF_A_FILE: usize = 1024;

/// Reads the files of a chart directory, and makes of each what the caller wants beside the others.
pub(crate) fn read(
    vfs: &dyn Vfs,
    root: &Utf8Path,
    finish: fn(ChartFile) -> ChartFile,
) -> Result<Vec<ChartFile>, LoadError> {
    let rules = match vfs.read(&root.join(".helmignore")) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(VfsError::NotFound(_) | VfsError::IsDirectory(_)) => String::new(),
        Err(error) => return Err(error.into()),
    };
    let rules = IgnoreRules::parse(&rules).map_err(LoadError::Ignore)?;
    let mut walk = Walk {
        vfs,
        rules,
        found: Vec::new(),
    };
    walk.directory(root, "", 0)?;
    let cost = walk.found.len() * COST_OF_A_FILE;
    // Values take longest, so they go first: no thread is left alone with them at the end.
    let mut order: Vec<usize> = (0..walk.found.len()).collect();
    order.sort_by_key(|place| !ChartFile::is_defaults(&walk.found[*place].name));
    let files = parallel::map(&order, cost, |place| {
        walk.found[*place].read(vfs).map(finish)
    });
    let mut placed: Vec<_> = order.into_iter().zip(files).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, file)| file).collect()
}

/// A file that belongs to the chart.
struct Found {
    /// The path below the chart's root.
    name: String,
    path: Utf8PathBuf,
}

impl Found {
    fn read(&self, vfs: &dyn Vfs) -> Result<ChartFile, LoadError> {
        let content = vfs.read(&self.path)?;
        if content.len() as u64 > MAX_CHART_FILE_BYTES {
            let name = self.path.file_name().unwrap_or(&self.name);
            return Err(LoadError::FileTooLarge(name.to_owned()));
        }
        Ok(ChartFile::new(self.name.clone(), &content))
    }
}

struct Walk<'v> {
    vfs: &'v dyn Vfs,
    rules: IgnoreRules,
    found: Vec<Found>,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        directory: &Utf8Path,
        prefix: &str,
        depth: usize,
    ) -> Result<(), LoadError> {
        if depth > MAX_DEPTH || self.found.len() > MAX_CHART_FILES {
            return Err(LoadError::TooDeep(directory.to_owned()));
        }
        for entry in self.vfs.list(directory)? {
            let name = format!("{prefix}{}", entry.name);
            if self.rules.ignores(&name, entry.is_directory) {
                continue;
            }
            let path = directory.join(&entry.name);
            if entry.is_directory {
                self.directory(&path, &format!("{name}/"), depth + 1)?;
            } else {
                self.found.push(Found { name, path });
            }
        }
        Ok(())
    }
}
