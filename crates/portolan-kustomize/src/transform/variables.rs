//! `vars`: `$(NAME)` in some fields becomes the value of a field of a resource.

use std::collections::{BTreeMap, HashMap};

use portolan_budget::Budget;
use portolan_yaml::{Node, Scalar, Style, Tag, Text, Value};

use super::path::lookup;
use crate::config::FieldSpec;
use crate::error::{Error, Result};
use crate::load::decode::{Fields, Strictness};
use crate::resource::Resource;
use crate::resource::id::{Gvk, ResourceId};
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::field::UNTYPED;
use crate::value::fieldspec::{Missing, visit};

/// An entry of `vars`.
#[derive(Debug, Clone)]
pub(crate) struct NameVariable {
    name: Text,
    object: ResourceId,
    path: Text,
}

/// The variables of a build, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct VariableSet(BTreeMap<Text, NameVariable>);

impl NameVariable {
    pub(crate) fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let fields = Fields::read(node, "Var", &["name", "objref", "fieldref"], strictness)?;
        let mut path = Text::default();
        if let Some(node) = fields.get("fieldref") {
            path = Fields::read(node, "FieldSelector", &["fieldPath"], strictness)?
                .text("fieldPath")?;
        }
        if path.is_empty() {
            path = Text::from_static("metadata.name");
        }
        let object = match fields.get("objref") {
            Some(node) => read_object(node, strictness)?,
            None => ResourceId::default(),
        };
        Ok(Self {
            name: fields.text("name")?,
            object,
            path,
        })
    }
}

fn read_object(node: &Node, strictness: Strictness) -> Result<ResourceId> {
    let names = [
        "apiVersion",
        "group",
        "version",
        "kind",
        "name",
        "namespace",
    ];
    let fields = Fields::read(node, "Target", &names, strictness)?;
    let mut gvk = crate::config::read_gvk(&fields)?;
    let version = fields.text("apiVersion")?;
    if !version.is_empty() {
        gvk = Gvk {
            group: gvk.group,
            ..Gvk::new(&version, gvk.kind)
        };
        if let Some((group, _)) = version.split_once('/') {
            gvk.group = group.into();
        }
    }
    Ok(ResourceId {
        gvk,
        name: fields.text("name")?,
        namespace: fields.text("namespace")?,
    })
}

impl VariableSet {
    /// Adds variables and marks the resources that hold their values.
    pub(crate) fn add(
        &mut self,
        variables: &[NameVariable],
        set: &mut ResourceSet,
        schema: &Schema,
    ) -> Result<()> {
        for variable in variables {
            mark_source(variable, set, schema)?;
        }
        variables
            .iter()
            .try_for_each(|variable| self.insert(variable.clone()))
    }

    pub(crate) fn merge(&mut self, other: Self) -> Result<()> {
        other
            .0
            .into_values()
            .try_for_each(|variable| self.insert(variable))
    }

    fn insert(&mut self, variable: NameVariable) -> Result<()> {
        if self.0.contains_key(&variable.name) {
            return Err(Error::refused(format!(
                "var `{}` already encountered",
                variable.name
            )));
        }
        self.0.insert(variable.name.clone(), variable);
        Ok(())
    }
}

fn mark_source(variable: &NameVariable, set: &mut ResourceSet, schema: &Schema) -> Result<()> {
    let object = &variable.object;
    let is_exact = !object.namespace.is_empty();
    let wanted = object.clone().comparable(false);
    let is_match = |id: &ResourceId| {
        id.gvk == wanted.gvk
            && id.name == wanted.name
            && (!is_exact || id.namespace == wanted.namespace)
    };
    let mut found = set.candidates(&wanted.name, schema);
    found.retain(|position| {
        let resource = set.get(*position).filter(|one| !one.is_empty());
        resource.is_some_and(|resource| resource.all_ids(schema).iter().any(is_match))
    });
    match found.as_slice() {
        [] => Ok(()),
        [only] => {
            if let Some(resource) = set.get_mut(*only) {
                resource.variables.push(variable.name.clone());
            }
            Ok(())
        }
        _ => Err(Error::refused(format!(
            "found {} resId matches for var {} (unable to disambiguate)",
            found.len(),
            variable.name
        ))),
    }
}

/// Replaces the variables in all fields that can hold them.
pub(crate) fn resolve_variables(
    set: &mut ResourceSet,
    variables: &VariableSet,
    specs: &[FieldSpec],
    budget: &Budget,
) -> Result<()> {
    if variables.0.is_empty() {
        return Ok(());
    }
    let mut sources = HashMap::new();
    for resource in set.iter() {
        for name in &resource.variables {
            sources.entry(name.clone()).or_insert(resource);
        }
    }
    let mut values = BTreeMap::new();
    for variable in variables.0.values() {
        let source = sources.get(&variable.name).copied();
        values.insert(variable.name.to_string(), find_value(variable, source)?);
    }
    for resource in set.resources_mut() {
        let gvk = resource.gvk();
        budget.step(specs.len() as u64)?;
        for spec in specs {
            visit(
                &mut resource.node,
                &gvk,
                spec,
                Missing::Leave,
                &mut |node| expand_node(node, &values, budget),
            )?;
        }
    }
    Ok(())
}

