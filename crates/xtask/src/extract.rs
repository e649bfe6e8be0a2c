//! Extracts from an `OpenAPI` v2 document (gnostic protobuf, as kustomize ships it) the few lines that a strategic
//! merge needs.
//!
//! It keeps the lists that merge by key and the objects that lead to them; everything else merges without a schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::go_module;
use crate::protobuf::Message;

const HEADER: &str = "\
# What strategic merge and scope questions need of the Kubernetes 1.21.2 OpenAPI document that kustomize 5.8 carries.
# Written by `cargo xtask gen kustomize-extract` from kyaml's openapi/kubernetesapi/v1_21_2/swagger.pb.
#
#   node N object FIELD=NODE…   an object, its fields on the way to a list that merges
#   node N list KEYS [NODE]     a list that merges by KEYS (comma-separated, `-` for a list of plain values)
#   kind APIVERSION KIND NODE   where an object of this type starts
#   definition NAME NODE        where a definition starts that a document of a build may refer to
#   cluster APIVERSION KIND     a type without a namespace
";

/// The module whose document is read: the one inside kustomize 5.8.1.
const MODULE: (&str, &str) = ("sigs.k8s.io/kustomize/kyaml", "v0.21.1");
const DOCUMENT: &str = "openapi/kubernetesapi/v1_21_2/swagger.pb";

/// Makes the extract.
pub(crate) fn generate() -> Result<String> {
    let path = go_module::directory(MODULE.0, MODULE.1)?.join(DOCUMENT);
    let bytes =
        std::fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    schema(&bytes)
}

fn schema(document: &[u8]) -> Result<String> {
    let document = Message(document);
    let mut extract = Extract::read(document)?;
    let mut kinds = Vec::new();
    let names: Vec<String> = extract.definitions.keys().cloned().collect();
    for name in names {
        let types = group_version_kinds(extract.definitions[&name])?;
        if types.is_empty() {
            continue;
        }
        let Some(node) = extract.definition_node(&name)? else {
            continue;
        };
        kinds.extend(
            types
                .into_iter()
                .map(|(version, kind)| (version, kind, node)),
        );
    }
    kinds.sort();
    let mut out = String::from(HEADER);
    for (number, line) in extract.nodes.iter().enumerate() {
        writeln!(out, "node {number} {line}")?;
    }
    for (version, kind, node) in kinds {
        writeln!(out, "kind {version} {kind} {node}")?;
    }
    for (name, node) in &extract.numbers {
        writeln!(out, "definition {name} {node}")?;
    }
    for (version, kind) in cluster_scoped(document)? {
        writeln!(out, "cluster {version} {kind}")?;
    }
    Ok(out)
}

struct Extract<'a> {
    definitions: BTreeMap<String, Message<'a>>,
    /// Definitions from which a merging list can be reached.
    useful: BTreeSet<String>,
    /// The node of a definition, once begun.
    numbers: BTreeMap<String, usize>,
    nodes: Vec<String>,
}

impl<'a> Extract<'a> {
    fn read(document: Message<'a>) -> Result<Self> {
        let mut definitions = BTreeMap::new();
        let list = document
            .message(9)?
            .context("the document has no definitions")?;
        for named in list.messages(1)? {
            let schema = named.message(2)?.context("a definition has no schema")?;
            definitions.insert(named.text(1)?.to_owned(), schema);
        }
        let mut extract = Self {
            definitions,
            useful: BTreeSet::new(),
            numbers: BTreeMap::new(),
            nodes: Vec::new(),
        };
        while extract.find_useful()? {}
        Ok(extract)
    }

    /// One round of the fixed point: whether a definition became useful.
    fn find_useful(&mut self) -> Result<bool> {
        let mut found = Vec::new();
        for (name, schema) in &self.definitions {
            if !self.useful.contains(name) && self.reaches_list(*schema)? {
                found.push(name.clone());
            }
        }
        let grown = !found.is_empty();
        self.useful.extend(found);
        Ok(grown)
    }

    fn reaches_list(&self, schema: Message<'a>) -> Result<bool> {
        if let Some(name) = reference(schema)? {
            return Ok(self.useful.contains(name));
        }
        if merge_keys(schema)?.is_some() {
            return Ok(true);
        }
        for (_, property) in properties(schema)? {
            if self.reaches_list(property)? {
                return Ok(true);
            }
        }
        match additional(schema)? {
            Some(value) => self.reaches_list(value),
            None => Ok(false),
        }
    }

    fn definition_node(&mut self, name: &str) -> Result<Option<usize>> {
        if !self.useful.contains(name) {
            return Ok(None);
        }
        if let Some(number) = self.numbers.get(name) {
            return Ok(Some(*number));
        }
        let number = self.reserve();
        self.numbers.insert(name.to_owned(), number);
        let schema = self.definitions[name];
        self.nodes[number] = self.line(schema)?;
        Ok(Some(number))
    }

