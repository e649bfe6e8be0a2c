//! The rules that findings refer to, each with its help text.
//!
//! Each is a static, so a check cannot refer to a rule that does not exist.

use portolan_object::{Rule, Severity};

/// Every rule, by id.
pub const RULES: &[&Rule] = &[
    &CONFLICT,
    &DUPLICATE_ITEM,
    &REFUSED_NAME,
    &SELECTOR,
    &REFUSED_VALUE,
    &API_REMOVED,
    &DUPLICATE_OWNER,
    &INSIDE_REFERENCE,
    &MISSING_REFERENCE,
    &UNKNOWN_REFERENCE,
    &INVALID_VALUE,
    &MISSING_FIELD,
    &NOT_JUDGED,
    &NOT_SERVED,
    &NOT_SERVED_YET,
    &BROKEN_RULE,
    &UNKNOWN_FIELD,
    &WRONG_TYPE,
];

pub(crate) static CONFLICT: Rule = Rule {
    id: "admission/conflict",
    severity: Severity::Error,
    summary: "fields exclude each other, or one of several is required",
    help: "The API server refuses the object: a probe needs exactly one way to ask, a volume comes from one source, a \
           budget sets a least or a most. Keep the one that is meant.",
};

pub(crate) static DUPLICATE_ITEM: Rule = Rule {
    id: "admission/duplicate",
    severity: Severity::Error,
    summary: "two items of a list have the same name",
    help: "Containers, ports, volumes and mounts are told apart by their names; the API server refuses two of one. \
           Often a patch added what it was meant to change.",
};

pub(crate) static REFUSED_NAME: Rule = Rule {
    id: "admission/name",
    severity: Severity::Error,
    summary: "a name, label or key has an invalid form",
    help: "Names become parts of addresses and paths, so Kubernetes allows few characters in them and limits their \
           length; the API server refuses others. A variable that was not replaced is a frequent cause.",
};

pub(crate) static SELECTOR: Rule = Rule {
    id: "admission/selector",
    severity: Severity::Error,
    summary: "a selector does not select the pods beside it",
    help: "The labels of the pod template must have everything that the selector asks for; the API server refuses \
           the workload otherwise. A selector cannot be changed later: fix the labels.",
};

pub(crate) static REFUSED_VALUE: Rule = Rule {
    id: "admission/value",
    severity: Severity::Error,
    summary: "a value is outside of what is allowed",
    help: "Its type is right, but the API server allows only some words, a range of numbers or a form of text here; \
           the message says which.",
};

pub(crate) static API_REMOVED: Rule = Rule {
    id: "api/removed",
    severity: Severity::Error,
    summary: "the chosen Kubernetes no longer serves this API version",
    help: "The API server refuses the object, and Flux stops at it. The message names what to use instead; `portolan \
           audit repo --target RELEASE` tells what else changes with it, and looks ahead to the next releases.",
};

pub(crate) static DUPLICATE_OWNER: Rule = Rule {
    id: "owner/duplicate",
    severity: Severity::Error,
    summary: "two Kustomizations or HelmReleases bring the same object",
    help: "Both controllers apply the object in turn, each undoing the other's fields, and pruning one deletes it \
           for both. Keep it in one place, or give the objects different names.",
};

pub(crate) static INSIDE_REFERENCE: Rule = Rule {
    id: "reference/inside",
    severity: Severity::Error,
    summary: "an object refers to a part of itself that does not exist",
    help: "A mount names a volume of its pod, a probe may name a port of its container. The API server refuses an \
           unknown volume; a probe of an unknown port fails for ever. Usually one of the two names is mistyped.",
};

/// An object refers to another that the repository does not bring.
pub static MISSING_REFERENCE: Rule = Rule {
    id: "reference/missing",
    severity: Severity::Warning,
    summary: "an object refers to another by a wrong name, key or port",
    help: "A pod that names a missing ConfigMap, Secret, claim or service account, or a key that one lacks, does not \
           start; an autoscaler without its target and an ingress without its service do nothing. The repository has \
           an object of nearly that name, or the object without that part: one of the two is mistyped.",
};

pub(crate) static UNKNOWN_REFERENCE: Rule = Rule {
    id: "reference/unknown",
    severity: Severity::Note,
    summary: "objects refer to others that nothing in the repository makes",
    help: "They may exist in the cluster already, or something outside of the repository makes them: nobody can tell \
           here. They are counted once for a cluster.",
};

pub(crate) static INVALID_VALUE: Rule = Rule {
    id: "schema/invalid-value",
    severity: Severity::Error,
    summary: "a value is not one that its type allows",
    help: "The definition limits the value by an enumeration, a pattern, a range or a count; the API server refuses \
           anything else.",
};

pub(crate) static MISSING_FIELD: Rule = Rule {
    id: "schema/missing-field",
    severity: Severity::Error,
    summary: "a required field is missing",
    help: "The API server refuses the object. A null counts as missing.",
};

pub(crate) static NOT_JUDGED: Rule = Rule {
    id: "schema/not-judged",
    severity: Severity::Note,
    summary: "a rule of the definition could not be evaluated here",
    help: "The rule uses what is not known here, or needs more steps than Kubernetes allows; the API server may accept \
           the object or refuse it. It is told once for each kind.",
};

pub(crate) static NOT_SERVED: Rule = Rule {
    id: "schema/not-served",
    severity: Severity::Error,
    summary: "the chosen Kubernetes does not serve this kind in this version",
    help: "No release is known to have served it, or the chosen one does not serve it yet; --kube-version chooses \
           another release.",
};

pub(crate) static NOT_SERVED_YET: Rule = Rule {
    id: "schema/not-served-yet",
    severity: Severity::Note,
    summary: "only releases newer than the assumed Kubernetes version serve this kind",
    help: "No Kubernetes version was given, so a default is assumed, and the object was not checked. \
           Name the release with `--kube-version`, or in `versions.kubernetes` of `portolan.yaml`.",
};

pub(crate) static BROKEN_RULE: Rule = Rule {
    id: "schema/rule",
    severity: Severity::Error,
    summary: "a validation rule of the definition is broken",
    help: "The CustomResourceDefinition states the rule in `x-kubernetes-validations`; the API server evaluates it \
           after filling in defaults, and refuses the object.",
};

pub(crate) static UNKNOWN_FIELD: Rule = Rule {
    id: "schema/unknown-field",
    severity: Severity::Error,
    summary: "the type has no field of this name",
    help: "Flux applies by server-side apply, which refuses fields that the type does not declare. Usually the name \
           is mistyped, indented wrongly, or belongs to another release.",
};

pub(crate) static WRONG_TYPE: Rule = Rule {
    id: "schema/wrong-type",
    severity: Severity::Error,
    summary: "a value is of the wrong type",
    help: "The API server cannot read the object. A frequent cause is a label, an annotation or an environment \
           variable that YAML reads as a number or a boolean: put it in quotes.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_and_their_ids_are_unique() {
        assert!(RULES.is_sorted_by(|one, other| one.id < other.id));
    }
}
