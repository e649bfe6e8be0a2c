//! `ValueAddTransformer`: sets some fields to a text, or inserts the text as one part of the file path in them.

use portolan_budget::Budget;
use portolan_yaml::{Node, Text};

use super::namespace::{NamespaceArgs, SubjectMode, move_resource};
use crate::error::{Error, Result};
use crate::load::decode::{Fields, Strictness, list};
use crate::load::kustomization::read_selector;
use crate::load::read::MAX_DEPTH;
use crate::resource::selector::Selector;
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::cost::RESOURCE_STEPS;
use crate::value::field::{NewTag, field_or_create, set_scalar, text};

/// What the transformer is told.
#[derive(Debug, Clone)]
pub(crate) struct ValueAdd {
    pub(crate) value: Text,
    pub(crate) targets: Vec<ValueTarget>,
    pub(crate) target_file: Text,
}

/// Where the value goes.
#[derive(Debug, Clone)]
pub(crate) struct ValueTarget {
    selector: Option<Selector>,
    path: Text,
    /// Which part of a file path the value becomes, from 1; 0 replaces the field.
    position: i64,
}

impl ValueAdd {
    pub(crate) fn read(node: &Node) -> Result<Self> {
        let names = ["value", "targets", "targetFilePath"];
        let fields = Fields::read(node, "ValueAddTransformer", &names, Strictness::Lenient)?;
        Ok(Self {
            value: fields.text("value")?.trim().into(),
            targets: Self::read_targets(&fields)?,
            target_file: fields.text("targetFilePath")?,
        })
    }

    /// The targets of a file of its own.
    pub(crate) fn read_file(node: &Node) -> Result<Vec<ValueTarget>> {
        Self::read_targets(&Fields::read(
            node,
            "ValueAddTransformer",
            &["targets"],
            Strictness::Lenient,
        )?)
    }

    fn read_targets(fields: &Fields<'_>) -> Result<Vec<ValueTarget>> {
        let names = ["selector", "fieldPath", "filePathPosition"];
        list(fields.get("targets"), "targets")?
            .map(|node| {
                let fields = Fields::read(node, "Target", &names, Strictness::Lenient)?;
                Ok(ValueTarget {
                    selector: read_selector(&fields, "selector")?,
                    path: fields.text("fieldPath")?,
                    position: fields.int("filePathPosition")?.unwrap_or_default(),
                })
            })
            .collect()
    }

    /// Fails where something needed is missing.
    pub(crate) fn check(&self) -> Result<()> {
        if self.targets.is_empty() {
            return Err(Error::refused("must specify at least one target"));
        }
        for target in &self.targets {
            if target.path.is_empty() {
                return Err(Error::refused("fieldPath cannot be empty"));
            }
            if target.position < 0 {
                let position = target.position;
                return Err(Error::refused(format!(
                    "value of FilePathPosition ({position}) cannot be negative"
                )));
            }
        }
        Ok(())
    }
}

/// Puts the value into all targets.
pub(crate) fn add_value(
    set: &mut ResourceSet,
    args: &ValueAdd,
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    for target in &args.targets {
        let selected = match &target.selector {
            Some(selector) => selector.select(set, schema, budget)?,
            None => (0..set.len()).collect(),
        };
        budget.step(selected.len() as u64 * RESOURCE_STEPS)?;
        for position in selected {
            let Some(resource) = set.get_mut(position) else {
                continue;
            };
            if target.path.as_str() == "metadata/namespace" {
                let args = NamespaceArgs {
                    namespace: args.value.clone(),
                    specs: Vec::new(),
                    unset_only: false,
                    subjects: SubjectMode::DefaultOnly,
                };
                move_resource(resource, &args, schema)?;
            } else {
                add_to(&mut resource.node, target, &args.value, budget)?;
            }
        }
    }
    set.renamed();
    Ok(())
}

fn add_to(node: &mut Node, target: &ValueTarget, value: &str, budget: &Budget) -> Result<()> {
    let parts = split(&target.path);
    if parts.len() > MAX_DEPTH {
        return Err(Error::TooDeep(target.path.to_string()));
    }
    let mut field = node;
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        field = field_or_create(field, part, || {
            if is_last {
                Node::string("")
            } else {
                Node::map()
            }
        })?;
    }
    if field.as_scalar().is_none() {
        return Err(crate::value::field::wrong_shape("ScalarNode", field));
    }
    budget.allocate(text(field).len() + value.len())?;
    let new = match target.position {
        0 => value.to_owned(),
        position => insert_part(&text(field), position as usize - 1, value),
    };
    set_scalar(field, new, NewTag::AsRead)
}

/// Names between slashes; `\/` keeps one.
fn split(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        match parts.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push('/');
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Puts a part into a file path, at the end when it has fewer parts.
fn insert_part(path: &str, position: usize, part: &str) -> String {
    if part.is_empty() {
        return path.to_owned();
    }
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    let joined = parts.join("/");
    if is_absolute {
        format!("/{joined}")
    } else {
        joined
    }
}
