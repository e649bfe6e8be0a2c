//! `ClusterRoleBinding`: gives the rights of a `ClusterRole` everywhere to subjects.

use portolan_object::NameRule;

use super::role_binding::BINDING_RULES;
use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule, joined};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "ClusterRoleBinding",
    plural: "clusterrolebindings",
    short_names: &["crb"],
    is_namespaced: false,
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
        demand: FieldDemand::OneOf(&["ClusterRole"]),
    }],
);
