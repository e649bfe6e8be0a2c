//! What a server orders, read once.

use std::collections::BTreeSet;

use portolan_fleet::{RunMode, TagSelection};
use serde_json::{Map, Value};

use crate::epochs::RunEpoch;
use crate::wire::RunOrder;

/// The values of an order.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrderValues {
    pub(crate) inputs: Map<String, Value>,
    pub(crate) variables: Map<String, Value>,
    /// Names of variables whose values are secret.
    pub(super) secret_variables: BTreeSet<String>,
    pub(crate) node: Value,
    pub(super) peers: Value,
    /// The nodes that expressions can ask for.
    pub(super) nodes: Vec<Value>,
    pub(super) selection: TagSelection,
    pub(super) is_first: bool,
    /// Whether it is a single command, not a book of somebody.
    pub(super) is_exec: bool,
    /// What an approved plan found on this node.
    pub(super) plan: Option<Value>,
}

impl OrderValues {
    /// Reads the values; `None` if they are something else.
    pub(crate) fn read(order: &RunOrder) -> Option<Self> {
        let values: Value = serde_json::from_slice(&order.values).ok()?;
        let map = |key: &str| match values.get(key) {
            None => Some(Map::new()),
            Some(Value::Object(map)) => Some(map.clone()),
            Some(_) => None,
        };
        let list = |key: &str| {
            values
                .get(key)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let flag = |key: &str| values.get(key).and_then(Value::as_bool) == Some(true);
        let words = |key: &str| {
            let words = list(key).into_iter();
            words
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect()
        };
        Some(Self {
            inputs: map("inputs")?,
            variables: map("variables")?,
            secret_variables: words("secretVariables"),
            node: values.get("node").cloned().unwrap_or_default(),
            peers: Value::Array(list("peers")),
            nodes: list("nodes"),
            selection: TagSelection {
                tags: words("tags"),
                skip: words("skipTags"),
            },
            is_first: flag("isFirst"),
            is_exec: flag("isExec"),
            plan: values.get("plan").filter(|plan| !plan.is_null()).cloned(),
        })
    }
}

/// The owner who orders.
pub(super) fn epoch_of(order: &RunOrder) -> RunEpoch {
    RunEpoch {
        incarnation: order.incarnation,
        revision: order.revision,
    }
}

pub(super) fn mode_of(order: &RunOrder) -> RunMode {
    if order.is_check {
        RunMode::Check
    } else {
        RunMode::Apply
    }
}
