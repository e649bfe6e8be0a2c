//! Which of several values of a variable counts for a node, and where each part of it came from.
//!
//! Book < all nodes < group < node < input of the run. In one of these a namespace's own Variable stands above a bound
//! `ClusterVariable`, then the higher priority above the lower, then the later of a binding above the earlier. Values of
//! equal rank must be equal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value as Json};

/// How wide a value is meant: the narrower stands above the wider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariableScope {
    /// The variables of the book.
    Book,
    /// All nodes.
    All,
    /// The nodes of a group.
    Group,
    /// One node.
    Node,
    /// An input of the run.
    Run,
}

/// What a map does with the map below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeRule {
    /// It takes its place.
    #[default]
    Replace,
    /// It is merged into it, key by key.
    Deep,
}

/// Values that concern a node. Sources that do not concern it, such as those of other groups, are left out by the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableSource {
    /// As people name it, such as `Variable web`.
    pub name: String,
    /// How wide the values are meant.
    pub scope: VariableScope,
    /// Whether it belongs to the namespace, and not to the whole fleet.
    pub is_own: bool,
    /// Stands above lower ones of the same scope.
    pub priority: i32,
    /// Its place in its binding.
    pub position: usize,
    /// What its maps do with those below.
    pub merge: MergeRule,
    /// Whether its values are secret.
    pub is_sensitive: bool,
    /// The values by name.
    pub values: Map<String, Json>,
}

/// The variables of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResolvedVariables {
    values: Map<String, Json>,
    explained: BTreeMap<String, VariableExplanation>,
}

/// Where the value of a variable came from.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableExplanation {
    /// The name of the variable.
    pub key: String,
    /// All sources that have it, the lowest first.
    pub candidates: Vec<VariableCandidate>,
    /// Which source gave each part of the value, by its path; one entry with an empty path unless maps were merged.
    pub origins: BTreeMap<String, String>,
    /// Whether a part of the value is secret.
    pub is_sensitive: bool,
}

/// A source that has a value for a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableCandidate {
    /// As people name the source.
    pub source: String,
    /// How wide it is meant.
    pub scope: VariableScope,
    /// What became of its value.
    pub role: SourceRole,
    /// The value; absent if it is secret.
    pub value: Option<Json>,
}

/// What became of the value of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceRole {
    /// It is the value.
    Used,
    /// It is a part of the value.
    Merged,
    /// Another stands above it.
    Overridden,
}

/// Two values of equal rank that differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("variable `{key}` has two values of the same rank: in {first} and in {second}")]
pub struct VariableConflict {
    /// The name of the variable, with the path of the part that differs.
    pub key: String,
    /// One source.
    pub first: String,
    /// The other.
    pub second: String,
}

/// Gives the variables of a node from all sources that concern it.
///
/// ```
/// use portolan_trigger::{MergeRule, VariableScope, VariableSource, resolve};
/// use serde_json::json;
///
/// let source = |name: &str, scope, value: serde_json::Value| VariableSource {
///     name: name.into(), scope, is_own: true, priority: 0, position: 0, merge: MergeRule::Replace,
///     is_sensitive: false, values: serde_json::Map::from_iter([("port".to_owned(), value)]),
/// };
/// let resolved = resolve(&[
///     source("Variable web-1", VariableScope::Node, json!(8081)),
///     source("Variable all", VariableScope::All, json!(8080)),
/// ]).map_err(|conflicts| conflicts[0].to_string())?;
/// assert_eq!(resolved.values()["port"], 8081);
/// let explained = resolved.explain("port").ok_or("unknown")?;
/// assert_eq!(explained.origins[""], "Variable web-1");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// Every pair of values of equal rank that differ and count.
pub fn resolve(sources: &[VariableSource]) -> Result<ResolvedVariables, Vec<VariableConflict>> {
    let mut order: Vec<&VariableSource> = sources.iter().collect();
    order.sort_by(|one, other| {
        one.rank()
            .cmp(&other.rank())
            .then_with(|| one.name.cmp(&other.name))
    });
    let keys: BTreeSet<&String> = sources
        .iter()
        .flat_map(|source| source.values.keys())
        .collect();
    let mut resolved = ResolvedVariables::default();
    let mut conflicts = Vec::new();
    for key in keys {
        match decide(key, &order) {
            Ok((value, explanation)) => {
                resolved.values.insert(key.clone(), value);
                resolved.explained.insert(key.clone(), explanation);
            }
            Err(conflict) => conflicts.push(conflict),
        }
    }
    if conflicts.is_empty() {
        Ok(resolved)
    } else {
        Err(conflicts)
    }
}

impl VariableSource {
    fn rank(&self) -> (VariableScope, bool, i32, usize) {
        (self.scope, self.is_own, self.priority, self.position)
    }
}

impl ResolvedVariables {
    /// The values by name.
    pub fn values(&self) -> &Map<String, Json> {
        &self.values
    }

    /// Where a value came from.
    pub fn explain(&self, key: &str) -> Option<&VariableExplanation> {
        self.explained.get(key)
    }

    /// Whether a part of a value is secret.
    pub fn is_sensitive(&self, key: &str) -> bool {
        self.explain(key).is_some_and(|found| found.is_sensitive)
    }
}

