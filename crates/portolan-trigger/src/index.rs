//! Finds the triggers that may ask for an event, by its namespace and its type, without a look at the others.

use std::collections::HashMap;

use crate::trigger::Trigger;

/// Which triggers ask for events of a namespace and a type. A trigger is known by a number.
#[derive(Debug, Default)]
pub struct TriggerIndex {
    by_namespace: HashMap<String, HashMap<String, Vec<u32>>>,
}

impl TriggerIndex {
    /// Adds a trigger under a number.
    pub fn insert(&mut self, number: u32, trigger: &Trigger) {
        for namespace in trigger.namespaces() {
            let types = self.by_namespace.entry(namespace.clone()).or_default();
            for pattern in trigger.types() {
                let numbers = types.entry(pattern.as_str().to_owned()).or_default();
                if let Err(place) = numbers.binary_search(&number) {
                    numbers.insert(place, number);
                }
            }
        }
    }

    /// Removes a trigger that was added under a number.
    pub fn remove(&mut self, number: u32, trigger: &Trigger) {
        for namespace in trigger.namespaces() {
            let Some(types) = self.by_namespace.get_mut(namespace) else {
                continue;
            };
            for pattern in trigger.types() {
                if let Some(numbers) = types.get_mut(pattern.as_str()) {
                    numbers.retain(|known| *known != number);
                    if numbers.is_empty() {
                        types.remove(pattern.as_str());
                    }
                }
            }
            if types.is_empty() {
                self.by_namespace.remove(namespace);
            }
        }
    }

    /// The numbers of the triggers that ask for an event of this namespace and type, each once, in order.
    pub fn candidates(&self, namespace: &str, kind: &str) -> Vec<u32> {
        let mut found = Vec::new();
        for namespace in [namespace, "*"] {
            let Some(types) = self.by_namespace.get(namespace) else {
                continue;
            };
            let mut add = |pattern: &str| {
                let numbers = types.get(pattern);
                found.extend(numbers.into_iter().flatten().copied());
            };
            add(kind);
            add("*");
            // `a.b.c` is below `a.*` and `a.b.*`.
            for (dot, _) in kind.match_indices('.') {
                let parent = kind.get(..=dot).unwrap_or_default();
                add(&format!("{parent}*"));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
