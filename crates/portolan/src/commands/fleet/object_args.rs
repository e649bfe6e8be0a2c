//! Objects named on a command line: `KIND NAME…`, `KIND/NAME…`, or all of a kind.

use portolan_kinds::{KINDS, KindDefinition, find_kind};
use portolan_object::similar;
use portolan_server::ObjectPath;

use crate::error::CommandError;

/// The namespace when none is named.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// The namespace of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct NamespaceArgs {
    /// The namespace
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE, help_heading = "Selection")]
    pub(crate) namespace: String,
}

/// Which objects of a kind.
#[derive(Debug, clap::Args)]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,

    /// Objects of all namespaces
    #[arg(short = 'A', long, help_heading = "Selection")]
    pub(crate) all_namespaces: bool,

    /// Only objects with these labels, as in `role=web,zone in (a,b)`
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Selection")]
    pub(crate) selector: Option<String>,

    /// Only objects with these fields, as in `metadata.name=web`
    #[arg(long, value_name = "SELECTOR", help_heading = "Selection")]
    pub(crate) field_selector: Option<String>,
}

impl SelectionArgs {
    /// The namespace of a kind's objects.
    pub(crate) fn namespace_of(&self, kind: &KindDefinition) -> Option<String> {
        let is_one = kind.is_namespaced && !self.all_namespaces;
        is_one.then(|| self.namespace.namespace.clone())
    }

    /// The parameters of a list or watch.
    pub(crate) fn query(&self) -> Vec<(&str, &str)> {
        let labels = self.selector.as_deref().map(|text| ("labelSelector", text));
        let fields = self
            .field_selector
            .as_deref()
            .map(|text| ("fieldSelector", text));
        labels.into_iter().chain(fields).collect()
    }
}

/// The kind of a name as users write it.
pub(crate) fn kind_of(name: &str) -> Result<&'static KindDefinition, CommandError> {
    find_kind(name).ok_or_else(|| {
        let error = CommandError::usage(format!("there is no kind `{name}`"));
        let near = similar(&name.to_lowercase(), KINDS, |kind| kind.plural);
        match near {
            Some(near) => error.hint(format!("did you mean `{}`?", near.plural)),
            None => error.hint(format!(
                "there are {}",
                KINDS.map(|kind| kind.plural).join(", ")
            )),
        }
    })
}

/// What `KIND NAME…` or `KIND/NAME…` names; a kind alone is its collection.
pub(crate) fn paths(
    words: &[String],
    namespace: impl Fn(&KindDefinition) -> Option<String>,
) -> Result<Vec<ObjectPath>, CommandError> {
    let path = |kind: &'static KindDefinition, name: Option<&str>| ObjectPath {
        kind,
        namespace: namespace(kind),
        name: name.map(str::to_owned),
    };
    if words.iter().any(|word| word.contains('/')) {
        let paths = words.iter().map(|word| {
            let (kind, name) = word.split_once('/').ok_or_else(|| {
                CommandError::usage(format!("`{word}` names no object"))
                    .hint("write KIND/NAME for each, or KIND NAME…")
            })?;
            Ok(path(kind_of(kind)?, Some(name)))
        });
        return paths.collect();
    }
    let Some((kind, names)) = words.split_first() else {
        return Ok(Vec::new());
    };
    // `get namespaces,nodes` lists several kinds.
    let kinds: Result<Vec<_>, CommandError> = kind.split(',').map(kind_of).collect();
    let kinds = kinds?;
    if names.is_empty() {
        return Ok(kinds.into_iter().map(|kind| path(kind, None)).collect());
    }
    let mut all = Vec::new();
    for kind in kinds {
        all.extend(names.iter().map(|name| path(kind, Some(name))));
    }
    Ok(all)
}
