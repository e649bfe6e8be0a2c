//! What a step sees: values of the book and the node, its item, and results of steps before it.

use serde_json::{Map, Value, json};

/// Values that a step sees beside results.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    values: Map<String, Value>,
    /// The items of all loops around, as in `web/0`.
    pub(crate) loop_key: String,
    /// The step that looks; results of steps near it come first.
    pub(crate) step_id: String,
}

/// One item of a `forEach`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) value: Value,
    index: usize,
    key: Option<String>,
}

/// The results of steps, in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Results(Vec<(String, Value)>);

// === impl Frame ===

impl Frame {
    pub(crate) fn new(values: Map<String, Value>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }

    /// Everything, with `steps`.
    pub(crate) fn values(&self, results: &Results) -> Map<String, Value> {
        let mut values = self.values.clone();
        values.insert("steps".to_owned(), results.seen_from(&self.step_id));
        values
    }

    pub(crate) fn own_values(&self) -> &Map<String, Value> {
        &self.values
    }

    pub(crate) fn with(&self, name: &str, value: Value) -> Self {
        let mut frame = self.clone();
        frame.values.insert(name.to_owned(), value);
        frame
    }

    /// More `vars`, in place of those of the same name.
    pub(crate) fn with_vars(&self, more: &Map<String, Value>) -> Self {
        let mut frame = self.clone();
        let vars = frame.values.entry("vars").or_insert_with(|| json!({}));
        if let Value::Object(vars) = vars {
            for (name, value) in more {
                vars.insert(name.clone(), value.clone());
            }
        }
        frame
    }

    /// The values of another frame, at this place.
    pub(crate) fn replaced(&self, other: Self) -> Self {
        Self {
            values: other.values,
            ..self.clone()
        }
    }

    pub(crate) fn for_item(&self, item: &Item) -> Self {
        let mut frame = self.with("item", item.value.clone());
        frame.values.insert("index".to_owned(), json!(item.index));
        if let Some(key) = &item.key {
            frame.values.insert("key".to_owned(), json!(key));
        }
        frame.in_loop(&item.name())
    }

    /// Inside a loop, for the keys of the journal.
    pub(crate) fn in_loop(&self, name: &str) -> Self {
        let mut frame = self.clone();
        frame.loop_key = if self.loop_key.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.loop_key)
        };
        frame
    }

    /// The values without those of loops and rescues: what handlers see.
    pub(crate) fn outermost(&self) -> Self {
        let mut frame = self.clone();
        for name in ["item", "index", "key", "error"] {
            frame.values.remove(name);
        }
        frame.loop_key.clear();
        frame
    }
}

// === impl Item ===

impl Item {
    /// The items of a list, or the entries of a map; `None` for anything else.
    pub(crate) fn all_of(value: Value) -> Option<Vec<Self>> {
        match value {
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                Some(
                    items
                        .map(|(index, value)| Self {
                            value,
                            index,
                            key: None,
                        })
                        .collect(),
                )
            }
            Value::Object(map) => {
                let entries = map.into_iter().enumerate();
                Some(
                    entries
                        .map(|(index, (key, value))| Self {
                            value,
                            index,
                            key: Some(key),
                        })
                        .collect(),
                )
            }
            _ => None,
        }
    }

    fn name(&self) -> String {
        self.key.clone().unwrap_or_else(|| self.index.to_string())
    }
}

// === impl Results ===

impl Results {
    /// The result of a step by its path.
    pub(crate) fn get(&self, id: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| known == id);
        found.map(|(_, result)| result)
    }

    /// The results but those of these names.
    pub(crate) fn without(&self, hidden: &std::collections::BTreeSet<&str>) -> Self {
        let shown = self
            .0
            .iter()
            .filter(|(id, _)| !hidden.contains(id.as_str()));
        Self(shown.cloned().collect())
    }

    pub(crate) fn add(&mut self, id: &str, result: Value) {
        self.0.retain(|(known, _)| known != id);
        self.0.push((id.to_owned(), result));
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.0.retain(|(known, _)| known != id);
    }

    /// By path, and by name: of several steps with one name the one with the longest common path, then the last.
    fn seen_from(&self, step: &str) -> Value {
        let mut seen: Map<String, Value> = Map::new();
        let mut nearness: std::collections::BTreeMap<&str, usize> =
            std::collections::BTreeMap::new();
        for (id, result) in &self.0 {
            seen.insert(id.clone(), result.clone());
            let name = id.rsplit('/').next().unwrap_or(id);
            let common = common_path(id, step);
            if nearness.get(name).is_none_or(|known| common >= *known) {
                nearness.insert(name, common);
                seen.insert(name.to_owned(), result.clone());
            }
        }
        Value::Object(seen)
    }
}

fn common_path(one: &str, other: &str) -> usize {
    one.split('/')
        .zip(other.split('/'))
        .take_while(|(a, b)| a == b)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_result_of_a_name_is_seen() {
        let mut results = Results::default();
        results.add("install", json!(1));
        results.add("web/install", json!(2));
        results.add("db/install", json!(3));
        for (from, expected) in [("web/check", 2), ("db/check", 3), ("check", 3)] {
            assert_eq!(
                results.seen_from(from)["install"],
                json!(expected),
                "{from}"
            );
        }
        assert_eq!(results.seen_from("check")["web/install"], json!(2));
    }
}
