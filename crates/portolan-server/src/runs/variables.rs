//! The variables of a node: which sources concern it, which value counts, and what is computed from others.
//!
//! ```text
//! Variables, bound ClusterVariables ──for this node──▶ fixed ones: portolan_trigger::resolve ┐
//! files of their commits ────────────▶                 expressions, by the same ranks        ├──▶ VariableGraph ──▶ values
//! Secrets ───────────────────────────▶                                                       ┘
//! ```
//!
//! Expressions are computed for each node when a run is made, from the values that the node has then, so they are never
//! older than what they read. Values of Secrets are read only for a run whose book uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use portolan_kinds::{KindObject, find_kind};
use portolan_trigger::{
    ResolvedVariables, SourceRole, StaleRule, VariableDefinition, VariableExplanation,
    VariableGraph, VariableProducer, VariableSource, resolve, variables_read,
};
use serde_json::{Map, Value, json};

use super::target::FleetView;
use super::variable_files::{FileSource, ReadFiles};
use super::variable_sources::{ScopedSource, SourceNodes};
use crate::cache::Cache;
use crate::error::ApiError;
use crate::live::moment;
use crate::node_access::texts;
use crate::server::{ApiServer, Caller, Target};

/// The variables that runs of a namespace can see.
pub(super) struct Variables {
    pub(super) sources: Vec<ScopedSource>,
    /// Sources whose values are in files.
    pub(super) files: Vec<FileSource>,
    pub(super) read: ReadFiles,
    /// The variables that somebody asks for, and what they may read; all of them without it.
    pub(super) wanted: Option<BTreeSet<String>>,
    /// Whether values of Secrets are here.
    pub(super) is_opened: bool,
}

/// What a run takes of the variables of a node.
pub(super) struct FrozenVariables {
    pub(super) values: Map<String, Value>,
    /// Secret values that the book uses; none unless Secrets were opened.
    pub(super) secret: Map<String, Value>,
    /// Names of secret values that the book uses and that nobody has opened.
    pub(super) unopened: BTreeSet<String>,
    /// The versions of values that steps made, by the names of their Variables.
    pub(super) versions: BTreeMap<String, u32>,
    /// The version of everything that the values that the book uses are made from, by its name.
    pub(super) pins: BTreeMap<String, String>,
}

