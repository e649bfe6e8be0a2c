//! `Config`: settings of servers that can change while they run.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Config",
    plural: "configs",
    short_names: &[],
    is_namespaced: false,
    spec: "ConfigSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "events.retention",
            demand: FieldDemand::Span(60, 366 * 24 * 3600),
        },
        FieldRule {
            path: "limits.requestsPerSecond",
            demand: FieldDemand::Between(1, 100_000),
        },
        FieldRule {
            path: "limits.requestBurst",
            demand: FieldDemand::Between(1, 100_000),
        },
    ],
    check: nothing_more,
    columns: &[Column::new("EVENTS KEPT", "spec.events.retention")],
    selectable: &[],
};
