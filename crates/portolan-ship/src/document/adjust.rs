//! What changes a document before it is understood: profiles, and single values of the command line.
//!
//! ```text
//! document ──profiles that are named or whose `when` holds──▶ ──--set PATH=VALUE──▶ document that is read
//! ```
//!
//! Maps merge, lists whose entries have names merge by name, other lists are replaced, and null removes. Values keep the line
//! that they were written at, so that faults and `ship config` name it.

use portolan_object::similar;
use portolan_yaml::{Dialect, Entry, Key, List, Map, Node, Value, parse};

use super::fields::{Fault, Faults, Fields};
use super::placement::put_namespace;
use super::{MAX_VALUES, fault};

/// What changes a document before it is understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adjustments {
    /// Profiles that are named, in the order in which they are laid over the document.
    pub profiles: Vec<String>,
    /// The command that runs, for `when.command`.
    pub command: String,
    /// The context of the kubeconfig, for `when.context`.
    pub context: Option<String>,
    /// Paths below `spec` and values, as in `artifacts.web.oci.compression` and `zstd`.
    pub set: Vec<(String, String)>,
    /// The registry that all images go to, with a path if there is one.
    pub registry: Option<String>,
    /// The namespace of all deploy steps, verifications and forwarded ports.
    pub namespace: Option<String>,
}

/// One profile.
struct Profile<'a> {
    name: String,
    spec: Option<&'a Node>,
    /// Whether the command and the context are those that it is for.
    is_meant: bool,
}

/// The document with everything laid over it that is asked for, and without its profiles.
pub(super) fn adjust(document: &Node, asked: &Adjustments) -> Result<Node, Faults> {
    let mut faults = Faults::new();
    let mut adjusted = document.clone();
    let Some(spec) = document.get("spec").filter(|spec| spec.as_map().is_some()) else {
        return Ok(adjusted);
    };
    let profiles = profiles(spec, asked, &mut faults);
    let mut merging = Merging { left: MAX_VALUES };
    let mut merged = without(spec, "profiles");
    for profile in chosen(&profiles, asked, spec, &mut faults) {
        if let Some(over) = profile.spec {
            merged = merging.merge(&merged, over);
        }
    }
    if merging.left == 0 {
        let message = format!("the profiles have more than {MAX_VALUES} values");
        faults.push(fault(spec.at, message));
    }
    for (path, value) in &asked.set {
        match set(&merged, path, value) {
            Ok(changed) => merged = changed,
            Err(why) => faults.push(fault(spec.at, format!("`--set {path}={value}`: {why}"))),
        }
    }
    if let Some(namespace) = &asked.namespace {
        merged = put_namespace(&merged, namespace);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    if let Value::Map(map) = &mut adjusted.value
        && let Some(place) = map.get_mut("spec")
    {
        *place = merged;
    }
    Ok(adjusted)
}

fn profiles<'a>(spec: &'a Node, asked: &Adjustments, faults: &mut Faults) -> Vec<Profile<'a>> {
    // Other fields are looked at when the document is read.
    let known: Vec<&str> = spec.as_map().map_or(Vec::new(), |map| map.keys().collect());
    let fields = Fields::of(spec, "spec".to_owned(), &known, faults);
    let mut profiles = Vec::new();
    for (node, path) in fields.items("profiles", faults).unwrap_or_default() {
        let profile = Fields::of(node, path, &["name", "when", "spec"], faults);
        let when = profile.map("when", &["command", "context"], faults);
        let is_meant = when.is_some_and(|when| {
            let commands = when.texts("command", faults);
            let contexts = when.texts("context", faults);
            let is_command = |patterns: &[String]| patterns.contains(&asked.command);
            let is_context = |patterns: &[String]| {
                let context = asked.context.as_deref();
                context.is_some_and(|context| patterns.iter().any(|it| matches(it, context)))
            };
            (commands.is_some() || contexts.is_some())
                && commands.is_none_or(|patterns| is_command(&patterns))
                && contexts.is_none_or(|patterns| is_context(&patterns))
        });
        profiles.push(Profile {
            name: profile.required("name", faults),
            spec: profile.node("spec"),
            is_meant,
        });
    }
    profiles
}

/// Those whose `when` holds in the document's order, then those that are named, each once.
fn chosen<'a, 'b>(
    profiles: &'b [Profile<'a>],
    asked: &Adjustments,
    spec: &Node,
    faults: &mut Faults,
) -> Vec<&'b Profile<'a>> {
    let is_named = |profile: &&Profile<'_>| asked.profiles.contains(&profile.name);
    let by_itself = profiles.iter().filter(|it| it.is_meant && !is_named(it));
    let mut chosen: Vec<&Profile<'_>> = by_itself.collect();
    for name in &asked.profiles {
        match profiles.iter().find(|profile| profile.name == *name) {
            Some(profile) => chosen.push(profile),
            None => {
                let near = similar(name, profiles.iter(), |profile| profile.name.as_str());
                faults.push(Fault {
                    at: spec.get("profiles").map_or(spec.at, |node| node.at),
                    message: format!("the document has no profile `{name}`"),
                    hint: near.map(|near| format!("did you mean `{}`?", near.name)),
                });
            }
        }
    }
    chosen
}

