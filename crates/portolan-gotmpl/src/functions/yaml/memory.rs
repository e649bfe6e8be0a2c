//! A cache of YAML texts that were parsed before, with their values.
//!
//! A caller may change the value that it gets, so the cached value itself is never handed out: its maps are copied
//! level by level, when they are read.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use portolan_yaml::Text;

use crate::value::{Frozen, Map, Value};

/// How many texts a thread keeps.
const MAX_TEXTS: usize = 256;

/// The longest text that is kept.
const MAX_LENGTH: usize = 16 * 1024;

thread_local! {
    static KEPT: RefCell<HashMap<Text, Rc<Map>>> = RefCell::default();
}

/// What a text held when it was read before.
pub(super) fn recall(text: &Text) -> Option<Value> {
    KEPT.with_borrow(|kept| kept.get(text).map(copy_of))
}

/// Keeps what was read from a text; what to hand out in its place.
pub(super) fn keep(text: &Text, value: Value) -> Value {
    let map = match value {
        Value::Map(map) if text.len() <= MAX_LENGTH => map,
        other => return other,
    };
    let handed_out = copy_of(&map);
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= MAX_TEXTS {
            kept.clear();
        }
        kept.insert(text.clone(), map);
    });
    handed_out
}

/// A map that nobody changes.
struct Kept(Rc<Map>);

impl Frozen for Kept {
    fn thaw(&self) -> BTreeMap<Text, Value> {
        let entries = self.0.borrow();
        let entries = entries.iter();
        entries
            .map(|(key, value)| (key.clone(), deep_copy(value)))
            .collect()
    }
}

fn copy_of(map: &Rc<Map>) -> Value {
    Value::Map(Rc::new(Map::frozen(Rc::new(Kept(Rc::clone(map))))))
}

/// A copy in which maps wait until they are looked at; values that were read are never too deep to walk.
fn deep_copy(value: &Value) -> Value {
    match value {
        Value::Map(map) => copy_of(map),
        Value::List(items) => Value::list(items.iter().map(deep_copy).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_not_seen_by_the_next_reader() {
        let text = Text::from("a: {b: 1}");
        let inner = Value::map(BTreeMap::from([("b".into(), Value::int(1))]));
        let first = keep(&text, Value::map(BTreeMap::from([("a".into(), inner)])));
        let Some(Value::Map(below)) = first.as_map().and_then(|map| map.get("a")) else {
            panic!("a map")
        };
        below.insert("b", Value::int(2));
        let again = recall(&text).and_then(|value| value.as_map()?.get("a")?.as_map()?.get("b"));
        assert!(matches!(again, Some(Value::Int(_, 1))));
    }
}
