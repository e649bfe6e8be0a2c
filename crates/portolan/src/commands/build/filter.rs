//! Which of the owners' objects are printed.

use portolan_object::Object;

use crate::selection::Selection;

/// The kind that defines kinds.
const CRD: &str = "CustomResourceDefinition";

/// Filters on objects.
///
/// `--skip-crds=false` is for those who come from tools that skip them by default.
#[derive(Debug, clap::Args)]
pub(super) struct ObjectFilter {
    #[command(flatten)]
    pub(super) selection: Selection,

    /// Only objects of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only_kinds: Vec<String>,

    /// No objects of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    skip_kinds: Vec<String>,

    /// No CustomResourceDefinitions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true)]
    skip_crds: bool,

    /// Only CustomResourceDefinitions
    #[arg(long, conflicts_with = "only_kinds")]
    only_crds: bool,

    /// No Secrets
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true)]
    skip_secrets: bool,
}

impl ObjectFilter {
    /// The objects that are asked for.
    pub(super) fn objects(&self, objects: &[Object]) -> Vec<Object> {
        objects
            .iter()
            .filter(|object| self.object(object))
            .cloned()
            .collect()
    }

    fn object(&self, object: &Object) -> bool {
        let kind = object.kind();
        let named = |kinds: &[String]| kinds.iter().any(|other| other.eq_ignore_ascii_case(kind));
        (self.only_kinds.is_empty() || named(&self.only_kinds))
            && !named(&self.skip_kinds)
            && (!self.only_crds || kind == CRD)
            && !(self.skip_crds && !self.only_crds && kind == CRD)
            && !(self.skip_secrets && kind == "Secret")
            && self.selection.has_labels(Some(object))
    }
}
