//! References from one object to another that nothing brings, or to a key or port that the other does not have.
//!
//! Only what an object needs to work counts, and only inside the repository: a Secret that an operator makes in the
//! cluster looks the same as a forgotten one, so these findings are warnings.

use std::collections::HashMap;

use portolan_object::{pod_templates, produced_name};
use portolan_schema::FieldPath;
use portolan_vfs::Vfs;
use portolan_yaml::{List, Node};

use crate::finding::{Found, Subject};
use crate::locate::locate;
use crate::rule::MISSING_REFERENCE;

/// What a reference asks for.
struct Wanted {
    kind: &'static str,
    namespace: String,
    name: String,
    path: FieldPath,
    part: Option<Part>,
}

/// What of the other object is asked for.
struct Part {
    what: &'static str,
    name: String,
    path: FieldPath,
}

/// The names that objects of the cluster go by, with the object; what a controller makes is known by name alone.
struct Known<'a> {
    objects: HashMap<(&'a str, &'a str, &'a str), Option<&'a Node>>,
}

pub(crate) fn check(subjects: &[Subject<'_>], files: &dyn Vfs, findings: &mut Vec<Found>) {
    let known = Known::of(subjects);
    for (index, subject) in subjects.iter().enumerate() {
        for wanted in wanted_by(subject) {
            findings.extend(known.lack(&wanted).map(|(path, message)| Found {
                rule: &MISSING_REFERENCE,
                subject: index,
                message: format!("{path}: {message}"),
                place: locate(files, subject.object, path),
            }));
        }
    }
}

impl<'a> Known<'a> {
    fn of(subjects: &'a [Subject<'a>]) -> Self {
        let mut objects = HashMap::new();
        for subject in subjects {
            let (object, namespace) = (subject.object, subject.id.namespace.as_str());
            let key = (object.kind(), namespace, object.name());
            objects.insert(key, Some(object.node()));
            if let Some(target) = produced_name(object) {
                objects.entry(("Secret", namespace, target)).or_insert(None);
                objects
                    .entry(("ConfigMap", namespace, target))
                    .or_insert(None);
            }
        }
        Self { objects }
    }

    /// What of the reference leads nowhere, and why.
    fn lack<'w>(&self, wanted: &'w Wanted) -> Option<(&'w FieldPath, String)> {
        let Wanted { kind, name, .. } = wanted;
        let key = (*kind, wanted.namespace.as_str(), name.as_str());
        let Some(found) = self.objects.get(&key) else {
            let message = format!("no {kind} is called `{name}` here");
            return (!is_made_by_kubernetes(wanted)).then_some((&wanted.path, message));
        };
        let (node, part) = ((*found)?, wanted.part.as_ref()?);
        let message = format!("{kind} `{name}` has no {} `{}`", part.what, part.name);
        (!has_part(node, part)).then_some((&part.path, message))
    }
}

fn has_part(node: &Node, part: &Part) -> bool {
    if part.what == "port" {
        let ports = node.at_path(&["spec", "ports"]).and_then(Node::as_list);
        let named = |port: &Node| port.get("name").and_then(Node::as_str) == Some(&part.name);
        return ports.is_some_and(|ports| ports.iter().any(named));
    }
    ["data", "stringData", "binaryData"]
        .into_iter()
        .any(|field| node.at_path(&[field, &part.name]).is_some())
}

fn is_made_by_kubernetes(wanted: &Wanted) -> bool {
    match wanted.kind {
        "ConfigMap" => wanted.name == "kube-root-ca.crt",
        "PriorityClass" => wanted.name.starts_with("system-"),
        "ServiceAccount" => wanted.name == "default",
        "ClusterRole" => {
            wanted.name.starts_with("system:")
                || matches!(
                    wanted.name.as_str(),
                    "admin" | "cluster-admin" | "edit" | "view"
                )
        }
        _ => false,
    }
}

fn wanted_by(subject: &Subject<'_>) -> Vec<Wanted> {
    let object = subject.object;
    let mut references = References {
        namespace: &subject.id.namespace,
        wanted: Vec::new(),
    };
    for template in pod_templates(object.gvk(), object.node()) {
        let path = FieldPath::parse(&template.path).key("spec");
        if let Some(spec) = template.node.get("spec") {
            references.pod(spec, &path);
        }
    }
    let (node, root) = (object.node(), FieldPath::default());
    match object.kind() {
        "HorizontalPodAutoscaler" => references.scale_target(node, &root),
        "Ingress" => references.backends(node, &root),
        "ClusterRoleBinding" | "RoleBinding" => references.role(node, &root),
        _ => {}
    }
    references.wanted
}

/// Collects what one object refers to.
struct References<'a> {
    namespace: &'a str,
    wanted: Vec<Wanted>,
}

