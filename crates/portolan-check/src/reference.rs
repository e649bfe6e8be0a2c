//! References to an object that nothing produces, or to a key or port that the other object does not have.
//!
//! Only references that an object needs to work are checked. A Secret that something outside the repository creates
//! looks the same as a forgotten one, so unknown targets are only counted. A reference is reported as a mistake only
//! if the repository shows one: a name that is nearly right, or a key or port that the other object does not have.

use std::collections::HashMap;

use portolan_object::{
    FieldPath, Object, Producer, Product, Scope, is_filled_in, pod_templates, products, scope,
};
use portolan_yaml::{List, Node};

use crate::finding::{Found, Subject};
use crate::follow_on::Unrendered;
use crate::places::Places;
use crate::rule::{MISSING_REFERENCE, UNKNOWN_REFERENCE};

/// How many of the objects that nothing makes are named.
const NAMED: usize = 5;

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

/// What a reference leads to.
enum Lack<'w> {
    /// The repository shows the mistake.
    Mistake(&'w FieldPath, String),
    /// Nothing here makes it; something else may.
    Unknown,
}

/// The objects of the cluster by kind, namespace and name, and what controllers make of them.
pub(crate) struct Known<'a> {
    objects: HashMap<(&'a str, &'a str, &'a str), &'a Object>,
    made: Vec<Product>,
}

pub(crate) fn check(
    subjects: &[Subject<'_>],
    known: &Known<'_>,
    unrendered: &[Unrendered],
    places: &Places<'_>,
    findings: &mut Vec<Found>,
) {
    let mut unknown = Unknown::default();
    for (index, subject) in subjects.iter().enumerate() {
        for wanted in wanted_by(subject) {
            match known.lack(&wanted) {
                None => {}
                Some(Lack::Unknown) if may_be_brought(&wanted, unrendered) => {}
                Some(Lack::Unknown) => unknown.add(index, &wanted),
                Some(Lack::Mistake(path, message)) => findings.push(Found {
                    rule: &MISSING_REFERENCE,
                    subject: index,
                    message: format!("{path}: {message}"),
                    place: places.of(subject, path),
                }),
            }
        }
    }
    findings.extend(unknown.finding(subjects, places));
}

/// Whether what could not be rendered may bring it: something in its namespace, or anything where it has none.
fn may_be_brought(wanted: &Wanted, unrendered: &[Unrendered]) -> bool {
    let is_near = |owner: &Unrendered| owner.namespace.as_str() == wanted.namespace;
    match wanted.namespace.as_str() {
        "" => !unrendered.is_empty(),
        _ => unrendered.iter().any(is_near),
    }
}

/// The references that lead to nothing in the repository.
#[derive(Default)]
struct Unknown {
    count: usize,
    /// Each once, in the order in which they are met.
    names: Vec<String>,
    first: Option<(usize, FieldPath)>,
}

impl Unknown {
    fn add(&mut self, subject: usize, wanted: &Wanted) {
        self.count += 1;
        let Wanted {
            kind,
            namespace,
            name,
            path,
            ..
        } = wanted;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let name = format!("{kind} {namespace}{slash}{name}");
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        self.first.get_or_insert_with(|| (subject, path.clone()));
    }

    /// One finding for all, at the first of them.
    fn finding(self, subjects: &[Subject<'_>], places: &Places<'_>) -> Option<Found> {
        let (index, path) = self.first?;
        let references = match self.count {
            1 => "1 reference leads".to_owned(),
            count => format!("{count} references lead"),
        };
        let named: Vec<&str> = self.names.iter().take(NAMED).map(String::as_str).collect();
        let more = match self.names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = named.join(", ");
        Some(Found {
            rule: &UNKNOWN_REFERENCE,
            subject: index,
            message: format!("{references} to what nothing in the repository makes: {named}{more}"),
            place: places.of(subjects.get(index)?, &path),
        })
    }
}

impl<'a> Known<'a> {
    pub(crate) fn of(subjects: &'a [Subject<'a>], producers: &[Producer]) -> Self {
        let mut known = Self {
            objects: HashMap::new(),
            made: Vec::new(),
        };
        for subject in subjects {
            let (object, namespace) = (subject.object, place_of(subject));
            let key = (object.kind(), namespace, object.name());
            known.objects.insert(key, object);
            // What an object is itself is known with its keys.
            let own = producers.iter();
            let own = own.flat_map(|producer| producer.products(object, namespace));
            let made = products(object, namespace).into_iter().chain(own);
            known
                .made
                .extend(made.filter(|made| !is_itself(made, object, namespace)));
        }
        known
    }

    /// What of the reference leads nowhere, and why.
    fn lack<'w>(&self, wanted: &'w Wanted) -> Option<Lack<'w>> {
        let Wanted {
            kind,
            namespace,
            name,
            ..
        } = wanted;
        let key = (*kind, namespace.as_str(), name.as_str());
        if let Some(object) = self.objects.get(&key) {
            let part = wanted.part.as_ref()?;
            let message = format!("{kind} `{name}` has no {} `{}`", part.what, part.name);
            return (!has_part(object, part)).then_some(Lack::Mistake(&part.path, message));
        }
        let is_made = |made: &Product| made.is(kind, namespace, name);
        if is_made_by_kubernetes(wanted) || self.made.iter().any(is_made) {
            return None;
        }
        Some(match self.similar(wanted) {
            Some(similar) => {
                let message =
                    format!("no {kind} is called `{name}` here, did you mean `{similar}`?");
                Lack::Mistake(&wanted.path, message)
            }
            None => Lack::Unknown,
        })
    }

    /// The name of an object that the wanted one was probably meant to be.
    fn similar(&self, wanted: &Wanted) -> Option<&str> {
        let there = self
            .objects
            .keys()
            .filter(|(kind, namespace, _)| *kind == wanted.kind && *namespace == wanted.namespace);
        let alike = there.map(|(_, _, name)| *name);
        alike.filter(|name| is_mistyped(&wanted.name, name)).min()
    }
}

