//! Volumes that outlive pods: claims, volumes and classes.

use crate::quantity;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

const ACCESS_MODES: [&str; 4] = [
    "ReadWriteOnce",
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOncePod",
];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// A claim, by itself or as a template of a `StatefulSet`.
pub(crate) fn check_claim(claim: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = claim.field("spec") else {
        return out.missing(claim, "spec");
    };
    access_modes(&spec, out);
    out.one_of(&spec, "volumeMode", VOLUME_MODES);
    let Some(resources) = spec.field("resources") else {
        return out.missing(&spec, "resources");
    };
    let Some(requests) = resources.field("requests") else {
        return out.missing(&resources, "requests");
    };
    match requests.field("storage") {
        Some(storage) => {
            if quantity::amount(storage.node).is_some_and(|amount| amount <= 0.0) {
                out.add(Fault::Value, &storage, "must be more than 0");
            }
        }
        None => out.missing(&requests, "storage"),
    }
}

pub(crate) fn check_volume(volume: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = volume.field("spec") else {
        return;
    };
    access_modes(&spec, out);
    out.one_of(&spec, "volumeMode", VOLUME_MODES);
    out.one_of(
        &spec,
        "persistentVolumeReclaimPolicy",
        &["Delete", "Recycle", "Retain"],
    );
    match spec.field("capacity") {
        Some(capacity) if capacity.field("storage").is_none() => out.missing(&capacity, "storage"),
        None => out.missing(&spec, "capacity"),
        Some(_) => {}
    }
}

pub(crate) fn check_class(class: &Spot<'_>, out: &mut Refusals) {
    out.one_of(class, "reclaimPolicy", &["Delete", "Retain"]);
    out.one_of(
        class,
        "volumeBindingMode",
        &["Immediate", "WaitForFirstConsumer"],
    );
}

fn access_modes(spec: &Spot<'_>, out: &mut Refusals) {
    if !spec.has_items("accessModes") {
        return out.missing(spec, "accessModes");
    }
    for mode in spec.items("accessModes") {
        if mode
            .node
            .as_str()
            .is_some_and(|mode| !ACCESS_MODES.contains(&mode))
        {
            let message =
                "must be `ReadWriteOnce`, `ReadOnlyMany`, `ReadWriteMany` or `ReadWriteOncePod`";
            out.add(Fault::Value, &mode, message);
        }
    }
}
