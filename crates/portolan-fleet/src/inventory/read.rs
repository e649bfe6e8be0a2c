//! The text of an inventory: sections, hosts and variables, line by line.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_yaml::Position;
use serde_json::Value;

use super::host_range::{RangeFault, expand};
use super::literal;
use super::{AnsibleInventory, InventoryGroup, Variables};
use crate::fault::{BookFault, Faults, Place, advice};

/// The most hosts and groups of an inventory, and how often hosts may be named in groups.
const MAX_HOSTS: usize = 5_000;
const MAX_GROUPS: usize = 500;
const MAX_MEMBERSHIPS: usize = 200_000;

/// What the lines of a section are.
#[derive(Clone)]
enum Section {
    Hosts(String),
    Children(String),
    Vars(String),
    /// Lines of a section that is wrong are not looked at.
    Unknown,
}

struct Reader {
    file: Arc<str>,
    inventory: AnsibleInventory,
    faults: Faults,
    /// Groups that were named before they were declared, with their lines.
    promised: Vec<(String, u32)>,
    declared: BTreeMap<String, u32>,
    memberships: usize,
}

/// Reads an inventory.
pub(super) fn read(file: &str, text: &str) -> Result<AnsibleInventory, Vec<BookFault>> {
    let mut reader = Reader {
        file: file.into(),
        inventory: AnsibleInventory::default(),
        faults: Faults::default(),
        promised: Vec::new(),
        declared: BTreeMap::new(),
        memberships: 0,
    };
    let mut section = Section::Hosts("ungrouped".to_owned());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if reader.declared.len() > MAX_GROUPS || reader.promised.len() > MAX_MEMBERSHIPS {
            break;
        }
        // A line such as `[a:b].lan` of a group is a section to Ansible as well.
        if line.starts_with('[') && strip_comment(line).ends_with(']') {
            section = reader.section(strip_comment(line), number);
            continue;
        }
        match &section {
            Section::Hosts(group) => reader.hosts(&group.clone(), line, number),
            Section::Children(group) => reader.child(&group.clone(), line, number),
            Section::Vars(group) => reader.variable(&group.clone(), line, number),
            Section::Unknown => {}
        }
    }
    reader.finish()
}

impl Reader {
    fn section(&mut self, line: &str, number: u32) -> Section {
        let inside = line.trim_start_matches('[').trim_end_matches(']');
        let (group, kind) = inside.split_once(':').unwrap_or((inside, ""));
        if group.is_empty() || group.contains(char::is_whitespace) {
            self.fault(number, format!("`{line}` is not a section"), None);
            return Section::Unknown;
        }
        let group = group.to_owned();
        match kind {
            "" => {
                self.declare(&group, number);
                Section::Hosts(group)
            }
            "children" => {
                self.declare(&group, number);
                Section::Children(group)
            }
            "vars" => {
                self.promised.push((group.clone(), number));
                Section::Vars(group)
            }
            other => {
                let message = format!("`{other}` is no kind of section");
                self.fault(number, message, advice(other, &["children", "vars"]));
                Section::Unknown
            }
        }
    }

    fn declare(&mut self, group: &str, number: u32) {
        if self.declared.len() == MAX_GROUPS {
            let message = format!("an inventory has {MAX_GROUPS} groups at most");
            self.fault(number, message, None);
        }
        self.declared.entry(group.to_owned()).or_insert(number);
        self.group(group);
    }

    fn group(&mut self, name: &str) -> &mut InventoryGroup {
        let groups = &mut self.inventory.groups;
        groups.entry(name.to_owned()).or_default()
    }

