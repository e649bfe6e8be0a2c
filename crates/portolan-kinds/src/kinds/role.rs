//! `Role`: rights in one namespace.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::kinds::KINDS;
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Role",
    plural: "roles",
    short_names: &[],
    is_namespaced: true,
    spec: "RoleSpec",
    status: None,
    names: NameRule::Segment,
    rules: RULES,
    check,
    columns: &[
        Column::new("VERBS", "spec.rules.0.verbs"),
        Column::new("KINDS", "spec.rules.0.kinds"),
    ],
    selectable: &[],
};

/// What a role can allow.
const VERBS: &[&str] = &[
    "*",
    "get",
    "list",
    "watch",
    "create",
    "update",
    "delete",
    "read-secret",
    "run",
    "approve",
    "exec",
];

/// What rules name besides kinds: everything, and content that is no object.
const OTHER_KINDS: &[&str] = &["*", "Blob"];

/// The rules of both kinds of roles.
pub(super) const RULES: &[FieldRule] = &[
    FieldRule {
        path: "rules",
        demand: FieldDemand::Items(500),
    },
    FieldRule {
        path: "rules[].verbs",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "rules[].verbs[]",
        demand: FieldDemand::OneOf(VERBS),
    },
    FieldRule {
        path: "rules[].kinds",
        demand: FieldDemand::Required,
    },
    FieldRule {
        path: "rules[].names",
        demand: FieldDemand::Items(1_000),
    },
    FieldRule {
        path: "rules[].names[]",
        demand: FieldDemand::Name(NameRule::Segment),
    },
];

/// Kinds are those that exist; a misspelt one would silently allow nothing.
pub(super) fn check(spec: &Value, faults: &mut Faults<'_>) {
    let rules = spec.get("rules").and_then(Value::as_array);
    for (number, rule) in rules.into_iter().flatten().enumerate() {
        let kinds = rule.get("kinds").and_then(Value::as_array);
        for (index, kind) in kinds.into_iter().flatten().enumerate() {
            let name = kind.as_str().unwrap_or_default();
            let is_known = KINDS.iter().any(|kind| kind.name == name);
            if !is_known && !OTHER_KINDS.contains(&name) {
                let path = FieldPath::top("spec").key("rules").index(number);
                let hint = crate::read::advice(name, &KINDS.map(|kind| kind.name));
                faults.add_hint(
                    &path.key("kinds").index(index),
                    format!("must be a kind or `*`, not `{name}`"),
                    Some(hint),
                );
            }
        }
    }
}
