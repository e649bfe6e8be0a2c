//! One object of a build: its tree, its earlier names, and its origin.

pub(crate) mod hash;
pub(crate) mod id;
pub(crate) mod index;
pub(crate) mod order;
pub(crate) mod provenance;
pub(crate) mod selector;
pub(crate) mod set;

use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_yaml::{Node, Position, Style, Text};

use crate::error::{Error, Result};
use crate::resource::id::{Gvk, ResourceId};
use crate::schema::Schema;
use crate::value::alias::reunite;
use crate::value::field::{is_blank, metadata_pairs, present_text, set_metadata_map, text};
use crate::value::remark::Remarks;

/// An object, with what a build knows about it.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The object itself.
    pub node: Node,
    /// Where it was read or generated.
    pub origin: Arc<Origin>,
    /// The transformers that ran over it, in order.
    pub transformations: Vec<Arc<Origin>>,
    pub(crate) history: History,
    /// Names of the variables whose value is a field of this resource.
    pub(crate) variables: Vec<Text>,
    /// Schemas that comments of its file give to its fields.
    pub(crate) remarks: Option<Arc<Remarks>>,
}

/// A place in a file that made or changed a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The file.
    pub file: Utf8PathBuf,
    /// Where in it; the start of the document for resources that were read.
    pub at: Position,
    /// The generator or transformer, empty for resources that were read.
    pub step: Text,
}

/// What kustomize keeps in `internal.config.kubernetes.io/…` annotations while it builds.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Earlier identities, oldest first.
    pub(crate) previous: Vec<Previous>,
    pub(crate) prefixes: Vec<Text>,
    pub(crate) suffixes: Vec<Text>,
    pub(crate) needs_hash: bool,
    pub(crate) behavior: Behavior,
    pub(crate) is_from_helm: bool,
    pub(crate) allows_name_change: bool,
    pub(crate) allows_kind_change: bool,
    /// How many groups of values that are one the resource has had.
    pub(crate) aliases: u32,
}

/// An earlier identity; the group and version are the current ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) name: Text,
    /// The effective namespace.
    pub(crate) namespace: Text,
    pub(crate) kind: Text,
}

/// What a generated resource does with one of the same identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Behavior {
    #[default]
    Unspecified,
    Create,
    Replace,
    Merge,
}

const PREVIOUS_NAMES: &str = "internal.config.kubernetes.io/previousNames";
const PREVIOUS_NAMESPACES: &str = "internal.config.kubernetes.io/previousNamespaces";
const PREVIOUS_KINDS: &str = "internal.config.kubernetes.io/previousKinds";
const PREFIXES: &str = "internal.config.kubernetes.io/prefixes";
const SUFFIXES: &str = "internal.config.kubernetes.io/suffixes";
const NEEDS_HASH: &str = "internal.config.kubernetes.io/needsHashSuffix";
const BEHAVIOR: &str = "internal.config.kubernetes.io/generatorBehavior";
const NAME_CHANGE: &str = "internal.config.kubernetes.io/allowNameChange";
const KIND_CHANGE: &str = "internal.config.kubernetes.io/allowKindChange";
const FROM_HELM: &str = "internal.config.kubernetes.io/helm-generated";
const ENABLED: &str = "enabled";

/// Annotations that never reach the output.
const BUILD_ANNOTATIONS: &[&str] = &[
    PREVIOUS_NAMES,
    PREVIOUS_NAMESPACES,
    PREVIOUS_KINDS,
    PREFIXES,
    SUFFIXES,
    NEEDS_HASH,
    BEHAVIOR,
    NAME_CHANGE,
    KIND_CHANGE,
    FROM_HELM,
    "internal.config.kubernetes.io/refBy",
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
];

pub(crate) const ORIGIN: &str = "config.kubernetes.io/origin";
pub(crate) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

// === impl Resource ===

impl Resource {
    /// A resource as read or generated; annotations that kustomize uses inside a build become its history.
    pub(crate) fn new(node: Node, origin: Arc<Origin>) -> Result<Self> {
        let mut resource = Self {
            node,
            origin,
            transformations: Vec::new(),
            history: History::default(),
            variables: Vec::new(),
            remarks: None,
        };
        resource.absorb_history()?;
        Ok(resource)
    }

    /// The type as it is now.
    pub fn gvk(&self) -> Gvk {
        let get = |name| self.node.get(name).map(text).unwrap_or_default();
        Gvk::new(&get("apiVersion"), get("kind"))
    }

    /// The name as it is now.
    pub fn name(&self) -> Text {
        present_text(self.node.at_path(&["metadata", "name"]))
    }

    /// The namespace as it is now, empty where there is none.
    pub fn namespace(&self) -> Text {
        present_text(self.node.at_path(&["metadata", "namespace"]))
    }

    pub(crate) fn kind(&self) -> Text {
        self.node.get("kind").map(text).unwrap_or_default()
    }

    /// The identity as it is now.
    pub fn id(&self) -> ResourceId {
        ResourceId {
            gvk: self.gvk(),
            name: self.name(),
            namespace: self.namespace(),
        }
    }

