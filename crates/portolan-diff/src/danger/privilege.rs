//! Pods that get closer to their node than before.

use std::collections::BTreeSet;

use portolan_object::{Object, Rule, Severity, pod_templates};
use portolan_yaml::Node;

use super::{Finder, text};

pub(super) static PRIVILEGED: Rule = Rule {
    id: "privileged",
    severity: Severity::Warning,
    summary: "a pod that shares its node's namespaces, files or kernel rights can take the node over",
    help: "Ask for the one capability or volume that is needed instead.",
};

pub(super) fn lint(finder: &mut Finder<'_, '_>) {
    let Some(new) = finder.after() else { return };
    let before = finder
        .both()
        .map(|(old, _)| powers(old.object))
        .unwrap_or_default();
    let gained: Vec<String> = powers(new.object).difference(&before).cloned().collect();
    if !gained.is_empty() {
        finder.report(
            &PRIVILEGED,
            format!("its pods newly have {}", gained.join(", ")),
        );
    }
}

/// What brings the pods of an object close to their node.
fn powers(object: &Object) -> BTreeSet<String> {
    let mut powers = BTreeSet::new();
    for pod in pod_templates(object.gvk(), object.node()) {
        let Some(spec) = pod.node.get("spec") else {
            continue;
        };
        for field in ["hostIPC", "hostNetwork", "hostPID"] {
            if spec.get(field).and_then(Node::as_bool) == Some(true) {
                powers.insert(format!("`{field}`"));
            }
        }
        for volume in items(spec, "volumes") {
            if let Some(path) = text(volume, &["hostPath", "path"]) {
                powers.insert(format!("the node's `{path}`"));
            }
        }
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            for container in items(spec, list) {
                container_powers(container, &mut powers);
            }
        }
    }
    powers
}

fn container_powers(container: &Node, powers: &mut BTreeSet<String>) {
    let name = text(container, &["name"]).unwrap_or_default();
    let Some(context) = container.get("securityContext") else {
        return;
    };
    if context.get("privileged").and_then(Node::as_bool) == Some(true) {
        powers.insert(format!("the privileged container `{name}`"));
    }
    let added = context
        .at_path(&["capabilities", "add"])
        .and_then(Node::as_list);
    for capability in added.into_iter().flatten().filter_map(Node::as_str) {
        powers.insert(format!("the capability `{capability}` in `{name}`"));
    }
}

fn items<'a>(spec: &'a Node, field: &str) -> impl Iterator<Item = &'a Node> {
    spec.get(field)
        .and_then(Node::as_list)
        .into_iter()
        .flatten()
}
