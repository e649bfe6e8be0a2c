//! Inventories of Ansible, and what they become here.
//!
//! ```text
//! inventory.ini ──read──▶ AnsibleInventory (hosts, groups, variables) ──import──▶ NodeGroups, Variables
//!                                                                     └──▶ nodes that are expected, and what has no counterpart
//! ```
//!
//! A group becomes a `NodeGroup` with the names of its hosts, those of its children included, so a machine belongs to its
//! groups as soon as it is a node. No Node is made: that is what an agent enrols as.

mod host_range;
mod literal;
mod precedence;
mod read;
mod variable_file;

use std::collections::{BTreeMap, BTreeSet};

use portolan_object::NameRule;
use serde_json::{Map, Value, json};

use crate::fault::BookFault;
use precedence::Precedence;
use read::is_template;
pub use variable_file::VariableFile;

/// Values by their names.
type Variables = BTreeMap<String, Value>;

/// What an inventory says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnsibleInventory {
    hosts: BTreeMap<String, Variables>,
    groups: BTreeMap<String, InventoryGroup>,
    /// What of the files beside it was not taken.
    remarks: Vec<String>,
}

/// A group of an inventory.
#[derive(Debug, Clone, Default, PartialEq)]
struct InventoryGroup {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    variables: Variables,
}

/// What an inventory becomes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedInventory {
    /// The `NodeGroup` and `Variable` objects.
    pub objects: Vec<Value>,
    /// The nodes that the groups and variables are for.
    pub nodes: Vec<ExpectedNode>,
    /// What has no counterpart or is written differently, for people.
    pub remarks: Vec<String>,
}

/// A host of an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedNode {
    /// The name of the node.
    pub name: String,
    /// How the inventory reaches the host by SSH.
    pub destination: String,
    /// The port of SSH, if it is another one than usual.
    pub port: Option<u16>,
}

impl AnsibleInventory {
    /// Reads an inventory in Ansible's INI format.
    ///
    /// # Errors
    /// All faults, with their lines.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<BookFault>> {
        read::read(file, text)
    }

    /// What it becomes; Variables are for a namespace.
    ///
    /// # Errors
    /// When two hosts or groups would have the same name.
    pub fn import(&self, namespace: &str) -> Result<ImportedInventory, SameName> {
        let mut remarks = self.remarks.clone();
        let nodes = names("host", self.hosts.keys(), &mut remarks)?;
        let is_built_in = |group: &&String| ["all", "ungrouped"].contains(&group.as_str());
        let own_groups = self.groups.keys().filter(|group| !is_built_in(group));
        let groups = names("group", own_groups, &mut remarks)?;
        let precedence = Precedence::of(self);
        let mut imported = ImportedInventory::default();
        for (group, name) in &groups {
            let members = precedence.members(group).iter();
            let members: Vec<&str> = members
                .filter_map(|host| nodes.get(*host))
                .map(String::as_str)
                .collect();
            if members.is_empty() {
                remarks.push(format!("group `{group}` has no hosts and is left out"));
                continue;
            }
            imported.objects.push(json!({
                "apiVersion": portolan_kinds::VERSION, "kind": "NodeGroup",
                "metadata": {"name": name}, "spec": {"nodes": members},
            }));
        }
        let resolved = precedence.resolve(&mut remarks);
        let mut add = |name: String, target: Value, variables: &Variables, of: &str| {
            let values = usable(variables, of, &mut remarks);
            if values.is_empty() {
                return;
            }
            let mut spec = json!({"values": values});
            if !target.is_null() {
                spec["for"] = target;
            }
            imported.objects.push(json!({
                "apiVersion": portolan_kinds::VERSION, "kind": "Variable",
                "metadata": {"name": name, "namespace": namespace}, "spec": spec,
            }));
        };
        add(
            "inventory-all".to_owned(),
            Value::Null,
            &resolved.all,
            "all hosts",
        );
        for (group, variables) in &resolved.groups {
            // Variables of a group without hosts are for nobody.
            if let Some(name) = groups
                .get(*group)
                .filter(|_| !precedence.members(group).is_empty())
            {
                let target = json!({"groups": [name]});
                add(
                    format!("inventory-group-{name}"),
                    target,
                    variables,
                    &format!("group `{group}`"),
                );
            }
        }
        for (host, variables) in &resolved.hosts {
            if let Some(name) = nodes.get(*host) {
                let target = json!({"node": name});
                add(
                    format!("inventory-node-{name}"),
                    target,
                    variables,
                    &format!("host `{host}`"),
                );
            }
        }
        for (host, name) in &nodes {
            imported
                .nodes
                .push(expected(host, name, &precedence.connection(host)));
        }
        remarks.sort();
        remarks.dedup();
        imported.remarks = remarks;
        Ok(imported)
    }

    /// A group that is below itself.
    fn cycle(&self) -> Option<String> {
        precedence::cycle(&self.groups)
    }
}

