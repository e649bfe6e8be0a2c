//! `patches` and its older forms: strategic merges and JSON patches, by identity or by selector.

use portolan_budget::Budget;
use portolan_yaml::{Node, Position, Text, from_json, to_json};

use crate::error::{During, Error, Result};
use crate::load::decode::{Fields, Strictness};
use crate::load::kustomization::read_selector;
use crate::load::read::{charge_document, parse_config, read_resources};
use crate::resource::selector::Selector;
use crate::resource::set::ResourceSet;
use crate::resource::{Origin, Resource};
use crate::schema::Schema;
use crate::value::alias::reunite;
use crate::value::cost::{RESOURCE_STEPS, charge_value, charge_walk};
use crate::value::field::{metadata_pairs, plain, set_field, set_metadata_map};
use crate::value::jsonpatch::{JsonPatch, print_blocks, reread};
use crate::value::merge::patch_merge;

/// An entry of `patches` or `patchesJson6902`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patch {
    /// Where its text stands, or the name of its file.
    pub(crate) at: Position,
    pub(crate) path: Text,
    pub(crate) text: Text,
    pub(crate) target: Option<Selector>,
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

/// A patch whose text was read.
#[derive(Debug)]
pub(crate) enum LoadedPatch {
    /// Strategic merges; none where the text held nothing.
    Merges(Vec<Resource>),
    /// A JSON patch.
    Json(JsonPatch),
}

impl Patch {
    pub(crate) fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let names = ["path", "patch", "target", "options"];
        let fields = Fields::read(node, "Patch", &names, strictness)?;
        let written = fields.get("patch").or_else(|| fields.get("path"));
        let mut patch = Self {
            at: written.map_or(node.at, |written| written.at),
            path: fields.text("path")?,
            text: fields.text("patch")?,
            target: read_selector(&fields, "target")?,
            ..Self::default()
        };
        if let Some(options) = fields.get("options") {
            let names = ["allowNameChange", "allowKindChange"];
            let options = Fields::read(options, "PatchArgs", &names, strictness)?;
            patch.allow_name_change = options.flag("allowNameChange")?;
            patch.allow_kind_change = options.flag("allowKindChange")?;
        }
        Ok(patch)
    }
}

impl LoadedPatch {
    /// Finds out what a patch's text is.
    pub(crate) fn read(
        bytes: &[u8],
        patch: &Patch,
        origin: &Origin,
        budget: &Budget,
    ) -> Result<Self> {
        let merges = read_resources(bytes, origin, budget);
        let Ok(mut merges) = merges else {
            return match read_json_patch(bytes, origin, budget) {
                Ok(Some(json)) => Ok(Self::Json(json)),
                Ok(None) => Ok(Self::Merges(Vec::new())),
                Err(_) => merges
                    .map(Self::Merges)
                    .during(|| format!("unable to parse SM or JSON patch from `{}`", origin.file)),
            };
        };
        for merge in &mut merges {
            merge.history.allows_name_change |= patch.allow_name_change;
            merge.history.allows_kind_change |= patch.allow_kind_change;
            if patch.allow_name_change || patch.allow_kind_change {
                stringify(merge, "annotations")?;
            }
        }
        Ok(Self::Merges(merges))
    }
}

/// Reads a JSON patch; `None` when there is nothing in it. What begins with a bracket must be JSON.
pub(crate) fn read_json_patch(
    bytes: &[u8],
    origin: &Origin,
    budget: &Budget,
) -> Result<Option<JsonPatch>> {
    let refused = |problem: String| Error::field(format!("JSON patch `{}`", origin.file), problem);
    let json = match bytes.first() {
        None => return Err(refused("it is empty".to_owned())),
        Some(b'[') => String::from_utf8_lossy(bytes).into_owned(),
        Some(_) => {
            let node = parse_config(bytes, origin.file.as_str(), budget)?;
            to_json(&node).map_err(|error| refused(error.to_string()))?
        }
    };
    let document = from_json(&json).map_err(|error| refused(error.to_string()))?;
    charge_document(&document, origin.file.as_str(), budget)?;
    JsonPatch::read(&document)
}

