//! What controllers create in a cluster for objects of a repository: it is not in the repository, but it is not
//! missing.
//!
//! ```text
//! object ──rules of the table and of the settings──▶ Product (kind, namespaces, name pattern) ──makes──▶ yes or no
//! ```
//!
//! A name is written as a template: `{name}` is the object's own name, `{spec.target.name|name}` a field of it, or
//! its name if the field is absent, `{spec.tokens[].secretName}` a field of each item of a list, and `*` any text. A
//! template whose fields are all absent produces nothing.

mod table;

use std::borrow::Cow;

use portolan_yaml::{List, Node};

use crate::object::Object;
use crate::pod::pod_template::pod_templates;
use table::{
    CERTIFICATE_JOBS, CERTIFIED, COPIED, EVERYWHERE, FILLED, IMAGES, IMAGES_EVERYWHERE, PRODUCERS,
    Row,
};

/// How many names one template may give: a list of an object may be as long as a file.
const MAX_NAMES: usize = 1000;

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
    products.extend(by_fields(object, namespace));
    products
}

/// Whether a controller puts content into a Secret or ConfigMap that the repository does not show.
pub fn is_filled_in(object: &Object) -> bool {
    let is_token = object.kind() == "Secret"
        && object.node().get("type").and_then(Node::as_str)
            == Some("kubernetes.io/service-account-token");
    is_token || FILLED.iter().any(|key| object.annotation(key).is_some())
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
        let names = names.split(' ').flat_map(|name| filled(name, object));
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

/// A template with the fields of an object put in; empty if it names a field that the object does not have.
fn filled(template: &str, object: &Object) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((fields, after)) = after.split_once('}') else {
            return Vec::new();
        };
        let found = fields.split('|').map(|field| values(field, object));
        let found = found.into_iter().find(|values| !values.is_empty());
        let found = found.unwrap_or_default();
        let each = texts.iter().flat_map(|text| {
            let values = found.iter();
            values.map(move |value| format!("{text}{before}{value}"))
        });
        texts = each.take(MAX_NAMES).collect();
        rest = after;
    }
    for text in &mut texts {
        text.push_str(rest);
    }
    texts
}

/// The texts at a path, in which `[]` after a field means each item of its list.
fn values<'o>(path: &str, object: &'o Object) -> Vec<&'o str> {
    if path == "name" {
        return vec![object.name()];
    }
    let mut nodes = vec![object.node()];
    for field in path.split('.') {
        let (field, is_list) = match field.strip_suffix("[]") {
            Some(field) => (field, true),
            None => (field, false),
        };
        let inner = nodes.into_iter().filter_map(|node| node.get(field));
        nodes = if is_list {
            let lists = inner.filter_map(Node::as_list);
            lists.flat_map(List::iter).collect()
        } else {
            inner.collect()
        };
    }
    let texts = nodes.into_iter().filter_map(Node::as_str);
    texts.filter(|text| !text.is_empty()).collect()
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
    let made = |kind: &str, name: &str, namespace: Option<&str>| Product {
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
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
                for (images, namespace) in [(IMAGES, Some(namespace)), (IMAGES_EVERYWHERE, None)] {
                    for (_, kind, names) in images.iter().filter(|(part, ..)| runs(part)) {
                        let names = names.split(' ');
                        products.extend(names.map(|name| made(kind, name, namespace)));
                    }
                }
                if CERTIFICATE_JOBS.iter().any(|part| runs(part)) {
                    let named = secret_argument(container);
                    products.extend(named.map(|name| made("Secret", name, Some(namespace))));
                }
            }
        }
    }
    products
}

