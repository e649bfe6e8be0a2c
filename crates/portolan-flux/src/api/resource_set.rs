//! The kinds of `fluxcd.controlplane.io`: objects from templates (`ResourceSet`), the inputs of the templates
//! (`ResourceSetInputProvider`), and the installation of Flux itself (`FluxInstance`).

use portolan_object::Selector;
use portolan_yaml::{Node, Text};

use super::fields::{Errors, Fields, read_object};
use super::kustomization::{Dependency, non_empty};
use super::{CommonMetadata, FieldError, NamespacedName};

/// Objects made from templates, once for every set of inputs.
#[derive(Debug, Clone)]
pub struct ResourceSet {
    /// Its name.
    pub id: NamespacedName,
    /// Inputs given in place, each a map.
    pub inputs: Vec<Node>,
    /// Inputs that others provide.
    pub inputs_from: Vec<InputsFrom>,
    /// How inputs of several providers are combined.
    pub strategy: InputStrategy,
    /// Templates, in order.
    pub templates: Vec<Template>,
    /// Which objects must be ready first.
    pub depends_on: Vec<Dependency>,
    /// Labels and annotations for every object.
    pub common_metadata: CommonMetadata,
}

/// A text to complete.
#[derive(Debug, Clone)]
pub enum Template {
    /// An object whose texts are templates.
    Object(Node),
    /// Any number of YAML documents.
    Text(Text),
}

/// Which providers are meant.
#[derive(Debug, Clone)]
pub enum InputsFrom {
    /// The one of this name.
    Name(Text),
    /// All whose labels match.
    Labels(Selector),
}

/// How inputs of several providers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputStrategy {
    /// One after the other.
    #[default]
    Flatten,
    /// Each of one with each of the others.
    Permute,
}

/// Something that provides inputs.
#[derive(Debug, Clone)]
pub struct InputProvider {
    /// Its name.
    pub id: NamespacedName,
    /// `Static`, or a service that is asked.
    pub kind: Text,
    /// What a static one provides, and what others add to each of their sets.
    pub default_values: Option<Node>,
    /// What a service was last found to provide, if the object says so.
    pub exported: Vec<Node>,
}

/// The installation of Flux, and what it follows.
#[derive(Debug, Clone)]
pub struct FluxInstance {
    /// Its name.
    pub id: NamespacedName,
    /// The version range of Flux that is installed.
    pub version: Option<Text>,
    /// What it follows.
    pub sync: Option<Sync>,
    /// Patches over everything that it makes, in kustomize's form.
    pub patches: Option<Node>,
}

/// The source that Flux follows and the directory it applies.
#[derive(Debug, Clone)]
pub struct Sync {
    /// What the source and the Kustomization are called.
    pub name: Text,
    /// `GitRepository`, `OCIRepository` or `Bucket`.
    pub kind: Text,
    /// Where it is fetched from.
    pub url: Text,
    /// Which reference.
    pub reference: Text,
    /// The directory to apply.
    pub path: Text,
    /// How often.
    pub interval: Text,
    /// The Secret with credentials.
    pub pull_secret: Option<Text>,
}

impl ResourceSet {
    /// Reads an object of this kind; all that is wrong with it when something is.
    pub fn read(object: &Node) -> Result<Self, Vec<FieldError>> {
        read_object(object, |id, spec, errors| {
            let strategy = spec.map("inputStrategy", errors).text("name", errors);
            Self {
                inputs: spec.list("inputs", errors).to_vec(),
                inputs_from: InputsFrom::read_all(spec, errors),
                strategy: match strategy.as_deref() {
                    Some("Permute") => InputStrategy::Permute,
                    _ => InputStrategy::Flatten,
                },
                templates: Template::read_all(spec, errors),
                depends_on: Dependency::read_all(spec, &id.namespace, errors),
                common_metadata: CommonMetadata::read(spec, errors),
                id,
            }
        })
    }
}

impl Template {
    /// `resources` and `resourcesTemplate`, those of each step in order.
    fn read_all(spec: &Fields<'_>, errors: &mut Errors) -> Vec<Self> {
        let mut templates = Vec::new();
        let steps = spec.maps("steps", errors);
        for fields in std::iter::once(spec).chain(&steps) {
            let objects = fields.list("resources", errors).iter().cloned();
            templates.extend(objects.map(Self::Object));
            let text = non_empty(fields.text("resourcesTemplate", errors));
            templates.extend(text.map(Self::Text));
        }
        templates
    }
}

impl InputsFrom {
    fn read_all(spec: &Fields<'_>, errors: &mut Errors) -> Vec<Self> {
        let mut references = Vec::new();
        for entry in spec.maps("inputsFrom", errors) {
            let selector = entry.node("selector");
            references.push(match selector.map(Selector::from_node) {
                Some(Ok(selector)) => Self::Labels(selector),
                Some(Err(_)) => {
                    errors.push(entry.wrong_kind("selector", "a label selector"));
                    continue;
                }
                None => Self::Name(entry.required("name", errors)),
            });
        }
        references
    }
}

impl InputProvider {
    /// Reads an object of this kind; all that is wrong with it when something is.
    pub fn read(object: &Node) -> Result<Self, Vec<FieldError>> {
        let exported = object.at_path(&["status", "exportedInputs"]);
        let exported = exported.and_then(Node::as_list).into_iter().flatten();
        let exported: Vec<_> = exported.cloned().collect();
        read_object(object, |id, spec, errors| Self {
            kind: spec.required("type", errors),
            default_values: spec.node("defaultValues").cloned(),
            exported,
            id,
        })
    }
}

impl FluxInstance {
    /// Reads an object of this kind; all that is wrong with it when something is.
    pub fn read(object: &Node) -> Result<Self, Vec<FieldError>> {
        read_object(object, |id, spec, errors| Self {
            version: spec.map("distribution", errors).text("version", errors),
            sync: Sync::read(spec, &id, errors),
            patches: spec.map("kustomize", errors).node("patches").cloned(),
            id,
        })
    }
}

impl Sync {
    fn read(spec: &Fields<'_>, id: &NamespacedName, errors: &mut Errors) -> Option<Self> {
        let fields = spec.map("sync", errors);
        fields.is_present().then(|| Self {
            name: non_empty(fields.text("name", errors)).unwrap_or_else(|| id.namespace.clone()),
            kind: non_empty(fields.text("kind", errors))
                .unwrap_or(Text::from_static("GitRepository")),
            url: fields.text("url", errors).unwrap_or_default(),
            reference: fields.text("ref", errors).unwrap_or_default(),
            path: fields.text("path", errors).unwrap_or_default(),
            interval: non_empty(fields.text("interval", errors)).unwrap_or(Text::from_static("1m")),
            pull_secret: non_empty(fields.text("pullSecret", errors)),
        })
    }
}