impl References<'_> {
    fn pod(&mut self, spec: &Node, path: &FieldPath) {
        self.name("ServiceAccount", spec, path, "serviceAccountName");
        self.cluster_wide("PriorityClass", spec, path, "priorityClassName");
        for (volume, path) in items(spec, path, "volumes") {
            self.volume(volume, &path);
        }
        for list in ["initContainers", "containers"] {
            for (container, path) in items(spec, path, list) {
                self.container(container, &path);
            }
        }
    }

    fn volume(&mut self, volume: &Node, path: &FieldPath) {
        for (field, kind, name) in [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            (
                "persistentVolumeClaim",
                "PersistentVolumeClaim",
                "claimName",
            ),
        ] {
            self.optional(kind, volume, path, field, name);
        }
    }

    fn container(&mut self, container: &Node, path: &FieldPath) {
        for (source, path) in items(container, path, "envFrom") {
            self.optional("ConfigMap", source, &path, "configMapRef", "name");
            self.optional("Secret", source, &path, "secretRef", "name");
        }
        for (variable, path) in items(container, path, "env") {
            let Some(source) = variable.get("valueFrom") else {
                continue;
            };
            let path = path.key("valueFrom");
            self.optional("ConfigMap", source, &path, "configMapKeyRef", "name");
            self.optional("Secret", source, &path, "secretKeyRef", "name");
        }
    }

    fn scale_target(&mut self, node: &Node, path: &FieldPath) {
        let Some(target) = node.at_path(&["spec", "scaleTargetRef"]) else {
            return;
        };
        let path = path.key("spec").key("scaleTargetRef");
        let kinds = ["Deployment", "ReplicaSet", "StatefulSet"];
        let kind = target.get("kind").and_then(Node::as_str);
        if let Some(kind) = kinds.into_iter().find(|known| Some(*known) == kind) {
            self.name(kind, target, &path, "name");
        }
    }

    fn backends(&mut self, node: &Node, path: &FieldPath) {
        let Some(spec) = node.get("spec") else { return };
        for (rule, path) in items(spec, &path.key("spec"), "rules") {
            let Some(http) = rule.get("http") else {
                continue;
            };
            for (route, path) in items(http, &path.key("http"), "paths") {
                if let Some(service) = route.at_path(&["backend", "service"]) {
                    let path = path.key("backend").key("service");
                    self.name("Service", service, &path, "name");
                    if let Some(port) = service.get("port") {
                        self.of_last("port", port, &path.key("port"), "name");
                    }
                }
            }
        }
    }

    fn role(&mut self, node: &Node, path: &FieldPath) {
        let Some(role) = node.get("roleRef") else {
            return;
        };
        let path = path.key("roleRef");
        match role.get("kind").and_then(Node::as_str) {
            Some("Role") => self.name("Role", role, &path, "name"),
            Some("ClusterRole") => self.cluster_wide("ClusterRole", role, &path, "name"),
            _ => {}
        }
    }

    /// A reference that its own `optional: true` excuses.
    fn optional(
        &mut self,
        kind: &'static str,
        node: &Node,
        path: &FieldPath,
        field: &str,
        name: &str,
    ) {
        let Some(reference) = node.get(field) else {
            return;
        };
        if reference.get("optional").and_then(Node::as_bool) != Some(true) {
            let path = path.key(field);
            self.name(kind, reference, &path, name);
            self.of_last("key", reference, &path, "key");
        }
    }

    /// The part of the object named last that the reference asks for.
    fn of_last(&mut self, what: &'static str, node: &Node, path: &FieldPath, field: &str) {
        let name = node.get(field).and_then(Node::as_str);
        if let (Some(wanted), Some(name)) = (self.wanted.last_mut(), name) {
            wanted.part = Some(Part {
                what,
                name: name.to_owned(),
                path: path.key(field),
            });
        }
    }

    fn name(&mut self, kind: &'static str, node: &Node, path: &FieldPath, field: &str) {
        let namespace = self.namespace.to_owned();
        self.add(kind, namespace, node, path, field);
    }

    fn cluster_wide(&mut self, kind: &'static str, node: &Node, path: &FieldPath, field: &str) {
        self.add(kind, String::new(), node, path, field);
    }

    fn add(
        &mut self,
        kind: &'static str,
        namespace: String,
        node: &Node,
        path: &FieldPath,
        field: &str,
    ) {
        let name = node
            .get(field)
            .and_then(Node::as_str)
            .filter(|name| !name.is_empty());
        self.wanted.extend(name.map(|name| Wanted {
            kind,
            namespace,
            name: name.to_owned(),
            path: path.key(field),
            part: None,
        }));
    }
}

/// The items of a list in a map, each with its path.
fn items<'n>(node: &'n Node, path: &FieldPath, field: &str) -> Vec<(&'n Node, FieldPath)> {
    let list = node.get(field).and_then(Node::as_list);
    let path = path.key(field);
    let numbered = list.into_iter().flat_map(List::iter).enumerate();
    numbered
        .map(|(index, item)| (item, path.index(index)))
        .collect()
}
