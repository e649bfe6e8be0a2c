//! `ClusterVariablesBinding`: gives `ClusterVariables` to namespaces and groups.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "ClusterVariablesBinding",
    plural: "clustervariablesbindings",
    short_names: &["cvb"],
    is_namespaced: false,
    spec: "ClusterVariablesBindingSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "variables",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "variables",
            demand: FieldDemand::Items(1_000),
        },
        FieldRule {
            path: "variables[]",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "namespaces",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "namespaces",
            demand: FieldDemand::Items(1_000),
        },
        FieldRule {
            path: "namespaces[]",
            demand: FieldDemand::Name(NameRule::Label),
        },
        FieldRule {
            path: "groups",
            demand: FieldDemand::Items(1_000),
        },
        FieldRule {
            path: "groups[]",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
    ],
    check: nothing_more,
    columns: &[
        Column::new("VARIABLES", "spec.variables"),
        Column::new("NAMESPACES", "spec.namespaces"),
        Column::new("GROUPS", "spec.groups"),
    ],
    selectable: &[],
};
