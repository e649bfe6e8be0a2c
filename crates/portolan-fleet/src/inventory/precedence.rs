//! Which value of a variable a host has, when several groups set it.
//!
//! Ansible lets a child stand above its parents, and of groups at the same depth the one that comes later in the alphabet.
//! Here, groups have the same rank and must agree. A variable on which groups of a host do not agree is therefore given to
//! each of their hosts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{AnsibleInventory, InventoryGroup, Variables};

/// The groups of an inventory in the order of their precedence.
pub(super) struct Precedence<'a> {
    inventory: &'a AnsibleInventory,
    /// All hosts of each group, those of its children included.
    members: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Groups by rank: later ones stand above earlier ones.
    ranked: Vec<&'a str>,
}

/// The variables as they are given here.
#[derive(Debug, Default)]
pub(super) struct ResolvedVariables<'a> {
    pub(super) all: Variables,
    pub(super) groups: BTreeMap<&'a str, Variables>,
    pub(super) hosts: BTreeMap<&'a str, Variables>,
}

const NOBODY: &BTreeSet<&str> = &BTreeSet::new();

impl<'a> Precedence<'a> {
    pub(super) fn of(inventory: &'a AnsibleInventory) -> Self {
        let order = children_first(&inventory.groups);
        let mut members: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for name in &order {
            let Some(group) = inventory.groups.get(*name) else {
                continue;
            };
            let mut own: BTreeSet<&str> = group.hosts.iter().map(String::as_str).collect();
            for child in &group.children {
                own.extend(members.get(child.as_str()).into_iter().flatten());
            }
            members.insert(name, own);
        }
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        for name in order.iter().rev() {
            let depth = depths.get(name).copied().unwrap_or_default();
            let children = inventory.groups.get(*name).into_iter();
            for child in children.flat_map(|group| &group.children) {
                let below = depths.entry(child).or_default();
                *below = (*below).max(depth + 1);
            }
        }
        let mut ranked = order;
        ranked.retain(|name| *name != "all");
        let priority = |name: &str| {
            let variables = inventory.groups.get(name).map(|group| &group.variables);
            let own = variables.and_then(|variables| variables.get("ansible_group_priority"));
            own.and_then(Value::as_i64).unwrap_or(1)
        };
        ranked.sort_by_key(|name| {
            (
                depths.get(name).copied().unwrap_or_default(),
                priority(name),
                *name,
            )
        });
        Self {
            inventory,
            members,
            ranked,
        }
    }

    /// All hosts of a group.
    pub(super) fn members(&self, group: &str) -> &BTreeSet<&'a str> {
        self.members.get(group).unwrap_or(NOBODY)
    }

    /// How a host is reached: its own variables above those of its groups.
    pub(super) fn connection(&self, host: &str) -> BTreeMap<&'a str, &'a Value> {
        let keys = ["ansible_host", "ansible_port", "ansible_user"];
        let found = keys
            .iter()
            .filter_map(|key| Some((*key, self.value(host, key)?)));
        found.collect()
    }

    /// The value of a variable for a host.
    fn value(&self, host: &str, key: &str) -> Option<&'a Value> {
        let own = self.inventory.hosts.get(host)?.get(key);
        let of_groups = || {
            let groups = self.ranked.iter().rev();
            let mut groups = groups.filter(|group| self.members(group).contains(host));
            groups.find_map(|group| self.variables(group)?.get(key))
        };
        own.or_else(of_groups)
            .or_else(|| self.variables("all")?.get(key))
    }

    fn variables(&self, group: &str) -> Option<&'a Variables> {
        Some(&self.inventory.groups.get(group)?.variables)
    }

    /// The variables of all, of groups that agree, and of hosts.
    pub(super) fn resolve(&self, remarks: &mut Vec<String>) -> ResolvedVariables<'a> {
        let mut resolved = ResolvedVariables {
            all: self.variables("all").cloned().unwrap_or_default(),
            ..ResolvedVariables::default()
        };
        for (host, variables) in &self.inventory.hosts {
            resolved.hosts.insert(host, variables.clone());
        }
        let mut setters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for group in &self.ranked {
            let variables = self.variables(group).into_iter().flatten();
            for (key, _) in variables {
                setters.entry(key).or_default().push(group);
            }
        }
        for (key, groups) in setters {
            if super::is_connection(key) || !self.is_disputed(key, &groups) {
                for group in groups {
                    if let Some(value) = self.variables(group).and_then(|all| all.get(key)) {
                        let own = resolved.groups.entry(group).or_default();
                        own.insert(key.to_owned(), value.clone());
                    }
                }
                continue;
            }
            remarks.push(format!(
                "`{key}` is set by groups {}: each of their hosts gets its own value",
                groups.join(", ")
            ));
            let hosts: BTreeSet<&str> = groups
                .iter()
                .flat_map(|group| self.members(group))
                .copied()
                .collect();
            for host in hosts {
                if let Some(value) = self.value(host, key) {
                    let own = resolved.hosts.entry(host).or_default();
                    own.insert(key.to_owned(), value.clone());
                }
            }
        }
        resolved
    }

    /// Whether two groups give a host different values.
    fn is_disputed(&self, key: &str, groups: &[&str]) -> bool {
        let mut given: BTreeMap<&str, &Value> = BTreeMap::new();
        for group in groups {
            let Some(value) = self.variables(group).and_then(|all| all.get(key)) else {
                continue;
            };
            for host in self.members(group) {
                if given
                    .insert(host, value)
                    .is_some_and(|other| other != value)
                {
                    return true;
                }
            }
        }
        false
    }
}

/// The groups, each after its children. Groups of a cycle are not among them.
fn children_first(groups: &BTreeMap<String, InventoryGroup>) -> Vec<&str> {
    let mut parents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, group) in groups {
        let known = group
            .children
            .iter()
            .filter(|child| groups.contains_key(*child));
        let mut count = 0;
        for child in known {
            parents.entry(child).or_default().push(name);
            count += 1;
        }
        waiting.insert(name, count);
    }
    let mut free: Vec<&str> = waiting
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| *name)
        .collect();
    let mut order = Vec::new();
    while let Some(name) = free.pop() {
        order.push(name);
        for parent in parents.get(name).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(parent) {
                *count -= 1;
                if *count == 0 {
                    free.push(parent);
                }
            }
        }
    }
    order
}

/// A group that is below itself.
pub(super) fn cycle(groups: &BTreeMap<String, InventoryGroup>) -> Option<String> {
    let sound: BTreeSet<&str> = children_first(groups).into_iter().collect();
    let is_left = |name: &str| groups.contains_key(name) && !sound.contains(name);
    let mut name = groups.keys().find(|name| is_left(name))?;
    let mut seen = BTreeSet::new();
    // Each group that is left has a child that is left, so this comes round.
    while seen.insert(name) {
        name = groups
            .get(name)?
            .children
            .iter()
            .find(|child| is_left(child))?;
    }
    Some(name.clone())
}
