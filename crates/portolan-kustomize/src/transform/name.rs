//! `namePrefix` and `nameSuffix`.

use portolan_budget::Budget;
use portolan_yaml::{Node, Text};

use crate::config::FieldSpec;
use crate::error::Result;
use crate::resource::Resource;
use crate::resource::id::Gvk;
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::field::{NewTag, set_scalar, text};
use crate::value::fieldspec::{Missing, visit};

/// Puts a text before the names.
pub(crate) fn add_prefix(
    set: &mut ResourceSet,
    prefix: &Text,
    specs: &[FieldSpec],
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    let join = |name: &str| {
        budget.allocate(prefix.len() + name.len())?;
        Ok(format!("{prefix}{name}"))
    };
    rename(set, specs, schema, &join, &|resource| {
        if !prefix.is_empty() {
            resource.history.prefixes.reserve_exact(1);
            resource.history.prefixes.push(prefix.clone());
        }
        !prefix.is_empty()
    })
}

/// Puts a text after the names.
pub(crate) fn add_suffix(
    set: &mut ResourceSet,
    suffix: &Text,
    specs: &[FieldSpec],
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    let join = |name: &str| {
        budget.allocate(suffix.len() + name.len())?;
        Ok(format!("{name}{suffix}"))
    };
    rename(set, specs, schema, &join, &|resource| {
        if !suffix.is_empty() {
            resource.history.suffixes.reserve_exact(1);
            resource.history.suffixes.push(suffix.clone());
        }
        !suffix.is_empty()
    })
}

fn rename(
    set: &mut ResourceSet,
    specs: &[FieldSpec],
    schema: &Schema,
    join: &dyn Fn(&str) -> Result<String>,
    record: &dyn Fn(&mut Resource) -> bool,
) -> Result<()> {
    for resource in set.resources_mut() {
        let original = resource.original_id(schema).gvk;
        if keeps_name(&original) {
            continue;
        }
        for spec in specs.iter().filter(|spec| original.is_selected(&spec.gvk)) {
            if spec.path.as_str() == "metadata/name" && record(resource) {
                resource.remember_id(schema);
            }
            let gvk = resource.gvk();
            let mut set = |node: &mut Node| {
                let name = join(&text(node))?;
                set_scalar(node, name, NewTag::AsRead)
            };
            visit(&mut resource.node, &gvk, spec, Missing::Scalar, &mut set)?;
        }
    }
    Ok(())
}

/// Names that mean something outside of the build stay as they are.
fn keeps_name(gvk: &Gvk) -> bool {
    match gvk.kind.as_str() {
        "CustomResourceDefinition" | "Namespace" => true,
        "APIService" => gvk.group.as_str() == "apiregistration.k8s.io",
        _ => false,
    }
}
