//! What expressions and templates of a book can name, with the types that are known before a run.

use std::collections::BTreeMap;

use portolan_cel::{Record, Type};
use serde_json::Value;

use crate::book::{Input, InputKind};

/// The facts of a node.
pub fn fact_types() -> Type {
    let texts = || Type::list(Type::Text);
    Type::record([
        (
            "os",
            Type::record([
                ("family", Type::Text),
                ("name", Type::Text),
                ("id", Type::Text),
                ("version", Type::Text),
                ("codename", Type::Text),
                ("like", texts()),
            ]),
        ),
        (
            "kernel",
            Type::record([
                ("name", Type::Text),
                ("release", Type::Text),
                ("machine", Type::Text),
                ("fromHost", Type::Boolean),
            ]),
        ),
        ("hostname", Type::Text),
        ("cpus", Type::Integer),
        ("memory", Type::record([("totalBytes", Type::Integer)])),
        (
            "network",
            Type::record([
                (
                    "interfaces",
                    Type::list(Type::record([
                        ("name", Type::Text),
                        ("mac", Type::Text),
                        ("mtu", Type::Integer),
                        ("up", Type::Boolean),
                        ("addresses", texts()),
                    ])),
                ),
                ("addresses", texts()),
                ("fromHost", Type::Boolean),
            ]),
        ),
        (
            "disks",
            Type::list(Type::record([
                ("name", Type::Text),
                ("bytes", Type::Integer),
                ("rotational", Type::Boolean),
            ])),
        ),
        (
            "packages",
            Type::map(Type::record([("version", Type::Text)])),
        ),
        (
            "services",
            Type::map(Type::record([
                ("enabled", Type::Boolean),
                ("running", Type::Boolean),
                ("state", Type::Text),
            ])),
        ),
        (
            "users",
            Type::map(Type::record([
                ("uid", Type::Integer),
                ("gid", Type::Integer),
                ("home", Type::Text),
                ("shell", Type::Text),
            ])),
        ),
        ("custom", Type::map(Type::Any)),
    ])
}

/// The types of inputs.
pub(crate) fn input_types(inputs: &BTreeMap<String, Input>) -> Type {
    let types = inputs.iter().map(|(name, input)| {
        let kind = match input.kind {
            InputKind::String | InputKind::Duration => Type::Text,
            InputKind::Int => Type::Integer,
            InputKind::Bool => Type::Boolean,
            InputKind::List => Type::list(Type::Any),
            InputKind::Map => Type::map(Type::Any),
        };
        (name.clone(), kind)
    });
    Type::Record(types.collect())
}

/// The type of a fixed value.
pub(crate) fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Number(_) => Type::Integer,
        // A text may be a template that gives a value of another type.
        Value::String(text) if crate::text::is_template(text) => Type::Any,
        Value::String(_) => Type::Text,
        Value::Array(_) => Type::list(Type::Any),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (key.clone(), type_of(value)));
            Type::Record(fields.collect())
        }
    }
}

/// What is known everywhere: facts, the node, the run and its nodes.
pub(crate) fn everywhere() -> Record {
    let node = Type::record([
        ("name", Type::Text),
        ("address", Type::Text),
        ("labels", Type::map(Type::Text)),
    ]);
    let run = Type::record([
        ("id", Type::Text),
        ("book", Type::Text),
        ("check", Type::Boolean),
    ]);
    let Type::Record(record) = Type::record([
        ("facts", fact_types()),
        ("node", node),
        ("run", run),
        ("peers", Type::list(Type::Any)),
    ]) else {
        return Record::new();
    };
    record
}

/// What expressions can call beside the functions of CEL.
pub(crate) fn functions() -> [(&'static str, Type); 2] {
    [
        ("nodes", Type::list(Type::Any)),
        ("results", Type::map(Type::Any)),
    ]
}
