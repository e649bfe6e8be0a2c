//! Deprecated fields of kustomization files that still work, and their replacements.

use std::fmt;

use crate::load::decode::Fields;

/// A deprecated field that a kustomization uses; shown in the words of kustomize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// The field.
    pub field: &'static str,
    /// The field to use in its place.
    pub successor: &'static str,
}

const DEPRECATIONS: [Deprecation; 6] = [
    Deprecation::new("bases", "resources"),
    Deprecation::new("commonLabels", "labels"),
    Deprecation::new("imageTags", "images"),
    Deprecation::new("patchesJson6902", "patches"),
    Deprecation::new("patchesStrategicMerge", "patches"),
    Deprecation::new(VARS, "replacements"),
];

const VARS: &str = "vars";

impl Deprecation {
    const fn new(field: &'static str, successor: &'static str) -> Self {
        Self { field, successor }
    }
}

impl fmt::Display for Deprecation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, successor } = self;
        let experimental = if *field == VARS {
            "[EXPERIMENTAL] "
        } else {
            ""
        };
        write!(
            f,
            "'{field}' is deprecated. Please use '{successor}' instead. {experimental}Run 'kustomize edit fix' to update your Kustomization automatically."
        )
    }
}

/// The deprecated fields of a file, in kustomize's order.
pub(crate) fn deprecated(fields: &Fields<'_>) -> Vec<Deprecation> {
    let used = DEPRECATIONS
        .into_iter()
        .filter(|deprecation| fields.get(deprecation.field).is_some());
    used.collect()
}
