//! The rules of findings about Kustomizations, releases and their sources.

use portolan_object::{Rule, Severity};

/// Every rule, by id.
pub const RULES: &[&Rule] = &[
    &BUILD_FAILED,
    &INVALID_FIELD,
    &NOT_KNOWN_HERE,
    &UNSET_VARIABLE,
    &UNSETTLED,
    &CHART_INVALID,
    &CHART_UNAVAILABLE,
    &CLUSTER_NOT_COVERED,
    &DEPENDENCY_CIRCLE,
    &DEPENDENCY_MISSING,
    &SUSPENDED,
    &MISSING_DATA,
    &MISSING_INPUTS,
    &OUTSIDE_INPUTS,
    &BAD_VALUES,
    &RELEASE_REFUSED,
    &SOURCE_MISSING,
    &SOURCE_UNAVAILABLE,
    &UNREAD_VALUE,
    &VERSION_NOT_KNOWN,
];

pub(crate) static BUILD_FAILED: Rule = Rule {
    id: "build/failed",
    severity: Severity::Error,
    summary: "a Kustomization, HelmRelease or ResourceSet does not build",
    help: "Flux would stop at this object and keep what it applied before. The message is the one Flux or Helm \
           would give, with the file that caused it; everything that only fails because of it is not listed.",
};

pub(crate) static INVALID_FIELD: Rule = Rule {
    id: "build/invalid-field",
    severity: Severity::Error,
    summary: "a field of a Flux object is missing or of the wrong type",
    help: "The API server refuses the object, so Flux never sees it and nothing is built from it.",
};

/// What is built hangs on something that only the cluster knows.
pub static NOT_KNOWN_HERE: Rule = Rule {
    id: "build/not-known-here",
    severity: Severity::Error,
    summary: "something cannot be built here without what only the cluster knows",
    help: "Its path, or values that its chart asks for, come from a Secret or ConfigMap whose content the repository does \
           not hold. Flux may well build it, so `test` only notes it; its objects are not judged. `--missing strict` \
           makes it an error.",
};

pub(crate) static UNSET_VARIABLE: Rule = Rule {
    id: "build/unset-variable",
    severity: Severity::Error,
    summary: "a variable has no value",
    help: "Flux refuses the whole Kustomization when a variable in it is neither set nor has a default. Give it a \
           default, `${NAME:=value}`, or set it in `postBuild`.",
};

pub(crate) static UNSETTLED: Rule = Rule {
    id: "build/unsettled",
    severity: Severity::Error,
    summary: "a build keeps changing its own inputs",
    help: "Every build gives other variables, values or inputs for the next one, so Flux would apply something else on \
           every reconciliation. Do not use what a Kustomization, release or ResourceSet makes as its own input.",
};

pub(crate) static CHART_INVALID: Rule = Rule {
    id: "chart/invalid",
    severity: Severity::Error,
    summary: "a chart was found but cannot be used",
    help: "It is not a chart, or a dependency, a values file or the version is not what the release asks for. The \
           release is not rendered, so nothing is known about its objects.",
};

pub(crate) static CHART_UNAVAILABLE: Rule = Rule {
    id: "chart/unavailable",
    severity: Severity::Error,
    summary: "a chart cannot be fetched",
    help: "The release is not rendered, so nothing is known about its objects. `portolan fetch` brings charts into \
           the cache when there is a network; `--source NAME=DIR` gives the files of a source.",
};

/// A cluster may start in a directory that was not checked.
pub static CLUSTER_NOT_COVERED: Rule = Rule {
    id: "cluster/not-covered",
    severity: Severity::Warning,
    summary: "a cluster may start in a directory that was not checked",
    help: "A FluxInstance names the directory that its cluster starts from with a variable that nothing in the \
           repository sets. Clusters that start elsewhere are not tested. Name each directory with `--path`, or write \
           the path without the variable.",
};

pub(crate) static DEPENDENCY_CIRCLE: Rule = Rule {
    id: "dependency/circle",
    severity: Severity::Error,
    summary: "objects depend on one another in a circle",
    help: "Each waits for the next, and Flux applies none of them. Take one out of `dependsOn`.",
};

