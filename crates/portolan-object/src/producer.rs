//! What controllers make in a cluster out of objects that a repository holds: it is nowhere in the repository, and still
//! not missing.
//!
//! ```text
//! object ──rules of the table and of the settings──▶ Product (kind, namespaces, name pattern) ──makes──▶ yes or no
//! ```
//!
//! A name is written as a template: `{name}` is the object's own name, `{spec.target.name|name}` a field of it or else
//! its name, and `*` stands for anything. A template whose fields are all absent makes nothing.

use std::borrow::Cow;

use portolan_yaml::{List, Node};

use crate::object::Object;
use crate::pod_template::pod_templates;

/// One kind of objects and what its controller makes of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    group: Cow<'static, str>,
    kind: Cow<'static, str>,
    makes: Cow<'static, str>,
    name: Cow<'static, str>,
    everywhere: bool,
}

/// Objects that a controller makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Their kind.
    pub kind: String,
    /// Their namespace; `None` if they may be in any.
    pub namespace: Option<String>,
    /// Their name; `*` stands for anything.
    pub name: String,
}

/// Group and kind; kinds that are made, and the templates of their names; `everywhere` for those made in each namespace.
type Row = (&'static str, &'static str, &'static str, &'static str);

const PRODUCERS: &[Row] = &[
    (
        "external-secrets.io",
        "ExternalSecret",
        "Secret ConfigMap",
        "{spec.target.name|name}",
    ),
    (
        "bitnami.com",
        "SealedSecret",
        "Secret",
        "{spec.template.metadata.name|name}",
    ),
    (
        "cert-manager.io",
        "Certificate",
        "Secret",
        "{spec.secretName}",
    ),
    (
        "objectbucket.io",
        "ObjectBucketClaim",
        "Secret ConfigMap",
        "{name}",
    ),
    ("onepassword.com", "OnePasswordItem", "Secret", "{name}"),
    (
        "secrets.infisical.com",
        "InfisicalSecret",
        "Secret",
        "{name} {spec.managedSecretReference.secretName}",
    ),
    (
        "secrets.hashicorp.com",
        "VaultStaticSecret",
        "Secret",
        "{spec.destination.name}",
    ),
    (
        "secrets.hashicorp.com",
        "VaultDynamicSecret",
        "Secret",
        "{spec.destination.name}",
    ),
    (
        "secrets.hashicorp.com",
        "VaultPKISecret",
        "Secret",
        "{spec.destination.name}",
    ),
    // Databases and brokers.
    (
        "postgresql.cnpg.io",
        "Cluster",
        "Secret",
        "{name}-app {name}-superuser {name}-ca {name}-server {name}-replication",
    ),
    (
        "postgresql.cnpg.io",
        "Cluster",
        "Service",
        "{name}-rw {name}-ro {name}-r",
    ),
    ("postgresql.cnpg.io", "Cluster", "ServiceAccount", "{name}"),
    ("postgresql.cnpg.io", "Pooler", "Service", "{name}"),
    (
        "postgres-operator.crunchydata.com",
        "PostgresCluster",
        "Secret Service ConfigMap",
        "{name}-*",
    ),
    (
        "acid.zalan.do",
        "postgresql",
        "Secret",
        "*.{name}.credentials *.{name}.credentials.postgresql.acid.zalan.do",
    ),
    (
        "acid.zalan.do",
        "postgresql",
        "Service",
        "{name} {name}-repl {name}-pooler",
    ),
    (
        "rabbitmq.com",
        "RabbitmqCluster",
        "Secret",
        "{name}-default-user {name}-erlang-cookie",
    ),
    (
        "rabbitmq.com",
        "RabbitmqCluster",
        "Service",
        "{name} {name}-nodes",
    ),
    ("kafka.strimzi.io", "Kafka", "Secret Service", "{name}-*"),
    ("kafka.strimzi.io", "KafkaUser", "Secret", "{name}"),
    (
        "elasticsearch.k8s.elastic.co",
        "Elasticsearch",
        "Secret Service ConfigMap",
        "{name}-es-*",
    ),
    (
        "kibana.k8s.elastic.co",
        "Kibana",
        "Secret Service",
        "{name}-kb-*",
    ),
    (
        "apm.k8s.elastic.co",
        "ApmServer",
        "Secret Service",
        "{name}-apm-*",
    ),
    (
        "agent.k8s.elastic.co",
        "Agent",
        "Secret Service",
        "{name}-agent-*",
    ),
    ("beat.k8s.elastic.co", "Beat", "Secret", "{name}-beat-*"),
    (
        "logstash.k8s.elastic.co",
        "Logstash",
        "Secret Service",
        "{name}-ls-*",
    ),
    (
        "ceph.rook.io",
        "CephCluster",
        "Secret ConfigMap Service ServiceAccount",
        "rook-ceph-* rook-csi-* rook-config-override",
    ),
    (
        "ceph.rook.io",
        "CephObjectStore",
        "Service",
        "rook-ceph-rgw-{name}",
    ),
    (
        "ceph.rook.io",
        "CephObjectStoreUser",
        "Secret",
        "rook-ceph-object-user-{spec.store}-{name}",
    ),
    // Logins and machines.
    (
        "pocketid.internal",
        "PocketIDOIDCClient",
        "Secret",
        "{name}-oidc-credentials {spec.secret.name}",
    ),
    (
        "grafana.integreatly.org",
        "Grafana",
        "Secret",
        "{name}-admin-credentials",
    ),
    (
        "grafana.integreatly.org",
        "Grafana",
        "Service",
        "{name}-service",
    ),
    (
        "k8s.keycloak.org",
        "Keycloak",
        "Secret",
        "{name}-initial-admin",
    ),
    ("k8s.keycloak.org", "Keycloak", "Service", "{name}-service"),
    ("talos.dev", "ServiceAccount", "Secret", "{name}"),
    // Flux itself.
    (
        "fluxcd.controlplane.io",
        "FluxInstance",
        "Service",
        "notification-controller source-controller source-watcher webhook-receiver",
    ),
];

