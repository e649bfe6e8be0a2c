//! Which of the owners' objects are printed.

use portolan_object::Object;

use crate::selection::Selection;

/// Filters on objects.
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
    #[arg(long)]
    skip_crds: bool,

    /// No Secrets
    #[arg(long)]
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
            && !(self.skip_crds && kind == "CustomResourceDefinition")
            && !(self.skip_secrets && kind == "Secret")
            && self.selection.has_labels(Some(object))
    }
}