    pub(crate) fn is_cluster_scoped(&self, schema: &Schema) -> bool {
        let get = |name| self.node.get(name).map(text).unwrap_or_default();
        schema.is_cluster_scoped(&get("apiVersion"), &get("kind"))
    }

    /// The current identity, for comparisons.
    pub(crate) fn comparable_id(&self, schema: &Schema) -> ResourceId {
        self.id().comparable(self.is_cluster_scoped(schema))
    }

    /// The earlier identities, for comparisons, oldest first.
    pub(crate) fn previous_ids(&self) -> impl Iterator<Item = ResourceId> + '_ {
        let gvk = self.gvk();
        self.history.previous.iter().map(move |previous| {
            ResourceId {
                gvk: Gvk {
                    kind: previous.kind.clone(),
                    ..gvk.clone()
                },
                name: previous.name.clone(),
                namespace: previous.namespace.clone(),
            }
            .comparable(false)
        })
    }

    /// The first identity, for comparisons.
    pub(crate) fn original_id(&self, schema: &Schema) -> ResourceId {
        let first = self.previous_ids().next();
        first.unwrap_or_else(|| self.comparable_id(schema))
    }

    /// Every identity the resource ever had, for comparisons, the current one last.
    pub(crate) fn all_ids(&self, schema: &Schema) -> Vec<ResourceId> {
        let mut ids: Vec<ResourceId> = self.previous_ids().collect();
        ids.push(self.comparable_id(schema));
        ids
    }

    /// Remembers the current identity before it changes.
    pub(crate) fn remember_id(&mut self, schema: &Schema) {
        let id = self.comparable_id(schema);
        let previous = Previous {
            name: id.name,
            namespace: id.namespace,
            kind: id.gvk.kind,
        };
        // Two or three at most, and there are thousands of resources.
        self.history.previous.reserve_exact(1);
        self.history.previous.push(previous);
    }

    /// Numbers for new groups of values that are one; the first of them.
    pub(crate) fn number_aliases(&mut self, count: usize) -> u32 {
        let first = self.history.aliases;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.history.aliases = first.saturating_add(count);
        first
    }

    /// Changes the resource in place; groups of values that are one stay so.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.history.aliases == 0 {
            return change(self);
        }
        let before = self.node.clone();
        let changed = change(self)?;
        reunite(&before, &mut self.node);
        Ok(changed)
    }

    /// Whether nothing is left of the resource.
    pub(crate) fn is_empty(&self) -> bool {
        is_blank(&self.node)
    }

    /// Whether the resource only serves the build and is not part of its output.
    pub(crate) fn is_local_config(&self) -> bool {
        let annotation = self
            .node
            .at_path(&["metadata", "annotations", LOCAL_CONFIG]);
        annotation.is_some_and(|value| text(value).as_str() != "false")
    }

    pub(crate) fn set_annotation(&mut self, key: &str, value: impl Into<Text>) -> Result<()> {
        let mut pairs = metadata_pairs(&self.node, "annotations");
        pairs.retain(|(name, _)| name.as_str() != key);
        pairs.push((key.into(), value.into()));
        set_metadata_map(&mut self.node, "annotations", pairs)
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<Text> {
        self.node
            .at_path(&["metadata", "annotations", key])
            .map(text)
    }

    /// Writes the history into annotations, for steps that can see or drop them.
    pub(crate) fn expose_history(&mut self) -> Result<()> {
        let pairs = self.history.as_annotations();
        if pairs.is_empty() {
            return Ok(());
        }
        let mut all = metadata_pairs(&self.node, "annotations");
        all.extend(pairs);
        set_metadata_map(&mut self.node, "annotations", all)
    }

    /// Takes the history back out of the annotations; what is gone from there is forgotten.
    pub(crate) fn absorb_history(&mut self) -> Result<()> {
        let Some(annotations) = self
            .node
            .at_path(&["metadata", "annotations"])
            .and_then(Node::as_map)
        else {
            self.history = self.forgotten();
            return Ok(());
        };
        if !annotations
            .keys()
            .any(|key| key.starts_with("internal.config.kubernetes.io/"))
        {
            self.history = self.forgotten();
            return Ok(());
        }
        let pairs = metadata_pairs(&self.node, "annotations");
        let (own, others): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .partition(|(key, _)| BUILD_ANNOTATIONS.contains(&key.as_str()));
        self.history = History {
            aliases: self.history.aliases,
            ..History::from_annotations(&own)?
        };
        set_metadata_map(&mut self.node, "annotations", others)
    }

    /// A history without what annotations would tell.
    fn forgotten(&self) -> History {
        History {
            aliases: self.history.aliases,
            ..History::default()
        }
    }

    /// The annotations as they are printed: none that served the build, every value a string.
    pub(crate) fn finish_annotations(&mut self, drop: &[&str]) -> Result<()> {
        let Some(annotations) = self.node.at_path(&["metadata", "annotations"]) else {
            return Ok(());
        };
        let is_clean = annotations.as_map().is_some_and(|map| {
            !map.is_empty()
                && map.iter().all(|entry| {
                    let key = entry.key.as_str();
                    !key.is_empty()
                        && is_plain_text(&entry.value)
                        && !BUILD_ANNOTATIONS.contains(&key)
                        && !drop.contains(&key)
                        && crate::value::field::plain_tag(key) == portolan_yaml::Tag::Str
                })
        });
        if is_clean {
            return Ok(());
        }
        let mut pairs = metadata_pairs(&self.node, "annotations");
        pairs.retain(|(key, _)| {
            !BUILD_ANNOTATIONS.contains(&key.as_str()) && !drop.contains(&key.as_str())
        });
        set_metadata_map(&mut self.node, "annotations", pairs)
    }
}

