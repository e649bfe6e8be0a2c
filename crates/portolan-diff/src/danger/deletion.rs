//! Objects whose deletion also deletes something else.

use portolan_object::{Object, ObjectId, Rule, Severity};

use super::world::Fate;
use super::{Finder, World, text};

pub(super) static VOLUME: Rule = Rule {
    id: "volume-deleted",
    severity: Severity::Error,
    summary: "the data of a deleted volume claim is lost unless its volume is retained",
    help: "Flux prunes the claim, and with the reclaim policy `Delete` its volume goes too. Keep it with the \
           annotation `kustomize.toolkit.fluxcd.io/prune: disabled`, or make a copy of the data first.",
};

pub(super) static NAMESPACE: Rule = Rule {
    id: "namespace-deleted",
    severity: Severity::Error,
    summary: "everything in a deleted namespace is deleted with it",
    help: "Kubernetes deletes every object of a namespace with it, also those that Flux did not apply. Keep it with \
           the annotation `kustomize.toolkit.fluxcd.io/prune: disabled` if anything in it is still needed.",
};

pub(super) static DEFINITION: Rule = Rule {
    id: "crd-deleted",
    severity: Severity::Error,
    summary: "every object of a deleted CustomResourceDefinition is deleted with it",
    help: "Every object of its kind is deleted, in every namespace, whoever made it. Remove the objects first and \
           the definition in a later change.",
};

pub(super) static STATEFUL: Rule = Rule {
    id: "stateful-deleted",
    severity: Severity::Warning,
    summary: "a deleted StatefulSet stops its pods; its volume claims stay or go as its policy says",
    help: "Its volume claims stay unless `persistentVolumeClaimRetentionPolicy` says otherwise; nobody deletes them \
           later.",
};

pub(super) static MOVED: Rule = Rule {
    id: "owner-moved",
    severity: Severity::Warning,
    summary: "an object that moves from one owner to another may be deleted by the first before the second has taken it over",
    help: "Suspend the old owner until the new one has applied the object, or forbid pruning with the annotation \
           `kustomize.toolkit.fluxcd.io/prune: disabled` before the move.",
};

/// Whose deletion loses data.
fn deletion_rule(id: &ObjectId) -> Option<(&'static Rule, &'static str)> {
    let gvk = &id.gvk;
    if gvk.is("", "PersistentVolumeClaim") {
        Some((
            &VOLUME,
            "the claim is deleted, and its data with it unless the volume is retained",
        ))
    } else if gvk.is("", "PersistentVolume") {
        Some((&VOLUME, "the volume is deleted"))
    } else if gvk.is("", "Namespace") {
        Some((&NAMESPACE, "the namespace is deleted with everything in it"))
    } else if gvk.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        Some((
            &DEFINITION,
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
        finder.report(&STATEFUL, message);
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
        old.owner, new.owner
    );
    let loses_data = deletion_rule(old.object.id()).is_some();
    let severity = if loses_data {
        MOVED.severity
    } else {
        Severity::Note
    };
    finder
        .report(&MOVED, message)
        .severity(severity)
        .hint("suspend the old owner until the new one has applied the object");
}
