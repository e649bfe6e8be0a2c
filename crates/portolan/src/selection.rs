//! Which objects are meant: `-n`, `-A` and `-l`, as kubectl has them.

use portolan_flux::api::NamespacedName;
use portolan_object::{Object, Selector, SelectorError};

/// A namespace and labels.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Only those in this namespace
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// In all namespaces, which is the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = parse_selector)]
    selector: Option<Selector>,
}

fn parse_selector(text: &str) -> Result<Selector, String> {
    text.parse()
        .map_err(|error: SelectorError| error.to_string())
}

impl Selection {
    /// Whether things of this namespace are meant.
    pub(crate) fn has_namespace(&self, namespace: &str) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|wanted| wanted == namespace)
    }

    /// Whether something of this name is meant, when these are asked for; none means all.
    pub(crate) fn has_name(&self, names: &[String], id: &NamespacedName) -> bool {
        self.has_namespace(&id.namespace) && (names.is_empty() || is_named(names, id))
    }

    /// Whether an object has the labels; what has no object has none.
    pub(crate) fn has_labels(&self, object: Option<&Object>) -> bool {
        let Some(selector) = &self.selector else {
            return true;
        };
        selector.matches(|key| object.and_then(|object| object.label(key)))
    }
}

/// Whether one of the names, `NAME` or `NAMESPACE/NAME`, names it.
pub(crate) fn is_named(names: &[String], id: &NamespacedName) -> bool {
    names.iter().any(|name| match name.split_once('/') {
        Some((namespace, name)) => id.namespace == namespace && id.name == name,
        None => id.name == name.as_str(),
    })
}
