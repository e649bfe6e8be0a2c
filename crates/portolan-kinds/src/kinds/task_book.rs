//! `TaskBook`: steps that bring servers to a state. The steps themselves are read by portolan-fleet, which knows the
//! modules.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::{Reconcile, ReconcileSpec};
use serde_json::Value;

use super::trigger::add;
use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "TaskBook",
    plural: "taskbooks",
    short_names: &["book", "books", "tb"],
    is_namespaced: true,
    spec: "TaskBookSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: RULES,
    check,
    columns: &[
        Column::new("STRATEGY", "spec.strategy"),
        Column::new("SUSPENDED", "spec.suspend"),
        Column::wide("TARGET", "spec.target"),
    ],
    selectable: &[],
};

/// Longest wait for a node that cannot be reached, and longest pause of a gate.
const MAX_SECONDS: u64 = 7 * 24 * 3600;

const RULES: &[FieldRule] = &[
    FieldRule {
        path: "inputs",
        demand: FieldDemand::Items(200),
    },
    FieldRule {
        path: "inputs.*.type",
        demand: FieldDemand::Default(FixedValue::Text("string")),
    },
    FieldRule {
        path: "inputs.*.secret",
        demand: FieldDemand::Default(FixedValue::Flag(false)),
    },
    FieldRule {
        path: "inputs.*.pattern",
        demand: FieldDemand::Length(1_000),
    },
    FieldRule {
        path: "target.selector",
        demand: FieldDemand::LabelSelector,
    },
    FieldRule {
        path: "target.order",
        demand: FieldDemand::Default(FixedValue::Text("stable")),
    },
    FieldRule {
        path: "target.allowEmpty",
        demand: FieldDemand::Default(FixedValue::Flag(false)),
    },
    FieldRule {
        path: "strategy",
        demand: FieldDemand::Default(FixedValue::Text("lockstep")),
    },
    FieldRule {
        path: "batches",
        demand: FieldDemand::Items(100),
    },
    FieldRule {
        path: "maxFailures",
        demand: FieldDemand::Default(FixedValue::Count(0)),
    },
    FieldRule {
        path: "onFailure",
        demand: FieldDemand::Default(FixedValue::Text("drain")),
    },
    FieldRule {
        path: "unreachable",
        demand: FieldDemand::Default(FixedValue::Text("fail")),
    },
    FieldRule {
        path: "handlersOnFailure",
        demand: FieldDemand::Default(FixedValue::Text("owe")),
    },
    FieldRule {
        path: "suspend",
        demand: FieldDemand::Default(FixedValue::Flag(false)),
    },
    FieldRule {
        path: "continue.approve",
        demand: FieldDemand::Default(FixedValue::Flag(false)),
    },
    FieldRule {
        path: "continue.retries.limit",
        demand: FieldDemand::Between(0, 10_000),
    },
    FieldRule {
        path: "continue.retries.interval",
        demand: FieldDemand::Span(0, MAX_SECONDS),
    },
    FieldRule {
        path: "steps",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "steps",
        demand: FieldDemand::Items(5_000),
    },
    FieldRule {
        path: "handlers",
        demand: FieldDemand::Items(500),
    },
];

fn check_reconcile(spec: &Value, path: &FieldPath, faults: &mut Faults<'_>) {
    let Some(reconcile) = spec.get("reconcile") else {
        return;
    };
    let path = path.key("reconcile");
    match serde_json::from_value::<ReconcileSpec>(reconcile.clone()) {
        Ok(rules) => add(
            &path,
            Reconcile::new(&rules).err().unwrap_or_default(),
            faults,
        ),
        Err(error) => faults.add(&path, format!("cannot be used: {error}")),
    }
}

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    check_reconcile(spec, &path, faults);
    for field in ["inputs", "vars", "compute"] {
        check_names(spec, field, &path, faults);
    }
    let batches = spec.get("batches").and_then(Value::as_array);
    for (index, batch) in batches.into_iter().flatten().enumerate() {
        if !is_share(batch, 1) {
            let message = "must be a count from 1 on, or a percent such as `50%`";
            faults.add(&path.key("batches").index(index), message);
        }
    }
    if spec
        .get("maxFailures")
        .is_some_and(|most| !is_share(most, 0))
    {
        let message = "must be a count, or a percent such as `10%`";
        faults.add(&path.key("maxFailures"), message);
    }
    let wait = spec.get("unreachable").unwrap_or(&Value::Null);
    let is_wait = wait
        .as_object()
        .filter(|map| map.len() == 1)
        .and_then(|map| map.get("wait")?.as_str())
        .is_some_and(|span| crate::read_span(span).is_ok());
    if !wait.is_null() && !matches!(wait.as_str(), Some("fail" | "skip")) && !is_wait {
        let message = "must be `fail`, `skip` or a wait such as `{wait: 10m}`";
        faults.add(&path.key("unreachable"), message);
    }
    if let Some(gate) = spec.get("continue")
        && gate.get("that").is_some()
        && gate.get("probe").is_none()
    {
        faults.add(
            &path.key("continue"),
            "needs a `probe` whose result `that` looks at",
        );
    }
}

/// Names that expressions can spell.
fn check_names(spec: &Value, field: &str, path: &FieldPath, faults: &mut Faults<'_>) {
    let names = spec.get(field).and_then(Value::as_object);
    for name in names.into_iter().flat_map(|map| map.keys()) {
        if !super::variable::is_variable_name(name) {
            let message = "must be a name of letters, digits and `_` that begins with a letter";
            faults.add(&path.key(field).key(name), message);
        }
    }
}

/// Whether a value is a whole number from `least` on, or a percent up to 100.
fn is_share(value: &Value, least: u64) -> bool {
    if let Some(text) = value.as_str() {
        let percent = text
            .strip_suffix('%')
            .and_then(|number| number.parse::<u64>().ok());
        return percent.is_some_and(|percent| (least..=100).contains(&percent));
    }
    value
        .as_u64()
        .is_some_and(|count| (least..=u64::from(u32::MAX)).contains(&count))
}
