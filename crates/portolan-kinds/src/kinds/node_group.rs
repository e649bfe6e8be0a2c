//! `NodeGroup`: some nodes, by labels or by name.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "NodeGroup",
    plural: "nodegroups",
    short_names: &["ng"],
    is_namespaced: false,
    spec: "NodeGroupSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "selector",
            demand: FieldDemand::LabelSelector,
        },
        FieldRule {
            path: "selector",
            demand: FieldDemand::Length(2_000),
        },
        FieldRule {
            path: "nodes[]",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "nodes",
            demand: FieldDemand::Items(5_000),
        },
    ],
    check,
    columns: &[
        Column::new("SELECTOR", "spec.selector"),
        Column::new("NODES", "spec.nodes"),
    ],
    selectable: &[],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    if spec.get("selector").is_some() == spec.get("nodes").is_some() {
        faults.add(
            &FieldPath::top("spec"),
            "must have either `selector` or `nodes`",
        );
    }
}
