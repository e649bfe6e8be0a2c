//! Two sides made of YAML texts, for the tests.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use portolan_diff::{Batch, Options, Report, diff};
use portolan_object::{Finding, Object, Origin, Owner, OwnerKind, Place};
use portolan_yaml::{Dialect, parse};

/// The objects of a Kustomization.
pub(crate) fn kustomization(name: &'static str, text: &str) -> Batch {
    batch(OwnerKind::Kustomization, "flux-system", name, text)
}

/// The objects of a HelmRelease.
pub(crate) fn release(name: &'static str, text: &str) -> Batch {
    batch(OwnerKind::Release, "apps", name, text)
}

fn batch(kind: OwnerKind, namespace: &'static str, name: &'static str, text: &str) -> Batch {
    let owner = Owner::new(kind, namespace, name);
    let documents = parse(text, Dialect::Kustomize).expect("valid YAML");
    let object = |node: portolan_yaml::Node| {
        let place = Place::new(format!("/apps/{name}.yaml"), node.at);
        Object::new(node, Origin::read(place)).expect("an object")
    };
    Batch {
        owner,
        objects: Arc::new(documents.into_iter().map(object).collect()),
    }
}

/// What differs between two texts of the Kustomization `apps`.
pub(crate) fn compared(old: &str, new: &str) -> Report {
    diff(
        &[kustomization("apps", old)],
        &[kustomization("apps", new)],
        &Options::default(),
    )
}

/// The ids of the dangers with their objects.
pub(crate) fn dangers(old: &str, new: &str) -> Vec<String> {
    let report = compared(old, new);
    let line = |danger: &Finding| {
        let object = danger.object.as_ref().expect("a danger is about an object");
        let (severity, id) = (danger.severity, danger.rule.id);
        format!("{severity} {id} {}: {}", object.short(), danger.message())
    };
    report.dangers.iter().map(line).collect()
}

/// A pull request with a bit of everything: old and new side.
pub(crate) fn pull_request() -> (Vec<Batch>, Vec<Batch>) {
    let old = [
        kustomization("flux-system", include_str!("old-root.yaml")),
        kustomization("apps", include_str!("old-apps.yaml")),
        kustomization("legacy", include_str!("old-legacy.yaml")),
        release("podinfo", include_str!("old-podinfo.yaml")),
    ];
    let new = [
        kustomization("flux-system", include_str!("new-root.yaml")),
        kustomization("apps", include_str!("new-apps.yaml")),
        release("podinfo", include_str!("new-podinfo.yaml")),
    ];
    (old.to_vec(), new.to_vec())
}

/// The report on the pull request.
pub(crate) fn pull_request_report() -> Report {
    let (old, new) = pull_request();
    diff(&old, &new, &Options::default())
}
