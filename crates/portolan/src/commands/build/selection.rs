//! Which Kustomizations and releases are printed, and which of their objects.

use portolan_flux::api::NamespacedName;
use portolan_object::{Object, Selector};

use crate::error::CommandError;
use crate::repository::Rendered;

/// Filters on owners and objects.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Only those in this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// In all namespaces, which is the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = parse_selector)]
    selector: Option<Selector>,

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

fn parse_selector(text: &str) -> Result<Selector, String> {
    text.parse()
        .map_err(|error: portolan_object::SelectorError| error.to_string())
}

impl Selection {
    /// Whether a Kustomization or release is asked for.
    pub(super) fn owner(&self, names: &[String], id: &NamespacedName) -> bool {
        let in_namespace = self
            .namespace
            .as_deref()
            .is_none_or(|namespace| id.namespace == namespace);
        in_namespace && (names.is_empty() || names.iter().any(|name| id.name == name.as_str()))
    }

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
            && self
                .selector
                .as_ref()
                .is_none_or(|selector| selector.matches(|key| object.label(key)))
    }
}

/// Says that no name was found, and which names are near.
pub(super) fn not_found(names: &[String], releases: bool, rendered: &Rendered) -> CommandError {
    let kind = if releases {
        "HelmRelease"
    } else {
        "Kustomization"
    };
    let mut ids: Vec<&NamespacedName> = Vec::new();
    for (_, rendering) in &rendered.clusters {
        if releases {
            ids.extend(rendering.releases.keys());
        } else {
            ids.extend(rendering.walk.kustomizations.keys());
        }
    }
    let wanted = names.join("`, `");
    let near = ids
        .iter()
        .min_by_key(|id| names.iter().map(|name| distance(name, &id.name)).min());
    let error = CommandError::usage(format!("no {kind} named `{wanted}`"));
    match near {
        Some(id) => error.hint(format!(
            "there is `{}` in {}, and {} in all",
            id.name,
            id.namespace,
            ids.len()
        )),
        None => error,
    }
}

/// How many letters have to be changed, added or taken away to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
