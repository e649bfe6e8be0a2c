//! The variables of a node: which sources concern it, which value counts, and what is computed from others.
//!
//! ```text
//! Variables, bound ClusterVariables ──for this node──▶ fixed ones: portolan_trigger::resolve ┐
//!                                                      expressions, by the same ranks        ├──▶ VariableGraph ──▶ values
//! ```
//!
//! Expressions are computed for each node when a run is made, from the values that the node has then, so they are never
//! older than what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use portolan_kinds::{KindObject, find_kind};
use portolan_trigger::{
    MergeRule, ResolvedVariables, SourceRole, StaleRule, VariableDefinition, VariableExplanation,
    VariableGraph, VariableProducer, VariableScope, VariableSource, resolve, variables_read,
};
use serde_json::{Map, Value, json};

use super::produced::ProducedValues;
use super::target::FleetView;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::live::moment;
use crate::node_access::texts;
use crate::server::{ApiServer, Caller, Target};

/// The variables that runs of a namespace can see.
pub(super) struct Variables {
    pub(super) sources: Vec<ScopedSource>,
}

/// Values for some nodes.
pub(super) struct ScopedSource {
    nodes: SourceNodes,
    /// Fixed values, or those that a step made; or expressions, as texts.
    pub(super) source: VariableSource,
    pub(super) is_computed: bool,
    /// What is known of values that a step made.
    pub(super) produced: Option<ProducedValues>,
}

/// What a run takes of the variables of a node.
pub(super) struct FrozenVariables {
    pub(super) values: Map<String, Value>,
    /// The versions of values that steps made, by the names of their Variables.
    pub(super) versions: BTreeMap<String, u32>,
}

enum SourceNodes {
    All,
    Groups(Vec<String>),
    Node(String),
}

/// The variables of a node, and where each came from.
struct NodeVariables {
    values: Map<String, Value>,
    /// Fixed values and expressions by the same ranks.
    explained: ResolvedVariables,
    /// Names of computed values.
    computed: BTreeSet<String>,
    versions: BTreeMap<String, u32>,
    /// Names of values that are secret, or were computed from such.
    sensitive: BTreeSet<String>,
}

impl Variables {
    pub(super) fn new(cache: &Cache, namespace: &str, now: Timestamp) -> Self {
        Self::with(cache, namespace, now, None)
    }

    /// The variables as they will be when an object is written.
    pub(super) fn with(
        cache: &Cache,
        namespace: &str,
        now: Timestamp,
        written: Option<&KindObject>,
    ) -> Self {
        let all = |kind: &str, namespace: Option<&str>| {
            let found = find_kind(kind).map(|kind| cache.objects(kind, namespace));
            let mut found = found.unwrap_or_default();
            let is_one = |one: &&KindObject| one.kind.name == kind && one.namespace() == namespace;
            if let Some(written) = written.filter(is_one) {
                found.retain(|one| one.name() != written.name());
                found.push(Arc::new(written.clone()));
            }
            found
        };
        let own = all("Variable", Some(namespace));
        let mut books = None;
        let mut sources = Vec::new();
        for variable in &own {
            let Some(mut source) = own_source(variable, now) else {
                continue;
            };
            if let Some(produced) = &mut source.produced {
                let books = books.get_or_insert_with(|| all("TaskBook", Some(namespace)));
                let name = variable.spec["dynamic"]["taskBook"].as_str();
                let book = books.iter().find(|book| Some(book.name()) == name);
                let vars = book.and_then(|book| book.spec.get("vars")?.as_object());
                let names = vars.into_iter().flat_map(Map::keys);
                produced.reads = names.cloned().collect();
            }
            sources.push(source);
        }
        let shared: BTreeMap<String, Arc<KindObject>> = all("ClusterVariable", None)
            .into_iter()
            .map(|variable| (variable.name().to_owned(), variable))
            .collect();
        for binding in all("ClusterVariablesBinding", None) {
            if !texts(&binding, "namespaces").any(|one| one == namespace) {
                continue;
            }
            let groups: Vec<String> = texts(&binding, "groups").map(str::to_owned).collect();
            for (position, name) in texts(&binding, "variables").enumerate() {
                let nodes = if groups.is_empty() {
                    SourceNodes::All
                } else {
                    SourceNodes::Groups(groups.clone())
                };
                let shown = format!("ClusterVariable {name} (binding {})", binding.name());
                let source = shared
                    .get(name)
                    .and_then(|variable| source_of(variable, shown, nodes, now));
                sources.extend(source.map(|mut source| {
                    source.source.is_own = false;
                    source.source.position = position;
                    source
                }));
            }
        }
        Self { sources }
    }