/// An object depends on one that does not exist; a note where that may come with what is not built.
pub static DEPENDENCY_MISSING: Rule = Rule {
    id: "dependency/missing",
    severity: Severity::Error,
    summary: "an object depends on one that does not exist",
    help: "Flux waits for it for ever. Fix the name, or take it out of `dependsOn`.",
};

/// A ConfigMap or Secret does not exist; `--missing` says how grave that is.
pub static MISSING_DATA: Rule = Rule {
    id: "reference/missing-data",
    severity: Severity::Error,
    summary: "a ConfigMap or Secret with values or variables does not exist in the repository",
    help: "Flux refuses to build without it. A Secret is only noted, for many are made by hand; `--missing strict` \
           makes that an error too. If something outside of the repository makes a ConfigMap, mark the reference \
           `optional: true`, or run with `--missing note`.",
};

pub(crate) static MISSING_INPUTS: Rule = Rule {
    id: "reference/missing-inputs",
    severity: Severity::Error,
    summary: "a ResourceSet takes its inputs from a provider that does not exist",
    help: "The operator waits for the provider. Add it to what Flux applies, or fix the name in `inputsFrom`.",
};

pub(crate) static OUTSIDE_INPUTS: Rule = Rule {
    id: "reference/outside-inputs",
    severity: Severity::Note,
    summary: "the inputs of a ResourceSet come from a service",
    help: "What the service answers is known in the cluster only; `status.exportedInputs` of the provider is used \
           when it is there.",
};

pub(crate) static BAD_VALUES: Rule = Rule {
    id: "reference/values",
    severity: Severity::Error,
    summary: "values of a release cannot be taken from a ConfigMap or Secret",
    help: "The object exists, and lacks the key, or what the key holds is not YAML or does not fit `targetPath`. \
           Flux refuses the release.",
};

pub(crate) static RELEASE_REFUSED: Rule = Rule {
    id: "release/refused",
    severity: Severity::Note,
    summary: "Helm accepts a release that Flux refuses",
    help: "`helm template` renders it; the controller refuses what is in it.",
};

pub(crate) static SOURCE_MISSING: Rule = Rule {
    id: "source/missing",
    severity: Severity::Error,
    summary: "a source is named that does not exist in the repository",
    help: "Flux waits for the source. Fix its name, kind or namespace, or add it to what Flux applies.",
};

pub(crate) static SOURCE_UNAVAILABLE: Rule = Rule {
    id: "source/unavailable",
    severity: Severity::Error,
    summary: "the files of a source cannot be fetched",
    help: "What is built from it is not known. `portolan fetch` brings sources into the cache when there is a \
           network; `--source NAME=DIR` gives the files.",
};

pub(crate) static SUSPENDED: Rule = Rule {
    id: "flux/suspended",
    severity: Severity::Note,
    summary: "Flux does not act on an object that is suspended",
    help: "It is rendered all the same. Changes reach the cluster once `spec.suspend` is taken away.",
};

pub(crate) static UNREAD_VALUE: Rule = Rule {
    id: "values/unread",
    severity: Severity::Warning,
    summary: "no template of a chart reads a value that a release gives",
    help: "The value has no effect: its key is mistyped, stands below the wrong parent, or belongs to another version of \
           the chart. Only what is certain is told. A key that the chart declares or its schema names, and whatever a \
           template may use as a whole, is taken as read.",
};

pub(crate) static VERSION_NOT_KNOWN: Rule = Rule {
    id: "version/not-known",
    severity: Severity::Warning,
    summary: "nothing is known of the chosen version of Kubernetes or Flux",
    help: "The types of a Kubernetes release and the behaviour of a Flux release are compiled in. For one that is newer \
           or older than those, the nearest known one is used, so that what only the chosen one has is judged wrongly. \
           `--kube-version` and `--flux-version` choose another; a newer Portolan may know it.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_and_their_ids_are_unique() {
        assert!(RULES.is_sorted_by(|one, other| one.id < other.id));
    }
}
