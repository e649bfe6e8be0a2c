//! Which fields the transformers change: the built-in table and what `configurations` and `crds` add to it.
//!
//! Every kustomization uses the built-in specs; full lists are made only if others are added. The merge drops a
//! general spec that comes after a more specific one for the same field. This is how a configuration file replaces a
//! built-in spec.

mod builtin;
mod crds;
mod file;
#[rustfmt::skip]
mod table;

use portolan_budget::Budget;
use portolan_yaml::Text;

use crate::error::{Error, Result};
use crate::resource::id::Gvk;
use builtin::{Reference, Spec};

pub(crate) use crds::read_crds;
pub(crate) use file::{read_config, read_gvk, read_specs};

/// A field of some types, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSpec {
    /// The types; empty parts match anything.
    pub(crate) gvk: Gvk,
    /// Field names between slashes, `[]` behind a list, `\/` for a slash in a name.
    pub(crate) path: Text,
    /// Whether the field is made where it is missing.
    pub(crate) create: bool,
}

/// A kind that can be referred to by name, and the fields that do.
#[derive(Debug, Clone)]
pub(crate) struct BackReference {
    pub(crate) target: Gvk,
    pub(crate) referrers: Vec<FieldSpec>,
}

/// A group of field specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    NamePrefix,
    NameSuffix,
    Namespace,
    CommonLabels,
    Labels,
    TemplateLabels,
    CommonAnnotations,
    VarReference,
    Images,
    Replicas,
}

/// The field specs of a kustomization and of everything it took in.
#[derive(Debug, Clone, Default)]
pub(crate) enum Config {
    /// Nothing yet.
    #[default]
    Empty,
    /// The built-in specs: what nearly every kustomization has.
    Builtin,
    /// The built-in specs with others merged in.
    Custom(Box<Lists>),
}

/// Field specs in full.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    specs: [Vec<FieldSpec>; SECTIONS.len()],
    references: Vec<BackReference>,
}

const SECTIONS: [Section; 10] = [
    Section::NamePrefix,
    Section::NameSuffix,
    Section::Namespace,
    Section::CommonLabels,
    Section::Labels,
    Section::TemplateLabels,
    Section::CommonAnnotations,
    Section::VarReference,
    Section::Images,
    Section::Replicas,
];

impl Section {
    fn builtin(self) -> &'static [Spec] {
        match self {
            Self::NamePrefix => table::NAME_PREFIX,
            Self::NameSuffix => table::NAME_SUFFIX,
            Self::Namespace => table::NAMESPACE,
            Self::CommonLabels => table::COMMON_LABELS,
            Self::Labels => &[],
            Self::TemplateLabels => table::TEMPLATE_LABELS,
            Self::CommonAnnotations => table::COMMON_ANNOTATIONS,
            Self::VarReference => table::VAR_REFERENCE,
            Self::Images => table::IMAGES,
            Self::Replicas => table::REPLICAS,
        }
    }

    /// The field of a configuration file.
    fn name(self) -> &'static str {
        match self {
            Self::NamePrefix => "namePrefix",
            Self::NameSuffix => "nameSuffix",
            Self::Namespace => "namespace",
            Self::CommonLabels => "commonLabels",
            Self::Labels => "labels",
            Self::TemplateLabels => "templateLabels",
            Self::CommonAnnotations => "commonAnnotations",
            Self::VarReference => "varReference",
            Self::Images => "images",
            Self::Replicas => "replicas",
        }
    }
}

impl Config {
    /// The specs of a section.
    pub(crate) fn specs(&self, section: Section) -> Vec<FieldSpec> {
        match self {
            Self::Empty => Vec::new(),
            Self::Builtin => section.builtin().iter().map(Spec::field_spec).collect(),
            Self::Custom(lists) => lists.specs[section as usize].clone(),
        }
    }

    /// Which fields refer to which kinds.
    pub(crate) fn references(&self) -> Vec<BackReference> {
        match self {
            Self::Empty => Vec::new(),
            Self::Builtin => table::NAME_REFERENCE
                .iter()
                .map(builtin_reference)
                .collect(),
            Self::Custom(lists) => lists.references.clone(),
        }
    }