    /// The variables of a node for a book, which names those that it uses. Others are computed for nobody, so that one that
    /// cannot be computed stops only runs that need it.
    pub(super) fn of(
        &self,
        view: &FleetView,
        node: &KindObject,
        used: &Map<String, Value>,
    ) -> Result<FrozenVariables, ApiError> {
        let mut found = self.resolved(view, node, Some(used))?;
        if let Some(name) = used.keys().find(|name| found.sensitive.contains(*name)) {
            let message = format!(
                "node {}: variable {name} is sensitive, and runs show the variables that they use",
                node.name()
            );
            return Err(ApiError::bad_request(message)
                .hint("give it to the book as an input with `secret: true`"));
        }
        found
            .values
            .retain(|name, _| !found.sensitive.contains(name));
        Ok(FrozenVariables {
            values: found.values,
            versions: found.versions,
        })
    }

    fn resolved(
        &self,
        view: &FleetView,
        node: &KindObject,
        used: Option<&Map<String, Value>>,
    ) -> Result<NodeVariables, ApiError> {
        let groups = view.groups_of(node);
        let concerned: Vec<&ScopedSource> = self
            .sources
            .iter()
            .filter(|source| source.concerns(node.name(), &groups))
            .collect();
        let sources: Vec<VariableSource> = concerned.iter().map(|one| one.source.clone()).collect();
        let explained = resolve(&sources).map_err(|conflicts| {
            let all: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
            let message = format!("node {}: {}", node.name(), all.join("; "));
            ApiError::bad_request(message)
                .hint("remove one of them, give one to the node itself, or set `priority`")
        })?;
        let computing: BTreeSet<&str> = concerned
            .iter()
            .filter(|one| one.is_computed)
            .map(|one| one.source.name.as_str())
            .collect();
        let is_computed = |key: &str| {
            let found = explained.explain(key);
            let mut origins = found.into_iter().flat_map(|found| found.origins.values());
            origins.any(|origin| computing.contains(origin.as_str()))
        };
        let computed: BTreeSet<String> = explained
            .values()
            .keys()
            .filter(|key| is_computed(key))
            .cloned()
            .collect();
        let wrong = |why: String| ApiError::bad_request(format!("node {}: {why}", node.name()));
        let reached = match used {
            Some(used) => reached(&explained, &computed, used),
            None => explained.values().keys().cloned().collect(),
        };
        let needed = reached.intersection(&computed).cloned().collect();
        let mut versions = BTreeMap::new();
        for key in &reached {
            let Some(explanation) = explained.explain(key) else {
                continue;
            };
            for source in concerned.iter().filter(|one| is_origin(explanation, one)) {
                let Some(produced) = &source.produced else {
                    continue;
                };
                if let (Some(_), Some(why)) = (used, &produced.unusable) {
                    let hint = "`portolan fleet vars explain` shows where it comes from";
                    return Err(wrong(format!("variable `{key}` {why}")).hint(hint));
                }
                let name = source.source.name.trim_start_matches("Variable ");
                versions.extend(produced.version.map(|version| (name.to_owned(), version)));
            }
        }
        let (values, sensitive) = compute(&explained, &computed, &needed).map_err(wrong)?;
        Ok(NodeVariables {
            values,
            explained,
            computed,
            versions,
            sensitive,
        })
    }
}