/// Whether a name is what a pattern says, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(before) else {
        return false;
    };
    let mut parts: Vec<&str> = after.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// Lays values over others; aliases could make that many more than are written.
struct Merging {
    left: usize,
}

impl Merging {
    fn merge(&mut self, base: &Node, over: &Node) -> Node {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return over.clone();
        }
        match (&base.value, &over.value) {
            (Value::Map(below), Value::Map(above)) => Node {
                value: Value::Map(self.merge_maps(below, above)),
                at: base.at,
            },
            (Value::List(below), Value::List(above)) if is_named(below) && is_named(above) => {
                Node {
                    value: Value::List(self.merge_lists(below, above)),
                    at: base.at,
                }
            }
            _ => over.clone(),
        }
    }

    fn merge_maps(&mut self, below: &Map, above: &Map) -> Map {
        let mut merged = below.clone();
        for entry in above {
            let key = entry.key.as_str();
            match merged.get_mut(key) {
                _ if entry.value.is_null() => remove(&mut merged, key),
                Some(place) => *place = self.merge(&place.clone(), &entry.value),
                None => merged.entries_mut().push(entry.clone()),
            }
        }
        merged
    }

    fn merge_lists(&mut self, below: &List, above: &List) -> List {
        let mut items: Vec<Node> = below.iter().cloned().collect();
        for over in above {
            let place = items.iter_mut().find(|item| name(item) == name(over));
            match place {
                Some(place) => *place = self.merge(&place.clone(), over),
                None => items.push(over.clone()),
            }
        }
        List::from_items(items)
    }
}

fn is_named(list: &List) -> bool {
    list.iter().all(|item| name(item).is_some())
}

fn name(item: &Node) -> Option<&str> {
    item.get("name").and_then(Node::as_str)
}

fn remove(map: &mut Map, key: &str) {
    map.entries_mut().retain(|entry| entry.key.as_str() != key);
}

fn without(node: &Node, key: &str) -> Node {
    let mut node = node.clone();
    if let Value::Map(map) = &mut node.value {
        remove(map, key);
    }
    node
}

/// A document's part with one value changed.
fn set(spec: &Node, path: &str, value: &str) -> Result<Node, String> {
    let parts = parts(path)?;
    let parsed = parse(value.to_owned(), Dialect::Helm);
    let parsed = parsed.map_err(|errors| errors.first().message.clone())?;
    let value = parsed.into_iter().next().unwrap_or_else(Node::null);
    put(spec, &parts, &value)
}

/// The parts of `spec.artifacts[web].oci.env`: names of fields, and names or numbers of entries.
pub(super) fn parts(path: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = path.strip_prefix("spec.").unwrap_or(path);
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or("a `]` is missing")?,
            None => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        if part.is_empty() {
            return Err("a part of the path is empty".to_owned());
        }
        parts.push(part.to_owned());
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    if parts.is_empty() {
        return Err("the path is empty".to_owned());
    }
    Ok(parts)
}

fn put(node: &Node, path: &[String], value: &Node) -> Result<Node, String> {
    let [part, rest @ ..] = path else {
        // Faults stand where the value would be in the file.
        return Ok(Node {
            value: value.value.clone(),
            at: node.at,
        });
    };
    let mut changed = node.clone();
    match &mut changed.value {
        Value::List(list) => {
            let mut items: Vec<Node> = list.iter().cloned().collect();
            let by_name = items.iter().position(|item| name(item) == Some(part));
            let at = by_name.or_else(|| part.parse().ok().filter(|at| *at < items.len()));
            let Some(item) = at.and_then(|at| items.get_mut(at)) else {
                let near = similar(part, list.iter(), |item| name(item).unwrap_or_default());
                let near = near.and_then(name);
                let hint = near.map(|near| format!("; did you mean `{near}`?"));
                return Err(format!(
                    "there is no entry `{part}`{}",
                    hint.unwrap_or_default()
                ));
            };
            *item = put(item, rest, value)?;
            *list = List::from_items(items);
        }
        Value::Map(map) if rest.is_empty() && value.is_null() => remove(map, part),
        Value::Map(map) => match map.get_mut(part) {
            Some(place) => *place = put(&place.clone(), rest, value)?,
            None => {
                let below = Node {
                    at: node.at,
                    ..Node::map()
                };
                let mut key = Key::from(part.as_str());
                key.at = node.at;
                let value = put(&below, rest, value)?;
                map.entries_mut().push(Entry { key, value });
            }
        },
        Value::Scalar(_) => return Err(format!("`{part}` is below a single value")),
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, expected) in [
            ("kind-*", "kind-dev", true),
            ("kind-*", "other", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("*-prod", "eu-prod", true),
            ("prod", "prod", true),
            ("prod", "prod2", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn paths_have_parts_with_and_without_brackets() {
        let parts = |path: &str| parts(path).map(|parts| parts.join("|"));
        assert_eq!(
            parts("spec.artifacts[0].image").as_deref(),
            Ok("artifacts|0|image")
        );
        assert_eq!(
            parts("artifacts[my.web].oci").as_deref(),
            Ok("artifacts|my.web|oci")
        );
        assert!(parts("").is_err() && parts("a..b").is_err() && parts("a[b").is_err());
    }
}
