//! Whether requests are still answered: selectors, replicas, and configuration changes that running pods do not read.

use portolan_object::{FieldPath, Object, Owner, Rule, Severity};
use portolan_yaml::{Map, Node};

use super::world::{Surroundings, Workload, are_neighbours};
use super::{Finder, World, text};

pub(super) static SELECTOR: Rule = Rule {
    id: "selector-changed",
    severity: Severity::Warning,
    summary: "a changed selector selects other pods: traffic, budgets and policies move to them immediately",
    help: "Check that pods with the new labels run before the selector changes, or traffic stops until they do.",
};

pub(super) static NO_PODS: Rule = Rule {
    id: "no-pods",
    severity: Severity::Error,
    summary: "a Service whose selector matches no pod of the repository any more has nobody to send traffic to",
    help: "Check the labels of the pods that are meant, or remove the Service.",
};

pub(super) static ZERO: Rule = Rule {
    id: "scaled-to-zero",
    severity: Severity::Warning,
    summary: "a workload with no replicas does nothing",
    help: "Nobody answers for it until it is scaled up again.",
};

pub(super) static STALE: Rule = Rule {
    id: "stale-config",
    severity: Severity::Note,
    summary: "pods read environment variables when they start, so a changed ConfigMap or Secret reaches them with the next restart only",
    help: "Have kustomize generate it with a hash in its name, or put a checksum of it into the pod template.",
};

pub(super) fn lint(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    lint_selector(finder);
    lint_pods(finder, world);
    lint_replicas(finder);
    lint_config(finder, world);
}

/// Kinds whose selector may be changed, and with it whom they concern.
const SELECTING: [(&str, &str, &str); 4] = [
    ("", "Service", "spec.selector"),
    ("monitoring.coreos.com", "ServiceMonitor", "spec.selector"),
    ("networking.k8s.io", "NetworkPolicy", "spec.podSelector"),
    ("policy", "PodDisruptionBudget", "spec.selector"),
];

fn lint_selector(finder: &mut Finder<'_, '_>) {
    let Some((_, new)) = finder.both() else {
        return;
    };
    let kinds = SELECTING.iter();
    for (_, kind, dotted) in kinds.filter(|(group, kind, _)| new.object.gvk().is(group, kind)) {
        let changed = finder
            .subject
            .fields
            .iter()
            .any(|field| field.path.is_under(dotted));
        if changed {
            finder
                .report(&SELECTOR, format!("the {kind} selects other pods"))
                .at(&FieldPath::parse(dotted));
        }
    }
}

/// Services that selected pods of the repository and select none any more.
fn lint_pods(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    let Some((old, new)) = finder.both() else {
        return;
    };
    if !new.object.gvk().is("", "Service") {
        return lint_labels(finder, world);
    }
    if selects(old.object, old.owner, &world.old) == Some(true)
        && selects(new.object, new.owner, &world.new) == Some(false)
    {
        finder
            .report(
                &NO_PODS,
                "its selector matches the pods of no workload any more",
            )
            .at(&FieldPath::parse("spec.selector"));
    }
}

/// A workload whose pods lose the labels that a Service goes by. The Service itself does not change then.
fn lint_labels(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    let labels_changed = finder
        .subject
        .fields
        .iter()
        .any(|field| field.path.is_under("spec.template.metadata"));
    if !labels_changed {
        return;
    }
    let Some((_, new)) = finder.both() else {
        return;
    };
    let services = world.new.objects().filter(|(service, owner)| {
        service.gvk().is("", "Service") && are_neighbours((service, owner), (new.object, new.owner))
    });
    let lost: Vec<String> = services
        .filter(|(service, owner)| {
            selects(service, owner, &world.old) == Some(true)
                && selects(service, owner, &world.new) == Some(false)
        })
        .map(|(service, _)| service.id().short().to_string())
        .collect();
    for service in lost {
        finder.report(
            &NO_PODS,
            format!("{service} selects none of its pods any more"),
        );
    }
}