/// The variables of a node, and where each came from.
struct NodeVariables {
    values: Map<String, Value>,
    /// Fixed values and expressions by the same ranks.
    explained: ResolvedVariables,
    /// Names of computed values.
    computed: BTreeSet<String>,
    versions: BTreeMap<String, u32>,
    pins: BTreeMap<String, String>,
    /// Names of values that are secret, or were computed from such.
    sensitive: BTreeSet<String>,
    /// The values of files that concern the node.
    of_files: Vec<ScopedSource>,
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
        let (mut sources, mut files) = (Vec::new(), Vec::new());
        for variable in &own {
            files.extend(FileSource::of(variable));
            let Some(mut source) = ScopedSource::own(variable, now) else {
                continue;
            };
            for place in source.secrets.values_mut() {
                place.find(cache, namespace);
            }
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
                    .and_then(|variable| ScopedSource::of(variable, shown, nodes, now));
                sources.extend(source.map(|mut source| {
                    source.source.is_own = false;
                    source.source.position = position;
                    source
                }));
            }
        }
        Self {
            sources,
            files,
            read: ReadFiles::default(),
            wanted: None,
            is_opened: false,
        }
    }

    /// Keeps to what somebody asks for, and what that may read on any node.
    pub(super) fn ask_for(&mut self, used: &Map<String, Value>) {
        let mut reads: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
        for source in self.sources.iter().filter(|source| source.is_computed) {
            for (key, value) in &source.source.values {
                // What cannot be read is told when it is computed.
                let text = value.as_str().unwrap_or_default();
                let of_key = reads.entry(key).or_default();
                of_key.extend(variables_read(text).unwrap_or_default());
            }
        }
        let mut wanted = BTreeSet::new();
        let mut waiting: Vec<String> = used.keys().cloned().collect();
        while let Some(name) = waiting.pop() {
            if wanted.insert(name.clone()) {
                waiting.extend(reads.get(&name).into_iter().flatten().cloned());
            }
        }
        self.wanted = Some(wanted);
    }

    /// The variables of a node for a book, which names those that it uses. Others are computed for nobody, so that one that
    /// cannot be computed stops only runs that need it.
    pub(super) fn of(
        &self,
        view: &FleetView,
        node: &KindObject,
        used: &Map<String, Value>,
    ) -> Result<FrozenVariables, ApiError> {
        let found = self.resolved(view, node, Some(used))?;
        let is_secret = |name: &String| found.sensitive.contains(name);
        let unopened = used
            .keys()
            .filter(|name| !self.is_opened && is_secret(name));
        let unopened = unopened.cloned().collect();
        let (mut secret, values): (Map<_, _>, Map<_, _>) = found
            .values
            .into_iter()
            .partition(|(name, _)| is_secret(name));
        secret.retain(|name, _| self.is_opened && used.contains_key(name));
        Ok(FrozenVariables {
            values,
            secret,
            unopened,
            versions: found.versions,
            pins: found.pins,
        })
    }

    fn resolved(
        &self,
        view: &FleetView,
        node: &KindObject,
        used: Option<&Map<String, Value>>,
    ) -> Result<NodeVariables, ApiError> {
        let groups = view.groups_of(node);
        let of_files = self.values_of_files(node, &groups)?;
        let concerned = self.sources.iter();
        let concerned = concerned.filter(|source| source.nodes.has(node.name(), &groups));
        let concerned: Vec<&ScopedSource> = concerned.chain(&of_files).collect();
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
        let mut needed: BTreeSet<String> = reached.intersection(&computed).cloned().collect();
        let mut hidden = BTreeSet::new();
        if !self.is_opened {
            hidden = secret_ones(&explained, &computed, &reached);
            needed.retain(|name| !hidden.contains(name));
        }
        let (mut versions, mut pins) = (BTreeMap::new(), BTreeMap::new());
        for key in &reached {
            let Some(explanation) = explained.explain(key) else {
                continue;
            };
            for source in concerned.iter().filter(|one| is_origin(explanation, one)) {
                pins.extend(source.pins.iter().cloned());
                if let Some(place) = source.secrets.get(key) {
                    pins.insert(format!("Secret {}", place.secret), place.version.clone());
                    let fault = place.fault_for(node.name(), &groups);
                    if let (Some(_), true, Some(why)) = (used, self.is_opened, fault) {
                        return Err(wrong(format!("variable `{key}`: {why}")));
                    }
                }
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
        let made = compute(&explained, &computed, &needed).map_err(wrong)?;
        let (mut values, mut sensitive) = made;
        for name in hidden {
            values.insert(name.clone(), Value::Null);
            sensitive.insert(name);
        }
        Ok(NodeVariables {
            values,
            explained,
            computed,
            versions,
            pins,
            sensitive,
            of_files,
        })
    }
}

fn is_origin(explained: &VariableExplanation, source: &ScopedSource) -> bool {
    let mut origins = explained.origins.values();
    origins.any(|origin| *origin == source.source.name)
}

/// Those of some names that are secret, or are computed from secret ones.
fn secret_ones(
    explained: &ResolvedVariables,
    computed: &BTreeSet<String>,
    names: &BTreeSet<String>,
) -> BTreeSet<String> {
    let reads_secret = |name: &&String| {
        let alone = Map::from_iter([((*name).clone(), Value::Null)]);
        let all = reached(explained, computed, &alone);
        all.iter().any(|name| explained.is_sensitive(name))
    };
    names.iter().filter(reads_secret).cloned().collect()
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
        let used = used.map_err(|fault| {
            if graph.is_sensitive(key) {
                // The reason could have a part of the value in it.
                format!("variable `{key}`, which is secret, cannot be computed")
            } else {
                fault.to_string()
            }
        })?;
        values.insert(key.clone(), used.value.clone());
        if graph.is_sensitive(key) {
            sensitive.insert(key.clone());
        }
    }
    Ok((values, sensitive))
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
        let mut variables = Variables::new(&self.cache, namespace, now);
        let nodes = [Arc::clone(found)];
        self.read_variable_files(&mut variables, &view, &nodes)
            .await?;
        let resolved = variables.resolved(&view, found, None)?;
        let sources = || variables.sources.iter().chain(&resolved.of_files);
        let items: Vec<Value> = resolved
            .values
            .iter()
            .filter_map(|(key, value)| {
                let explanation = resolved.explained.explain(key)?;
                let is_computed = resolved.computed.contains(key);
                let is_sensitive = resolved.sensitive.contains(key);
                let mut item = shown(value, explanation, is_computed, is_sensitive);
                for candidate in item["candidates"].as_array_mut().into_iter().flatten() {
                    let mut sources = sources();
                    let source =
                        sources.find(|one| candidate["source"] == one.source.name.as_str());
                    if let Some(source) = source {
                        source.add_details(key, candidate);
                    }
                }
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
