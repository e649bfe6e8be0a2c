//! The built-in transformers: each changes the accumulated resources in one way.

pub(crate) mod namereference;

mod images;
mod labels;
mod name;
mod namespace;
mod patch;
mod path;
mod replacement;
mod replicas;
mod structured;
mod value_add;
mod variables;

pub(crate) use images::{Image, read_image, set_images};
pub(crate) use labels::{set_annotations, set_labels};
pub(crate) use name::{add_prefix, add_suffix};
pub(crate) use namespace::{NamespaceArgs, SubjectMode, set_namespace};
pub(crate) use patch::{
    LoadedPatch, Patch, apply_json_patch, apply_patch, apply_strategic_merges, read_json_patch,
};
pub(crate) use replacement::{Replacement, ReplacementEntry, replace};
pub(crate) use replicas::{Replica, set_replicas};
pub(crate) use value_add::{ValueAdd, add_value};
pub(crate) use variables::{NameVariable, VariableSet, resolve_variables};
