//! `Event`: something that happened.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

/// The most bytes of an event's data: many events share a record of the store.
const MAX_DATA_BYTES: usize = 8 << 10;

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Event",
    plural: "events",
    short_names: &["ev"],
    is_namespaced: true,
    spec: "EventSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "type",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "type",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "summary",
            demand: FieldDemand::Length(1_000),
        },
        FieldRule {
            path: "severity",
            demand: FieldDemand::Default(FixedValue::Text("info")),
        },
        FieldRule {
            path: "occurrences",
            demand: FieldDemand::Default(FixedValue::Count(1)),
        },
        FieldRule {
            path: "occurrences",
            demand: FieldDemand::Between(1, u32::MAX),
        },
    ],
    check,
    columns: &[
        Column::new("TYPE", "spec.type"),
        Column::new("SEVERITY", "spec.severity"),
        Column::new("ABOUT", "spec.source.name"),
        Column::new("SUMMARY", "spec.summary"),
        Column::wide("NODE", "spec.source.node"),
        Column::wide("TIME", "spec.time"),
    ],
    selectable: &[
        "spec.type",
        "spec.severity",
        "spec.source.kind",
        "spec.source.name",
        "spec.source.node",
    ],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let size = spec.get("data").map_or(0, |data| data.to_string().len());
    if size > MAX_DATA_BYTES {
        let message = format!("must have at most {MAX_DATA_BYTES} bytes");
        faults.add(&FieldPath::top("spec").key("data"), message);
    }
}
