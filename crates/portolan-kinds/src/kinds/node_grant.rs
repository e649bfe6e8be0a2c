//! `NodeGrant`: allows namespaces to target groups of nodes.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "NodeGrant",
    plural: "nodegrants",
    short_names: &[],
    is_namespaced: false,
    spec: "NodeGrantSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
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
            demand: FieldDemand::Required,
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
        Column::new("NAMESPACES", "spec.namespaces"),
        Column::new("GROUPS", "spec.groups"),
    ],
    selectable: &[],
};