/// Those that make something in every namespace that they select.
const EVERYWHERE: &[Row] = &[
    (
        "external-secrets.io",
        "ClusterExternalSecret",
        "Secret ConfigMap",
        "{spec.externalSecretSpec.target.name|spec.externalSecretName|name}",
    ),
    (
        "trust.cert-manager.io",
        "Bundle",
        "ConfigMap Secret",
        "{name}",
    ),
];

/// Controllers that are told by the image of their workload: a part of the image's name, and the Secret they make.
const IMAGES: &[(&str, &str)] = &[("kedacore/keda", "kedaorg-certs")];

/// Images of jobs that make the Secret which their arguments name.
const CERTIFICATE_JOBS: &[&str] = &["kube-webhook-certgen"];

/// Annotations by which a Secret or ConfigMap is copied to other namespaces.
const COPIED: &[&str] = &[
    "reflector.v1.k8s.emberstack.com/reflection-auto-enabled",
    "replicator.v1.mittwald.de/replicate-to",
    "replicator.v1.mittwald.de/replicate-to-matching",
];

/// Where the annotations of what an object makes are written, its own among them.
const ANNOTATIONS: &[&[&str]] = &[
    &["metadata", "annotations"],
    &["spec", "secretTemplate", "annotations"],
    &["spec", "target", "template", "metadata", "annotations"],
    &["spec", "template", "metadata", "annotations"],
];

/// Group and kind of every producer of Secrets and ConfigMaps that the table knows.
pub fn producer_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = PRODUCERS.iter().chain(EVERYWHERE);
    let of_data = rows.filter(|(_, _, makes, _)| makes.contains("Secret"));
    of_data.map(|(group, kind, _, _)| (*group, *kind))
}

