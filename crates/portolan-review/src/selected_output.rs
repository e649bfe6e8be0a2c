//! The objects of one Kustomization, ResourceSet or HelmRelease that are asked for, with the labels that Flux puts on
//! them.
//!
//! ```text
//! EmitterOutput ──▶ OwnerOutput (can be sent to another thread) ──Selection──▶ SelectedOutput
//! ```

use std::sync::Arc;

use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Emitter, EmitterOutput, Selection, set_kustomization_labels, set_release_labels,
    set_resource_set_labels,
};
use portolan_object::{KindNames, Object, ObjectId, OwnerKind, Step};

/// What an owner gave, and what that is made of.
pub struct OwnerOutput {
    owner: Emitter,
    objects: Arc<Vec<Object>>,
    made_of: Vec<Step>,
}

/// What is written of an owner.
pub struct SelectedOutput {
    /// The cluster's name, if there are several.
    pub cluster: Option<String>,
    /// `Kustomization flux-system/apps`
    pub owner: String,
    /// The kind of the owner.
    pub owner_kind: OwnerKind,
    /// What the owner is made of; empty unless that was asked for.
    pub made_of: Vec<Step>,
    /// All objects of the owner, also those that are left out: its secrets are known by them.
    pub all: Arc<Vec<Object>>,
    /// The objects that are asked for, without the owner's labels.
    objects: Vec<Object>,
    labels: Option<(SetLabels, NamespacedName)>,
}

/// Puts the labels of an owner on an object.
type SetLabels = fn(&mut Object, &NamespacedName);

impl OwnerOutput {
    /// Takes over what was rendered; what it is made of only `with_provenance`, because that takes time.
    pub fn new(output: EmitterOutput<'_>, with_provenance: bool) -> Self {
        Self {
            made_of: if with_provenance {
                output.made_of()
            } else {
                Vec::new()
            },
            objects: output.objects,
            owner: output.emitter,
        }
    }

    /// Whose it is.
    pub fn owner(&self) -> &Emitter {
        &self.owner
    }

    /// The objects that a selection means; `None` if nothing of this owner is meant. `ids` are the ids of its objects with
    /// their namespaces, which selections of single objects need.
    pub fn select(
        self,
        selection: &Selection,
        kinds: &KindNames,
        ids: Option<&[ObjectId]>,
    ) -> Option<SelectedOutput> {
        let owner = &self.owner;
        let set_labels: SetLabels = match owner {
            Emitter::Kustomization(_) => set_kustomization_labels,
            Emitter::ResourceSet(_) => set_resource_set_labels,
            Emitter::Release(_) => set_release_labels,
            Emitter::Instance(_) => return None,
        };
        let is_owner_meant = selection.selects_owner(kinds, owner.owner_kind(), owner.id());
        if !is_owner_meant && ids.is_none() {
            return None;
        }
        let is_meant = |(at, object): &(usize, &Object)| {
            let id = ids.and_then(|ids| ids.get(*at));
            let id = id.unwrap_or_else(|| object.id());
            selection.selects_object(kinds, is_owner_meant, id, object)
        };
        let all = self.objects.iter().enumerate();
        let meant = all.filter(is_meant).map(|(_, object)| object.clone());
        let objects: Vec<Object> = meant.collect();
        if objects.is_empty() && !is_owner_meant {
            return None;
        }
        Some(SelectedOutput {
            cluster: None,
            owner: owner.to_string(),
            owner_kind: owner.owner_kind(),
            made_of: self.made_of,
            objects,
            labels: Some((set_labels, owner.id().clone())),
            all: self.objects,
        })
    }
}

impl SelectedOutput {
    /// The same objects without the labels of their owner.
    #[must_use]
    pub fn without_labels(self) -> Self {
        Self {
            labels: None,
            ..self
        }
    }

    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The objects as they are written, one after the other: a list of thousands is not read all at once.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        Object::read_all(&self.objects).map(|mut object| {
            if let Some((set_labels, owner)) = &self.labels {
                set_labels(&mut object, owner);
            }
            object
        })
    }
}