    /// Merges another configuration into this one.
    pub(crate) fn merge(&mut self, other: Self, budget: &Budget) -> Result<()> {
        match (&*self, &other) {
            (_, Self::Empty) | (Self::Builtin, Self::Builtin) => return Ok(()),
            (Self::Empty, Self::Builtin) => {
                *self = Self::Builtin;
                return Ok(());
            }
            _ => {}
        }
        let mut lists = std::mem::take(self).into_lists();
        lists.merge(other.into_lists(), budget)?;
        *self = Self::Custom(Box::new(lists));
        Ok(())
    }

    fn into_lists(self) -> Lists {
        if let Self::Custom(lists) = self {
            return *lists;
        }
        let mut lists = Lists {
            references: self.references(),
            ..Lists::default()
        };
        for section in SECTIONS {
            lists.specs[section as usize] = self.specs(section);
        }
        lists
    }
}

impl Lists {
    fn merge(&mut self, other: Self, budget: &Budget) -> Result<()> {
        for (section, more) in SECTIONS.into_iter().zip(other.specs) {
            for spec in more {
                self.add(section, spec, budget)?;
            }
        }
        for reference in other.references {
            self.add_reference(reference, budget)?;
        }
        for specs in &mut self.specs {
            sort_specs(specs);
        }
        self.references
            .sort_by_cached_key(|reference| order_key(&reference.target));
        Ok(())
    }

    /// Compares the spec with all that are known: many specs cost the square of their number.
    fn add(&mut self, section: Section, spec: FieldSpec, budget: &Budget) -> Result<()> {
        let known = &mut self.specs[section as usize];
        budget.step(known.len() as u64)?;
        if is_new(known, &spec).map_err(|()| conflict(section.name()))? {
            known.push(spec);
        }
        Ok(())
    }

    fn add_reference(&mut self, reference: BackReference, budget: &Budget) -> Result<()> {
        budget.step(self.references.len() as u64)?;
        let known = self
            .references
            .iter_mut()
            .find(|known| known.target == reference.target);
        let Some(known) = known else {
            self.references.push(reference);
            return Ok(());
        };
        for spec in reference.referrers {
            budget.step(known.referrers.len() as u64)?;
            if is_new(&known.referrers, &spec).map_err(|()| conflict("nameReference"))? {
                known.referrers.push(spec);
            }
        }
        Ok(())
    }
}

fn builtin_reference(reference: &Reference) -> BackReference {
    BackReference {
        target: reference.gvk(),
        referrers: reference.referrers.iter().map(Spec::field_spec).collect(),
    }
}

/// Adds specs to a list as kustomize merges them.
pub(crate) fn merge_specs(known: &mut Vec<FieldSpec>, more: Vec<FieldSpec>) -> Result<()> {
    for spec in more {
        if is_new(known, &spec).map_err(|()| conflict("labels"))? {
            known.push(spec);
        }
    }
    Ok(())
}

/// Whether no known spec covers this one; the same field with and without creation contradicts itself.
fn is_new(known: &[FieldSpec], spec: &FieldSpec) -> std::result::Result<bool, ()> {
    let same = known
        .iter()
        .find(|known| known.gvk.is_selected(&spec.gvk) && known.path == spec.path);
    match same {
        None => Ok(true),
        Some(known) if known.create == spec.create => Ok(false),
        Some(_) => Err(()),
    }
}

fn conflict(section: &str) -> Error {
    Error::refused(format!(
        "failed to merge {section} fieldSpec: conflicting fieldspecs"
    ))
}

/// The order in which kustomize keeps field specs: known kinds first, then group, version and kind.
pub(crate) fn sort_specs(specs: &mut [FieldSpec]) {
    specs.sort_by_cached_key(|spec| order_key(&spec.gvk));
}

pub(crate) fn order_key(gvk: &Gvk) -> (i32, String) {
    let part = |text: &Text, none: &str| {
        if text.is_empty() {
            none.to_owned()
        } else {
            text.to_string()
        }
    };
    let words = [
        part(&gvk.group, "~G"),
        part(&gvk.version, "~V"),
        part(&gvk.kind, "~K"),
    ];
    (crate::resource::order::rank(&gvk.kind), words.join("_"))
}
