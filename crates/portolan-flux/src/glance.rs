//! What can be told of a chart that lies in a tree by looking at its files, without loading it.
//!
//! A release that did not change need not be rendered to be compared, and its chart need not be loaded, unless what the
//! chart prints may lead on: to more Kustomizations and releases, or to kinds that other charts ask for.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{DirEntry, Vfs};

use crate::chart::in_tree;
use crate::chart_dependencies::local_directories;
use crate::loaded_chart::{DEFINITION, FLUX_GROUPS};

/// How deep directories of a chart are searched.
const MAX_DEPTH: usize = 32;

/// What a chart may do to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Glance {
    /// It may print objects of Flux.
    pub(crate) may_emit_flux: bool,
    /// It may bring definitions of kinds.
    pub(crate) may_define_kinds: bool,
}

impl Glance {
    /// Of a chart that cannot be looked at.
    pub(crate) const UNKNOWN: Self = Self {
        may_emit_flux: true,
        may_define_kinds: true,
    };

    /// Looks at the chart at a path as a source writes it.
    pub(crate) fn at(files: &dyn Vfs, path: &str) -> Self {
        let directory = in_tree(path);
        if !files.is_directory(&directory) {
            return Self::UNKNOWN;
        }
        let mut glance = Self::default();
        glance.look_at_chart(files, &directory, MAX_DEPTH);
        for dependency in local_directories(files, path) {
            glance.look_at_chart(files, &dependency, MAX_DEPTH);
        }
        glance
    }

    fn look_at_chart(&mut self, files: &dyn Vfs, chart: &Utf8Path, depth: usize) {
        for entry in files.list(chart).unwrap_or_default() {
            let path = chart.join(&entry.name);
            match entry.name.as_str() {
                "templates" => self.look_at_templates(files, path, depth),
                "crds" => self.may_define_kinds = true,
                "charts" => self.look_at_subcharts(files, &path, depth),
                _ => {}
            }
        }
    }

    fn look_at_subcharts(&mut self, files: &dyn Vfs, charts: &Utf8Path, depth: usize) {
        for entry in files.list(charts).unwrap_or_default() {
            if !entry.is_directory || depth == 0 {
                // An archive has to be unpacked to be looked at.
                *self = Self::UNKNOWN;
                return;
            }
            self.look_at_chart(files, &charts.join(&entry.name), depth - 1);
        }
    }

    fn look_at_templates(&mut self, files: &dyn Vfs, directory: Utf8PathBuf, depth: usize) {
        let mut queue = vec![(directory, depth)];
        while let Some((directory, depth)) = queue.pop() {
            for DirEntry {
                name, is_directory, ..
            } in files.list(&directory).unwrap_or_default()
            {
                let path = directory.join(name);
                if !is_directory {
                    self.look_at_template(&files.read(&path).unwrap_or_default());
                } else if depth > 0 {
                    queue.push((path, depth - 1));
                } else {
                    *self = Self::UNKNOWN;
                }
            }
        }
    }

    fn look_at_template(&mut self, content: &[u8]) {
        let mentions = |word: &str| memchr::memmem::find(content, word.as_bytes()).is_some();
        self.may_emit_flux = self.may_emit_flux || mentions(FLUX_GROUPS);
        self.may_define_kinds = self.may_define_kinds || mentions(DEFINITION);
    }
}

/// Whether one of some words stands anywhere in the chart at a path; archives may hold any.
pub(crate) fn mentions(files: &dyn Vfs, path: &str, words: &BTreeSet<String>) -> bool {
    let is_in = |content: &[u8]| {
        let mut words = words.iter();
        words.any(|word| memchr::memmem::find(content, word.as_bytes()).is_some())
    };
    let mut queue = vec![(in_tree(path), MAX_DEPTH)];
    queue.extend(
        local_directories(files, path)
            .into_iter()
            .map(|at| (at, MAX_DEPTH)),
    );
    while let Some((directory, depth)) = queue.pop() {
        let Some(entries) = files.list(&directory).ok().filter(|_| depth > 0) else {
            return true;
        };
        for entry in entries {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                queue.push((path, depth - 1));
            } else if path.extension() == Some("tgz")
                || files.read(&path).is_ok_and(|content| is_in(&content))
            {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;

    fn glance(files: &[(&str, &str)]) -> Glance {
        let files: Memory = files.iter().copied().collect();
        Glance::at(&files, "./charts/web")
    }

    #[test]
    fn only_templates_and_definitions_tell() {
        let harmless = glance(&[
            ("/charts/web/Chart.yaml", "name: web"),
            (
                "/charts/web/README.md",
                "kind: CustomResourceDefinition, toolkit.fluxcd.io",
            ),
            ("/charts/web/templates/a.yaml", "kind: ConfigMap"),
        ]);
        assert_eq!(harmless, Glance::default());
        let defines = glance(&[("/charts/web/crds/a.yaml", "")]);
        assert!(defines.may_define_kinds && !defines.may_emit_flux);
    }

    #[test]
    fn subcharts_are_looked_at_and_archives_may_hold_anything() {
        let nested = glance(&[(
            "/charts/web/charts/sub/templates/deep/a.yaml",
            "apiVersion: source.toolkit.fluxcd.io/v1",
        )]);
        assert!(nested.may_emit_flux && !nested.may_define_kinds);
        assert_eq!(
            glance(&[("/charts/web/charts/sub.tgz", "")]),
            Glance::UNKNOWN
        );
        assert_eq!(glance(&[("/charts/web", "an archive")]), Glance::UNKNOWN);
    }

    #[test]
    fn words_are_found_anywhere_in_a_chart() {
        let files = [("/charts/web/crds/a.yaml", "group: a.io"), ("/b/c.tgz", "")];
        let files: Memory = files.into_iter().collect();
        let mentions = |path: &str, word: &str| mentions(&files, path, &[word.to_owned()].into());
        assert!(mentions("charts/web", "a.io"));
        assert!(!mentions("charts/web", "b.io"));
        assert!(mentions("b", "a.io"), "it may be in the archive");
    }
}