/// What other fields and annotations make, whatever the kind of the object.
fn by_fields(object: &Object, namespace: &str) -> Vec<Product> {
    let made = |kind: &'static str, template: &str| {
        let names = filled(template, object).into_iter();
        names.map(move |name| Product {
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name,
        })
    };
    // A managed resource of Crossplane may write into another namespace.
    let connection = "{spec.writeConnectionSecretToRef.name}";
    let mut products: Vec<Product> = made("Secret", connection).collect();
    if let Some(namespace) = values("spec.writeConnectionSecretToRef.namespace", object).first() {
        for product in &mut products {
            product.namespace = Some((*namespace).to_owned());
        }
    }
    if object.kind() == "StatefulSet" {
        let claims = "{spec.volumeClaimTemplates[].metadata.name}-{name}-*";
        products.extend(made("PersistentVolumeClaim", claims));
    }
    if CERTIFIED.iter().any(|key| object.annotation(key).is_some()) {
        products.extend(made("Secret", "{spec.tls[].secretName}"));
        products.extend(made(
            "Secret",
            "{spec.listeners[].tls.certificateRefs[].name}",
        ));
    }
    // The operator of 1Password makes the Secret that a workload asks it for.
    let asked = object.annotation("operator.1password.io/item-name");
    products.extend(asked.map(|name| Product {
        kind: "Secret".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }));
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

    /// What it makes of an object; nothing if the object is not of its kind or lacks what the name is made of.
    pub fn products(&self, object: &Object, namespace: &str) -> Vec<Product> {
        if !object.gvk().is(&self.group, &self.kind) {
            return Vec::new();
        }
        let named = |name| Product {
            kind: self.makes.to_string(),
            namespace: (!self.everywhere).then(|| namespace.to_owned()),
            name,
        };
        filled(&self.name, object).into_iter().map(named).collect()
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
            let name = |template: &str| {
                let filled = template.split('{').map(|part| match part.split_once('}') {
                    Some(("name", rest)) => format!("db{rest}"),
                    Some((_, rest)) => format!("t{rest}"),
                    None => part.to_owned(),
                });
                filled.collect::<String>().replace('*', "any-thing")
            };
            for template in names.split(' ') {
                for made in makes.split(' ') {
                    let made = format!("{made}/{}", name(template));
                    let head = format!("{group}/v1/{kind}");
                    check(&head, &body(template), &[&made], &[]);
                }
            }
        }
    }

    /// A `spec` with the first field that a template names.
    fn body(template: &str) -> String {
        let mut fields = template.split(['{', '}']).skip(1).step_by(2);
        let field = fields.find(|field| *field != "name").unwrap_or("spec.none");
        let field = field.split('|').next().unwrap_or_default();
        let nested = field.rsplit('.').fold("t".to_owned(), |inner, part| {
            match part.strip_suffix("[]") {
                Some(part) => format!("{{{part}: [{inner}]}}"),
                None => format!("{{{part}: {inner}}}"),
            }
        });
        nested[1..nested.len() - 1].to_owned()
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
    fn what_other_objects_bring_with_them_is_known() {
        let issuer =
            "metadata: {name: db, namespace: n, annotations: {cert-manager.io/cluster-issuer: le}}";
        let made_by = |text: &str, kind: &str, name: &str| {
            let object = object(text);
            makes(&object, "n", kind, name)
        };
        let ingress = format!(
            "{{apiVersion: networking.k8s.io/v1, kind: Ingress, {issuer}, spec: {{tls: [{{secretName: a}}, {{secretName: b}}]}}}}"
        );
        assert!(made_by(&ingress, "Secret", "a") && made_by(&ingress, "Secret", "b"));
        let plain = ingress.replace("cert-manager.io/cluster-issuer", "x");
        assert!(!made_by(&plain, "Secret", "a"));
        let gateway = format!(
            "{{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, {issuer}, spec: {{listeners: [{{tls: \
             {{certificateRefs: [{{name: c}}]}}}}]}}}}"
        );
        assert!(made_by(&gateway, "Secret", "c"));
        let set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: n}, spec: {volumeClaimTemplates: \
            [{metadata: {name: data}}]}}";
        assert!(made_by(set, "PersistentVolumeClaim", "data-db-0"));
        assert!(!made_by(set, "PersistentVolumeClaim", "data-other-0"));
        let bucket = "{apiVersion: s3.aws.upbound.io/v1, kind: Bucket, metadata: {name: x}, spec: {writeConnectionSecretToRef: \
            {name: s, namespace: n}}}";
        assert!(made_by(bucket, "Secret", "s"));
        let asking = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: n, annotations: \
            {operator.1password.io/item-path: p, operator.1password.io/item-name: s}}}";
        assert!(made_by(asking, "Secret", "s"));
    }

    #[test]
    fn content_may_come_from_a_controller() {
        let secret = |more: &str| {
            object(&format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: s, annotations: {{{more}}}}}}}"
            ))
        };
        assert!(is_filled_in(&secret(
            "fluxcd.controlplane.io/copyFrom: a/b"
        )));
        assert!(is_filled_in(&secret(
            "replicator.v1.mittwald.de/replicate-from: a/b"
        )));
        assert!(!is_filled_in(&secret("x: y")));
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
        check(
            "apps/v1/Deployment",
            &pod("'docker.io/istio/pilot:1.28'", "[]"),
            &[],
            &["ConfigMap/istio-ca-root-cert"],
        );
        check(
            "batch/v1/Job",
            &pod("'quay.io/cilium/certgen:v0.3'", "[]"),
            &["Secret/hubble-server-certs", "Secret/cilium-ca"],
            &[],
        );
    }

    #[test]
    fn settings_add_producers() {
        let own = Producer::new("x.com", "Login", "Secret", "{spec.prefix|name}-token");
        let login =
            object("{apiVersion: x.com/v1, kind: Login, metadata: {name: a, namespace: n}}");
        assert!(
            own.products(&login, "n")
                .iter()
                .any(|made| made.is("Secret", "n", "a-token"))
        );
        assert!(
            own.products(&login, "n")
                .iter()
                .all(|made| !made.is("Secret", "m", "a-token"))
        );
        let everywhere = own.everywhere();
        assert!(
            everywhere
                .products(&login, "n")
                .iter()
                .any(|made| made.is("Secret", "m", "a-token"))
        );
        let other = object("{apiVersion: y.com/v1, kind: Login, metadata: {name: a}}");
        assert_eq!(everywhere.products(&other, "n"), []);
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
