//! The line that set a value of a subject: in its own file or in a patch.
//!
//! ```text
//! value ──▶ patches of the Kustomization, HelmRelease or FluxInstance that applies the object, the last one first
//!             └─ such a patch may itself be written by a patch of what applies the applier
//!       ──▶ the files that the object was read from and patched by
//! ```

use std::collections::HashMap;

use camino::Utf8Path;
use portolan_object::{FieldPath, Object, Owner, OwnerKind, Place};
use portolan_vfs::Vfs;
use portolan_yaml::Node;

use crate::embedded::{Source, written_in_patch};
use crate::finding::Subject;
use crate::locate::locate;

/// How often a patch may be written by a patch.
const MAX_NESTING: usize = 8;

/// Finds the lines that values were written at.
pub(crate) struct Places<'a> {
    files: &'a dyn Vfs,
    /// The subjects that apply others.
    appliers: HashMap<Owner, &'a Subject<'a>>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(files: &'a dyn Vfs, subjects: &'a [Subject<'a>]) -> Self {
        let appliers = subjects.iter().filter_map(|subject| {
            let kind = OwnerKind::of(&subject.id.gvk)?;
            let owner = Owner::new(kind, subject.id.namespace.clone(), subject.id.name.clone());
            Some((owner.in_cluster(subject.owner.cluster.clone()), subject))
        });
        Self {
            files,
            appliers: appliers.collect(),
        }
    }

    /// Where the value of a path was written, or the nearest thing above it that was.
    pub(crate) fn of(&self, subject: &Subject<'_>, path: &FieldPath) -> Option<Place> {
        self.find(&subject.owner, subject.object, path, 0)
    }

    fn find(
        &self,
        owner: &Owner,
        object: &Object,
        path: &FieldPath,
        nesting: usize,
    ) -> Option<Place> {
        let patched = self.patched_by(owner, object, path, nesting);
        patched.or_else(|| locate(self.files, object, path))
    }

    /// Where the applier of an object patches a value in.
    fn patched_by(
        &self,
        owner: &Owner,
        object: &Object,
        path: &FieldPath,
        nesting: usize,
    ) -> Option<Place> {
        let applier = self.appliers.get(owner).filter(|_| nesting < MAX_NESTING)?;
        // Of several patches the last one wins.
        let patches = patches(owner.kind, applier.object.node());
        patches.into_iter().rev().find_map(|(at, text)| {
            let written = written_in_patch(text, object, path)?;
            let begin = self.find(&applier.owner, applier.object, &at, nesting + 1)?;
            let file = Utf8Path::new(begin.file.as_str());
            let whole = self.files.read(file).ok()?;
            let whole = String::from_utf8_lossy(&whole);
            let source = Source {
                file,
                text,
                block: Some((begin.at, &whole)),
            };
            source.place(written)
        })
    }
}

/// The patches of an applier that are texts, each with its path.
fn patches(kind: OwnerKind, applier: &Node) -> Vec<(FieldPath, &str)> {
    let lists = match kind {
        OwnerKind::Kustomization => vec![FieldPath::parse("spec.patches")],
        OwnerKind::Instance => vec![FieldPath::parse("spec.kustomize.patches")],
        OwnerKind::ResourceSet => Vec::new(),
        OwnerKind::Release => {
            let renderers = FieldPath::parse("spec.postRenderers");
            let list = renderers.find(applier).and_then(Node::as_list);
            let indices = 0..list.map_or(0, |list| list.iter().len());
            let patches = |index| renderers.index(index).key("kustomize").key("patches");
            indices.map(patches).collect()
        }
    };
    let mut found = Vec::new();
    for list in lists {
        let entries = list.find(applier).and_then(Node::as_list);
        for (index, entry) in entries.into_iter().flat_map(|list| list.iter()).enumerate() {
            if let Some(text) = entry.get("patch").and_then(Node::as_str) {
                found.push((list.index(index).key("patch"), text));
            }
        }
    }
    found
}
