//! `namespace`: moves every namespaced object to the namespace, and updates the fields that name it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use portolan_yaml::{Node, Text};

use crate::config::FieldSpec;
use crate::error::{Error, Result};
use crate::resource::Resource;
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::field::{NewTag, set_scalar, text};
use crate::value::fieldspec::{Missing, visit, walk};

/// What the transformer is told.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceArgs {
    pub(crate) namespace: Text,
    pub(crate) specs: Vec<FieldSpec>,
    /// Whether namespaces that are set already stay.
    pub(crate) unset_only: bool,
    pub(crate) subjects: SubjectMode,
}

/// Which subjects of role bindings move along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SubjectMode {
    /// Those named `default`.
    #[default]
    DefaultOnly,
    /// All service accounts.
    AllServiceAccounts,
    /// None.
    None,
}

impl SubjectMode {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "" | "defaultOnly" => Ok(Self::DefaultOnly),
            "allServiceAccounts" => Ok(Self::AllServiceAccounts),
            "none" => Ok(Self::None),
            other => Err(Error::refused(format!(
                "invalid value `{other}` for setRoleBindingSubjects: must be one of defaultOnly, none or allServiceAccounts"
            ))),
        }
    }
}

/// Moves all resources into a namespace; two that become the same one are an error.
pub(crate) fn set_namespace(
    set: &mut ResourceSet,
    args: &NamespaceArgs,
    schema: &Schema,
) -> Result<()> {
    if args.namespace.is_empty() {
        return Ok(());
    }
    let resources = set.resources_mut();
    let mut counts: HashMap<_, usize> = HashMap::with_capacity(resources.len());
    for resource in resources.iter() {
        *counts.entry(resource.comparable_id(schema)).or_default() += 1;
    }
    for resource in resources {
        if resource.is_empty() || resource.history.is_from_helm {
            continue;
        }
        if let Entry::Occupied(mut count) = counts.entry(resource.comparable_id(schema)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        resource.remember_id(schema);
        move_resource(resource, args, schema)?;
        let count = counts.entry(resource.comparable_id(schema)).or_default();
        *count += 1;
        if *count != 1 {
            let id = resource.id();
            return Err(Error::refused(format!(
                "namespace transformation produces ID conflict: {id}"
            )));
        }
    }
    Ok(())
}

/// The change to one object.
pub(crate) fn move_resource(
    resource: &mut Resource,
    args: &NamespaceArgs,
    schema: &Schema,
) -> Result<()> {
    let gvk = resource.gvk();
    let is_cluster_scoped = resource.is_cluster_scoped(schema);
    let mut set = |node: &mut Node| set_field(node, args);
    let node = &mut resource.node;
    if !is_cluster_scoped {
        walk(node, Some("metadata/namespace"), Missing::Scalar, &mut set)?;
    }
    let is_binding = matches!(gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
    if is_binding {
        move_subjects(node, args)?;
    }
    let is_core = gvk.group.is_empty() && gvk.version.as_str() == "v1";
    for spec in &args.specs {
        let is_own = match spec.path.as_str() {
            "metadata/namespace" => true,
            "metadata/name" => !is_core,
            "subjects/namespace" => {
                is_binding && matches!(spec.gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
            }
            _ => false,
        };
        if !is_own {
            visit(node, &gvk, spec, Missing::Scalar, &mut set)?;
        }
    }
    Ok(())
}

fn set_field(node: &mut Node, args: &NamespaceArgs) -> Result<()> {
    let is_set = !node.is_null() && !text(node).is_empty();
    if args.unset_only && is_set {
        return Ok(());
    }
    set_scalar(node, args.namespace.clone(), NewTag::Str)
}

fn move_subjects(node: &mut Node, args: &NamespaceArgs) -> Result<()> {
    let (field, wanted) = match args.subjects {
        SubjectMode::None => return Ok(()),
        SubjectMode::DefaultOnly => ("name", "default"),
        SubjectMode::AllServiceAccounts => ("kind", "ServiceAccount"),
    };
    let Some(subjects) = node.get_mut("subjects").filter(|node| !node.is_null()) else {
        return Ok(());
    };
    let Some(list) = subjects.as_list_mut() else {
        return Err(crate::value::field::wrong_shape("SequenceNode", subjects));
    };
    for subject in list.items_mut() {
        if subject
            .get(field)
            .is_some_and(|value| text(value).as_str() == wanted)
        {
            let namespace =
                crate::value::field::field_or_create(subject, "namespace", || Node::string(""))?;
            set_field(namespace, args)?;
        }
    }
    Ok(())
}