/// Applies one entry of `patches` and tells where.
pub(crate) fn apply_patch(
    set: &mut ResourceSet,
    patch: &LoadedPatch,
    target: Option<&Selector>,
    schema: &Schema,
    budget: &Budget,
) -> Result<Vec<usize>> {
    match (patch, target) {
        (LoadedPatch::Merges(patches), None) => patches
            .iter()
            .map(|patch| merge_named(set, patch, schema, budget))
            .collect(),
        (LoadedPatch::Merges(patches), Some(target)) => match patches.as_slice() {
            [] => Ok(Vec::new()),
            [patch] => {
                let selected = target.select(set, schema, budget)?;
                merge_selected(set, &selected, patch, schema, budget)?;
                Ok(selected)
            }
            _ => Err(Error::refused(
                "multiple strategic merge patches in one `patches` entry may not have a `target`",
            )),
        },
        (LoadedPatch::Json(patch), Some(target)) => {
            let selected = target.select(set, schema, budget)?;
            for position in &selected {
                if let Some(resource) = set.get_mut(*position) {
                    resource.remember_id(schema);
                }
                apply_json(set, *position, patch, schema, budget)?;
            }
            Ok(selected)
        }
        (LoadedPatch::Json(_), None) => Err(Error::refused("must specify a target for JSON patch")),
    }
}

fn merge_named(
    set: &mut ResourceSet,
    patch: &Resource,
    schema: &Schema,
    budget: &Budget,
) -> Result<usize> {
    let id = patch.original_id(schema);
    let position = set
        .find_one(&id, schema)
        .during(|| format!("no resource matches strategic merge patch `{id}`"))?;
    merge_at(set, position, patch, schema, budget)?;
    Ok(position)
}

/// Applies the patches of `patchesStrategicMerge`, each to the one resource it names, and tells where.
pub(crate) fn apply_strategic_merges(
    set: &mut ResourceSet,
    patches: &[Resource],
    schema: &Schema,
    budget: &Budget,
) -> Result<Vec<usize>> {
    let mut merged = Vec::with_capacity(patches.len());
    for patch in patches {
        let position = set.find_one(&patch.original_id(schema), schema)?;
        merge_selected(set, &[position], patch, schema, budget)?;
        merged.push(position);
    }
    Ok(merged)
}

/// Applies an entry of `patchesJson6902` and tells where.
pub(crate) fn apply_json_patch(
    set: &mut ResourceSet,
    patch: &JsonPatch,
    target: &Selector,
    schema: &Schema,
    budget: &Budget,
) -> Result<Vec<usize>> {
    let selected = target.select(set, schema, budget)?;
    for position in &selected {
        apply_json(set, *position, patch, schema, budget)?;
    }
    Ok(selected)
}

/// A patch for chosen resources takes their version, and its labels and annotations become plain texts.
fn merge_selected(
    set: &mut ResourceSet,
    selected: &[usize],
    patch: &Resource,
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    let mut shared = patch.clone();
    stringify(&mut shared, "labels")?;
    stringify(&mut shared, "annotations")?;
    for position in selected {
        let mut patch = shared.clone();
        if let Some(version) = set
            .get(*position)
            .and_then(|resource| resource.node.get("apiVersion"))
        {
            let version = plain(crate::value::field::text(version));
            set_field(&mut patch.node, "apiVersion", version)?;
        }
        merge_at(set, *position, &patch, schema, budget)?;
    }
    set.check_unique(schema)
}

fn stringify(resource: &mut Resource, field: &str) -> Result<()> {
    let Some(node) = resource.node.at_path(&["metadata", field]) else {
        return Ok(());
    };
    let is_clean = node
        .as_map()
        .is_some_and(|map| map.iter().all(|entry| entry.value.as_str().is_some()));
    if is_clean && !crate::value::field::is_blank(node) {
        return Ok(());
    }
    let pairs = metadata_pairs(&resource.node, field);
    set_metadata_map(&mut resource.node, field, pairs)
}

