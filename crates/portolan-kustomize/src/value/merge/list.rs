//! Merges lists whose items are matched by key.
//!
//! kyaml collects the key values of all items (the patch's first when new items are prepended), merges each pair, and
//! then overlays the old list's items on the result by key. The same steps are done here one by one, because they
//! decide where items without a key, or with only some of the keys, end up.

use portolan_yaml::{Node, Text};

use super::{DIRECTIVE, Direction, Directive, Merged, Walker, is_deleted, parse_directive};
use crate::error::Result;
use crate::schema::Merging;
use crate::value::field::{is_blank, text, wrong_shape};

/// The values of the keys of one item; empty where the item has none.
type KeyValues = Vec<Text>;

impl Walker<'_> {
    pub(super) fn walk_list(
        self,
        dest: Option<&Node>,
        patch: Option<&Node>,
        merging: &Merging,
    ) -> Result<Merged> {
        let dest = dest.filter(|dest| !dest.is_null());
        let Some(patch) = patch else {
            return match dest {
                Some(dest) => self.settle_list(dest, merging),
                None => Ok(Merged::Same),
            };
        };
        let Some(dest) = dest else {
            return self.merge_items(patch, Some(patch), merging, false);
        };
        if patch.is_null() {
            return Ok(Merged::Gone);
        }
        let (directive, patch) = take_list_directive(patch)?;
        match directive {
            Directive::Delete => Ok(Merged::Gone),
            Directive::Replace => self.merge_items(&patch, Some(&patch), merging, false),
            Directive::Merge => self.merge_items(dest, Some(&patch), merging, true),
        }
    }

    /// The patch says nothing here; nearly always, nothing changes.
    fn settle_list(self, dest: &Node, merging: &Merging) -> Result<Merged> {
        if self.is_settled(dest, merging)? {
            return Ok(Merged::Same);
        }
        self.merge_items(dest, None, merging, true)
    }

    /// Whether every item has all keys, no two the same ones, and nothing to drop inside.
    fn is_settled(self, dest: &Node, merging: &Merging) -> Result<bool> {
        let items = items(dest);
        let mut seen = std::collections::HashSet::with_capacity(items.len());
        for item in items {
            if is_deleted(item) {
                return Ok(false);
            }
            if merging.keys.is_empty() {
                if item.as_scalar().is_none() || !seen.insert(vec![text(item)]) {
                    return Ok(false);
                }
                continue;
            }
            let values = key_values(item, &merging.keys);
            if values.iter().any(portolan_yaml::Text::is_empty) || !seen.insert(values) {
                return Ok(false);
            }
            if !matches!(
                self.walk(Some(item), None, merging.element.as_ref())?,
                Merged::Same
            ) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn merge_items(
        self,
        dest: &Node,
        patch: Option<&Node>,
        merging: &Merging,
        is_dest: bool,
    ) -> Result<Merged> {
        let mut old: Vec<Node> = items(dest).to_vec();
        let theirs: &[Node] = patch.map(items).unwrap_or_default();
        // Every item is looked for among all of them, several times over.
        let count = (old.len() + theirs.len()) as u64;
        let keys = merging.keys.len() as u64 + 1;
        let searches = count.saturating_mul(count).saturating_mul(keys);
        self.budget.step(searches)?;
        let primitive = [String::new()];
        let keys: &[String] = if merging.keys.is_empty() {
            &primitive
        } else {
            &merging.keys
        };
        let mut all = self.collect_values(&old, theirs, keys);
        if keys.len() > 1 {
            merge_values(&mut all);
        }
        let mut added: Vec<Node> = Vec::new();
        let mut last_keys: Vec<&str> = Vec::new();
        for values in &all {
            let (keys, values) = valid_keys(&all, values, keys);
            let (find_keys, find_values) = valid_keys_of_one(&keys, &values);
            let position = find_item(&old, &find_keys, &find_values);
            let patch =
                find_item(theirs, &find_keys, &find_values).and_then(|index| theirs.get(index));
            let item = position.and_then(|index| old.get(index)).cloned();
            let merged = self.walk(item.as_ref(), patch, merging.element.as_ref())?;
            let (result, is_old) = settle_item(merged, item);
            match result.filter(|node| !is_deleted(node)) {
                None => set_item(&mut old, None, &keys, &values)?,
                Some(mut node) => {
                    add_missing_keys(&mut node, &keys, &values);
                    if is_old && let Some(slot) = position.and_then(|index| old.get_mut(index)) {
                        slot.clone_from(&node);
                    }
                    set_item(&mut added, Some(&node), &keys, &values)?;
                }
            }
            last_keys = keys;
        }
        if all.is_empty() {
            return Ok(if is_dest {
                Merged::Same
            } else {
                new_list(dest, old, is_dest)
            });
        }
        let merged = match self.direction {
            Direction::Prepend => append_items(added, old, &last_keys)?,
            Direction::Append => append_items(old, added, &last_keys)?,
        };
        Ok(new_list(dest, merged, is_dest))
    }

    /// The key values of all items, each once; the patch's come first when new items are prepended.
    fn collect_values(self, old: &[Node], theirs: &[Node], keys: &[String]) -> Vec<KeyValues> {
        let sources = match self.direction {
            Direction::Prepend => [theirs, old],
            Direction::Append => [old, theirs],
        };
        let is_primitive = keys.iter().any(String::is_empty);
        let mut seen = std::collections::HashSet::new();
        let mut all = Vec::new();
        for item in sources.into_iter().flatten() {
            let values = if is_primitive {
                vec![text(item)]
            } else {
                key_values(item, keys)
            };
            if seen.insert(values.clone()) {
                all.push(values);
            }
        }
        all
    }
}

fn items(list: &Node) -> &[Node] {
    list.as_list()
        .map(|list| list.iter().as_slice())
        .unwrap_or_default()
}

fn new_list(dest: &Node, items: Vec<Node>, is_dest: bool) -> Merged {
    let mut node = dest.clone();
    if let Some(list) = node.as_list_mut() {
        *list.items_mut() = items;
    }
    Merged::New { node, is_dest }
}

/// The merged item, and whether it is the old one changed inside: then the old list sees the change as well.
fn settle_item(merged: Merged, item: Option<Node>) -> (Option<Node>, bool) {
    match merged {
        Merged::Same => (item, true),
        Merged::Gone => (None, false),
        Merged::New { node, is_dest } => (Some(node), is_dest),
    }
}

fn key_values(item: &Node, keys: &[String]) -> KeyValues {
    let value = |key: &String| {
        item.get(key)
            .filter(|value| !is_blank(value))
            .map(text)
            .unwrap_or_default()
    };
    keys.iter().map(value).collect()
}

/// Key values that agree where both have some become one: a port without protocol is the port with one.
fn merge_values(all: &mut [KeyValues]) {
    for first in 0..all.len() {
        for second in 0..all.len() {
            if let Some(values) = all
                .get(first)
                .zip(all.get(second))
                .and_then(|(a, b)| agree(a, b))
            {
                all[first].clone_from(&values);
                all[second] = values;
            }
        }
    }
}

fn agree(a: &KeyValues, b: &KeyValues) -> Option<KeyValues> {
    if a.len() != b.len() {
        return None;
    }
    let mut has_common = false;
    let mut result = Vec::with_capacity(a.len());
    for (a, b) in a.iter().zip(b) {
        if a == b {
            has_common = true;
            result.push(a.clone());
        } else if !a.is_empty() && !b.is_empty() {
            return None;
        } else {
            result.push(if a.is_empty() { b.clone() } else { a.clone() });
        }
    }
    has_common.then_some(result)
}

/// The keys that any item has a value for, with this item's values.
fn valid_keys<'k>(
    all: &[KeyValues],
    values: &KeyValues,
    keys: &'k [String],
) -> (Vec<&'k str>, KeyValues) {
    let is_used = |index: usize| {
        all.iter()
            .any(|values| values.get(index).is_some_and(|value| !value.is_empty()))
    };
    let used: Vec<usize> = (0..keys.len()).filter(|index| is_used(*index)).collect();
    if used.is_empty() {
        return (keys.iter().map(String::as_str).collect(), values.clone());
    }
    let pick = |index: &usize| {
        (
            keys[*index].as_str(),
            values.get(*index).cloned().unwrap_or_default(),
        )
    };
    used.iter().map(pick).unzip()
}

