//! `Run`: one run of a TaskBook on nodes that were chosen when it was made.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Run",
    plural: "runs",
    short_names: &[],
    is_namespaced: true,
    spec: "RunSpec",
    status: Some("RunStatus"),
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "book",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "book",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "mode",
            demand: FieldDemand::Default(FixedValue::Text("apply")),
        },
        FieldRule {
            path: "nodes",
            demand: FieldDemand::Items(10_000),
        },
        FieldRule {
            path: "nodes[].name",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "tags",
            demand: FieldDemand::Items(100),
        },
        FieldRule {
            path: "skipTags",
            demand: FieldDemand::Items(100),
        },
        FieldRule {
            path: "dedupeKey",
            demand: FieldDemand::Length(253),
        },
    ],
    check: nothing_more,
    columns: &[
        Column::new("BOOK", "spec.book"),
        Column::new("MODE", "spec.mode"),
        Column::new("PHASE", "status.phase"),
        Column::new("REASON", "status.reason"),
        Column::wide("COMMIT", "spec.commit"),
        Column::wide("BY", "spec.requestedBy"),
    ],
    selectable: &["spec.book", "status.phase"],
};