fn merge_at(
    set: &mut ResourceSet,
    position: usize,
    patch: &Resource,
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    let Some(resource) = set.get_mut(position) else {
        return Ok(());
    };
    charge_change(resource, budget)?;
    charge_value(&patch.node, budget, patch.origin.file.as_str())?;
    let before = resource.id();
    let exposes = drops_annotations(&patch.node);
    let history = &patch.history;
    let changes_id = history.allows_name_change || history.allows_kind_change;
    if changes_id {
        resource.remember_id(schema);
    }
    if exposes {
        resource.expose_history()?;
    }
    let merged = patch_merge(resource, patch, schema, budget)?;
    let Some(mut merged) = merged else {
        resource.node = Node::map();
        set.changed(position, schema);
        return Ok(());
    };
    if resource.history.aliases > 0 {
        reunite(&resource.node, &mut merged);
    }
    resource.node = merged;
    if resource.is_empty() {
        set.changed(position, schema);
        return Ok(());
    }
    if exposes {
        resource.absorb_history()?;
    }
    restore_id(resource, &before, patch)?;
    if changes_id || exposes || resource.id() != before {
        set.changed(position, schema);
    }
    Ok(())
}

/// A patch changes kind and name only where it is allowed to, and the namespace never.
fn restore_id(
    resource: &mut Resource,
    before: &crate::resource::id::ResourceId,
    patch: &Resource,
) -> Result<()> {
    if !patch.history.allows_kind_change && resource.kind() != before.gvk.kind {
        set_field(&mut resource.node, "kind", plain(before.gvk.kind.clone()))?;
    }
    if !patch.history.allows_name_change && resource.name() != before.name {
        let metadata =
            crate::value::field::field_or_create(&mut resource.node, "metadata", Node::map)?;
        set_field(metadata, "name", Node::string(before.name.clone()))?;
    }
    if before.namespace.is_empty() {
        if let Some(metadata) = resource.node.get_mut("metadata").and_then(Node::as_map_mut)
            && metadata.contains_key("namespace")
        {
            metadata.remove("namespace");
        }
    } else if resource.namespace() != before.namespace {
        let metadata =
            crate::value::field::field_or_create(&mut resource.node, "metadata", Node::map)?;
        set_field(
            metadata,
            "namespace",
            Node::string(before.namespace.clone()),
        )?;
    }
    Ok(())
}

/// Whether a patch can take annotations away as a whole, and with them what kustomize notes there.
fn drops_annotations(patch: &Node) -> bool {
    let has_directive = |node: &Node| node.get("$patch").is_some();
    let Some(metadata) = patch.get("metadata") else {
        return has_directive(patch);
    };
    let annotations = metadata.get("annotations");
    has_directive(patch)
        || metadata.is_null()
        || has_directive(metadata)
        || annotations.is_some_and(|node| node.is_null() || has_directive(node))
}

/// Charges what every change of a resource costs: a walk over it, and another one over its old identities.
fn charge_change(resource: &Resource, budget: &Budget) -> Result<()> {
    budget.step(resource.history.previous.len() as u64 * RESOURCE_STEPS)?;
    charge_walk(&resource.node, budget)
}

fn apply_json(
    set: &mut ResourceSet,
    position: usize,
    patch: &JsonPatch,
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    let Some(resource) = set.get_mut(position) else {
        return Ok(());
    };
    charge_change(resource, budget)?;
    let history = resource.history.clone();
    resource.expose_history()?;
    let mut node = resource.node.clone();
    print_blocks(&mut node)?;
    patch
        .apply(&mut node, budget)
        .during(|| format!("cannot patch {}", resource.id()))?;
    if node.as_map().is_none() {
        return Err(Error::refused(format!(
            "the patch makes {} something that is no object",
            resource.id()
        )));
    }
    charge_walk(&node, budget)?;
    reread(&mut node);
    resource.node = node;
    resource.absorb_history()?;
    resource.history = history;
    let pairs = metadata_pairs(&resource.node, "annotations");
    set_metadata_map(&mut resource.node, "annotations", pairs)?;
    set.changed(position, schema);
    Ok(())
}
