//! Configuration files: the entries of `configurations`.

use portolan_yaml::Node;

use super::{BackReference, Config, FieldSpec, Lists, SECTIONS, order_key, sort_specs};
use crate::error::Result;
use crate::load::decode::{Fields, Strictness, list};
use crate::resource::id::Gvk;

/// Reads a transformer configuration.
pub(crate) fn read_config(document: &Node) -> Result<Config> {
    let mut names: Vec<&'static str> = SECTIONS.iter().map(|section| section.name()).collect();
    names.push("nameReference");
    let fields = Fields::read(document, "TransformerConfig", &names, Strictness::Strict)?;
    let mut lists = Lists::default();
    for section in SECTIONS {
        lists.specs[section as usize] = read_specs(&fields, section.name())?;
        sort_specs(&mut lists.specs[section as usize]);
    }
    for node in list(fields.get("nameReference"), "nameReference")? {
        lists.references.push(read_reference(node)?);
    }
    lists
        .references
        .sort_by_cached_key(|reference| order_key(&reference.target));
    Ok(Config::Custom(Box::new(lists)))
}

fn read_reference(node: &Node) -> Result<BackReference> {
    let names = ["group", "version", "kind", "fieldSpecs"];
    let fields = Fields::read(node, "NameBackReferences", &names, Strictness::Strict)?;
    Ok(BackReference {
        target: read_gvk(&fields)?,
        referrers: read_specs(&fields, "fieldSpecs")?,
    })
}

/// A list of field specs in a field.
pub(crate) fn read_specs(fields: &Fields<'_>, name: &str) -> Result<Vec<FieldSpec>> {
    let names = ["group", "version", "kind", "path", "create"];
    list(fields.get(name), name)?
        .map(|node| {
            let fields = Fields::read(node, "FieldSpec", &names, fields.strictness())?;
            Ok(FieldSpec {
                gvk: read_gvk(&fields)?,
                path: fields.text("path")?,
                create: fields.flag("create")?,
            })
        })
        .collect()
}

/// `group`, `version` and `kind` of some fields.
pub(crate) fn read_gvk(fields: &Fields<'_>) -> Result<Gvk> {
    Ok(Gvk {
        group: fields.text("group")?,
        version: fields.text("version")?,
        kind: fields.text("kind")?,
    })
}