/// The same for this item alone: the keys it has values for, or all when it has none.
fn valid_keys_of_one<'k>(keys: &[&'k str], values: &KeyValues) -> (Vec<&'k str>, KeyValues) {
    let used = || {
        keys.iter()
            .zip(values)
            .filter(|(_, value)| !value.is_empty())
    };
    if used().next().is_none() {
        return (keys.to_vec(), values.clone());
    }
    used().map(|(key, value)| (*key, value.clone())).unzip()
}

fn find_item(list: &[Node], keys: &[&str], values: &[Text]) -> Option<usize> {
    if keys.first().is_none_or(|key| key.is_empty()) {
        let wanted = values.first().map(Text::as_str).unwrap_or_default();
        return list.iter().position(|item| text(item) == *wanted);
    }
    list.iter().position(|item| {
        item.as_map().is_some()
            && keys
                .iter()
                .zip(values)
                .all(|(key, value)| item.get(key).is_some_and(|found| text(found) == *value))
    })
}

fn add_missing_keys(node: &mut Node, keys: &[&str], values: &[Text]) {
    let Some(map) = node.as_map_mut() else { return };
    for (key, value) in keys.iter().zip(values) {
        if !map.contains_key(key) && !value.is_empty() {
            map.insert(*key, Node::string(value.clone()));
        }
    }
}

