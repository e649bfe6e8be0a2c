//! What the files of a chart in a tree show without loading the chart.
//!
//! An unchanged release need not be rendered for a comparison, and its chart need not be loaded, unless the chart may
//! print something that matters elsewhere: Kustomizations, releases, or kinds that other charts ask for.

use std::collections::{BTreeSet, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use parking_lot::Mutex;
use portolan_vfs::{DirEntry, Vfs};

use crate::release::chart::in_tree;
use crate::release::chart_dependencies::local_directories;
use crate::release::flux_mention::may_print_flux;
use crate::release::loaded_chart::DEFINITION;
use crate::release::looked_up::LookedUp;
use crate::source::artifact::Artifact;

/// How deep directories of a chart are searched.
const MAX_DEPTH: usize = 32;

/// What a chart may do to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct QuickScan {
    /// It may print objects of Flux.
    pub(crate) may_emit_flux: bool,
    /// It may bring definitions of kinds.
    pub(crate) may_define_kinds: bool,
    /// The kinds of objects that it may look up.
    pub(crate) looked_up: LookedUp,
    /// It is neither in the repository nor in the cache.
    pub(crate) is_unfetched: bool,
}

/// Every [`QuickScan`] that was taken, by tree and path: a comparison asks for the same charts in every round.
#[derive(Default)]
pub(crate) struct QuickScans(Mutex<HashMap<(u64, Utf8PathBuf), QuickScan>>);

impl QuickScans {
    /// Looks at a chart that a release may load.
    pub(crate) fn of_chart(&self, artifact: &Artifact, path: &str) -> QuickScan {
        if artifact.is_directory(&in_tree(path)) {
            self.of_tree(artifact, path)
        } else {
            QuickScan::UNKNOWN
        }
    }

    /// Looks at a chart with all that the source's rules leave out of it, which can only make it do more.
    pub(crate) fn of_tree(&self, artifact: &Artifact, path: &str) -> QuickScan {
        let key = (artifact.number(), in_tree(path));
        if let Some(known) = self.0.lock().get(&key) {
            return known.clone();
        }
        let scan = QuickScan::at(artifact.tree(), path);
        self.0.lock().insert(key, scan.clone());
        scan
    }
}

impl QuickScan {
    /// Of a chart that cannot be looked at.
    pub(crate) const UNKNOWN: Self = Self {
        may_emit_flux: true,
        may_define_kinds: true,
        looked_up: LookedUp::ANYTHING,
        is_unfetched: false,
    };

    /// Of a chart that would have to be fetched; the values that it is given show whether it leads on.
    pub(crate) const UNFETCHED: Self = Self {
        may_emit_flux: false,
        may_define_kinds: true,
        looked_up: LookedUp::NOTHING,
        is_unfetched: true,
    };

    /// Looks at the chart at a path as a source writes it.
    fn at(files: &dyn Vfs, path: &str) -> Self {
        let directory = in_tree(path);
        if !files.is_directory(&directory) {
            return Self::UNKNOWN;
        }
        let mut scan = Self::default();
        scan.look_at_chart(files, &directory, MAX_DEPTH);
        for dependency in local_directories(files, path) {
            scan.look_at_chart(files, &dependency, MAX_DEPTH);
        }
        scan
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
        self.may_emit_flux = self.may_emit_flux || may_print_flux(content);
        self.may_define_kinds = self.may_define_kinds || mentions(DEFINITION);
        self.looked_up.read(content);
    }
}

/// Whether the chart at a path may define a kind of one of some groups; archives may define any.
pub(crate) fn may_define(files: &dyn Vfs, path: &str, groups: &BTreeSet<String>) -> bool {
    let mut definitions = Definitions::default();
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
            } else if path.extension() == Some("tgz") {
                return true;
            } else if let Ok(content) = files.read(&path) {
                definitions.look_at(&path, &content, groups);
            }
        }
    }
    definitions.written || (definitions.computed && definitions.mentioned)
}

