//! `ClusterVariable`: values for the namespaces and groups that a binding names.

use portolan_object::NameRule;
use serde_json::Value;

use super::variable::check_values;
use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "ClusterVariable",
    plural: "clustervariables",
    short_names: &["cvar"],
    is_namespaced: false,
    spec: "ClusterVariableSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "values",
            demand: FieldDemand::Items(1_000),
        },
        FieldRule {
            path: "dynamic.selector",
            demand: FieldDemand::LabelSelector,
        },
        FieldRule {
            path: "dynamic.limit",
            demand: FieldDemand::Default(FixedValue::Count(1)),
        },
        FieldRule {
            path: "dynamic.limit",
            demand: FieldDemand::Between(1, 10_000),
        },
        FieldRule {
            path: "dynamic.refresh",
            demand: FieldDemand::Span(1, 366 * 24 * 3600),
        },
        FieldRule {
            path: "dynamic.ttl",
            demand: FieldDemand::Span(1, 366 * 24 * 3600),
        },
        FieldRule {
            path: "dynamic.whenStale",
            demand: FieldDemand::Default(FixedValue::Text("fail")),
        },
        FieldRule {
            path: "dynamic.sensitive",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
    ],
    check,
    columns: &[
        Column::new("VALUES", "spec.values"),
        Column::wide("COMPUTED", "spec.dynamic.expressions"),
    ],
    selectable: &[],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    check_values(spec, faults);
}
