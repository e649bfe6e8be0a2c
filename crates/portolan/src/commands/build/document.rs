//! One object as a document, and the name of its file.

use std::collections::HashSet;

use camino::Utf8PathBuf;
use portolan_files::file_name;
use portolan_object::{Object, Step};
use portolan_review::SelectedOutput;
use portolan_secret::readable_json;
use portolan_yaml::Node;

use super::write::Form;
use crate::error::CommandError;
use crate::printer::Hidden;

/// What an object belongs to and where it comes from, as comments.
pub(super) fn provenance(selected: &SelectedOutput, object: &Object) -> String {
    let cluster = selected.cluster.as_ref();
    let cluster = cluster.map_or_else(String::new, |name| format!(" of {name}"));
    let one_line = |text: String| text.replace(['\n', '\r'], " ");
    let origin = one_line(object.origin().to_relative());
    let mut text = format!("# {}{cluster}\n# {origin}\n", selected.owner);
    if !selected.made_of.is_empty() {
        let made_of = selected.made_of.iter().map(Step::to_string);
        let made_of = one_line(made_of.collect::<Vec<_>>().join(", "));
        text += &["# declared in ", &made_of, "\n"].concat();
    }
    text
}

/// The text of an object, whose tree is shown without what is secret.
pub(super) fn print(object: &Object, shown: &Node, form: Form) -> Result<String, CommandError> {
    let printed = match form {
        Form::Yaml => portolan_yaml::write_kustomize(shown),
        Form::Json => portolan_yaml::to_json(shown).map(|json| readable_json(&json).into_owned()),
    };
    printed.map_err(|error| CommandError::usage(format!("cannot print {}: {error}", object.id())))
}

/// `Kustomization/flux-system/apps/shop/Deployment-web.yaml`; a second one of that name gets a number. All names come
/// out of the repository, so each becomes one name of a file, without what is secret in it.
pub(super) fn object_path(
    selected: &SelectedOutput,
    object: &Object,
    form: Form,
    hidden: &Hidden,
    taken: &mut HashSet<Utf8PathBuf>,
) -> Utf8PathBuf {
    let namespace = if object.namespace().is_empty() {
        "_cluster"
    } else {
        object.namespace()
    };
    let (kind, owner) = selected
        .owner
        .split_once(' ')
        .unwrap_or(("", &selected.owner));
    let (place, name) = owner.split_once('/').unwrap_or(("", owner));
    let mut directory = Utf8PathBuf::new();
    let parents = [selected.cluster.as_deref().unwrap_or_default(), kind, place];
    for parent in parents.into_iter().filter(|parent| !parent.is_empty()) {
        directory.push(file_name(&hidden.clean(parent)));
    }
    directory.push(file_name(&hidden.clean(name)));
    directory.push(file_name(&hidden.clean(namespace)));
    let stem = file_name(&hidden.clean(&format!("{}-{}", object.kind(), object.name())));
    let extension = match form {
        Form::Yaml => "yaml",
        Form::Json => "json",
    };
    let numbers = (2..).map(|number| format!("{stem}-{number}.{extension}"));
    let mut paths = std::iter::once(format!("{stem}.{extension}"))
        .chain(numbers)
        .map(|name| directory.join(name));
    paths
        .find(|path| taken.insert(path.clone()))
        .unwrap_or(directory)
}
