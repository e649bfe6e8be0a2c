//! A chart directory as a list of files: everything below it, sorted by path, less what `.helmignore` names.

use camino::Utf8Path;
use portolan_vfs::{Vfs, VfsError};

use super::archive::{MAX_CHART_FILE_BYTES, MAX_CHART_FILES};
use super::ignore::IgnoreRules;
use super::{ChartFile, LoadError};

/// How deep directories may lie in each other: symbolic links that lead in circles end here.
const MAX_DEPTH: usize = 64;

/// Reads the files of a chart directory.
pub(crate) fn read(vfs: &dyn Vfs, root: &Utf8Path) -> Result<Vec<ChartFile>, LoadError> {
    let rules = match vfs.read(&root.join(".helmignore")) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(VfsError::NotFound(_) | VfsError::IsDirectory(_)) => String::new(),
        Err(error) => return Err(error.into()),
    };
    let rules = IgnoreRules::parse(&rules).map_err(LoadError::Ignore)?;
    let mut walk = Walk {
        vfs,
        rules,
        files: Vec::new(),
        content: Vec::new(),
    };
    walk.directory(root, "", 0)?;
    Ok(walk.files)
}

struct Walk<'v> {
    vfs: &'v dyn Vfs,
    rules: IgnoreRules,
    files: Vec<ChartFile>,
    /// The file read last.
    content: Vec<u8>,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        directory: &Utf8Path,
        prefix: &str,
        depth: usize,
    ) -> Result<(), LoadError> {
        if depth > MAX_DEPTH || self.files.len() > MAX_CHART_FILES {
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
                self.vfs.read_into(&path, &mut self.content)?;
                if self.content.len() as u64 > MAX_CHART_FILE_BYTES {
                    return Err(LoadError::FileTooLarge(entry.name));
                }
                self.files.push(ChartFile::new(name, &self.content));
            }
        }
        Ok(())
    }
}
