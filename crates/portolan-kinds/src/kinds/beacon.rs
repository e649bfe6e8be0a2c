//! `Beacon`: something that nodes watch by themselves.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

/// What can be watched. A beacon watches one of them.
const SUBJECTS: [&str; 6] = ["file", "service", "disk", "port", "command", "drift"];

/// The longest time between two checks, and between two events about the same.
const MAX_SECONDS: u64 = 24 * 3600;

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Beacon",
    plural: "beacons",
    short_names: &["bc"],
    is_namespaced: true,
    spec: "BeaconSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: RULES,
    check,
    columns: &[
        Column::new("TARGET", "spec.target"),
        Column::new("INTERVAL", "spec.interval"),
        Column::new("SUSPENDED", "spec.suspend"),
        Column::wide("SEVERITY", "spec.severity"),
    ],
    selectable: &[],
};

const RULES: &[FieldRule] = &[
    FieldRule {
        path: "target",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "target.selector",
        demand: FieldDemand::LabelSelector,
    },
    FieldRule {
        path: "target.selector",
        demand: FieldDemand::Length(2_000),
    },
    FieldRule {
        path: "target.groups[]",
        demand: FieldDemand::Name(NameRule::Subdomain),
    },
    FieldRule {
        path: "target.groups",
        demand: FieldDemand::Items(100),
    },
    FieldRule {
        path: "target.nodes[]",
        demand: FieldDemand::Name(NameRule::Subdomain),
    },
    FieldRule {
        path: "target.nodes",
        demand: FieldDemand::Items(5_000),
    },
    FieldRule {
        path: "file.path",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "service.name",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "service.name",
        demand: FieldDemand::Length(255),
    },
    FieldRule {
        path: "service.state",
        demand: FieldDemand::Default(FixedValue::Text("running")),
    },
    FieldRule {
        path: "disk.path",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "disk.freePercent",
        demand: FieldDemand::Default(FixedValue::Count(10)),
    },
    FieldRule {
        path: "disk.freePercent",
        demand: FieldDemand::Between(1, 99),
    },
    FieldRule {
        path: "port.port",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "port.port",
        demand: FieldDemand::Between(1, 65_535),
    },
    FieldRule {
        path: "port.address",
        demand: FieldDemand::Default(FixedValue::Text("127.0.0.1")),
    },
    FieldRule {
        path: "port.address",
        demand: FieldDemand::Length(253),
    },
    FieldRule {
        path: "port.state",
        demand: FieldDemand::Default(FixedValue::Text("open")),
    },
    FieldRule {
        path: "command.run",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "command.run",
        demand: FieldDemand::Items(100),
    },
    FieldRule {
        path: "command.run[]",
        demand: FieldDemand::Length(4_096),
    },
    FieldRule {
        path: "command.timeout",
        demand: FieldDemand::Default(FixedValue::Text("10s")),
    },
    FieldRule {
        path: "command.timeout",
        demand: FieldDemand::Span(1, 60),
    },
    FieldRule {
        path: "command.okCodes[]",
        demand: FieldDemand::Between(0, 255),
    },
    FieldRule {
        path: "command.okCodes",
        demand: FieldDemand::Items(256),
    },
    FieldRule {
        path: "drift.book",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "drift.book",
        demand: FieldDemand::Name(NameRule::Subdomain),
    },
    FieldRule {
        path: "interval",
        demand: FieldDemand::Default(FixedValue::Text("30s")),
    },
    FieldRule {
        path: "interval",
        demand: FieldDemand::Span(1, MAX_SECONDS),
    },
    FieldRule {
        path: "every",
        demand: FieldDemand::Span(10, MAX_SECONDS),
    },
    FieldRule {
        path: "seen",
        demand: FieldDemand::Default(FixedValue::Count(1)),
    },
    FieldRule {
        path: "of",
        demand: FieldDemand::Default(FixedValue::Count(1)),
    },
    FieldRule {
        path: "of",
        demand: FieldDemand::Between(1, 100),
    },
    FieldRule {
        path: "severity",
        demand: FieldDemand::Default(FixedValue::Text("warning")),
    },
    FieldRule {
        path: "labels",
        demand: FieldDemand::Items(16),
    },
    FieldRule {
        path: "labels.*",
        demand: FieldDemand::Length(63),
    },
    FieldRule {
        path: "suspend",
        demand: FieldDemand::Default(FixedValue::Flag(false)),
    },
];

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    let watched = SUBJECTS.iter().filter(|name| spec.get(**name).is_some());
    if watched.count() != 1 {
        let message = "must have one of `file`, `service`, `disk`, `port`, `command` and `drift`";
        faults.add(&path, message);
    }
    let target = spec.get("target").and_then(Value::as_object);
    if target.is_some_and(|target| !target.values().any(chooses)) {
        let message = "must have `groups`, `selector`, `nodes` or `all: true`";
        faults.add(&path.key("target"), message);
    }
    for subject in ["file", "disk"] {
        let written = spec.get(subject).and_then(|watched| watched.get("path"));
        let written = written.and_then(Value::as_str).unwrap_or("/");
        let is_plain = written.starts_with('/') && !written.split('/').any(|part| part == "..");
        if !is_plain || written.len() > 4_096 {
            let message = "must be an absolute path without `..`";
            faults.add(&path.key(subject).key("path"), message);
        }
    }
    let labels = spec.get("labels").and_then(Value::as_object);
    for name in labels.into_iter().flat_map(|labels| labels.keys()) {
        if name.is_empty() || name.chars().count() > 63 {
            let message = "must have a name of 1 to 63 characters";
            faults.add(&path.key("labels").key(name), message);
        }
    }
    // With half of the checks or fewer, two conditions could count at once.
    let count = |name: &str| spec.get(name).and_then(Value::as_u64).unwrap_or(1);
    let (seen, of) = (count("seen"), count("of"));
    if seen > of || seen.saturating_mul(2) <= of {
        let message = "must be more than half of `of`, and not more than `of`";
        faults.add(&path.key("seen"), message);
    }
}

/// Whether a field of a target names nodes.
pub(super) fn chooses(field: &Value) -> bool {
    match field {
        Value::Bool(is_all) => *is_all,
        Value::String(text) => !text.is_empty(),
        Value::Array(names) => !names.is_empty(),
        _ => false,
    }
}
