//! `Variable`: values for runs on the nodes of a namespace.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::variables_read;
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue, joined};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Variable",
    plural: "variables",
    short_names: &["var"],
    is_namespaced: true,
    spec: "VariableSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &RULES,
    check,
    columns: &[
        Column::new("NODE", "spec.for.node"),
        Column::new("GROUPS", "spec.for.groups"),
        Column::new("VALUES", "spec.values"),
        Column::wide("COMPUTED", "spec.dynamic.expressions"),
    ],
    selectable: &["spec.for.node"],
};

const RULES: [FieldRule; 12] = joined(
    &VALUE_RULES,
    &[
        FieldRule {
            path: "for.node",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "for.groups[]",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "for.groups",
            demand: FieldDemand::Items(100),
        },
    ],
);

/// What values must be, of a `Variable` and a `ClusterVariable`.
pub(super) const VALUE_RULES: [FieldRule; 9] = [
    FieldRule {
        path: "priority",
        demand: FieldDemand::Between(0, 1_000_000),
    },
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
];

fn check(spec: &Value, faults: &mut Faults<'_>) {
    check_target(spec, faults);
    check_values(spec, faults);
}

/// `for` names one node or some groups.
pub(super) fn check_target(spec: &Value, faults: &mut Faults<'_>) {
    if let Some(target) = spec.get("for")
        && target.get("node").is_some() == target.get("groups").is_some()
    {
        faults.add(
            &FieldPath::top("spec").key("for"),
            "must have either `node` or `groups`",
        );
    }
}

/// Values are fixed or computed, and names are usable in expressions.
pub(super) fn check_values(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    if spec.get("values").is_some() == spec.get("dynamic").is_some() {
        faults.add(&path, "must have either `values` or `dynamic`");
    }
    let expressions = spec
        .get("dynamic")
        .and_then(|dynamic| dynamic.get("expressions"));
    if let Some(dynamic) = spec.get("dynamic")
        && dynamic.get("expressions").is_some() == dynamic.get("taskBook").is_some()
    {
        let message = "must have either `expressions` or `taskBook`";
        faults.add(&path.key("dynamic"), message);
    }
    let texts = expressions.and_then(Value::as_object).into_iter().flatten();
    for (name, text) in texts {
        if let Err(why) = variables_read(text.as_str().unwrap_or_default()) {
            let at = path.key("dynamic").key("expressions").key(name);
            faults.add(&at, format!("cannot be used: {why}"));
        }
    }
    for (above, map) in [
        (path.key("values"), spec.get("values")),
        (path.key("dynamic").key("expressions"), expressions),
    ] {
        for name in map
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|map| map.keys())
        {
            if !is_variable_name(name) {
                let message = "must be a name of letters, digits and `_` that begins with a letter";
                faults.add(&above.key(name), message);
            }
        }
    }
}

/// Whether expressions can spell a name.
pub(super) fn is_variable_name(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && name.len() <= 253
}