fn is_origin(explained: &VariableExplanation, source: &ScopedSource) -> bool {
    let mut origins = explained.origins.values();
    origins.any(|origin| *origin == source.source.name)
}

/// Names, and what their expressions read, directly or by others.
fn reached(
    explained: &ResolvedVariables,
    computed: &BTreeSet<String>,
    used: &Map<String, Value>,
) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> = used.keys().cloned().collect();
    while let Some(name) = waiting.pop() {
        if !reached.insert(name.clone()) || !computed.contains(&name) {
            continue;
        }
        let text = explained.values().get(&name).and_then(Value::as_str);
        // What cannot be read is told when it is computed.
        let reads = text.and_then(|text| variables_read(text).ok());
        waiting.extend(reads.unwrap_or_default());
    }
    reached
}

/// The values, with those of needed expressions computed from the others, and the names of secret ones.
fn compute(
    explained: &ResolvedVariables,
    computed: &BTreeSet<String>,
    needed: &BTreeSet<String>,
) -> Result<(Map<String, Value>, BTreeSet<String>), String> {
    let is_wanted = |key: &String| !computed.contains(key) || needed.contains(key);
    let wanted = explained.values().iter().filter(|(key, _)| is_wanted(key));
    let definitions = wanted.clone().map(|(key, value)| {
        let text = value.as_str().filter(|_| computed.contains(key));
        let producer = match text {
            Some(text) => VariableProducer::Expression(text.to_owned()),
            None => VariableProducer::Fixed(value.clone()),
        };
        let definition = VariableDefinition {
            producer,
            refresh: None,
            ttl: None,
            when_stale: StaleRule::Fail,
            is_sensitive: explained.is_sensitive(key),
        };
        (key.clone(), definition)
    });
    let graph = VariableGraph::new(definitions).map_err(|fault| fault.to_string())?;
    // No moment matters: nothing is kept, so nothing is stale.
    let now = Timestamp::UNIX_EPOCH;
    let made = graph.advance(&BTreeMap::new(), now).changed;
    let (mut values, mut sensitive) = (Map::new(), BTreeSet::new());
    for (key, _) in wanted {
        let used = graph.value(key, &made, now);
        let used = used.map_err(|fault| fault.to_string())?;
        values.insert(key.clone(), used.value.clone());
        if graph.is_sensitive(key) {
            sensitive.insert(key.clone());
        }
    }
    Ok((values, sensitive))
}

impl ScopedSource {
    fn concerns(&self, node: &str, groups: &BTreeSet<&str>) -> bool {
        match &self.nodes {
            SourceNodes::All => true,
            SourceNodes::Groups(names) => names.iter().any(|name| groups.contains(name.as_str())),
            SourceNodes::Node(name) => name == node,
        }
    }
}

fn own_source(variable: &KindObject, now: Timestamp) -> Option<ScopedSource> {
    let target = variable.spec.get("for").cloned().unwrap_or_default();
    let node = target.get("node").and_then(Value::as_str);
    let groups = target.get("groups").and_then(Value::as_array);
    let nodes = match (node, groups) {
        (Some(node), _) => SourceNodes::Node(node.to_owned()),
        (None, Some(groups)) => {
            let groups = groups.iter().filter_map(Value::as_str);
            SourceNodes::Groups(groups.map(str::to_owned).collect())
        }
        (None, None) => SourceNodes::All,
    };
    let name = format!("Variable {}", variable.name());
    source_of(variable, name, nodes, now)
}