/// What the files of a chart say about kinds of some groups.
#[derive(Default)]
struct Definitions {
    /// One is defined, its group written out.
    written: bool,
    /// Something is defined whose group only rendering tells.
    computed: bool,
    /// One of the groups is mentioned somewhere.
    mentioned: bool,
}

impl Definitions {
    fn look_at(&mut self, path: &Utf8Path, content: &[u8], groups: &BTreeSet<String>) {
        let mentions = |word: &str| memchr::memmem::find(content, word.as_bytes()).is_some();
        let mentioned = groups.iter().any(|group| mentions(group));
        self.mentioned |= mentioned;
        if !mentions(DEFINITION) {
            return;
        }
        let is_template = path.components().any(|part| part.as_str() == "templates");
        if is_template && !has_plain_groups(content) {
            self.computed = true;
        } else {
            self.written |= mentioned;
        }
    }
}

/// Whether every `group:` of a template is written out, and there is one.
fn has_plain_groups(template: &[u8]) -> bool {
    let lines = template.split(|byte| *byte == b'\n');
    let mut groups = lines.filter_map(|line| line.trim_ascii_start().strip_prefix(b"group:"));
    let mut is_one = false;
    let is_plain = groups.all(|group| {
        is_one |= !group.trim_ascii().is_empty();
        !group.contains(&b'{')
    });
    is_plain && is_one
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;

    fn scan(files: &[(&str, &str)]) -> QuickScan {
        let files: Memory = files.iter().copied().collect();
        QuickScan::at(&files, "./charts/web")
    }

    #[test]
    fn only_templates_and_definitions_tell() {
        let harmless = scan(&[
            ("/charts/web/Chart.yaml", "name: web"),
            (
                "/charts/web/README.md",
                "kind: CustomResourceDefinition, toolkit.fluxcd.io",
            ),
            ("/charts/web/templates/a.yaml", "kind: ConfigMap"),
        ]);
        assert_eq!(harmless, QuickScan::default());
        let defines = scan(&[("/charts/web/crds/a.yaml", "")]);
        assert!(defines.may_define_kinds && !defines.may_emit_flux);
    }

    #[test]
    fn subcharts_are_looked_at_and_archives_may_hold_anything() {
        let nested = scan(&[(
            "/charts/web/charts/sub/templates/deep/a.yaml",
            "apiVersion: source.toolkit.fluxcd.io/v1",
        )]);
        assert!(nested.may_emit_flux && !nested.may_define_kinds);
        assert_eq!(
            scan(&[("/charts/web/charts/sub.tgz", "")]),
            QuickScan::UNKNOWN
        );
        assert_eq!(scan(&[("/charts/web", "an archive")]), QuickScan::UNKNOWN);
    }

    #[test]
    fn kinds_are_defined_where_their_group_is_written_or_computed() {
        let plain = "kind: CustomResourceDefinition\nspec:\n  group: a.io\n";
        let computed = "kind: CustomResourceDefinition\nspec:\n  group: {{ .Values.group }}\n";
        let files: Memory = [
            ("/charts/web/crds/a.yaml", plain),
            ("/charts/web/templates/role.yaml", "apiGroups: [b.io]"),
            ("/charts/written/templates/a.yaml", plain),
            ("/charts/written/templates/role.yaml", "apiGroups: [b.io]"),
            ("/charts/computed/templates/a.yaml", computed),
            ("/charts/computed/values.yaml", "group: b.io"),
            ("/b/c.tgz", ""),
        ]
        .into_iter()
        .collect();
        let may_define =
            |path: &str, group: &str| may_define(&files, path, &[group.to_owned()].into());
        for chart in ["charts/web", "charts/written"] {
            assert!(may_define(chart, "a.io") && !may_define(chart, "b.io"));
        }
        assert!(may_define("charts/computed", "b.io") && !may_define("charts/computed", "a.io"));
        assert!(may_define("b", "a.io"), "it may be in the archive");
    }
}
