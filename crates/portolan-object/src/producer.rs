//! Kinds whose controllers make a Secret or ConfigMap in the cluster: what they make is nowhere in a repository, and
//! still not missing.

use portolan_yaml::Node;

use crate::object::Object;

/// Group, kind, and the field that names what is made; where the field is absent, it is called like the object.
const PRODUCERS: [(&str, &str, &[&str]); 8] = [
    (
        "external-secrets.io",
        "ExternalSecret",
        &["spec", "target", "name"],
    ),
    (
        "external-secrets.io",
        "ClusterExternalSecret",
        &["spec", "externalSecretName"],
    ),
    (
        "bitnami.com",
        "SealedSecret",
        &["spec", "template", "metadata", "name"],
    ),
    ("cert-manager.io", "Certificate", &["spec", "secretName"]),
    ("objectbucket.io", "ObjectBucketClaim", &[]),
    ("onepassword.com", "OnePasswordItem", &[]),
    ("secrets.infisical.com", "InfisicalSecret", &[]),
    (
        "secrets.hashicorp.com",
        "VaultStaticSecret",
        &["spec", "destination", "name"],
    ),
];

/// Group and kind of every producer.
pub fn producer_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRODUCERS.into_iter().map(|(group, kind, _)| (group, kind))
}

/// The name of the Secret or ConfigMap that an object has its controller make; `None` when it is no producer.
///
/// ```
/// use portolan_object::{Object, Origin, produced_name};
/// use portolan_yaml::{Dialect, parse_one};
///
/// let certificate = parse_one("{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web}, \
///     spec: {secretName: web-tls}}", Dialect::Helm)?;
/// assert_eq!(produced_name(&Object::new(certificate, Origin::default())?), Some("web-tls"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn produced_name(object: &Object) -> Option<&str> {
    let is_producer = |(group, kind, _): &&(&str, &str, &[&str])| object.gvk().is(group, kind);
    let (_, _, path) = PRODUCERS.iter().find(is_producer)?;
    // An empty path would be the object itself, which is no text.
    let named = object.node().at_path(path).and_then(Node::as_str);
    Some(named.unwrap_or(object.name()))
}
