//! Searches the roots of a repository as a person would.
//!
//! 1. A FluxInstance that syncs a directory of the repository, or a Kustomization that is part of what it builds and of
//!    nothing else, is a root.
//! 2. If there is none, somebody pointed Flux by hand at directories of Kustomizations that nothing builds. Those
//!    that lead to other Kustomizations are roots, and so are similar directories beside them; leftovers lead
//!    nowhere. They are also roots if an instance syncs a path with variables that nothing sets, because the path may
//!    mean any of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::Vfs;

use super::declared::{Declared, Form};
use super::{Root, bootstrapped};
use crate::kustomization::generate;
use crate::walk::hints::Reach;

/// What is declared, and who builds what.
pub(super) struct Search<'a> {
    files: &'a dyn Vfs,
    /// Those that build a directory of this repository.
    declared: Vec<&'a Declared>,
    reaches: HashMap<Utf8PathBuf, Reach>,
    /// Whether some cluster is known to start where the repository does not say.
    has_unknown: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        files: &'a dyn Vfs,
        declared: &'a [Arc<Declared>],
        has_unknown: bool,
    ) -> Self {
        Self {
            files,
            declared: of_this_repository(files, declared),
            reaches: HashMap::new(),
            has_unknown,
        }
    }

    /// The roots, by directory.
    pub(super) fn roots(mut self) -> Vec<Root> {
        let mut roots: Vec<(Utf8PathBuf, Root)> = match self.plain() {
            Some(plain) => plain,
            None => self.declared_roots(),
        };
        if roots.is_empty() {
            roots = self.bootstrapped_roots();
        } else if self.has_unknown {
            let more = self.bootstrapped_roots();
            roots.extend(more);
        }
        roots.sort_by(|(a, _), (b, _)| a.cmp(b));
        roots.dedup_by(|(a, _), (b, _)| a == b);
        roots.into_iter().map(|(_, root)| root).collect()
    }

    /// The roots where every cluster has its own directory with everything in it that Flux starts from, told by paths
    /// alone; `None` when kustomization files must be asked.
    fn plain(&mut self) -> Option<Vec<(Utf8PathBuf, Root)>> {
        let lies_in = |one: &Declared, other: &Declared| {
            other.kustomization.id != one.kustomization.id && one.file.starts_with(&other.directory)
        };
        let roots = self.declared.iter().copied().filter(|one| {
            let is_own = one.form == Form::Whole && one.file.starts_with(&one.directory);
            one.is_instance() || (is_own && !self.declared.iter().any(|other| lies_in(one, other)))
        });
        let roots: Vec<_> = roots.collect();
        let leads = |root: &&Declared| self.declared.iter().any(|one| lies_in(one, root));
        let is_plain = !roots.is_empty()
            && roots.iter().all(leads)
            && roots
                .iter()
                .all(|root| root.directory != Utf8Path::new("/"));
        is_plain.then(|| {
            let roots = self.without_inner_instances(roots).into_iter();
            roots.map(|root| self.rooted(root)).collect()
        })
    }

    /// Whatever is part of what it builds itself and of nothing else.
    fn declared_roots(&mut self) -> Vec<(Utf8PathBuf, Root)> {
        let mut roots = Vec::new();
        for one in self.declared.clone() {
            let is_own = self.builds(&one.directory, &one.file);
            if one.is_instance() || (is_own && !self.is_built_by_another(one)) {
                roots.push(one);
            }
        }
        self.without_inner_instances(roots)
            .into_iter()
            .map(|one| match one.form {
                Form::Patch => self.pointed_at(&one.directory),
                Form::Whole | Form::Instance | Form::NamelessInstance => self.rooted(one),
            })
            .collect()
    }

    /// Leaves out instances that another root brings: what they sync is part of that cluster.
    fn without_inner_instances(&mut self, roots: Vec<&'a Declared>) -> Vec<&'a Declared> {
        let bootstrapped = roots.iter().filter(|root| !root.is_instance());
        let directories: Vec<&Utf8Path> = bootstrapped.map(|root| &*root.directory).collect();
        let is_inner = |search: &mut Self, one: &Declared| {
            let mut others = directories.iter().filter(|other| **other != one.directory);
            one.is_instance() && others.any(|other| search.followed(other).contains(&*one.file))
        };
        let mut outer = Vec::new();
        for root in roots {
            if !is_inner(self, root) {
                outer.push(root);
            }
        }
        outer
    }

    /// Directories of Kustomizations that nothing builds.
    fn bootstrapped_roots(&mut self) -> Vec<(Utf8PathBuf, Root)> {
        let mut candidates = BTreeSet::new();
        for one in self.declared.clone() {
            if one.form == Form::Whole && !self.is_built_by_another(one) {
                candidates.insert(self.start_of(&one.file));
            }
        }
        let candidates = self.outermost(candidates);
        let chosen = likely(self.leading(candidates));
        chosen
            .iter()
            .map(|directory| self.pointed_at(directory))
            .collect()
    }

    /// The root that is declared. Values of the chart that makes an instance do not say how that is called: what it
    /// leads to does.
    fn rooted(&mut self, declared: &Declared) -> (Utf8PathBuf, Root) {
        let mut root = Root::declared(declared);
        if declared.form == Form::NamelessInstance {
            let inside = self.declared_in(&declared.directory);
            let pointed_at = bootstrapped(self.files, &declared.directory, &inside);
            if pointed_at.source.kind == root.kustomization.source.kind {
                root.kustomization.id = pointed_at.source.id.clone();
                root.kustomization.source = pointed_at.source;
            }
        }
        (declared.directory.clone(), root)
    }

    /// The root that Flux has when it is pointed at a directory.
    fn pointed_at(&mut self, directory: &Utf8Path) -> (Utf8PathBuf, Root) {
        let inside = self.declared_in(directory);
        let root = Root {
            kustomization: bootstrapped(self.files, directory, &inside),
            file: None,
        };
        (directory.to_owned(), root)
    }

    /// The directory somebody would point Flux at for a file: the outermost whose kustomization files lead to it, or
    /// the cluster's own in a directory of clusters.
    fn start_of(&mut self, file: &Utf8Path) -> Utf8PathBuf {
        let parent = file.parent().unwrap_or(Utf8Path::new("/"));
        let is_cluster = |directory: &&Utf8Path| {
            directory.parent().and_then(Utf8Path::file_name) == Some("clusters")
        };
        if let Some(cluster) = parent.ancestors().find(is_cluster)
            && self.builds(cluster, file)
        {
            return cluster.to_owned();
        }
        let mut start = parent;
        for above in parent.ancestors().skip(1) {
            if generate::existing(self.files, above).is_some() && self.builds(above, file) {
                start = above;
            }
        }
        start.to_owned()
    }

    /// The directories that no other of them builds.
    fn outermost(&mut self, candidates: BTreeSet<Utf8PathBuf>) -> Vec<Utf8PathBuf> {
        let is_within = |search: &mut Self, one: &Utf8Path, other: &Utf8Path| {
            let inside = search.declared_in(one);
            one != other
                && inside
                    .iter()
                    .all(|declared| search.builds(other, &declared.file))
        };
        let all: Vec<_> = candidates.into_iter().collect();
        let mut left = Vec::new();
        for one in &all {
            if !all.iter().any(|other| is_within(self, one, other)) {
                left.push(one.clone());
            }
        }
        left
    }

    /// The directories with the number of Kustomizations that each leads to beyond its own.
    fn leading(&mut self, candidates: Vec<Utf8PathBuf>) -> BTreeMap<Utf8PathBuf, usize> {
        let mut leading = BTreeMap::new();
        for directory in candidates {
            let own = self.declared_in(&directory).len();
            let all = self.followed(&directory).len();
            leading.insert(directory, all.saturating_sub(own));
        }
        leading
    }

    /// The files of Kustomizations that are applied in the end when Flux is pointed at a directory.
    fn followed(&mut self, directory: &Utf8Path) -> BTreeSet<&'a Utf8Path> {
        let mut files = BTreeSet::new();
        let mut visited = BTreeSet::new();
        let mut queue = vec![directory.to_owned()];
        while let Some(directory) = queue.pop() {
            if !visited.insert(directory.clone()) {
                continue;
            }
            for one in self.declared_in(&directory) {
                files.insert(&*one.file);
                queue.push(one.directory.clone());
            }
        }
        files
    }

    fn is_built_by_another(&mut self, one: &Declared) -> bool {
        let others = self.declared.clone();
        others.into_iter().any(|other| {
            other.kustomization.id != one.kustomization.id
                && other.directory != one.directory
                && self.builds(&other.directory, &one.file)
        })
    }

    /// What a directory's build is made of that declares something.
    fn declared_in(&mut self, directory: &Utf8Path) -> Vec<&'a Declared> {
        let declared = self.declared.clone();
        let inside = declared.into_iter();
        inside
            .filter(|one| self.builds(directory, &one.file))
            .collect()
    }

    fn builds(&mut self, directory: &Utf8Path, file: &Utf8Path) -> bool {
        if let Some(reach) = self.reaches.get(directory) {
            return reach.covers(file);
        }
        let reach = Reach::of(self.files, directory);
        let covers = reach.covers(file);
        self.reaches.insert(directory.to_owned(), reach);
        covers
    }
}

