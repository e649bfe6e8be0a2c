//! References from one object to another that nothing brings.
//!
//! Only what an object needs to work counts, and only inside the repository: a Secret that an operator makes in the
//! cluster looks the same as a forgotten one, so these findings are warnings.

use std::collections::HashSet;

use portolan_object::{pod_templates, produced_name};
use portolan_schema::FieldPath;
use portolan_vfs::Vfs;
use portolan_yaml::{List, Node};

use crate::finding::{Finding, Subject};
use crate::locate::locate;
use crate::rule::MISSING_REFERENCE;

/// What a reference asks for.
struct Wanted {
    kind: &'static str,
    namespace: String,
    name: String,
    path: FieldPath,
}

/// The names an object of the cluster goes by.
struct Known<'a> {
    names: HashSet<(&'a str, &'a str, &'a str)>,
}

pub(crate) fn check(subjects: &[Subject<'_>], files: &dyn Vfs, findings: &mut Vec<Finding>) {
    let known = Known::of(subjects);
    for (index, subject) in subjects.iter().enumerate() {
        for wanted in wanted_by(subject) {
            if !known.has(&wanted) {
                findings.push(Finding {
                    rule: &MISSING_REFERENCE,
                    subject: index,
                    message: format!(
                        "{}: no {} is called `{}` here",
                        wanted.path, wanted.kind, wanted.name
                    ),
                    place: locate(files, subject.object, &wanted.path),
                });
            }
        }
    }
}

impl<'a> Known<'a> {
    fn of(subjects: &'a [Subject<'a>]) -> Self {
        let mut names = HashSet::new();
        for subject in subjects {
            let (object, namespace) = (subject.object, subject.id.namespace.as_str());
            names.insert((object.kind(), namespace, object.name()));
            if let Some(target) = produced_name(object) {
                names.insert(("Secret", namespace, target));
                names.insert(("ConfigMap", namespace, target));
            }
        }
        Self { names }
    }

    fn has(&self, wanted: &Wanted) -> bool {
        let key = (wanted.kind, wanted.namespace.as_str(), wanted.name.as_str());
        self.names.contains(&key) || is_made_by_kubernetes(wanted)
    }
}

fn is_made_by_kubernetes(wanted: &Wanted) -> bool {
    match wanted.kind {
        "ConfigMap" => wanted.name == "kube-root-ca.crt",
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
                    self.name(
                        "Service",
                        service,
                        &path.key("backend").key("service"),
                        "name",
                    );
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
            Some("ClusterRole") => self.cluster_wide("ClusterRole", role, &path),
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
            self.name(kind, reference, &path.key(field), name);
        }
    }

    fn name(&mut self, kind: &'static str, node: &Node, path: &FieldPath, field: &str) {
        let namespace = self.namespace.to_owned();
        self.add(kind, namespace, node, path, field);
    }

    fn cluster_wide(&mut self, kind: &'static str, node: &Node, path: &FieldPath) {
        self.add(kind, String::new(), node, path, "name");
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
