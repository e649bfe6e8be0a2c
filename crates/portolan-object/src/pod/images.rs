//! Every container image that an object names.
//!
//! Built-in kinds are read exactly: the containers, init containers, ephemeral containers and image volumes of their
//! pod templates. Custom kinds are of three sorts:
//!
//! * a few have images in special fields ([`FIELDS`]);
//! * a few only describe what others run, so what looks like an image in them is not one, or appears again in what
//!   they produce ([`SILENT`]);
//! * all others are searched by the usual field names: a text under `image`, a text under a name that ends in `Image`
//!   or `imageName` and has a registry, tag or digest, and a map under such a name with `repository` or `name` beside
//!   `registry`, `tag` or `digest`, as charts write it. What does not parse as a reference, or ends like a picture
//!   (`logo.png`), is left out.

use portolan_yaml::{Node, Position, Text, Value};

use crate::field::{self, Found};
use crate::gvk::Gvk;
use crate::kind::scope::scope;
use crate::pod::image::ImageRef;
use crate::pod::pod_template::pod_templates;

/// How deep custom kinds are searched; deeper ones end there.
const MAX_DEPTH: usize = 128;

/// An image that an object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The reference as written, or as put together from `repository` and `tag`.
    pub reference: Text,
    /// What it is for.
    pub role: ImageRole,
    /// The path of the field in the object: `spec.template.spec.containers[0].image`.
    pub path: String,
    /// Where the field's value begins.
    pub at: Position,
}

/// What an image is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageRole {
    /// It runs before the containers.
    InitContainer,
    /// It runs.
    Container,
    /// It is put beside a running pod.
    EphemeralContainer,
    /// Its files are mounted.
    Volume,
    /// A custom kind knows.
    Custom,
}

/// How a custom field says its image.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// The reference itself.
    Reference,
    /// The reference after a scheme: `docker://…`, `oci://…`.
    Url,
    /// A reference, or the tag of this image.
    TagOf(&'static str),
}

/// Images of custom kinds in fields whose name does not say so: group, kind, pattern, form.
const FIELDS: &[(&str, &str, &str, Form)] = &[
    (
        "cdi.kubevirt.io",
        "DataVolume",
        "spec.source.registry.url",
        Form::Url,
    ),
    ("extensions.istio.io", "WasmPlugin", "spec.url", Form::Url),
    (
        "grafana.integreatly.org",
        "Grafana",
        "spec.version",
        Form::TagOf("docker.io/grafana/grafana"),
    ),
    (
        "kubevirt.io",
        "VirtualMachine",
        "spec.dataVolumeTemplates[].spec.source.registry.url",
        Form::Url,
    ),
    (
        "pkg.crossplane.io",
        "Configuration",
        "spec.package",
        Form::Reference,
    ),
    (
        "pkg.crossplane.io",
        "Function",
        "spec.package",
        Form::Reference,
    ),
    (
        "pkg.crossplane.io",
        "Provider",
        "spec.package",
        Form::Reference,
    ),
];

/// Kinds that run nothing themselves, by group and kind; an empty kind means the whole group.
const SILENT: &[(&str, &str)] = &[
    ("argoproj.io", "AppProject"),
    ("argoproj.io", "Application"),
    ("argoproj.io", "ApplicationSet"),
    ("fluxcd.controlplane.io", ""),
    ("helm.toolkit.fluxcd.io", ""),
    ("image.toolkit.fluxcd.io", ""),
    ("kustomize.toolkit.fluxcd.io", ""),
    ("kyverno.io", ""),
    ("policies.kyverno.io", ""),
    ("source.toolkit.fluxcd.io", ""),
];

const PICTURES: &[&str] = &[".gif", ".ico", ".jpeg", ".jpg", ".png", ".svg", ".webp"];

/// Every image of an object, in the order of its text.
pub fn images(gvk: &Gvk, object: &Node) -> Vec<Image> {
    if scope(gvk).is_some() {
        return pod_templates(gvk, object)
            .iter()
            .flat_map(|pod| pod_images(&pod.path, pod.node))
            .collect();
    }
    let silent = |(group, kind): &(&str, &str)| {
        gvk.group == *group && (kind.is_empty() || gvk.kind == *kind)
    };
    if SILENT.iter().any(silent) {
        return Vec::new();
    }
    let mut images: Vec<Image> = FIELDS
        .iter()
        .filter(|(group, kind, _, _)| gvk.is(group, kind))
        .flat_map(|(_, _, pattern, form)| {
            field::find(object, pattern)
                .into_iter()
                .map(|found| (found, *form))
        })
        .filter_map(|(found, form)| form.read(found))
        .collect();
    let root = Found {
        path: String::new(),
        node: object,
    };
    search(&root, ImageRole::Custom, MAX_DEPTH, &mut images);
    images
}

