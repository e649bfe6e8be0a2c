//! Where the values of variables come from: Variables of a namespace, and `ClusterVariables` that are bound to it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use portolan_kinds::KindObject;
use portolan_trigger::{MergeRule, VariableScope, VariableSource};
use serde_json::{Map, Value, json};

use super::produced::ProducedValues;

/// Values for some nodes.
#[derive(Clone)]
pub(super) struct ScopedSource {
    pub(super) nodes: SourceNodes,
    /// Fixed values, or those that a step made; or expressions, as texts. Values of Secrets are null until they are opened.
    pub(super) source: VariableSource,
    pub(super) is_computed: bool,
    /// What is known of values that a step made.
    pub(super) produced: Option<ProducedValues>,
    /// Where the values of Secrets are, by the names of the variables.
    pub(super) secrets: BTreeMap<String, SecretPlace>,
    /// The file and the line that the value is in.
    pub(super) written_at: Option<(String, u32)>,
    /// What a plan has of it: names of objects and files, and their versions.
    pub(super) pins: Vec<(String, String)>,
}

/// A value of a Secret.
#[derive(Clone)]
pub(super) struct SecretPlace {
    pub(super) secret: String,
    pub(super) key: String,
    /// The version of the Secret, as a plan has it.
    pub(super) version: String,
    /// The nodes that the Secret is for; all without one.
    pub(super) nodes: SourceNodes,
    /// Why there is no value.
    pub(super) fault: Option<String>,
}

/// Nodes that values are for.
#[derive(Debug, Clone)]
pub(super) enum SourceNodes {
    All,
    Groups(Vec<String>),
    Node(String),
}

impl SourceNodes {
    /// The nodes that `for` of an object names.
    pub(super) fn of(object: &KindObject) -> Self {
        let target = object.spec.get("for");
        let node = target.and_then(|target| target["node"].as_str());
        let groups = target.and_then(|target| target["groups"].as_array());
        match (node, groups) {
            (Some(node), _) => Self::Node(node.to_owned()),
            (None, Some(groups)) => {
                let groups = groups.iter().filter_map(Value::as_str);
                Self::Groups(groups.map(str::to_owned).collect())
            }
            (None, None) => Self::All,
        }
    }

    pub(super) fn has(&self, node: &str, groups: &BTreeSet<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Groups(names) => names.iter().any(|name| groups.contains(name.as_str())),
            Self::Node(name) => name == node,
        }
    }

    pub(super) fn scope(&self) -> VariableScope {
        match self {
            Self::All => VariableScope::All,
            Self::Groups(_) => VariableScope::Group,
            Self::Node(_) => VariableScope::Node,
        }
    }
}

impl ScopedSource {
    /// The values of a Variable; `None` if they are in files.
    pub(super) fn own(variable: &KindObject, now: Timestamp) -> Option<Self> {
        let name = format!("Variable {}", variable.name());
        let nodes = SourceNodes::of(variable);
        Self::of(variable, name, nodes, now)
    }

    /// The values of a variable; `None` if it has neither fixed ones nor expressions, and neither steps nor Secrets have them.
    pub(super) fn of(
        variable: &KindObject,
        name: String,
        nodes: SourceNodes,
        now: Timestamp,
    ) -> Option<Self> {
        let spec = &variable.spec;
        let fixed = spec.get("values").and_then(Value::as_object);
        let dynamic = spec.get("dynamic");
        let expressions = dynamic.and_then(|dynamic| dynamic.get("expressions"));
        let expressions = expressions.and_then(Value::as_object);
        let (produced, made) = ProducedValues::of(variable, now).unzip();
        let secrets = places_of(variable);
        let hidden = secrets.as_ref().map(|secrets| {
            let names = secrets.keys().map(|name| (name.clone(), Value::Null));
            names.collect::<Map<_, _>>()
        });
        let mut version = format!("generation {}", variable.metadata.generation());
        if let Some(made) = produced.as_ref().and_then(|produced| produced.version) {
            version = format!("{version}, values {made}");
        }
        let is_sensitive = dynamic.is_some_and(|dynamic| dynamic["sensitive"] == true);
        Some(Self {
            is_computed: expressions.is_some(),
            produced,
            pins: vec![(name.clone(), version)],
            source: VariableSource {
                values: made.or_else(|| fixed.or(expressions).cloned()).or(hidden)?,
                is_sensitive: is_sensitive || secrets.is_some(),
                ..empty_source(variable, name, &nodes)
            },
            secrets: secrets.unwrap_or_default(),
            written_at: None,
            nodes,
        })
    }

    /// What else is known of the value of a variable, for people.
    pub(super) fn add_details(&self, key: &str, candidate: &mut Value) {
        if let Some(produced) = &self.produced {
            candidate["produced"] = produced.shown.clone();
        }
        if let Some(place) = self.secrets.get(key) {
            candidate["secret"] = json!({"name": place.secret, "key": place.key});
        }
        if let Some((file, line)) = &self.written_at {
            candidate["file"] = file.as_str().into();
            candidate["line"] = (*line).into();
        }
    }
}

/// A source of a variable without its values.
pub(super) fn empty_source(
    variable: &KindObject,
    name: String,
    nodes: &SourceNodes,
) -> VariableSource {
    let spec = &variable.spec;
    let priority = spec.get("priority").and_then(Value::as_i64);
    VariableSource {
        name,
        scope: nodes.scope(),
        is_own: true,
        priority: priority
            .and_then(|number| i32::try_from(number).ok())
            .unwrap_or_default(),
        position: 0,
        merge: match spec.get("merge").and_then(Value::as_str) {
            Some("deep") => MergeRule::Deep,
            _ => MergeRule::Replace,
        },
        is_sensitive: false,
        values: Map::new(),
    }
}

/// Where a Variable has its values, if they are values of Secrets.
fn places_of(variable: &KindObject) -> Option<BTreeMap<String, SecretPlace>> {
    let places = variable.spec.get("secrets")?.as_object()?;
    let places = places.iter().map(|(name, place)| {
        let word = |key: &str| place[key].as_str().unwrap_or_default().to_owned();
        let place = SecretPlace {
            secret: word("secret"),
            key: word("key"),
            version: String::new(),
            nodes: SourceNodes::All,
            fault: None,
        };
        (name.clone(), place)
    });
    Some(places.collect())
}
