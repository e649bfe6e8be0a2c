//! Strategic merge: applies a patch to an object and matches the items of lists by key.
//!
//! The walk goes through the whole object, also where the patch has nothing, because kyaml does so and drops empty
//! values (`key:`). Where nothing changes, nothing is copied.

mod list;

use portolan_budget::Budget;
use portolan_yaml::{Key, Map, Node, Tag, Value};

use crate::error::{Error, Result};
use crate::resource::Resource;
use crate::schema::{Place, Schema};
use crate::value::alias::is_marked;
use crate::value::field::{UNTYPED, adopt_style, present_text, wrong_shape};
use crate::value::remark::Remarks;

/// Where new items of a merged list go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Before the old ones, as patches do.
    Prepend,
    /// After them, as merged Helm values do.
    Append,
}

/// What becomes of a value.
#[derive(Debug)]
enum Merged {
    /// It stays as it is.
    Same,
    /// It goes.
    Gone,
    /// It becomes this; `is_dest` when it is still the old value, changed inside.
    New { node: Node, is_dest: bool },
}

/// Lays a patch over a resource; `None` when nothing is left.
pub(crate) fn patch_merge(
    resource: &Resource,
    patch: &Resource,
    schema: &Schema,
    budget: &Budget,
) -> Result<Option<Node>> {
    let walker = Walker {
        remarks: [resource.remarks.as_deref(), patch.remarks.as_deref()],
        ..Walker::new(Direction::Prepend, schema, budget)
    };
    // kustomize looks at the object that it gave in, not at what the merge hands back: a patch that replaces the object
    // as a whole is lost.
    match walker.walk(Some(&resource.node), Some(&patch.node), None)? {
        Merged::Gone => Ok(None),
        Merged::New {
            node,
            is_dest: true,
        } => Ok(Some(node)),
        Merged::Same | Merged::New { .. } => Ok(Some(resource.node.clone())),
    }
}

/// Lays one tree over another; `None` when nothing is left.
pub(crate) fn merge(
    object: &Node,
    patch: &Node,
    direction: Direction,
    schema: &Schema,
    budget: &Budget,
) -> Result<Option<Node>> {
    Walker::new(direction, schema, budget).merge(object, patch)
}

#[derive(Clone, Copy)]
struct Walker<'a> {
    schema: &'a Schema,
    budget: &'a Budget,
    direction: Direction,
    /// What comments say of fields of the object and of the patch.
    remarks: [Option<&'a Remarks>; 2],
}

/// The `$patch` directive of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

const DIRECTIVE: &str = "$patch";

impl<'a> Walker<'a> {
    fn new(direction: Direction, schema: &'a Schema, budget: &'a Budget) -> Self {
        Self {
            schema,
            budget,
            direction,
            remarks: [None, None],
        }
    }

    fn merge(self, object: &Node, patch: &Node) -> Result<Option<Node>> {
        match self.walk(Some(object), Some(patch), None)? {
            Merged::Same => Ok(Some(object.clone())),
            Merged::Gone => Ok(None),
            Merged::New { node, .. } => Ok(Some(node)),
        }
    }

    /// Where a field leads: what a comment says of it counts more than the schema.
    fn field(self, place: Option<&Place>, name: &str, values: [Option<&Node>; 2]) -> Option<Place> {
        let mut remarked = self.remarks.iter().zip(values);
        let remark = remarked.find_map(|(remarks, value)| (*remarks)?.get(value?));
        match remark {
            Some(remark) => Some(self.schema.remarked(remark)),
            None => self.schema.field(place?, name),
        }
    }