/// Two names of an inventory become the same one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}s `{first}` and `{second}` would both be called `{name}`")]
pub struct SameName {
    kind: &'static str,
    first: String,
    second: String,
    name: String,
}

/// The name of each object here. What has no name that objects can have is left out.
fn names<'a>(
    kind: &'static str,
    all: impl Iterator<Item = &'a String>,
    remarks: &mut Vec<String>,
) -> Result<BTreeMap<&'a str, String>, SameName> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for own in all {
        let name = own.to_lowercase().replace('_', "-");
        if !NameRule::Subdomain.fits(&name) {
            remarks.push(format!(
                "{kind} `{own}` is left out: a name {}",
                NameRule::Subdomain
            ));
            continue;
        }
        if let Some(first) = taken.insert(name.clone(), own) {
            return Err(SameName {
                kind,
                first: first.to_owned(),
                second: own.clone(),
                name,
            });
        }
        if name != *own {
            remarks.push(format!("{kind} `{own}` is called `{name}` here"));
        }
        names.insert(own.as_str(), name);
    }
    Ok(names)
}

/// What of some variables is kept. How Ansible connects is its own business, and a value that it would render is none here.
fn usable(variables: &Variables, of: &str, remarks: &mut Vec<String>) -> Map<String, Value> {
    let mut values = Map::new();
    for (key, value) in variables {
        if is_connection(key) {
            let is_used = ["ansible_host", "ansible_port", "ansible_user"].contains(&key.as_str());
            if !is_used {
                remarks.push(format!("`{key}` of {of} has no counterpart"));
            }
        } else if is_template(value) {
            remarks.push(format!(
                "`{key}` of {of} is a template and has no counterpart: compute it in the TaskBook"
            ));
        } else {
            if looks_secret(key) {
                remarks.push(format!("`{key}` of {of} may be a secret: a Secret keeps it encrypted, a Variable does not"));
            }
            values.insert(key.clone(), value.clone());
        }
    }
    values
}

fn is_connection(key: &str) -> bool {
    key.starts_with("ansible_")
}

fn looks_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    let words = [
        "password",
        "passwd",
        "secret",
        "token",
        "private_key",
        "api_key",
    ];
    words.iter().any(|word| key.contains(word))
}

fn expected(host: &str, name: &str, connection: &BTreeMap<&str, &Value>) -> ExpectedNode {
    let text = |key: &str| match connection.get(key) {
        Some(Value::String(text)) if !is_template(&Value::String(text.clone())) => {
            Some(text.clone())
        }
        _ => None,
    };
    let address = text("ansible_host").unwrap_or_else(|| host.to_owned());
    let destination = match text("ansible_user") {
        Some(user) => format!("{user}@{address}"),
        None => address,
    };
    let port = connection
        .get("ansible_port")
        .and_then(|port| port.as_u64());
    ExpectedNode {
        name: name.to_owned(),
        destination,
        port: port
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port != 22),
    }
}

#[cfg(test)]
mod tests;