/// Whether a value is a text that is not written as a block: annotations are set anew before they are printed, and what
/// was folded is not folded any more.
fn is_plain_text(node: &Node) -> bool {
    let style = node.as_scalar().map(|scalar| scalar.style);
    node.as_str().is_some() && !matches!(style, Some(Style::Folded | Style::Literal))
}

// === impl History ===

impl History {
    /// Fails where kustomize cannot tell old identities apart: it keeps them in lists with commas between.
    pub(crate) fn check(&self) -> Result<()> {
        let commas = |part: fn(&Previous) -> &Text| -> usize {
            let parts = self.previous.iter().map(part);
            parts.map(|text| text.matches(',').count()).sum()
        };
        let names = commas(|previous| &previous.name);
        if names == commas(|previous| &previous.namespace)
            && names == commas(|previous| &previous.kind)
        {
            return Ok(());
        }
        Err(unequal_lists())
    }

    fn as_annotations(&self) -> Vec<(Text, Text)> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        if !self.previous.is_empty() {
            let join = |part: fn(&Previous) -> &Text| join(self.previous.iter().map(part));
            pairs.push((PREVIOUS_NAMES, join(|previous| &previous.name)));
            pairs.push((PREVIOUS_NAMESPACES, join(|previous| &previous.namespace)));
            pairs.push((PREVIOUS_KINDS, join(|previous| &previous.kind)));
        }
        let lists = [(PREFIXES, &self.prefixes), (SUFFIXES, &self.suffixes)];
        pairs.extend(
            lists
                .into_iter()
                .filter(|(_, list)| !list.is_empty())
                .map(|(key, list)| (key, join(list.iter()))),
        );
        let flags = [
            (NEEDS_HASH, self.needs_hash, ENABLED),
            (NAME_CHANGE, self.allows_name_change, ENABLED),
            (KIND_CHANGE, self.allows_kind_change, ENABLED),
            (FROM_HELM, self.is_from_helm, "true"),
        ];
        pairs.extend(
            flags
                .into_iter()
                .filter(|(_, is_set, _)| *is_set)
                .map(|(key, _, value)| (key, value.to_owned())),
        );
        if self.behavior != Behavior::Unspecified {
            pairs.push((BEHAVIOR, self.behavior.as_str().to_owned()));
        }
        pairs
            .into_iter()
            .map(|(key, value)| (Text::from_static(key), value.into()))
            .collect()
    }

    fn from_annotations(pairs: &[(Text, Text)]) -> Result<Self> {
        let get = |key: &str| {
            pairs
                .iter()
                .find(|(name, _)| name.as_str() == key)
                .map(|(_, value)| value)
        };
        let list = |key| get(key).map(|value| split(value)).unwrap_or_default();
        let is_enabled = |key| get(key).is_some_and(|value| value.as_str() == ENABLED);
        let names = list(PREVIOUS_NAMES);
        let (namespaces, kinds) = (list(PREVIOUS_NAMESPACES), list(PREVIOUS_KINDS));
        if names.len() != namespaces.len() || names.len() != kinds.len() {
            return Err(unequal_lists());
        }
        let previous = names.into_iter().zip(namespaces).zip(kinds);
        Ok(Self {
            previous: previous
                .map(|((name, namespace), kind)| Previous {
                    name,
                    namespace,
                    kind,
                })
                .collect(),
            prefixes: list(PREFIXES),
            suffixes: list(SUFFIXES),
            needs_hash: is_enabled(NEEDS_HASH),
            behavior: get(BEHAVIOR)
                .map(|value| Behavior::parse(value))
                .unwrap_or_default(),
            is_from_helm: get(FROM_HELM).is_some_and(|value| value.as_str() == "true"),
            allows_name_change: is_enabled(NAME_CHANGE),
            allows_kind_change: is_enabled(KIND_CHANGE),
            aliases: 0,
        })
    }
}

fn unequal_lists() -> Error {
    Error::refused(
        "number of previous names, number of previous namespaces, number of previous kinds not equal",
    )
}

fn join<'a>(texts: impl Iterator<Item = &'a Text>) -> String {
    texts.map(Text::as_str).collect::<Vec<_>>().join(",")
}

fn split(text: &str) -> Vec<Text> {
    text.split(',').map(Text::from).collect()
}

// === impl Behavior ===

impl Behavior {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "create" => Self::Create,
            "replace" => Self::Replace,
            "merge" => Self::Merge,
            _ => Self::Unspecified,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Merge => "merge",
        }
    }
}