/// Returns what controllers make of an object, by the table.
///
/// ```
/// use portolan_object::{Object, Origin, products};
/// use portolan_yaml::{Dialect, parse_one};
///
/// let certificate = parse_one("{apiVersion: cert-manager.io/v1, kind: Certificate, \
///     metadata: {name: web, namespace: shop}, spec: {secretName: web-tls}}", Dialect::Helm)?;
/// let made = products(&Object::new(certificate, Origin::default())?, "shop");
/// assert!(made[0].is("Secret", "shop", "web-tls"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn products(object: &Object, namespace: &str) -> Vec<Product> {
    let own = rows(PRODUCERS, object, Some(namespace));
    let mut products: Vec<Product> = own.chain(rows(EVERYWHERE, object, None)).collect();
    if matches!(object.kind(), "ConfigMap" | "Secret") {
        products.push(Product {
            kind: object.kind().to_owned(),
            namespace: Some(namespace.to_owned()),
            name: object.name().to_owned(),
        });
    }
    if is_copied(object) {
        for product in &mut products {
            product.namespace = None;
        }
    }
    products.extend(by_image(object, namespace));
    products
}

/// Whether a controller makes an object of this kind and name out of one of the producers' objects.
pub fn makes(object: &Object, namespace: &str, kind: &str, name: &str) -> bool {
    let own = if object.namespace().is_empty() {
        namespace
    } else {
        object.namespace()
    };
    let made = products(object, own);
    made.iter().any(|product| product.is(kind, namespace, name))
}

fn rows<'o>(
    rows: &'static [Row],
    object: &'o Object,
    namespace: Option<&'o str>,
) -> impl Iterator<Item = Product> + 'o {
    let fitting = rows
        .iter()
        .filter(|(group, kind, _, _)| object.gvk().is(group, kind));
    fitting.flat_map(move |(_, _, makes, names)| {
        let names = names.split(' ').filter_map(|name| filled(name, object));
        let each = |name: String| {
            makes.split(' ').map(move |kind| Product {
                kind: kind.to_owned(),
                namespace: namespace.map(str::to_owned),
                name: name.clone(),
            })
        };
        names.flat_map(each).collect::<Vec<_>>()
    })
}

/// A template with the fields of an object put in; `None` if it names a field that the object does not have.
fn filled(template: &str, object: &Object) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (fields, after) = after.split_once('}')?;
        text.push_str(before);
        text.push_str(fields.split('|').find_map(|field| value(field, object))?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

fn value<'o>(field: &str, object: &'o Object) -> Option<&'o str> {
    if field == "name" {
        return Some(object.name());
    }
    let path: Vec<&str> = field.split('.').collect();
    let value = object.node().at_path(&path)?.as_str();
    value.filter(|value| !value.is_empty())
}

fn is_copied(object: &Object) -> bool {
    let annotations = ANNOTATIONS
        .iter()
        .filter_map(|path| object.node().at_path(path));
    annotations
        .into_iter()
        .any(|annotations| COPIED.iter().any(|key| is_on(annotations.get(key))))
}

fn is_on(value: Option<&Node>) -> bool {
    value
        .and_then(Node::as_str)
        .is_some_and(|text| text != "false")
}