fn find_value(variable: &NameVariable, source: Option<&Resource>) -> Result<Node> {
    let Some(source) = source else {
        return Err(Error::refused(format!(
            "var `{}` cannot be mapped to a field in the set of known resources",
            variable.name
        )));
    };
    let path = index_parts(super::path::split(&variable.path));
    match lookup(&source.node, &path) {
        Ok(Some(value)) => Ok(value.clone()),
        _ => Err(Error::refused(format!(
            "field specified in var `{}` not found in corresponding resource",
            variable.name
        ))),
    }
}

/// `ports[0]` means the same as `ports.0`.
fn index_parts(parts: Vec<String>) -> Vec<String> {
    let mut result = Vec::new();
    for part in parts {
        let indexed = part
            .strip_suffix(']')
            .and_then(|rest| rest.rsplit_once('['));
        match indexed {
            Some((name, index))
                if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                if !name.is_empty() {
                    result.push(name.to_owned());
                }
                result.push(index.to_owned());
            }
            _ => result.push(part),
        }
    }
    result
}

fn expand_node(node: &mut Node, values: &BTreeMap<String, Node>, budget: &Budget) -> Result<()> {
    if node.is_null() {
        return Ok(());
    }
    match &mut node.value {
        Value::Scalar(_) => expand_scalar(node, values, budget),
        Value::Map(map) => {
            for entry in map.entries_mut() {
                if entry.key.scalar.tag != Tag::Str {
                    return Err(Error::refused(format!(
                        "invalid map key: value=`{}`",
                        entry.key.as_str()
                    )));
                }
                expand_scalar(&mut entry.value, values, budget)?;
            }
            Ok(())
        }
        Value::List(list) => {
            for item in list.items_mut() {
                if item.as_str().is_none() && item.at != UNTYPED {
                    return Err(Error::refused("invalid value type expect a string"));
                }
                expand_scalar(item, values, budget)?;
            }
            Ok(())
        }
    }
}

fn expand_scalar(node: &mut Node, values: &BTreeMap<String, Node>, budget: &Budget) -> Result<()> {
    let is_text = node.as_str().is_some() || node.at == UNTYPED;
    let Some(scalar) = node.as_scalar().filter(|_| is_text) else {
        return Ok(());
    };
    budget.step(1 + scalar.text.len() as u64 / 16)?;
    let new = expand(&scalar.text, values, budget)?;
    node.value = Value::Scalar(new);
    Ok(())
}

/// Expands `$(NAME)`; a text that is nothing but one variable takes over its type.
fn expand(input: &str, values: &BTreeMap<String, Node>, budget: &Budget) -> Result<Scalar> {
    let mut out = String::new();
    let mut rest = input;
    while let Some(start) = rest.find('$') {
        let Some(after) = rest.get(start + 1..).filter(|after| !after.is_empty()) else {
            break;
        };
        out.push_str(&rest[..start]);
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) = after
            .strip_prefix('(')
            .and_then(|body| body.split_once(')'))
        {
            let value = values.get(name).and_then(Node::as_scalar);
            if input.len() == name.len() + 3
                && let Some(value) = value
            {
                return Ok(typed(value));
            }
            match value {
                Some(value) => {
                    budget.allocate(value.text.len())?;
                    out.push_str(&value.text);
                }
                None => out.extend(["$(", name, ")"]),
            }
            rest = tail;
        } else {
            let length = after.chars().next().map_or(0, char::len_utf8);
            out.push('$');
            out.push_str(&after[..length]);
            rest = &after[length..];
        }
    }
    out.push_str(rest);
    Ok(Scalar::string(out))
}

fn typed(value: &Scalar) -> Scalar {
    match value.tag {
        Tag::Int | Tag::Bool | Tag::Float => Scalar {
            text: value.text.clone(),
            tag: value.tag,
            style: Style::Plain,
        },
        _ => Scalar::string(value.text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        let values = BTreeMap::from([
            ("A".to_owned(), Node::string("x")),
            ("N".to_owned(), Node::int(5)),
        ]);
        let expanded = expand(input, &values, &Budget::default()).unwrap();
        assert_eq!(expanded.text.as_str(), expected);
    }

    #[test]
    fn variables_expand_and_doubled_dollars_collapse() {
        check("a $(A) $(N) $(B)", "a x 5 $(B)");
        check("$$(A) $x $", "$(A) $x $");
        check("$(A", "$(A");
    }

    #[test]
    fn a_lone_variable_keeps_its_type() {
        let values = BTreeMap::from([("N".to_owned(), Node::int(5))]);
        let tag = |input| expand(input, &values, &Budget::default()).unwrap().tag;
        assert_eq!(tag("$(N)"), Tag::Int);
        assert_eq!(tag("a$(N)"), Tag::Str);
    }
}
