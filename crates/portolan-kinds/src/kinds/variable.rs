//! `Variable`: values for runs on the nodes of a namespace.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::{VariablePath, check_result_expression, variables_read};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::read::quoted;
use crate::rule::{FieldDemand, FieldRule, FixedValue, joined};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Variable",
    plural: "variables",
    short_names: &["var"],
    is_namespaced: true,
    spec: "VariableSpec",
    status: Some("VariableStatus"),
    names: NameRule::Subdomain,
    rules: &RULES,
    check,
    columns: &[
        Column::new("NODE", "spec.for.node"),
        Column::new("GROUPS", "spec.for.groups"),
        Column::new("VALUES", "spec.values"),
        Column::wide("COMPUTED", "spec.dynamic.expressions"),
        Column::wide("FILES", "spec.files"),
        Column::wide("VERSION", "status.version"),
        Column::wide("ERROR", "status.error"),
    ],
    selectable: &["spec.for.node"],
};

const RULES: [FieldRule; 21] = joined(
    &VALUE_RULES,
    &[
        FieldRule {
            path: "secrets",
            demand: FieldDemand::Items(100),
        },
        FieldRule {
            path: "secrets.*.secret",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "secrets.*.key",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "files",
            demand: FieldDemand::Items(20),
        },
        FieldRule {
            path: "files[].path",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "files[].path",
            demand: FieldDemand::Length(500),
        },
        FieldRule {
            path: "files[].optional",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
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
pub(super) const VALUE_RULES: [FieldRule; 11] = [
    FieldRule {
        path: "dynamic.taskBook",
        demand: FieldDemand::Name(NameRule::Subdomain),
    },
    FieldRule {
        path: "dynamic.results",
        demand: FieldDemand::Items(100),
    },
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
    check_step(spec, faults);
    check_values(spec, &["values", "dynamic", "secrets", "files"], faults);
    let files = spec.get("files").and_then(Value::as_array);
    for (index, file) in files.into_iter().flatten().enumerate() {
        let path = file.get("path").and_then(Value::as_str);
        if let Some(Err(why)) = path.map(VariablePath::parse) {
            let at = FieldPath::top("spec").key("files").index(index);
            faults.add(&at.key("path"), why);
        }
    }
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

/// The fields that say which step makes the values belong together.
fn check_step(spec: &Value, faults: &mut Faults<'_>) {
    let Some(dynamic) = spec.get("dynamic") else {
        return;
    };
    let path = FieldPath::top("spec").key("dynamic");
    let is_made = dynamic.get("taskBook").is_some();
    for key in ["step", "results"] {
        match (is_made, dynamic.get(key).is_some()) {
            (true, false) => faults.add(&path.key(key), "is required with `taskBook`"),
            (false, true) => faults.add(&path.key(key), "needs `taskBook`"),
            _ => {}
        }
    }
    if is_made && dynamic["sensitive"] == true {
        let message = "cannot be true with `taskBook`: results of steps are stored as they are";
        faults.add(&path.key("sensitive"), message);
    }
    if is_made && dynamic.get("limit").is_some_and(|limit| *limit != 1) {
        faults.add(&path.key("limit"), "must be 1: one node makes the values");
    }
    let results = dynamic.get("results").and_then(Value::as_object);
    for (name, text) in results.into_iter().flatten() {
        if let Err(why) = check_result_expression(text.as_str().unwrap_or_default()) {
            faults.add(
                &path.key("results").key(name),
                format!("cannot be used: {why}"),
            );
        }
    }
}

/// Values come from one place, and names are usable in expressions.
pub(super) fn check_values(spec: &Value, places: &[&str], faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    let given = places.iter().filter(|place| spec.get(**place).is_some());
    if given.count() != 1 {
        let names = quoted(places);
        faults.add(&path, format!("must have exactly one of {names}"));
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
    let results = spec
        .get("dynamic")
        .and_then(|dynamic| dynamic.get("results"));
    for (above, map) in [
        (path.key("dynamic").key("results"), results),
        (path.key("values"), spec.get("values")),
        (path.key("secrets"), spec.get("secrets")),
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