/// The value of one variable from sources in order of rank, the lowest first.
fn decide(
    key: &str,
    order: &[&VariableSource],
) -> Result<(Json, VariableExplanation), VariableConflict> {
    let having: Vec<(&VariableSource, &Json)> = order
        .iter()
        .filter_map(|source| Some((*source, source.values.get(key)?)))
        .collect();
    // What lies below the last one that takes the place of everything does not count.
    let base = having
        .iter()
        .rposition(|(source, value)| source.merge == MergeRule::Replace || !value.is_object())
        .unwrap_or(0);
    let base = lowest_of_rank(&having, base);
    let mut merged = Json::Null;
    let mut origins = BTreeMap::new();
    let counting = having.get(base..).unwrap_or_default();
    for (index, (source, value)) in counting.iter().enumerate() {
        let below = counting.get(..index).unwrap_or_default();
        let equals = below
            .iter()
            .filter(|(other, _)| other.rank() == source.rank());
        for (other, known) in equals {
            if let Some(path) = difference(source.merge, other.merge, value, known, key) {
                return Err(VariableConflict {
                    key: path,
                    first: other.name.clone(),
                    second: source.name.clone(),
                });
            }
        }
        put(&mut merged, value, source, &mut origins, "");
    }
    let explanation = VariableExplanation {
        key: key.to_owned(),
        candidates: roles(&having, base, &origins),
        is_sensitive: counting.iter().any(|(source, _)| source.is_sensitive),
        origins,
    };
    Ok((merged, explanation))
}

/// The first of those that have the same rank as the one at a place.
fn lowest_of_rank(having: &[(&VariableSource, &Json)], place: usize) -> usize {
    let Some((at, _)) = having.get(place) else {
        return place;
    };
    let mut all = having.iter();
    all.position(|(source, _)| source.rank() == at.rank())
        .unwrap_or(place)
}

fn roles(
    having: &[(&VariableSource, &Json)],
    base: usize,
    origins: &BTreeMap<String, String>,
) -> Vec<VariableCandidate> {
    let roles = having.iter().enumerate().map(|(index, (source, value))| {
        let gave = origins
            .values()
            .filter(|name| **name == source.name)
            .count();
        let role = match gave {
            _ if index < base => SourceRole::Overridden,
            0 => SourceRole::Overridden,
            _ if gave == origins.len() => SourceRole::Used,
            _ => SourceRole::Merged,
        };
        VariableCandidate {
            source: source.name.clone(),
            scope: source.scope,
            role,
            value: (!source.is_sensitive).then(|| (*value).clone()),
        }
    });
    roles.collect()
}

/// The path at which two values of equal rank differ; `None` if both can hold.
fn difference(
    one: MergeRule,
    other: MergeRule,
    value: &Json,
    known: &Json,
    path: &str,
) -> Option<String> {
    match (value, known) {
        _ if value == known => None,
        (Json::Object(value), Json::Object(known))
            if one == MergeRule::Deep && other == MergeRule::Deep =>
        {
            let mut both = value
                .iter()
                .filter_map(|(key, value)| Some((key, value, known.get(key)?)));
            both.find_map(|(key, value, known)| {
                difference(one, other, value, known, &format!("{path}.{key}"))
            })
        }
        _ => Some(path.to_owned()),
    }
}

/// Puts a value above another, and notes who gave each part.
fn put(
    below: &mut Json,
    value: &Json,
    source: &VariableSource,
    origins: &mut BTreeMap<String, String>,
    path: &str,
) {
    if let (Json::Object(below), Json::Object(value), MergeRule::Deep) =
        (&mut *below, value, source.merge)
    {
        split_origin(below, origins, path);
        for (key, value) in value {
            let path = joined(path, key);
            let below = below.entry(key.clone()).or_insert(Json::Null);
            put(below, value, source, origins, &path);
        }
        return;
    }
    *below = value.clone();
    let is_inside = |known: &String| {
        *known == path || path.is_empty() || known.starts_with(&format!("{path}."))
    };
    origins.retain(|known, _| !is_inside(known));
    origins.insert(path.to_owned(), source.name.clone());
}

/// A map that came from one source has one entry; before parts of it change, each key gets its own.
fn split_origin(map: &Map<String, Json>, origins: &mut BTreeMap<String, String>, path: &str) {
    if map.is_empty() {
        return;
    }
    if let Some(name) = origins.remove(path) {
        for key in map.keys() {
            origins.insert(joined(path, key), name.clone());
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

impl fmt::Display for VariableScope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Book => "book",
            Self::All => "all nodes",
            Self::Group => "group",
            Self::Node => "node",
            Self::Run => "run input",
        })
    }
}

impl fmt::Display for VariableExplanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for candidate in self.candidates.iter().rev() {
            let sign = match candidate.role {
                SourceRole::Used => "used",
                SourceRole::Merged => "merged",
                SourceRole::Overridden => "overridden",
            };
            let value = candidate.value.as_ref().map(ToString::to_string);
            let value = value.as_deref().unwrap_or("[redacted]");
            let (scope, source) = (candidate.scope, &candidate.source);
            writeln!(out, "{sign:<10} {scope:<9} {source}: {value}")?;
        }
        if self.origins.len() > 1 {
            for (path, source) in &self.origins {
                writeln!(out, "  {}.{path} from {source}", self.key)?;
            }
        }
        Ok(())
    }
}