/// What builds a directory of this repository. Whatever builds a whole tree often builds that of another source, which
/// installs Flux itself: it counts only when others take a part of the same source, and when it is no patch that leaves
/// the path to what it patches.
fn of_this_repository<'a>(files: &dyn Vfs, declared: &'a [Arc<Declared>]) -> Vec<&'a Declared> {
    let mut declared: Vec<&Declared> = declared.iter().map(Arc::as_ref).collect();
    let top = Utf8Path::new("/");
    if declared.iter().any(|one| one.directory == top) {
        let patches = Reach::patch_files(files);
        declared.retain(|one| one.directory != top || !patches.contains(&one.file));
    }
    let parts = declared
        .iter()
        .filter(|one| one.directory != top && files.is_directory(&one.directory));
    let own: BTreeSet<_> = parts
        .map(|one| {
            (
                &one.kustomization.source.kind,
                &one.kustomization.source.id.name,
            )
        })
        .collect();
    let is_here = |one: &&Declared| {
        let source = &one.kustomization.source;
        let is_only = own.is_empty() && source.kind == "GitRepository";
        one.directory != top
            || is_only
            || one.is_instance()
            || own.contains(&(&source.kind, &source.id.name))
    };
    declared.iter().copied().filter(is_here).collect()
}

/// Those that lead somewhere, and those that look like them; all when none leads anywhere.
fn likely(leading: BTreeMap<Utf8PathBuf, usize>) -> Vec<Utf8PathBuf> {
    let leaders: Vec<Utf8PathBuf> = leading
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(directory, _)| directory.clone())
        .collect();
    if leaders.is_empty() {
        return leading.into_keys().collect();
    }
    let looks_alike = |one: &Utf8Path, other: &Utf8Path| {
        let same_depth = one.components().count() == other.components().count();
        one.parent() == other.parent() || (same_depth && one.file_name() == other.file_name())
    };
    leading
        .into_keys()
        .filter(|one| leaders.iter().any(|leader| looks_alike(one, leader)))
        .collect()
}
