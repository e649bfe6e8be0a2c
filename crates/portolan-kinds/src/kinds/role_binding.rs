//! `RoleBinding`: gives the rights of a role in one namespace to subjects.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule, joined};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "RoleBinding",
    plural: "rolebindings",
    short_names: &["rb"],
    is_namespaced: true,
    spec: "RoleBindingSpec",
    status: None,
    names: NameRule::Segment,
    rules: &RULES,
    check: nothing_more,
    columns: &[
        Column::new("ROLE", "spec.role.name"),
        Column::new("SUBJECTS", "spec.subjects.*.name"),
    ],
    selectable: &["spec.role.name"],
};

const RULES: [FieldRule; 7] = joined(
    &BINDING_RULES,
    &[FieldRule {
        path: "role.kind",
        demand: FieldDemand::OneOf(&["Role", "ClusterRole"]),
    }],
);

/// What a `RoleBinding` and a `ClusterRoleBinding` must have.
pub(super) const BINDING_RULES: [FieldRule; 6] = [
    FieldRule {
        path: "role",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "role.kind",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "role.name",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "subjects",
        demand: FieldDemand::Items(1_000),
    },
    FieldRule {
        path: "subjects[].kind",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "subjects[].name",
        demand: FieldDemand::Required,
    },
];
