//! `Trigger`: runs that are made when events happen.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::{SpecFault, Trigger, TriggerSpec};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Trigger",
    plural: "triggers",
    short_names: &["tr"],
    is_namespaced: true,
    spec: "TriggerSpec",
    status: Some("TriggerStatus"),
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "match",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "run",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "run.book",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "run.book",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "run.mode",
            demand: FieldDemand::Default(FixedValue::Text("apply")),
        },
        FieldRule {
            path: "run.mode",
            demand: FieldDemand::OneOf(&["apply", "check"]),
        },
        FieldRule {
            path: "run.eventNode",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
        FieldRule {
            path: "run.selector",
            demand: FieldDemand::LabelSelector,
        },
        FieldRule {
            path: "count",
            demand: FieldDemand::Default(FixedValue::Count(1)),
        },
        FieldRule {
            path: "within",
            demand: FieldDemand::Span(0, LONGEST),
        },
        FieldRule {
            path: "cooldown",
            demand: FieldDemand::Span(0, LONGEST),
        },
        FieldRule {
            path: "waitForMore.quiet",
            demand: FieldDemand::Span(0, LONGEST),
        },
        FieldRule {
            path: "waitForMore.max",
            demand: FieldDemand::Span(0, LONGEST),
        },
        FieldRule {
            path: "trip.per",
            demand: FieldDemand::Span(0, LONGEST),
        },
        FieldRule {
            path: "trip.reset",
            demand: FieldDemand::Span(0, LONGEST),
        },
        FieldRule {
            path: "maxActive",
            demand: FieldDemand::Default(FixedValue::Count(1)),
        },
        FieldRule {
            path: "whenBlocked",
            demand: FieldDemand::Default(FixedValue::Text("hold")),
        },
        FieldRule {
            path: "maxDepth",
            demand: FieldDemand::Default(FixedValue::Count(4)),
        },
        FieldRule {
            path: "allowRepeat",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
        FieldRule {
            path: "maxGroups",
            demand: FieldDemand::Default(FixedValue::Count(1_000)),
        },
        FieldRule {
            path: "suspend",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
        FieldRule {
            path: "reset",
            demand: FieldDemand::Length(253),
        },
    ],
    check,
    columns: &[
        Column::new("EVENTS", "spec.match.types"),
        Column::new("BOOK", "spec.run.book"),
        Column::new("STATE", "status.state"),
        Column::new("FIRED", "status.fired"),
        Column::new("LAST", "status.lastFired"),
        Column::new("ERROR", "status.error"),
        Column::wide("RUN", "status.lastRun"),
        Column::wide("WHEN", "spec.match.when"),
    ],
    selectable: &["spec.run.book", "status.state"],
};

/// A year, in seconds. How long each span may be is checked with the rules of the trigger; here it is told at its field when it is
/// none.
const LONGEST: u64 = 366 * 24 * 3600;

/// Fields of the spec that do not say when a trigger fires.
const NOT_RULES: [&str; 3] = ["run", "suspend", "reset"];

/// When a trigger fires, as its spec says it.
///
/// # Errors
/// What the spec of an object that was not checked has wrong.
pub fn trigger_rules(spec: &Value) -> Result<TriggerSpec, serde_json::Error> {
    let mut rules = spec.clone();
    if let Some(rules) = rules.as_object_mut() {
        rules.retain(|key, _| !NOT_RULES.contains(&key.as_str()));
    }
    serde_json::from_value(rules)
}

/// Which namespaces a trigger may see depends on its own, so that is checked where that is known.
fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    match trigger_rules(spec) {
        Ok(rules) => {
            let checked = Trigger::new("", "system", &rules);
            add(&path, checked.err().unwrap_or_default(), faults);
        }
        // A field that is not there is told by its rule.
        Err(error) if faults.is_empty() => faults.add(&path, error.to_string()),
        Err(_) => {}
    }
    let run = spec.get("run");
    let selector = run.and_then(|run| run.get("selector"));
    let event_node = run.and_then(|run| run.get("eventNode"));
    if selector.is_some() && event_node.and_then(Value::as_bool) == Some(true) {
        let message = "cannot be used with `eventNode`";
        faults.add(&path.key("run").key("selector"), message);
    }
}

/// Adds faults of a part of a spec.
pub(super) fn add(above: &FieldPath, found: Vec<SpecFault>, faults: &mut Faults<'_>) {
    for fault in found {
        let path = above.join(&FieldPath::parse(&fault.field));
        faults.add(&path, fault.message);
    }
}
