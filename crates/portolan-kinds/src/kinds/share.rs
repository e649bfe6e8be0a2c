//! `Share`: something that one node gives to others.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use super::beacon::chooses;
use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Share",
    plural: "shares",
    short_names: &[],
    is_namespaced: true,
    spec: "ShareSpec",
    status: Some("ShareStatus"),
    names: NameRule::Subdomain,
    rules: RULES,
    check,
    columns: &[
        Column::new("VERSION", "status.version"),
        Column::new("PUBLISHER", "status.publisher"),
        Column::new("PENDING", "status.pending"),
        Column::wide("CONSUMERS", "spec.consumers"),
    ],
    selectable: &[],
};

const RULES: &[FieldRule] = &[
    FieldRule {
        path: "consumers",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "consumers.selector",
        demand: FieldDemand::LabelSelector,
    },
    FieldRule {
        path: "consumers.groups[]",
        demand: FieldDemand::Name(NameRule::Subdomain),
    },
    FieldRule {
        path: "consumers.groups",
        demand: FieldDemand::Items(100),
    },
    FieldRule {
        path: "consumers.nodes[]",
        demand: FieldDemand::Name(NameRule::Subdomain),
    },
    FieldRule {
        path: "consumers.nodes",
        demand: FieldDemand::Items(1_000),
    },
];

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let consumers = spec.get("consumers").and_then(Value::as_object);
    if consumers.is_some_and(|consumers| !consumers.values().any(chooses)) {
        let message = "must have `groups`, `selector`, `nodes` or `all: true`";
        faults.add(&FieldPath::top("spec").key("consumers"), message);
    }
}
