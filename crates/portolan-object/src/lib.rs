//! Kubernetes objects as every job sees them.
//!
//! An [`Object`] is a YAML tree that was recognised as a Kubernetes object: it has an [`ObjectId`] (group, version,
//! kind, namespace, name) and an [`Origin`] that says where it came from and what changed it since. The crate also
//! has what many jobs need to know about objects: label [`Selector`]s, what users [select](ObjectSelection) by names,
//! namespaces, labels and [kind names](KindNames), the kinds that a Kubernetes release [`served`](served()) and their
//! [`Scope`], where a kind has its [pod templates](pod_templates), which [container images](images()) it names, and
//! its [canonical JSON](canonical_json) with a [`Digest`]. A [`FieldPath`] names one of its fields, and finds the line of a
//! document that wrote it.
//!
//! A problem of an object is a [`Finding`] of a [`Rule`], whichever crate finds it.
//!
//! The crate knows nothing about files, clusters or the tools that render objects; a tree is a
//! [`portolan_yaml::Node`].
//!
//! ```
//! use portolan_object::{Gvk, Scope, Selector, scope};
//!
//! let gvk: Gvk = "apps/v1/Deployment".parse()?;
//! assert_eq!(gvk.api_version(), "apps/v1");
//! assert_eq!(scope(&gvk), Some(Scope::Namespaced));
//!
//! let selector: Selector = "app=web,tier notin (cache)".parse()?;
//! assert!(selector.matches(|key| (key == "app").then_some("web")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod gvk;
mod id;
mod origin;

mod body;
mod compressed;
mod list;
mod object;
mod pack_dictionary;
mod packed_objects;

mod canonical;
mod day;

mod selection;

mod kind;

mod field;
mod field_path;
mod placeholder;
mod pod;
mod producer;

mod count;

mod finding;

/// The API version of Portolan's own kinds and of every answer that it writes for programs.
pub const API_VERSION: &str = "portolan.dev/v1alpha1";

pub use canonical::{Digest, canonical_json};
pub use compressed::Compressed;
pub use count::counted;
pub use day::{BadDay, Day};
pub use field_path::{FieldPath, FieldSegment, WrittenField};
pub use finding::owner::{Owner, OwnerKind};
pub use finding::rule::Rule;
pub use finding::severity::Severity;
pub use finding::{Cause, Finding};
pub use gvk::{Gvk, GvkError};
pub use id::{IdError, ObjectId, Short};
pub use kind::definition::{DefinedKind, defined_kinds};
pub use kind::kind_names::KindNames;
pub use kind::scope::scope;
pub use kind::served::{Scope, Served, first_served, served};
pub use kind::version::{KubeVersion, KubeVersionError};
pub use list::expand_lists;
pub use object::{Object, ObjectError};
pub use origin::{Act, Origin, Place, Step};
pub use pack_dictionary::PackDictionary;
pub use packed_objects::PackedObjects;
pub use placeholder::{holds_placeholder, placeholder, placeholder_number, with_exponent};
pub use pod::image::{ImageError, ImageRef};
pub use pod::images::{Image, ImageRole, images};
pub use pod::pod_template::{PodTemplate, pod_templates, visit_pod_templates_mut};
pub use producer::{Producer, Product, is_filled_in, makes, producer_kinds, products};
pub use selection::label::{
    key_problems as label_key_problems, value_problems as label_value_problems,
};
pub use selection::name::NameRule;
pub use selection::nearest::{nearest, similar};
pub use selection::no_match::{NoMatch, Noun};
pub use selection::object_name::ObjectName;
pub use selection::object_selection::{Candidate, ObjectSelection};
pub use selection::selector::{Operator, Requirement, Selector, SelectorError};
