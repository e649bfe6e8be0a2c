//! The whole build: accumulates from the root, then runs the steps that are done once at the end.

use camino::Utf8Path;
use portolan_budget::Budget;
use portolan_vfs::Vfs;
use portolan_yaml::{Text, WriteError};

use crate::config::{FieldSpec, Section};
use crate::directory::{Accumulator, Build, Directory};
use crate::error::{During, Error, Result};
use crate::load::kustomization::Kustomization;
use crate::load::loader::Loader;
use crate::options::{Options, Reorder};
use crate::resource::hash::add_hashes;
use crate::resource::id::Gvk;
use crate::resource::order::{FIRST, LAST, sort_legacy};
use crate::resource::set::ResourceSet;
use crate::resource::{ORIGIN, TRANSFORMATIONS};
use crate::schema::Schema;
use crate::transform::namereference::fix_references;
use crate::transform::{resolve_variables, set_labels};
use crate::value::cost::charge_value;

/// What `managedByLabel` writes: the version whose behaviour this is.
const MANAGED_BY: &str = "kustomize-v5.8.1";

/// Builds a directory.
///
/// `root` is a path inside `files`. The same inputs give the same bytes, also when builds run side by side.
pub fn build(root: &Utf8Path, files: &dyn Vfs, options: &Options<'_>) -> Result<ResourceSet> {
    build_unmasked(root, files, options).map_err(Error::without_passwords)
}

/// Addresses in `resources` can hold passwords, and nearly every error names an address or a path made of it.
fn build_unmasked(root: &Utf8Path, files: &dyn Vfs, options: &Options<'_>) -> Result<ResourceSet> {
    let budget = &options.budget.cloned().unwrap_or_default();
    let build = Build {
        options,
        schema: Schema::default(),
        budget,
    };
    let loader = Loader::new(root, files, options, budget)?;
    let directory = Directory::root(&build, loader)?;
    directory.set_schema()?;
    let accumulated = directory.accumulate(Accumulator::default())?;
    let Accumulator {
        mut set,
        config,
        variables,
    } = accumulated;
    let schema = &build.schema;
    add_hashes(&mut set, schema)?;
    fix_references(&mut set, &config, schema, budget)
        .during_exceeded(|| "following name references".to_owned())?;
    resolve_variables(
        &mut set,
        &variables,
        &config.specs(Section::VarReference),
        budget,
    )
    .during_exceeded(|| "replacing `vars`".to_owned())?;
    drop_local_config(&mut set);
    sort(&mut set, &directory.kustomization, options.reorder, schema)?;
    finish(&mut set, &directory.kustomization.metadata, budget)?;
    charge_output(&set, budget)?;
    Ok(set)
}

/// Charges what printing will take: a label that stands in ten thousand objects takes no memory before.
fn charge_output(set: &ResourceSet, budget: &Budget) -> Result<()> {
    for resource in set {
        let charged = charge_value(&resource.node, budget, resource.origin.file.as_str());
        charged.during_exceeded(|| format!("printing {}", resource.id()))?;
    }
    Ok(())
}

/// Prints resources as kustomize does: documents with sorted keys, `---` between them.
pub fn to_yaml(set: &ResourceSet) -> std::result::Result<String, WriteError> {
    let mut out = String::new();
    for resource in set {
        if !out.is_empty() {
            out.push_str("---\n");
        }
        out.push_str(&portolan_yaml::write_kustomize(&resource.node)?);
    }
    Ok(out)
}

fn drop_local_config(set: &mut ResourceSet) {
    if set
        .iter()
        .any(|resource| resource.is_local_config() || resource.is_empty())
    {
        set.resources_mut()
            .retain(|resource| !resource.is_local_config() && !resource.is_empty());
    }
}

fn sort(
    set: &mut ResourceSet,
    kustomization: &Kustomization,
    reorder: Reorder,
    schema: &Schema,
) -> Result<()> {
    let Some(sort) = &kustomization.sort else {
        return match reorder {
            Reorder::Legacy => sort_legacy(set, &FIRST, &LAST, schema),
            Reorder::None => Ok(()),
        };
    };
    match (sort.order.as_str(), &sort.legacy) {
        ("fifo", None) => Ok(()),
        ("fifo", Some(_)) => Err(Error::refused(
            "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'",
        )),
        ("legacy", None) => sort_legacy(set, &FIRST, &LAST, schema),
        ("legacy", Some((first, last))) => sort_legacy(set, first, last, schema),
        _ => Err(Error::refused(
            "the field 'sortOptions.order' must be one of [fifo, legacy]",
        )),
    }
}

/// What is left to do to each resource: the label that names the tool, and the annotations.
fn finish(set: &mut ResourceSet, metadata: &[Text], budget: &Budget) -> Result<()> {
    let wants = |option: &str| metadata.iter().any(|wanted| wanted.as_str() == option);
    if wants("managedByLabel") {
        let pairs = [(
            Text::from_static("app.kubernetes.io/managed-by"),
            Text::from_static(MANAGED_BY),
        )];
        let spec = FieldSpec {
            gvk: Gvk::default(),
            path: Text::from_static("metadata/labels"),
            create: true,
        };
        set_labels(set, &pairs, &[spec], budget)?;
    }
    let mut dropped = Vec::new();
    if !wants("originAnnotations") {
        dropped.push(ORIGIN);
    }
    if !wants("transformerAnnotations") {
        dropped.push(TRANSFORMATIONS);
    }
    for position in 0..set.len() {
        if let Some(resource) = set.get_mut(position) {
            resource.finish_annotations(&dropped)?;
        }
    }
    Ok(())
}
