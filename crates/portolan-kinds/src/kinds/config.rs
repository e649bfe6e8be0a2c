//! `Config`: settings of servers that can change while they run.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::{EventFilter, EventFilterSpec};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
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
            path: "events.allow",
            demand: FieldDemand::Items(200),
        },
        FieldRule {
            path: "events.deny",
            demand: FieldDemand::Items(200),
        },
        FieldRule {
            path: "triggers.runsPerMinute",
            demand: FieldDemand::Between(1, 10_000),
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
    check,
    columns: &[Column::new("EVENTS KEPT", "spec.events.retention")],
    selectable: &[],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    for list in ["allow", "deny"] {
        let found = spec.get("events").and_then(|events| events.get(list));
        let patterns = found.and_then(Value::as_array).into_iter().flatten();
        for (index, pattern) in patterns.enumerate() {
            let allow = vec![pattern.as_str().unwrap_or_default().to_owned()];
            let spec = EventFilterSpec {
                allow,
                ..EventFilterSpec::default()
            };
            if let Err(error) = EventFilter::new(&spec) {
                let path = FieldPath::top("spec").key("events").key(list);
                faults.add(&path.index(index), format!("cannot be used: {error}"));
            }
        }
    }
}
