//! What Flux does when its own objects are deleted or suspended.

use portolan_object::{FieldPath, Owner, OwnerKind, Rule, Severity, counted};
use portolan_yaml::Node;

use super::world::{Fate, defined_owner};
use super::{Finder, World};

pub(super) static PRUNE: Rule = Rule {
    id: "prune",
    severity: Severity::Warning,
    summary: "a removed Kustomization deletes the objects that it applied",
    help: "Look through the objects that go. One is kept by the annotation `kustomize.toolkit.fluxcd.io/prune: \
           disabled`, all by `deletionPolicy: Orphan`, each merged before the removal.",
};

pub(super) static UNINSTALL: Rule = Rule {
    id: "uninstall",
    severity: Severity::Warning,
    summary: "a removed HelmRelease is uninstalled with everything its chart made",
    help: "Helm runs the chart's deletion hooks and deletes its objects; definitions in `crds/` stay. Objects with \
           the annotation `helm.sh/resource-policy: keep` are kept.",
};

pub(super) static ORPHANED: Rule = Rule {
    id: "orphaned",
    severity: Severity::Note,
    summary: "an object that is no longer declared stays in the cluster, and nobody keeps it up to date",
    help: "Delete the object by hand if it is not needed any more, or keep it declared.",
};

pub(super) static SUSPENDED: Rule = Rule {
    id: "suspended",
    severity: Severity::Note,
    summary: "Flux does not act on an object that is suspended",
    help: "Changes to what it declares do not reach the cluster until `spec.suspend` is taken away.",
};

pub(super) fn lint(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    lint_removed(finder, world);
    lint_suspended(finder);
}

fn lint_removed(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    let Some(old) = finder.removed() else {
        return;
    };
    let fate = world.fate(old.object, old.owner);
    if let Some(owner) = defined_owner(old.object, old.owner) {
        lint_owner(finder, world, &owner, &fate);
    } else if let Fate::Stays(reason) = fate {
        finder.report(&ORPHANED, format!("it stays in the cluster: {reason}"));
    }
}

/// A Kustomization or HelmRelease that is no longer declared.
fn lint_owner(finder: &mut Finder<'_, '_>, world: &World<'_>, owner: &Owner, fate: &Fate) {
    let objects = world.old.batch(owner);
    if let Fate::Stays(reason) = fate {
        finder.report(
            &ORPHANED,
            format!(
                "it stays in the cluster with its {}: {reason}",
                counted(objects.len(), "object")
            ),
        );
        return;
    }
    let deleted = objects
        .iter()
        .filter(|object| world.fate(object, owner) == Fate::Deleted)
        .count();
    let (rule, verb) = match owner.kind {
        OwnerKind::Kustomization | OwnerKind::ResourceSet | OwnerKind::Instance => {
            (&PRUNE, "prune")
        }
        OwnerKind::Release => (&UNINSTALL, "uninstalling"),
    };
    if deleted > 0 {
        finder.report(
            rule,
            format!("{verb} deletes {}", counted(deleted, "object")),
        );
    }
    if deleted < objects.len() {
        let left = objects.len() - deleted;
        let (verb, whom) = if left == 1 {
            ("stays", "it")
        } else {
            ("stay", "them")
        };
        finder.report(
            &ORPHANED,
            format!(
                "{} {verb} in the cluster, and nobody keeps {whom} up to date",
                counted(left, "object")
            ),
        );
    }
}

fn lint_suspended(finder: &mut Finder<'_, '_>) {
    let Some(new) = finder.after() else { return };
    let is_flux = new.object.gvk().group.ends_with("fluxcd.io");
    let path = FieldPath::parse("spec.suspend");
    let changed = finder.subject.fields.iter().any(|field| field.path == path);
    let suspended = new
        .object
        .node()
        .at_path(&["spec", "suspend"])
        .and_then(Node::as_bool);
    if is_flux && changed && suspended == Some(true) {
        finder
            .report(
                &SUSPENDED,
                "Flux no longer acts on it: changes to what it declares do not reach the cluster",
            )
            .at(&path);
    }
}
