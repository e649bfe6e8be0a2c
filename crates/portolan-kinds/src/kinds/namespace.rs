//! `Namespace`: separates the objects of projects and teams.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Namespace",
    plural: "namespaces",
    short_names: &["ns"],
    is_namespaced: false,
    spec: "NamespaceSpec",
    status: Some("NamespaceStatus"),
    names: NameRule::Label,
    rules: &[
        FieldRule {
            path: "description",
            demand: FieldDemand::Length(1_000),
        },
        FieldRule {
            path: "vaultPrefix",
            demand: FieldDemand::Length(500),
        },
    ],
    check: nothing_more,
    columns: &[
        Column::new("PHASE", "status.phase"),
        Column::wide("DESCRIPTION", "spec.description"),
    ],
    selectable: &["status.phase"],
};