/// Where an object is; one of the whole cluster is in no namespace, whatever is written.
fn place_of<'a>(subject: &'a Subject<'a>) -> &'a str {
    match scope(subject.object.gvk()) {
        Some(Scope::Cluster) => "",
        _ => subject.id.namespace.as_str(),
    }
}

fn is_itself(made: &Product, object: &Object, namespace: &str) -> bool {
    made.kind == object.kind()
        && made.namespace.as_deref() == Some(namespace)
        && made.name == object.name()
}

/// Whether two names differ as by a slip of the fingers. Names that differ in digits alone are meant to differ.
fn is_mistyped(one: &str, other: &str) -> bool {
    /// Shorter names are too often alike by chance.
    const SHORTEST: usize = 6;
    let letters = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    one.len() >= SHORTEST
        && letters(one) != letters(other)
        && strsim::damerau_levenshtein(one, other) == 1
}

fn has_part(object: &Object, part: &Part) -> bool {
    let node = object.node();
    if part.what == "port" {
        let ports = node.at_path(&["spec", "ports"]).and_then(Node::as_list);
        let named = |port: &Node| port.get("name").and_then(Node::as_str) == Some(&part.name);
        return ports.is_some_and(|ports| ports.iter().any(named));
    }
    let mut fields = ["data", "stringData", "binaryData"].into_iter();
    is_filled_in(object) || fields.any(|field| node.at_path(&[field, &part.name]).is_some())
}

/// Whether every cluster, or every Flux, has the object.
fn is_made_by_kubernetes(wanted: &Wanted) -> bool {
    let Wanted {
        kind,
        namespace,
        name,
        ..
    } = wanted;
    let name = name.as_str();
    match (*kind, namespace.as_str()) {
        ("ConfigMap", _) if name == "kube-root-ca.crt" => true,
        ("ConfigMap" | "Secret" | "ServiceAccount" | "Service", "kube-system" | "kube-public") => {
            true
        }
        ("PriorityClass", _) => name.starts_with("system-"),
        ("ServiceAccount", _) => name == "default",
        ("Service", "default") => name == "kubernetes",
        ("Service", "flux-system") => matches!(
            name,
            "notification-controller" | "source-controller" | "source-watcher" | "webhook-receiver"
        ),
        ("Role", "kube-system" | "kube-public") => {
            name.starts_with("system:")
                || name.starts_with("kubeadm:")
                || name == "extension-apiserver-authentication-reader"
        }
        ("ClusterRole", _) => {
            name.starts_with("system:")
                || matches!(name, "admin" | "cluster-admin" | "edit" | "view")
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