fn pod_images(path: &str, template: &Node) -> Vec<Image> {
    let pod = Found {
        path: path.to_owned(),
        node: template,
    };
    let fields = [
        ("spec.initContainers[].image", ImageRole::InitContainer),
        ("spec.containers[].image", ImageRole::Container),
        (
            "spec.ephemeralContainers[].image",
            ImageRole::EphemeralContainer,
        ),
        ("spec.volumes[].image.reference", ImageRole::Volume),
    ];
    let mut images = Vec::new();
    for (pattern, role) in fields {
        for found in field::find(template, pattern) {
            let path = pod.child(&found.path, found.node).path;
            images.extend(image(Found { path, ..found }, role));
        }
    }
    images
}

/// The image of a field that is known to hold one; empty means that somebody else fills it in.
fn image(found: Found<'_>, role: ImageRole) -> Option<Image> {
    let reference = text(found.node).filter(|text| !text.is_empty())?;
    Some(Image {
        reference: reference.clone(),
        role,
        path: found.path,
        at: found.node.at,
    })
}

impl Form {
    fn read(self, found: Found<'_>) -> Option<Image> {
        let image = image(found, ImageRole::Custom)?;
        let reference = match self {
            Self::Reference => image.reference.clone(),
            Self::Url => Text::from(image.reference.split_once("://")?.1),
            Self::TagOf(_) if image.reference.contains(['/', ':']) => image.reference.clone(),
            Self::TagOf(name) => Text::from(format!("{name}:{}", image.reference)),
        };
        reference.parse::<ImageRef>().ok()?;
        Some(Image { reference, ..image })
    }
}

/// Searches a custom kind by the names of its fields.
fn search(place: &Found<'_>, role: ImageRole, depth: usize, images: &mut Vec<Image>) {
    if depth == 0 {
        return;
    }
    match &place.node.value {
        Value::Map(map) => {
            for entry in map {
                let key = entry.key.as_str();
                let child = place.child(key, &entry.value);
                match named_image(key, &child, role) {
                    Some(image) => images.push(image),
                    None => search(&child, role_inside(key, role), depth - 1, images),
                }
            }
        }
        Value::List(list) => {
            for (index, item) in list.iter().enumerate() {
                search(&place.item(index, item), role, depth - 1, images);
            }
        }
        Value::Scalar(_) => {}
    }
}

fn role_inside(key: &str, role: ImageRole) -> ImageRole {
    match key {
        "initContainers" => ImageRole::InitContainer,
        "containers" => ImageRole::Container,
        "ephemeralContainers" => ImageRole::EphemeralContainer,
        "volumes" => ImageRole::Volume,
        _ => role,
    }
}

fn named_image(key: &str, value: &Found<'_>, role: ImageRole) -> Option<Image> {
    let exact = key == "image";
    if !exact && !key.ends_with("Image") && !key.ends_with("imageName") {
        return None;
    }
    let reference = match text(value.node) {
        Some(text) => text.clone(),
        None => assembled(value.node)?,
    };
    let parsed: ImageRef = reference.parse().ok()?;
    let certain = exact
        || parsed.tag().is_some()
        || parsed.digest().is_some()
        || parsed.registry() != "docker.io";
    let picture = PICTURES.iter().any(|suffix| reference.ends_with(suffix));
    (certain && !picture).then(|| Image {
        reference,
        role,
        path: value.path.clone(),
        at: value.node.at,
    })
}

/// `{registry: …, repository: …, tag: …, digest: …}`, or an image volume's `{reference: …}`, as one reference.
fn assembled(node: &Node) -> Option<Text> {
    let field = |key: &str| {
        let scalar = node.get(key)?.as_scalar()?;
        Some(scalar.text.as_str())
            .filter(|text| !text.is_empty() && !node.get(key).is_some_and(Node::is_null))
    };
    if let Some(reference) = field("reference") {
        return Some(Text::from(reference));
    }
    let (tag, digest) = (field("tag"), field("digest"));
    // A `name` alone could be anybody's; beside a tag it is the image's.
    let named = field("name").filter(|_| tag.is_some() || digest.is_some());
    let mut reference = field("repository").or(named)?.to_owned();
    if let Some(registry) = field("registry") {
        reference = format!("{}/{reference}", registry.trim_end_matches('/'));
    }
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    let digest = digest
        .map(|digest| format!("@{digest}"))
        .unwrap_or_default();
    Some(Text::from(format!("{reference}{tag}{digest}")))
}

fn text(node: &Node) -> Option<&Text> {
    node.as_str()?;
    node.as_scalar().map(|scalar| &scalar.text)
}
