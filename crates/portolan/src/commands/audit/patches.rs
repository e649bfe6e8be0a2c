//! The files of a repository that may contain patches: those that declare no object with a finding themselves.
//!
//! A patch selects its object by kind, name and API version; if a patch names an object, the user must change it by
//! hand.

use std::collections::HashSet;

use camino::Utf8Path;
use portolan_audit::{Finding, Subject};
use portolan_vfs::Vfs;

/// The texts of such files.
pub(super) struct Patches {
    texts: Vec<String>,
}

impl Patches {
    /// Reads every YAML file in which none of the findings is.
    pub(super) fn find(files: &dyn Vfs, findings: &[Finding]) -> Self {
        let own = findings
            .iter()
            .filter_map(|finding| finding.file.as_deref());
        let mut patches = Self { texts: Vec::new() };
        patches.walk(files, Utf8Path::new("/"), &own.collect());
        patches
    }

    fn walk(&mut self, files: &dyn Vfs, directory: &Utf8Path, own: &HashSet<&str>) {
        for entry in files.list(directory).unwrap_or_default() {
            let path = directory.join(&entry.name);
            // What a link leads to is met where it is.
            if entry.is_symlink || entry.name == ".git" {
                continue;
            }
            if entry.is_directory {
                self.walk(files, &path, own);
            } else if is_yaml(&path) && !own.contains(path.as_str().trim_start_matches('/')) {
                let text = files.read(&path).ok();
                self.texts
                    .extend(text.and_then(|bytes| String::from_utf8(bytes).ok()));
            }
        }
    }

    /// Whether one of them may mean this object.
    pub(super) fn name(&self, subject: &Subject) -> bool {
        let version = subject.api_version.rsplit('/').next().unwrap_or_default();
        let words = [version, &subject.kind, &subject.name];
        let names = |text: &String| words.into_iter().all(|word| text.contains(word));
        self.texts.iter().any(names)
    }
}

fn is_yaml(path: &Utf8Path) -> bool {
    matches!(path.extension(), Some("yaml" | "yml"))
}