/// The values of a variable; `None` if it has neither fixed ones nor expressions, and no step makes them.
fn source_of(
    variable: &KindObject,
    name: String,
    nodes: SourceNodes,
    now: Timestamp,
) -> Option<ScopedSource> {
    let spec = &variable.spec;
    let fixed = spec.get("values").and_then(Value::as_object);
    let dynamic = spec.get("dynamic");
    let expressions = dynamic.and_then(|dynamic| dynamic.get("expressions"));
    let expressions = expressions.and_then(Value::as_object);
    let (produced, made) = ProducedValues::of(variable, now).unzip();
    let scope = match &nodes {
        SourceNodes::All => VariableScope::All,
        SourceNodes::Groups(_) => VariableScope::Group,
        SourceNodes::Node(_) => VariableScope::Node,
    };
    let priority = spec.get("priority").and_then(Value::as_i64);
    let is_sensitive = dynamic.is_some_and(|dynamic| dynamic["sensitive"] == true);
    Some(ScopedSource {
        nodes,
        is_computed: fixed.is_none() && produced.is_none(),
        produced,
        source: VariableSource {
            name,
            scope,
            is_own: true,
            priority: priority
                .and_then(|number| i32::try_from(number).ok())
                .unwrap_or_default(),
            position: 0,
            merge: match spec.get("merge").and_then(Value::as_str) {
                Some("deep") => MergeRule::Deep,
                _ => MergeRule::Replace,
            },
            is_sensitive,
            values: made.or_else(|| fixed.or(expressions).cloned())?,
        },
    })
}

impl Variables {
    /// Says of candidates that a step made them, which version they are, and where they were made.
    fn add_produced(&self, item: &mut Value) {
        let candidates = item["candidates"].as_array_mut();
        for candidate in candidates.into_iter().flatten() {
            let mut sources = self.sources.iter();
            let source = sources.find(|one| candidate["source"] == one.source.name.as_str());
            if let Some(produced) = source.and_then(|source| source.produced.as_ref()) {
                candidate["produced"] = produced.shown.clone();
            }
        }
    }
}

impl ApiServer {
    /// The variables of a node as runs of a namespace see them, and where each came from.
    pub(crate) async fn node_variables(
        &self,
        caller: &Caller,
        namespace: &str,
        node: &str,
    ) -> Result<Value, ApiError> {
        let target = Target {
            kind: find_kind("Variable").ok_or_else(|| ApiError::internal("no kind Variable"))?,
            namespace: Some(namespace.to_owned()),
            name: None,
        };
        self.authorise(caller, "list", &target).await?;
        let view = FleetView::new(&self.cache);
        let granted = view.granted(namespace);
        let Some(found) = granted.iter().find(|one| one.name() == node) else {
            let message = format!("namespace {namespace} may not target a node {node}");
            let error = ApiError::bad_request(message);
            return Err(error.hint("a NodeGrant gives a namespace the nodes of a NodeGroup"));
        };
        let now = moment(self.objects.time.now());
        let variables = Variables::new(&self.cache, namespace, now);
        let resolved = variables.resolved(&view, found, None)?;
        let items: Vec<Value> = resolved
            .values
            .iter()
            .filter_map(|(key, value)| {
                let explanation = resolved.explained.explain(key)?;
                let is_computed = resolved.computed.contains(key);
                let is_sensitive = resolved.sensitive.contains(key);
                let mut item = shown(value, explanation, is_computed, is_sensitive);
                variables.add_produced(&mut item);
                Some(item)
            })
            .collect();
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "NodeVariableList", "node": node, "namespace": namespace,
            "items": items,
        }))
    }
}

fn shown(
    value: &Value,
    explained: &VariableExplanation,
    is_computed: bool,
    is_sensitive: bool,
) -> Value {
    let candidates: Vec<Value> = explained
        .candidates
        .iter()
        .rev()
        .map(|candidate| {
            let role = match candidate.role {
                SourceRole::Used => "used",
                SourceRole::Merged => "merged",
                SourceRole::Overridden => "overridden",
            };
            json!({
                "source": candidate.source, "scope": candidate.scope.to_string(), "role": role, "value": candidate.value,
            })
        })
        .collect();
    let value = if is_sensitive {
        Value::Null
    } else {
        value.clone()
    };
    json!({
        "key": explained.key, "value": value, "sensitive": is_sensitive, "computed": is_computed,
        "candidates": candidates, "origins": explained.origins,
    })
}