/// Puts an item into a list in place of those with the same keys, or at the end; no item takes those out.
fn set_item(
    list: &mut Vec<Node>,
    item: Option<&Node>,
    keys: &[&str],
    values: &[Text],
) -> Result<()> {
    let is_keyed = keys.first().is_some_and(|key| !key.is_empty())
        && values.first().is_some_and(|value| !value.is_empty());
    let mut is_found = false;
    let mut result = Vec::with_capacity(list.len() + 1);
    for old in std::mem::take(list) {
        if is_deleted(&old) {
            continue;
        }
        if is_keyed && old.as_map().is_none() {
            result.push(old);
        } else if !has_keys(&old, keys, values)? {
            if !values.is_empty() {
                result.push(old);
            }
        } else {
            is_found = true;
            result.extend(item.cloned());
        }
    }
    if !is_found && let Some(item) = item.filter(|item| !item.is_null()) {
        result.push(item.clone());
    }
    *list = result;
    Ok(())
}

/// Whether an item has these keys. An empty value asks only for the key; a key without a value takes the answer of
/// the key before it.
fn has_keys(item: &Node, keys: &[&str], values: &[Text]) -> Result<bool> {
    let mut is_found = false;
    for (index, key) in keys.iter().enumerate() {
        if let Some(value) = values.get(index) {
            is_found = has_key(item, key, value)?;
        }
        if !is_found {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_key(item: &Node, key: &str, value: &Text) -> Result<bool> {
    if key.is_empty() {
        return match item.as_scalar() {
            Some(scalar) => Ok(scalar.text == *value),
            None => Err(wrong_shape("ScalarNode", item)),
        };
    }
    let Some(map) = item.as_map() else {
        return Err(wrong_shape("MappingNode", item));
    };
    Ok(map
        .get(key)
        .is_some_and(|found| value.is_empty() || text(found) == *value))
}

/// Puts the items of one list into another, by key.
fn append_items(mut list: Vec<Node>, more: Vec<Node>, keys: &[&str]) -> Result<Vec<Node>> {
    for item in more {
        if keys.first().is_none_or(|key| key.is_empty()) {
            let value = text(&item);
            set_item(&mut list, Some(&item), &[""], &[value])?;
            continue;
        }
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(map) = item.as_map() else {
                return Err(wrong_shape("MappingNode", &item));
            };
            match map.get(key) {
                Some(value) => values.push(text(value)),
                None => list.push(item.clone()),
            }
        }
        if keys.len() > 1 {
            set_item(&mut list, None, keys, &values)?;
        }
        set_item(&mut list, Some(&item), keys, &values)?;
    }
    Ok(list)
}

/// The directive in a list: an item `{$patch: …}` of its own. The list comes back without it.
fn take_list_directive(patch: &Node) -> Result<(Directive, Node)> {
    let found = items(patch)
        .iter()
        .find(|item| item.get(DIRECTIVE).is_some());
    let Some(item) = found.filter(|item| item.as_map().is_some_and(|map| map.len() == 1)) else {
        return Ok((Directive::Merge, patch.clone()));
    };
    let Some(value) = item.get(DIRECTIVE) else {
        return Ok((Directive::Merge, patch.clone()));
    };
    let directive = parse_directive(value)?;
    let mut rest = items(patch).to_vec();
    set_item(&mut rest, None, &[DIRECTIVE], &[text(value)])?;
    let mut list = patch.clone();
    if let Some(list) = list.as_list_mut() {
        *list.items_mut() = rest;
    }
    Ok((directive, list))
}
