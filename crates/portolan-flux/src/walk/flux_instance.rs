//! What a FluxInstance makes: the source that Flux follows and the Kustomization over it, with the instance's patches.
//!
//! In the cluster it also makes the components of Flux itself; they are not part of the repository.

use portolan_kustomize::{Error, LoadRestrictor, Options, Reorder};
use portolan_object::{Act, Object, Origin, Step};
use portolan_vfs::Memory;
use portolan_yaml::{List, Map, Node, Text, Value};

use crate::api::{FluxInstance, Sync};

/// The file that patches find the objects in.
const MADE: &str = "sync.yaml";

/// The objects that an instance makes, as far as the repository tells.
pub(crate) fn expand(instance: &FluxInstance, written: &Origin) -> Result<Vec<Object>, Error> {
    let Some(sync) = &instance.sync else {
        return Ok(Vec::new());
    };
    let mut files = Memory::new();
    files.insert(format!("/{MADE}"), objects(instance, sync));
    let mut file = Map::new();
    let resources = List::from_items(vec![Node::string(MADE)]);
    file.insert("resources", Node::new(Value::List(resources)));
    if let Some(patches) = matching(instance.patches.as_ref()) {
        file.insert("patches", patches);
    }
    let file = Node::new(Value::Map(file));
    let options = Options {
        load_restrictor: LoadRestrictor::RootOnly,
        reorder: Reorder::None,
        kustomization: Some(&file),
        budget: None,
        ..Options::default()
    };
    let built = portolan_kustomize::build("/".into(), &files, &options)?;
    let origin = written.then(Step::new(
        Act::Generate,
        format!("FluxInstance {}", instance.id),
    ));
    let resources = built.into_resources().into_iter();
    Ok(resources
        .filter_map(|resource| Object::new(resource.node, origin.clone()).ok())
        .collect())
}

/// Patches for the components have no target here, and kustomize refuses a strategic one without a match.
fn matching(patches: Option<&Node>) -> Option<Node> {
    let patches = patches?.as_list()?.iter();
    let for_sync = patches.filter(|patch| {
        let kind = patch.at_path(&["target", "kind"]).and_then(Node::as_str);
        let made = ["Kustomization", "GitRepository", "OCIRepository", "Bucket"];
        kind.is_some_and(|kind| {
            made.iter().any(|made| kind.contains(made)) || kind.contains(['(', '*', '|'])
        })
    });
    let chosen: Vec<_> = for_sync.cloned().collect();
    (!chosen.is_empty()).then(|| Node::new(Value::List(List::from_items(chosen))))
}

fn objects(instance: &FluxInstance, sync: &Sync) -> String {
    let namespace = &instance.id.namespace;
    let Sync {
        name,
        kind,
        url,
        reference,
        path,
        interval,
        pull_secret,
    } = sync;
    let url = quoted(url);
    let reference = quoted(reference);
    let path = quoted(path);
    let location = match kind.as_str() {
        "OCIRepository" => format!("url: {url}\n  ref:\n    tag: {reference}"),
        "Bucket" => format!("endpoint: {url}\n  bucketName: {reference}"),
        _ => format!("url: {url}\n  ref:\n    name: {reference}"),
    };
    let secret = pull_secret.as_ref().map_or(String::new(), |secret| {
        format!("\n  secretRef:\n    name: {secret}")
    });
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n  interval: {interval}\n  {location}{secret}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n  interval: 10m0s\n  path: {path}\n  prune: true\n  sourceRef:\n    kind: {kind}\n    name: {name}\n"
    )
}

/// A text as YAML reads it back, whatever it holds.
fn quoted(text: &Text) -> String {
    portolan_yaml::to_json(&Node::string(text.clone())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    #[test]
    fn patches_reach_the_kustomization_that_the_instance_makes() {
        let text = "metadata: {name: flux, namespace: flux-system}\nspec:\n  sync: {kind: GitRepository, url: 'ssh://git@example.org/x', ref: refs/heads/main, path: clusters/a}\n  kustomize:\n    patches:\n    - target: {kind: Deployment}\n      patch: '[]'\n    - target: {kind: Kustomization}\n      patch: |\n        - {op: add, path: /spec/force, value: true}\n";
        let instance = FluxInstance::read(&parse_one(text, Dialect::Helm).unwrap()).unwrap();
        let made = expand(&instance, &Origin::default()).unwrap();
        let ids: Vec<_> = made
            .iter()
            .map(|object| object.id().short().to_string())
            .collect();
        assert_eq!(
            ids,
            [
                "GitRepository/flux-system/flux-system",
                "Kustomization/flux-system/flux-system"
            ]
        );
        let force = made[1]
            .node()
            .at_path(&["spec", "force"])
            .and_then(Node::as_bool);
        assert_eq!(force, Some(true));
    }
}