    fn node(&mut self, schema: Message<'a>) -> Result<Option<usize>> {
        if let Some(name) = reference(schema)? {
            return self.definition_node(name);
        }
        if !self.reaches_list(schema)? {
            return Ok(None);
        }
        let number = self.reserve();
        self.nodes[number] = self.line(schema)?;
        Ok(Some(number))
    }

    fn reserve(&mut self) -> usize {
        self.nodes.push(String::new());
        self.nodes.len() - 1
    }

    fn line(&mut self, schema: Message<'a>) -> Result<String> {
        if let Some(keys) = merge_keys(schema)? {
            let mut line = format!("list {keys}");
            if let Some(element) = items(schema)?
                && let Some(node) = self.node(element)?
            {
                write!(line, " {node}")?;
            }
            return Ok(line);
        }
        let mut line = String::from("object");
        for (name, property) in properties(schema)? {
            if let Some(node) = self.node(property)? {
                write!(line, " {name}={node}")?;
            }
        }
        if line == "object"
            && let Some(value) = additional(schema)?
            && let Some(node) = self.node(value)?
        {
            return Ok(format!("map {node}"));
        }
        Ok(line)
    }
}

fn reference(schema: Message<'_>) -> Result<Option<&str>> {
    Ok(schema.text(1)?.strip_prefix("#/definitions/"))
}

fn properties(schema: Message<'_>) -> Result<Vec<(String, Message<'_>)>> {
    let mut found = Vec::new();
    if let Some(list) = schema.message(25)? {
        for named in list.messages(1)? {
            let schema = named.message(2)?.context("a property has no schema")?;
            found.push((named.text(1)?.to_owned(), schema));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn additional(schema: Message<'_>) -> Result<Option<Message<'_>>> {
    match schema.message(21)? {
        Some(item) => item.message(1),
        None => Ok(None),
    }
}

fn items(schema: Message<'_>) -> Result<Option<Message<'_>>> {
    match schema.message(23)? {
        Some(item) => item.message(1),
        None => Ok(None),
    }
}

/// The keys of a list whose patch strategy is merge: the map keys, else the merge key, else `-`.
fn merge_keys(schema: Message<'_>) -> Result<Option<String>> {
    let extensions = extensions(schema, 31)?;
    let get = |key: &str| {
        extensions
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, yaml)| yaml)
    };
    let merges = get("x-kubernetes-patch-strategy")
        .is_some_and(|strategy| strategy.trim().split(',').any(|word| word == "merge"));
    if !merges || schema.message(22)?.map(|kind| kind.text(1)).transpose()? != Some("array") {
        return Ok(None);
    }
    if let Some(keys) = get("x-kubernetes-list-map-keys") {
        let keys: Vec<&str> = keys
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "))
            .collect();
        return Ok(Some(keys.join(",")));
    }
    let key = get("x-kubernetes-patch-merge-key").map(|key| key.trim().to_owned());
    Ok(Some(key.unwrap_or_else(|| "-".to_owned())))
}

fn extensions(message: Message<'_>, number: u64) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for named in message.messages(number)? {
        let value = named.message(2)?.context("an extension has no value")?;
        found.push((named.text(1)?.to_owned(), value.text(2)?.to_owned()));
    }
    Ok(found)
}

fn group_version_kinds(schema: Message<'_>) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, yaml) in extensions(schema, 31)? {
        if name == "x-kubernetes-group-version-kind" {
            for item in yaml.split("- ").skip(1) {
                found.extend(type_meta(item));
            }
        }
    }
    Ok(found)
}

fn type_meta(yaml: &str) -> Option<(String, String)> {
    let get = |key: &str| {
        let line = yaml
            .lines()
            .find_map(|line| line.trim().strip_prefix(key))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let (group, version, kind) = (get("group:")?, get("version:")?, get("kind:")?);
    let version = if group.is_empty() {
        version
    } else {
        format!("{group}/{version}")
    };
    Some((version, kind))
}

/// The types that can be read, but never below a namespace.
fn cluster_scoped(document: Message<'_>) -> Result<BTreeSet<(String, String)>> {
    let (mut all, mut namespaced) = (BTreeSet::new(), BTreeSet::new());
    let paths = document.message(8)?.context("the document has no paths")?;
    for named in paths.messages(2)? {
        let path = named.text(1)?;
        let Some(get) = named
            .message(2)?
            .map(|item| item.message(2))
            .transpose()?
            .flatten()
        else {
            continue;
        };
        for (name, yaml) in extensions(get, 13)? {
            let Some(found) = (name == "x-kubernetes-group-version-kind")
                .then(|| type_meta(&yaml))
                .flatten()
            else {
                continue;
            };
            if path.contains("namespaces/{namespace}") {
                namespaced.insert(found.clone());
            }
            all.insert(found);
        }
    }
    Ok(all.difference(&namespaced).cloned().collect())
}
