//! Objects whose deletion takes more with it than themselves.

use portolan_object::{Object, ObjectId};

use super::world::Fate;
use super::{Finder, Level, Rule, World, text};

pub(super) const VOLUME: Rule = Rule {
    id: "volume-deleted",
    level: Level::Error,
    explanation: "the data of a deleted volume claim is lost unless its volume is retained",
};

pub(super) const NAMESPACE: Rule = Rule {
    id: "namespace-deleted",
    level: Level::Error,
    explanation: "everything in a deleted namespace is deleted with it",
};

pub(super) const DEFINITION: Rule = Rule {
    id: "crd-deleted",
    level: Level::Error,
    explanation: "every object of a deleted CustomResourceDefinition is deleted with it",
};

pub(super) const STATEFUL: Rule = Rule {
    id: "stateful-deleted",
    level: Level::Warning,
    explanation: "a deleted StatefulSet stops its pods; its volume claims stay or go as its policy says",
};

pub(super) const MOVED: Rule = Rule {
    id: "owner-moved",
    level: Level::Note,
    explanation: "an object that moves from one owner to another may be deleted by the first before the second has taken it over",
};

/// Whose deletion loses data.
fn deletion_rule(id: &ObjectId) -> Option<(Rule, &'static str)> {
    let gvk = &id.gvk;
    if gvk.is("", "PersistentVolumeClaim") {
        Some((
            VOLUME,
            "the claim is deleted, and its data with it unless the volume is retained",
        ))
    } else if gvk.is("", "PersistentVolume") {
        Some((VOLUME, "the volume is deleted"))
    } else if gvk.is("", "Namespace") {
        Some((NAMESPACE, "the namespace is deleted with everything in it"))
    } else if gvk.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        Some((
            DEFINITION,
            "the definition is deleted with every object of its kind",
        ))
    } else {
        None
    }
}

pub(super) fn lint(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    lint_removed(finder, world);
    lint_moved(finder);
}

fn lint_removed(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    let Some(old) = finder.removed() else {
        return;
    };
    if world.fate(old.object, old.owner) != Fate::Deleted {
        return;
    }
    if let Some((rule, message)) = deletion_rule(old.object.id()) {
        finder
            .report(rule, message)
            .hint("keep it with the annotation `kustomize.toolkit.fluxcd.io/prune: disabled`, merged before the removal");
    } else if old.object.gvk().is("apps", "StatefulSet") {
        let message = if deletes_claims(old.object) {
            "the StatefulSet is deleted, and its volume claims with it"
        } else {
            "the StatefulSet is deleted; the claims of its pods stay"
        };
        finder.report(STATEFUL, message);
    }
}

fn deletes_claims(stateful: &Object) -> bool {
    let policy = [
        "spec",
        "persistentVolumeClaimRetentionPolicy",
        "whenDeleted",
    ];
    text(stateful.node(), &policy) == Some("Delete")
}

fn lint_moved(finder: &mut Finder<'_, '_>) {
    let Some((old, new)) = finder.both() else {
        return;
    };
    if old.owner == new.owner {
        return;
    }
    let message = format!(
        "it moves from {} to {}: unless the new owner applies it first, it is deleted and made anew",
        old.owner.title(),
        new.owner.title()
    );
    let level = deletion_rule(old.object.id()).map_or(Level::Note, |_| Level::Warning);
    finder
        .report(MOVED, message)
        .level(level)
        .hint("suspend the old owner until the new one has applied the object");
}
