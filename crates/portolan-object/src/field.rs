//! Field patterns: `spec.tasks[].template` selects that field of every task.
//!
//! A pattern is a constant of this crate: names joined by dots, `[]` after a name for every item of its list, `*` for
//! every value of a map. The recursion depth is the length of the pattern.

use std::fmt::Write as _;

use portolan_yaml::{Entry, Node, Value};

/// A value that a pattern found, and its path as people write it: `spec.tasks[0].template`.
#[derive(Debug, Clone)]
pub(crate) struct Found<'a> {
    pub(crate) path: String,
    pub(crate) node: &'a Node,
}

/// Every value that a pattern matches, in order.
pub(crate) fn find<'a>(root: &'a Node, pattern: &str) -> Vec<Found<'a>> {
    let start = Found {
        path: String::new(),
        node: root,
    };
    segments(pattern).fold(vec![start], |found, segment| {
        found
            .into_iter()
            .flat_map(|place| place.step(segment))
            .collect()
    })
}

/// Calls `visit` with every value that a pattern matches, to change it.
pub(crate) fn visit_mut(root: &mut Node, pattern: &str, visit: &mut dyn FnMut(&mut Node)) {
    let segments: Vec<&str> = segments(pattern).collect();
    walk_mut(root, &segments, visit);
}

fn walk_mut(node: &mut Node, segments: &[&str], visit: &mut dyn FnMut(&mut Node)) {
    let Some((segment, rest)) = segments.split_first() else {
        return visit(node);
    };
    match (*segment, &mut node.value) {
        ("[]", Value::List(list)) => {
            for item in list.items_mut() {
                walk_mut(item, rest, visit);
            }
        }
        ("*", Value::Map(map)) => {
            for Entry { value, .. } in map.entries_mut() {
                walk_mut(value, rest, visit);
            }
        }
        (key, Value::Map(map)) => {
            if let Some(value) = map.get_mut(key) {
                walk_mut(value, rest, visit);
            }
        }
        _ => {}
    }
}

impl<'a> Found<'a> {
    fn step(self, segment: &str) -> Vec<Self> {
        match (segment, &self.node.value) {
            ("[]", Value::List(list)) => list
                .iter()
                .enumerate()
                .map(|(index, node)| self.item(index, node))
                .collect(),
            ("*", Value::Map(map)) => map
                .iter()
                .map(|entry| self.child(entry.key.as_str(), &entry.value))
                .collect(),
            (key, Value::Map(map)) => map
                .get(key)
                .map(|node| self.child(key, node))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The value of one of its keys.
    pub(crate) fn child(&self, key: &str, node: &'a Node) -> Self {
        let separator = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{separator}{key}", self.path),
            node,
        }
    }

    /// One of its items.
    pub(crate) fn item(&self, index: usize, node: &'a Node) -> Self {
        let mut path = self.path.clone();
        let _ = write!(path, "[{index}]");
        Self { path, node }
    }
}

/// `a.b[].c` → `a`, `b`, `[]`, `c`; the empty pattern is the root.
fn segments(pattern: &str) -> impl Iterator<Item = &str> {
    pattern
        .split('.')
        .filter(|part| !part.is_empty())
        .flat_map(|part| {
            let (name, each) = match part.strip_suffix("[]") {
                Some(name) => (name, Some("[]")),
                None => (part, None),
            };
            std::iter::once(name).chain(each)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_cut_into_its_steps() {
        assert_eq!(
            segments("spec.tasks[].*.x").collect::<Vec<_>>(),
            ["spec", "tasks", "[]", "*", "x"]
        );
        assert_eq!(segments("").count(), 0);
    }
}
