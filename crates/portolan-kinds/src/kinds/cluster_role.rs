//! `ClusterRole`: rights in all namespaces and on global kinds.

use portolan_object::NameRule;

use super::role;
use crate::definition::{Column, KindDefinition};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "ClusterRole",
    plural: "clusterroles",
    short_names: &[],
    is_namespaced: false,
    spec: "RoleSpec",
    status: None,
    names: NameRule::Segment,
    rules: role::RULES,
    check: role::check,
    columns: &[
        Column::new("VERBS", "spec.rules.0.verbs"),
        Column::new("KINDS", "spec.rules.0.kinds"),
    ],
    selectable: &[],
};