    fn walk(
        self,
        dest: Option<&Node>,
        patch: Option<&Node>,
        place: Option<&Place>,
    ) -> Result<Merged> {
        let inferred = place.is_none().then(|| self.infer(dest, patch)).flatten();
        let place = place.or(inferred.as_ref());
        let shaped = [dest, patch]
            .into_iter()
            .flatten()
            .find(|node| !node.is_null());
        match shaped.map(|node| &node.value) {
            None => self.walk_map(dest, patch, place),
            Some(Value::Map(_)) => {
                check_shape(dest, patch, "MappingNode", |node| node.as_map().is_some())?;
                self.walk_map(dest, patch, place)
            }
            Some(Value::List(_)) => {
                check_shape(dest, patch, "SequenceNode", |node| node.as_list().is_some())?;
                match place.and_then(|place| self.schema.merging(place)) {
                    Some(merging) => self.walk_list(dest, patch, &merging),
                    None => Ok(replace(patch)),
                }
            }
            Some(Value::Scalar(_)) => {
                check_shape(dest, patch, "ScalarNode", |node| node.as_scalar().is_some())?;
                Ok(match (dest, patch) {
                    (Some(dest), None) => settle_scalar(dest),
                    _ => replace(patch),
                })
            }
        }
    }

    /// An object inside another one has a schema of its own, if the place where it stands has none.
    fn infer(self, dest: Option<&Node>, patch: Option<&Node>) -> Option<Place> {
        [dest, patch].into_iter().flatten().find_map(|node| {
            let (version, kind) = (node.get("apiVersion")?, node.get("kind")?);
            self.schema
                .root(&present_text(Some(version)), &present_text(Some(kind)))
        })
    }

    fn walk_map(
        self,
        dest: Option<&Node>,
        patch: Option<&Node>,
        place: Option<&Place>,
    ) -> Result<Merged> {
        let Some(dest) = dest.filter(|dest| !dest.is_null()) else {
            return self.add_map(dest, patch, place);
        };
        let Some(patch) = patch else {
            return self.settle_map(dest, place);
        };
        if patch.is_null() {
            return Ok(Merged::Gone);
        }
        let (directive, patch) = take_directive(patch)?;
        match directive {
            Directive::Delete => Ok(Merged::Gone),
            Directive::Replace => self.merge_fields(&patch, Some(&patch), place, false),
            Directive::Merge => self.merge_fields(dest, Some(&patch), place, true),
        }
    }

    /// The object has nothing here: the patch comes in whole, without its nulls and directives.
    fn add_map(
        self,
        dest: Option<&Node>,
        patch: Option<&Node>,
        place: Option<&Place>,
    ) -> Result<Merged> {
        let Some(patch) = patch else {
            // A written null stays, an empty value goes.
            let is_written = dest
                .and_then(Node::as_scalar)
                .is_some_and(|scalar| !scalar.text.is_empty());
            return Ok(if is_written {
                Merged::Same
            } else {
                Merged::Gone
            });
        };
        if patch.as_map().is_none() {
            return Ok(Merged::Gone);
        }
        let (directive, patch) = match take_directive(patch) {
            Ok(found) => found,
            Err(_) => (Directive::Merge, patch.clone()),
        };
        match directive {
            Directive::Delete => Ok(Merged::Gone),
            _ => self.merge_fields(&patch, Some(&patch), place, false),
        }
    }

    /// The patch says nothing here.
    fn settle_map(self, dest: &Node, place: Option<&Place>) -> Result<Merged> {
        self.merge_fields(dest, None, place, true)
    }