fn by_image(object: &Object, namespace: &str) -> Vec<Product> {
    let secret = |name: &str| Product {
        kind: "Secret".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    let mut products = Vec::new();
    for template in pod_templates(object.gvk(), object.node()) {
        for list in ["initContainers", "containers"] {
            let containers = template
                .node
                .at_path(&["spec", list])
                .and_then(Node::as_list);
            for container in containers.into_iter().flat_map(List::iter) {
                let image = container.get("image").and_then(Node::as_str);
                let runs = |part: &str| image.is_some_and(|image| image.contains(part));
                let named = IMAGES.iter().filter(|(part, _)| runs(part));
                products.extend(named.map(|(_, name)| secret(name)));
                if CERTIFICATE_JOBS.iter().any(|part| runs(part)) {
                    products.extend(secret_argument(container).map(&secret));
                }
            }
        }
    }
    products
}

/// The value of `--secret-name`, in one argument or in two.
fn secret_argument(container: &Node) -> Option<&str> {
    let arguments = container.get("args").and_then(Node::as_list)?;
    let mut arguments = arguments.iter().filter_map(Node::as_str);
    arguments
        .clone()
        .find_map(|text| text.strip_prefix("--secret-name="))
        .or_else(|| {
            arguments.find(|text| *text == "--secret-name")?;
            arguments.next()
        })
}

// === impl Producer ===

impl Producer {
    /// A producer of the settings: objects of this kind make one of another, named by a template.
    pub fn new(group: &str, kind: &str, makes: &str, name: &str) -> Self {
        Self {
            group: Cow::Owned(group.to_owned()),
            kind: Cow::Owned(kind.to_owned()),
            makes: Cow::Owned(makes.to_owned()),
            name: Cow::Owned(name.to_owned()),
            everywhere: false,
        }
    }

    /// The same, but what is made may be in any namespace.
    #[must_use]
    pub fn everywhere(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// The group and kind of the objects that it is about.
    pub fn group_and_kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    /// What it makes of an object; `None` if the object is not of its kind or lacks what the name is made of.
    pub fn product(&self, object: &Object, namespace: &str) -> Option<Product> {
        if !object.gvk().is(&self.group, &self.kind) {
            return None;
        }
        Some(Product {
            kind: self.makes.to_string(),
            namespace: (!self.everywhere).then(|| namespace.to_owned()),
            name: filled(&self.name, object)?,
        })
    }
}

// === impl Product ===

impl Product {
    /// Whether an object of this kind, namespace and name is one of them.
    pub fn is(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let is_there = self.namespace.as_deref().is_none_or(|own| own == namespace);
        self.kind == kind && is_there && fits(&self.name, name)
    }
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(after) = name.strip_prefix(start) else {
        return false;
    };
    let ends = after.char_indices().map(|(at, _)| at).chain([after.len()]);
    ends.into_iter()
        .any(|at| after.get(at..).is_some_and(|end| fits(rest, end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;
    use portolan_yaml::{Dialect, parse_one};

    fn object(yaml: &str) -> Object {
        Object::new(
            parse_one(yaml, Dialect::Kustomize).expect("YAML"),
            Origin::default(),
        )
        .expect("an object")
    }

    /// `made` are `Kind/name` that the object makes in its namespace, `elsewhere` those in any.
    fn check(head: &str, body: &str, made: &[&str], elsewhere: &[&str]) {
        let (api, kind) = head.rsplit_once('/').expect("apiVersion/Kind");
        let text = format!(
            "{{apiVersion: {api}, kind: {kind}, metadata: {{name: db, namespace: n}}, {body}}}"
        );
        let object = object(&text);
        let has = |namespace: &str, wanted: &str| {
            let (kind, name) = wanted.split_once('/').expect("Kind/name");
            makes(&object, namespace, kind, name)
        };
        for wanted in made {
            assert!(has("n", wanted), "{head}: {wanted}");
            assert!(!has("other", wanted), "{head}: {wanted} elsewhere");
        }
        for wanted in elsewhere {
            assert!(
                has("n", wanted) && has("other", wanted),
                "{head}: {wanted} everywhere"
            );
        }
        assert!(!has("n", "Secret/no-such-thing"), "{head}");
    }

    #[test]
    fn every_row_of_the_table_makes_what_it_says() {
        for (group, kind, makes, names) in PRODUCERS {
            let body = "spec: {target: {name: t}, template: {metadata: {name: t}}, secretName: t, store: t, \
                secret: {name: t}, destination: {name: t}, managedSecretReference: {secretName: t}}";
            let name = |template: &str| {
                let filled = template.split('{').map(|part| match part.split_once('}') {
                    Some(("name", rest)) => format!("db{rest}"),
                    Some((_, rest)) => format!("t{rest}"),
                    None => part.to_owned(),
                });
                filled.collect::<String>().replace('*', "any-thing")
            };
            for made in makes.split(' ') {
                let names: Vec<String> = names
                    .split(' ')
                    .map(|template| format!("{made}/{}", name(template)))
                    .collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                check(&format!("{group}/v1/{kind}"), body, &names, &[]);
            }
        }
    }

    #[test]
    fn names_follow_the_fields() {
        check(
            "postgresql.cnpg.io/v1/Cluster",
            "spec: {}",
            &["Secret/db-app", "Service/db-rw"],
            &[],
        );
        check(
            "external-secrets.io/v1/ExternalSecret",
            "spec: {}",
            &["Secret/db"],
            &[],
        );
        check(
            "external-secrets.io/v1/ExternalSecret",
            "spec: {target: {name: x}}",
            &["Secret/x"],
            &[],
        );
        check(
            "elasticsearch.k8s.elastic.co/v1/Elasticsearch",
            "spec: {}",
            &["Secret/db-es-elastic-user"],
            &[],
        );
        check(
            "external-secrets.io/v1/ClusterExternalSecret",
            "spec: {externalSecretName: e, externalSecretSpec: {target: {name: x}}}",
            &[],
            &["Secret/x"],
        );
        check(
            "trust.cert-manager.io/v1alpha1/Bundle",
            "spec: {}",
            &[],
            &["ConfigMap/db", "Secret/db"],
        );
    }

    #[test]
    fn copies_are_made_in_every_namespace() {
        let copied = "reflector.v1.k8s.emberstack.com/reflection-auto-enabled: 'true'";
        check(
            "cert-manager.io/v1/Certificate",
            &format!("spec: {{secretName: tls, secretTemplate: {{annotations: {{{copied}}}}}}}"),
            &[],
            &["Secret/tls"],
        );
        let secret = object(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: s, namespace: n, annotations: {{{copied}}}}}}}"
        ));
        assert!(makes(&secret, "other", "Secret", "s"));
    }

    #[test]
    fn images_tell_controllers() {
        let pod = |image: &str, args: &str| {
            format!(
                "spec: {{template: {{spec: {{containers: [{{name: c, image: {image}, args: {args}}}]}}}}}}"
            )
        };
        check(
            "apps/v1/Deployment",
            &pod("'ghcr.io/kedacore/keda:2'", "[]"),
            &["Secret/kedaorg-certs"],
            &[],
        );
        let certgen = "'registry.k8s.io/ingress-nginx/kube-webhook-certgen:v1'";
        check(
            "batch/v1/Job",
            &pod(certgen, "[create, --secret-name=a-admission]"),
            &["Secret/a-admission"],
            &[],
        );
        check(
            "batch/v1/Job",
            &pod(certgen, "[create, --secret-name, b]"),
            &["Secret/b"],
            &[],
        );
    }

    #[test]
    fn settings_add_producers() {
        let own = Producer::new("x.com", "Login", "Secret", "{spec.prefix|name}-token");
        let login =
            object("{apiVersion: x.com/v1, kind: Login, metadata: {name: a, namespace: n}}");
        assert!(
            own.product(&login, "n")
                .is_some_and(|made| made.is("Secret", "n", "a-token"))
        );
        assert!(
            own.product(&login, "n")
                .is_some_and(|made| !made.is("Secret", "m", "a-token"))
        );
        let everywhere = own.everywhere();
        assert!(
            everywhere
                .product(&login, "n")
                .is_some_and(|made| made.is("Secret", "m", "a-token"))
        );
        let other = object("{apiVersion: y.com/v1, kind: Login, metadata: {name: a}}");
        assert_eq!(everywhere.product(&other, "n"), None);
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("a-*", "a-b", true),
            ("a-*", "a-", true),
            ("*.a.c", "x.y.a.c", true),
            ("*.a.c", "x.a.d", false),
            ("a*b*c", "a1b2c", true),
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