/// Whether a Service selects the pods of any workload; nothing when it has no selector.
fn selects(service: &Object, owner: &Owner, side: &Surroundings<'_>) -> Option<bool> {
    let selector = service.node().at_path(&["spec", "selector"])?.as_map()?;
    if selector.is_empty() {
        return None;
    }
    let found = side.workloads().iter().any(|workload| {
        are_neighbours((workload.object, workload.owner), (service, owner))
            && workload
                .pods
                .iter()
                .any(|pod| has_labels(pod.node, selector))
    });
    Some(found)
}

fn has_labels(pod: &Node, selector: &Map) -> bool {
    selector.iter().all(|entry| {
        let label = text(pod, &["metadata", "labels", entry.key.as_str()]);
        label.is_some() && label == entry.value.as_str()
    })
}

fn lint_replicas(finder: &mut Finder<'_, '_>) {
    let Some((old, new)) = finder.both() else {
        return;
    };
    let replicas = |object: &Object| {
        object
            .node()
            .at_path(&["spec", "replicas"])
            .map_or(Some(1), Node::as_i64)
    };
    let path = FieldPath::parse("spec.replicas");
    let runs_pods = crate::restart::template_path(new.object.gvk()).is_some();
    if runs_pods && replicas(old.object) != Some(0) && replicas(new.object) == Some(0) {
        let before = replicas(old.object).unwrap_or(1);
        finder
            .report(&ZERO, format!("from {before} replicas to none"))
            .at(&path);
    }
}

/// A ConfigMap or Secret that keeps its name while pods took its values as environment variables.
fn lint_config(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    let Some((old, new)) = finder.both() else {
        return;
    };
    let gvk = new.object.gvk();
    let (reference, from) = match &*gvk.kind {
        "ConfigMap" if gvk.group.is_empty() => ("configMapRef", "configMapKeyRef"),
        "Secret" if gvk.group.is_empty() => ("secretRef", "secretKeyRef"),
        _ => return,
    };
    let data = ["data", "stringData", "binaryData"];
    let changes = finder
        .subject
        .fields
        .iter()
        .any(|field| data.iter().any(|key| field.path.is_under(key)));
    if !changes || old.object.name() != new.object.name() {
        return;
    }
    let reads = |workload: &&Workload<'_>| {
        are_neighbours((workload.object, workload.owner), (new.object, new.owner))
            && !is_reloaded(workload.object)
            && !template_changes(workload, world)
            && workload
                .pods
                .iter()
                .any(|pod| reads_environment(pod.node, new.object.name(), reference, from))
    };
    let readers: Vec<String> = world
        .new
        .workloads()
        .iter()
        .filter(reads)
        .map(|workload| workload.object.id().short().to_string())
        .collect();
    if !readers.is_empty() {
        finder
            .report(&STALE, format!("{} took the old values at start and keeps them until restarted", readers.join(", ")))
            .hint("have kustomize generate it with a hash in its name, or put a checksum of it into the pod template");
    }
}

/// Whether a controller restarts the workload when its configuration changes.
fn is_reloaded(object: &Object) -> bool {
    let mut annotations = object.annotations();
    annotations
        .any(|(key, _)| key.contains("reloader.stakater.com") || key.contains("configmap.reloader"))
}

/// Whether the pods are replaced anyway.
fn template_changes(workload: &Workload<'_>, world: &World<'_>) -> bool {
    let before = world.old.workloads().iter().find(|other| {
        other.owner.cluster == workload.owner.cluster
            && other.object.id().same_object(workload.object.id())
    });
    before.is_none_or(|before| {
        let nodes = |workload: &Workload<'_>| -> Vec<Node> {
            workload.pods.iter().map(|pod| pod.node.clone()).collect()
        };
        nodes(before) != nodes(workload)
    })
}

fn reads_environment(pod: &Node, name: &str, reference: &str, from: &str) -> bool {
    let lists = ["containers", "initContainers"];
    let containers = lists
        .into_iter()
        .filter_map(|list| pod.at_path(&["spec", list])?.as_list())
        .flatten();
    let named = |node: &Node, path: &[&str]| text(node, path) == Some(name);
    let items = |container: &Node, list: &str, path: &[&str]| {
        let items = container.get(list).and_then(Node::as_list);
        items.into_iter().flatten().any(|item| named(item, path))
    };
    containers.into_iter().any(|container| {
        items(container, "envFrom", &[reference, "name"])
            || items(container, "env", &["valueFrom", from, "name"])
    })
}