    fn merge_fields(
        self,
        dest: &Node,
        patch: Option<&Node>,
        place: Option<&Place>,
        is_dest: bool,
    ) -> Result<Merged> {
        let mut result: Option<Node> = None;
        let old = dest.as_map();
        let theirs = patch.and_then(Node::as_map).map_or(0, Map::len) as u64;
        let own = old.map_or(0, Map::len) as u64;
        // Every key of one is looked for in the other.
        self.budget
            .step(own.saturating_mul(theirs) + own + theirs)?;
        for entry in old.into_iter().flatten() {
            let name = entry.key.as_str();
            let theirs = patch.and_then(|patch| patch.get(name));
            let at = self.field(place, name, [Some(&entry.value), theirs]);
            let merged = self.walk(Some(&entry.value), theirs, at.as_ref())?;
            self.apply(&mut result, dest, &entry.key, merged);
        }
        for entry in patch.and_then(Node::as_map).into_iter().flatten() {
            let name = entry.key.as_str();
            if old.is_some_and(|old| old.contains_key(name)) {
                continue;
            }
            let at = self.field(place, name, [None, Some(&entry.value)]);
            let merged = self.walk(None, Some(&entry.value), at.as_ref())?;
            let merged = match merged {
                Merged::Same => Merged::New {
                    node: entry.value.clone(),
                    is_dest: false,
                },
                other => other,
            };
            self.apply(&mut result, dest, &entry.key, merged);
        }
        Ok(match result {
            None if is_dest => Merged::Same,
            None => Merged::New {
                node: dest.clone(),
                is_dest,
            },
            Some(node) => Merged::New { node, is_dest },
        })
    }

    /// Writes a field's new value into the result, which is a copy of the old map from the first change on.
    fn apply(self, result: &mut Option<Node>, dest: &Node, key: &Key, merged: Merged) {
        let name = key.as_str();
        let value = match merged {
            Merged::Same => return,
            Merged::Gone => None,
            Merged::New { node, .. } => Some(node).filter(|node| !node.is_null()),
        };
        let node = result.get_or_insert_with(|| dest.clone());
        let Some(map) = node.as_map_mut() else { return };
        let Some(mut value) = value else {
            map.remove(name);
            return;
        };
        if let Some(old) = map
            .get(name)
            .filter(|_| self.direction == Direction::Prepend)
        {
            // Merged Helm values are never printed in between: what was quoted there does not make text of a number.
            adopt_style(&mut value, old);
            if is_marked(old) && value.as_scalar().is_some() {
                value.at = old.at;
            }
        }
        map.insert(key.clone(), value);
    }
}

/// Scalars and lists without a key: the patch's value, if it has one.
fn replace(patch: Option<&Node>) -> Merged {
    match patch {
        None => Merged::Same,
        Some(node) if node.is_null() => Merged::Gone,
        Some(node) => Merged::New {
            node: node.clone(),
            is_dest: false,
        },
    }
}

/// A scalar without a type is quoted when a merge passes by, and is a string from then on.
fn settle_scalar(dest: &Node) -> Merged {
    match &dest.value {
        Value::Scalar(scalar) if dest.at == UNTYPED && scalar.tag != Tag::Str => Merged::New {
            node: Node::string(scalar.text.clone()),
            is_dest: true,
        },
        _ => Merged::Same,
    }
}

fn check_shape(
    dest: Option<&Node>,
    patch: Option<&Node>,
    expected: &str,
    is_right: fn(&Node) -> bool,
) -> Result<()> {
    let wrong = [dest, patch]
        .into_iter()
        .flatten()
        .find(|node| !node.is_null() && !is_right(node));
    wrong.map_or(Ok(()), |node| Err(wrong_shape(expected, node)))
}

/// The directive of a map, and the map without it.
fn take_directive(patch: &Node) -> Result<(Directive, Node)> {
    let Some(value) = patch.get(DIRECTIVE) else {
        return Ok((Directive::Merge, patch.clone()));
    };
    let directive = parse_directive(value)?;
    let mut rest = patch.clone();
    if let Some(map) = rest.as_map_mut() {
        map.remove(DIRECTIVE);
    }
    Ok((directive, rest))
}

fn parse_directive(value: &Node) -> Result<Directive> {
    match crate::value::field::text(value).as_str() {
        "merge" => Ok(Directive::Merge),
        "replace" => Ok(Directive::Replace),
        "delete" => Ok(Directive::Delete),
        other => Err(Error::refused(format!("unknown patch strategy `{other}`"))),
    }
}

/// Null or an empty map: what kyaml takes for a deleted item.
fn is_deleted(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => scalar.tag == Tag::Null,
        Value::Map(map) => map.is_empty(),
        Value::List(_) => false,
    }
}
