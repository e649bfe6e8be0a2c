//! `replicas`: the number of copies of a workload, by name.

use portolan_yaml::{Node, Text};

use crate::config::FieldSpec;
use crate::error::{Error, Result};
use crate::load::decode::{Fields, Strictness};
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::field::{NewTag, set_scalar};
use crate::value::fieldspec::{Missing, visit};

/// An entry of `replicas`.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) name: Text,
    pub(crate) count: i64,
}

impl Replica {
    pub(crate) fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let fields = Fields::read(node, "Replica", &["name", "count"], strictness)?;
        Ok(Self {
            name: fields.text("name")?,
            count: fields.int("count")?.unwrap_or_default(),
        })
    }
}

/// Sets the count on every resource that has, or once had, the name, and tells where.
pub(crate) fn set_replicas(
    set: &mut ResourceSet,
    replica: &Replica,
    specs: &[FieldSpec],
    schema: &Schema,
) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for position in set.candidates(&replica.name, schema) {
        let Some(resource) = set
            .get_mut(position)
            .filter(|resource| !resource.is_empty())
        else {
            continue;
        };
        let ids = resource.all_ids(schema);
        let gvk = resource.gvk();
        for spec in specs {
            if !ids
                .iter()
                .any(|id| id.name == replica.name && id.gvk.is_selected(&spec.gvk))
            {
                continue;
            }
            found.push(position);
            let mut set =
                |node: &mut Node| set_scalar(node, replica.count.to_string(), NewTag::Int);
            visit(&mut resource.node, &gvk, spec, Missing::Scalar, &mut set)?;
        }
    }
    if !found.is_empty() {
        found.dedup();
        return Ok(found);
    }
    let types: Vec<String> = specs.iter().map(|spec| spec.gvk.to_string()).collect();
    Err(Error::refused(format!(
        "resource with name {} does not match a config with the following GVK {types:?}",
        replica.name
    )))
}
