//! Files of `group_vars` and `host_vars` beside an inventory: YAML maps whose values stand above those of the inventory itself.

use std::collections::BTreeMap;

use portolan_yaml::{Dialect, parse_one};
use serde_json::Value;

use super::{AnsibleInventory, Variables};

/// How a file that Ansible Vault encrypted begins, and a single value.
const VAULT: &str = "$ANSIBLE_VAULT;";

/// The endings that Ansible reads beside a name without one.
const ENDINGS: [&str; 3] = [".yml", ".yaml", ".json"];

/// Whose variables a file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableFile {
    /// Those of a group: a file below `group_vars`.
    OfGroup(String),
    /// Those of a host: a file below `host_vars`.
    OfHost(String),
}

impl VariableFile {
    /// Reads the path of a file relative to the inventory's directory: `group_vars/web.yml`, or `group_vars/web/ports.yml`.
    /// `None` for a file that Ansible does not read.
    pub fn of(path: &str) -> Option<Self> {
        let (directory, rest) = path.split_once('/')?;
        let file = rest.rsplit('/').next()?;
        if file.starts_with('.') || file.ends_with('~') {
            return None;
        }
        let plain = ENDINGS.iter().find_map(|ending| file.strip_suffix(ending));
        let plain = plain.or((!file.contains('.')).then_some(file));
        // A host has dots in its name, and so has its file without an ending.
        let plain = plain.or((directory == "host_vars").then_some(file))?;
        let name = match rest.split_once('/') {
            Some((name, _)) => name,
            None => plain,
        };
        match directory {
            "group_vars" => Some(Self::OfGroup(name.to_owned())),
            "host_vars" => Some(Self::OfHost(name.to_owned())),
            _ => None,
        }
    }
}

impl AnsibleInventory {
    /// Adds the variables of a file, above those that are there. What cannot be used becomes a remark of the import.
    pub fn add_variables(&mut self, file: &VariableFile, path: &str, content: &[u8]) {
        let known = match file {
            VariableFile::OfGroup(name) if name == "all" => {
                let all = self.groups.entry(name.clone()).or_default();
                Some(&mut all.variables)
            }
            VariableFile::OfGroup(name) => {
                let group = self.groups.get_mut(name);
                group.map(|group| &mut group.variables)
            }
            VariableFile::OfHost(name) => self.hosts.get_mut(name),
        };
        let Some(variables) = known else {
            let kind = match file {
                VariableFile::OfGroup(_) => "group",
                VariableFile::OfHost(_) => "host",
            };
            let remark = format!("`{path}` is not imported: the inventory has no such {kind}");
            self.remarks.push(remark);
            return;
        };
        match read(content) {
            Ok(found) => {
                for (key, value) in found {
                    if is_encrypted(&value) {
                        self.remarks.push(format!(
                            "`{key}` of `{path}` is not imported: it is encrypted by Ansible Vault; make a Secret of it"
                        ));
                        variables.remove(&key);
                    } else {
                        variables.insert(key, value);
                    }
                }
            }
            Err(reason) => self
                .remarks
                .push(format!("`{path}` is not imported: {reason}")),
        }
    }
}

fn read(content: &[u8]) -> Result<Variables, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not text in UTF-8".to_owned())?;
    if text.starts_with(VAULT) {
        return Err("it is encrypted by Ansible Vault; make a Secret of what it has".to_owned());
    }
    let node = parse_one(text.to_owned(), Dialect::Kustomize).map_err(|error| error.to_string())?;
    let json = portolan_yaml::to_json(&node).map_err(|error| error.to_string())?;
    match serde_json::from_str(&json) {
        Ok(Value::Object(map)) => Ok(map.into_iter().collect()),
        Ok(Value::Null) => Ok(BTreeMap::new()),
        _ => Err("it is not a map of variables".to_owned()),
    }
}

fn is_encrypted(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with(VAULT),
        Value::Array(items) => items.iter().any(is_encrypted),
        Value::Object(map) => map.values().any(is_encrypted),
        _ => false,
    }
}