    fn hosts(&mut self, group: &str, line: &str, number: u32) {
        let Some(words) = words(line) else {
            return self.fault(number, "a quotation mark is not closed", None);
        };
        let Some((pattern, pairs)) = words.split_first() else {
            return;
        };
        let (pattern, port) = split_port(pattern);
        let names = match expand(pattern, MAX_HOSTS) {
            Ok(names) if !names.iter().any(String::is_empty) => names,
            Err(RangeFault::TooMany) => {
                let message = format!("an inventory has {MAX_HOSTS} hosts at most");
                return self.fault(number, message, None);
            }
            _ => return self.fault(number, format!("`{pattern}` names no host"), None),
        };
        self.memberships = self.memberships.saturating_add(names.len());
        if self.memberships > MAX_MEMBERSHIPS {
            let message = format!("hosts may be named {MAX_MEMBERSHIPS} times at most");
            return self.fault(number, message, None);
        }
        let mut variables = Variables::new();
        if let Some(port) = port {
            variables.insert("ansible_port".to_owned(), port.into());
        }
        for pair in pairs {
            match pair.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    variables.insert(key.to_owned(), literal::value(value));
                }
                _ => {
                    let message = format!("`{pair}` is not a variable such as port=80");
                    self.fault(number, message, None);
                }
            }
        }
        for name in names {
            let known = &mut self.inventory.hosts;
            if !known.contains_key(&name) && known.len() >= MAX_HOSTS {
                let message = format!("an inventory has {MAX_HOSTS} hosts at most");
                return self.fault(number, message, None);
            }
            let host = known.entry(name.clone()).or_default();
            host.extend(
                variables
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            self.group(group).hosts.insert(name);
        }
    }

    fn child(&mut self, group: &str, line: &str, number: u32) {
        let child = strip_comment(line);
        if child.contains(char::is_whitespace) {
            return self.fault(
                number,
                format!("`{child}` is not the name of a group"),
                None,
            );
        }
        self.promised.push((child.to_owned(), number));
        self.group(group).children.insert(child.to_owned());
    }

    fn variable(&mut self, group: &str, line: &str, number: u32) {
        match line.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                let value = literal::value(value);
                let variables = &mut self.group(group).variables;
                variables.insert(key.trim().to_owned(), value);
            }
            _ => self.fault(
                number,
                format!("`{line}` is not a variable such as port = 80"),
                None,
            ),
        }
    }

    fn fault(&mut self, number: u32, message: impl Into<String>, hint: Option<String>) {
        let at = Position {
            line: number,
            column: 1,
        };
        self.faults
            .add_hint(Place::new(&self.file, at), message, hint);
    }

    fn finish(mut self) -> Result<AnsibleInventory, Vec<BookFault>> {
        for (group, number) in std::mem::take(&mut self.promised) {
            if self.declared.contains_key(&group) || ["all", "ungrouped"].contains(&group.as_str())
            {
                continue;
            }
            let names: Vec<&str> = self.declared.keys().map(String::as_str).collect();
            let hint = advice(&group, &names);
            self.fault(number, format!("there is no group `{group}`"), hint);
        }
        if let Some(group) = self.inventory.cycle() {
            let number = self.declared.get(&group).copied().unwrap_or_default();
            self.fault(
                number,
                format!("group `{group}` is a child of itself"),
                None,
            );
        }
        let faults = self.faults.into_sorted();
        if faults.is_empty() {
            Ok(self.inventory)
        } else {
            Err(faults)
        }
    }
}

/// A line without what a comment says.
fn strip_comment(line: &str) -> &str {
    let end = line.find(" #").or_else(|| line.find("\t#"));
    line[..end.unwrap_or(line.len())].trim()
}

/// `host:22` is a host and a port; an address of IPv6 has more colons.
fn split_port(pattern: &str) -> (&str, Option<u16>) {
    let after_ranges = pattern.rfind(']').map_or(0, |end| end + 1);
    match pattern[after_ranges..].split_once(':') {
        Some((host, port)) if !port.contains(':') => {
            let port = port.parse().ok();
            match port {
                Some(port) => (&pattern[..after_ranges + host.len()], Some(port)),
                None => (pattern, None),
            }
        }
        _ => (pattern, None),
    }
}

/// The words of a line as a shell reads them; `None` if a quotation mark is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(one) = chars.next() {
        match one {
            '#' if word.is_none() => break,
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Whether Ansible would render a value when it is used.
pub(super) fn is_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{") || text.contains("{%"),
        Value::Array(items) => items.iter().any(is_template),
        Value::Object(map) => map.values().any(is_template),
        _ => false,
    }
}
