//! One Kustomization, from files to objects, in Flux's order.
//!
//! ```text
//! files ──generate──▶ kustomize ──▶ each object: substitute ──▶ Lists opened ──▶ common metadata ──▶ owner labels
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use portolan_kustomize::{Fetch, LoadRestrictor, Options, Reorder, Resource};
use portolan_object::{Act, Object, Origin, Place, Step, expand_lists};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node, Style, Text, Value};

use crate::api::{Kustomization, NamespacedName};
use crate::generate::{self, GenerateError};
use crate::metadata::set_metadata;
use crate::variables::{SubstitutionError, UnsetVariable, Variables, opted_out};

/// The labels that say which Kustomization an object belongs to.
const OWNER_NAME: &str = "kustomize.toolkit.fluxcd.io/name";
const OWNER_NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";

/// Why a Kustomization gives no objects.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is nothing to build.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// kustomize refuses.
    #[error("kustomize build failed")]
    Kustomize(#[source] Box<portolan_kustomize::Error>),
    /// A variable cannot be put into an object.
    #[error("variable substitution failed for {object}")]
    Substitution {
        /// Which object.
        object: String,
        /// Where it was written.
        place: Option<Place>,
        /// Why not.
        #[source]
        source: SubstitutionError,
    },
    /// Two objects have the same name after variables were put in.
    #[error("after substitution two objects are called {0}")]
    Duplicate(String),
}

/// What a Kustomization gives.
#[derive(Debug, Default)]
pub struct Built {
    /// Its objects, in the order Flux applies them.
    pub objects: Arc<Vec<Object>>,
    /// Variables that nobody sets, by the object that names them. They are errors to a strict Flux.
    pub unset: Vec<(Place, UnsetVariable)>,
    /// Whether any object can have variables put in: data they come from is not missed otherwise.
    pub substitutes: bool,
}

/// Builds the objects of a Kustomization; `variables` are put in when it has a `postBuild`.
pub(crate) fn build(
    files: &dyn Vfs,
    spec: &Kustomization,
    variables: Option<&Variables>,
    fetch: Option<&dyn Fetch>,
) -> Result<Built, BuildError> {
    let directory = generate::directory(spec);
    let file = generate::kustomization_file(files, &directory, spec)?;
    let options = Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        charts: None,
        fetch,
        kustomization: Some(&file),
    };
    let resources = portolan_kustomize::build(&directory, files, &options)
        .map_err(|error| BuildError::Kustomize(Box::new(error)))?;
    let mut objects = Vec::new();
    let mut resources = resources.into_resources();
    for resource in &mut resources {
        settle(&mut resource.node);
    }
    let substitutes = resources.iter().any(|resource| !opted_out(&resource.node));
    let (completed, unset) = substitute(resources, variables)?;
    for (node, origin) in completed {
        objects.extend(
            expand_lists(node)
                .into_iter()
                .filter_map(|node| as_object(node, &origin, spec)),
        );
    }
    for object in &mut objects {
        set_metadata(object, "labels", &spec.common_metadata.labels);
        set_metadata(object, "annotations", &spec.common_metadata.annotations);
    }
    Ok(Built {
        objects: Arc::new(objects),
        unset,
        substitutes,
    })
}

/// Puts the labels on an object by which Flux knows whose it is.
pub fn set_owner_labels(object: &mut Object, owner: &NamespacedName) {
    let labels = [
        (Text::from_static(OWNER_NAME), owner.name.clone()),
        (Text::from_static(OWNER_NAMESPACE), owner.namespace.clone()),
    ];
    set_metadata(object, "labels", &labels);
}

/// Gives texts in folded style the content they have in kustomize's output, whose printer adds line breaks to some.
fn settle(node: &mut Node) {
    if !has_folded_text(node) {
        return;
    }
    let printed = portolan_yaml::write_kustomize(node).ok();
    if let Some(read) =
        printed.and_then(|text| portolan_yaml::parse_one(text, Dialect::Kustomize).ok())
    {
        *node = read;
    }
}

fn has_folded_text(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => scalar.style == Style::Folded,
        Value::List(list) => list.iter().any(has_folded_text),
        Value::Map(map) => map.iter().any(|entry| has_folded_text(&entry.value)),
    }
}

/// Resources with their variables put in, and the variables that nobody sets.
type Completed = (Vec<(Node, Origin)>, Vec<(Place, UnsetVariable)>);

/// Puts variables into the resources that want them, keeping their order.
fn substitute(
    resources: Vec<Resource>,
    variables: Option<&Variables>,
) -> Result<Completed, BuildError> {
    let mut ids: HashMap<Identity, usize> = HashMap::new();
    for resource in &resources {
        *ids.entry(Identity::of(&resource.node)).or_default() += 1;
    }
    let mut done = Vec::with_capacity(resources.len());
    let mut unset = Vec::new();
    for resource in resources {
        let origin = origin_of(&resource);
        let Some(variables) = variables.filter(|variables| variables.applies_to(&resource.node))
        else {
            done.push((resource.node, origin));
            continue;
        };
        let before = Identity::of(&resource.node);
        let (node, unset_here) =
            variables
                .substitute(&resource.node)
                .map_err(|source| BuildError::Substitution {
                    object: before.to_string(),
                    place: origin.place().cloned(),
                    source,
                })?;
        let place = origin
            .place()
            .cloned()
            .unwrap_or_else(|| Place::line("", 0));
        unset.extend(unset_here.map(|variable| (place, variable)));
        let after = Identity::of(&node);
        if after != before {
            ids.entry(before).and_modify(|count| *count -= 1);
            let count = ids.entry(after.clone()).or_default();
            *count += 1;
            if *count > 1 {
                return Err(BuildError::Duplicate(after.to_string()));
            }
        }
        done.push((node, origin.then(Step::new(Act::Substitute, "postBuild"))));
    }
    Ok((done, unset))
}

/// What makes two resources the same to kustomize: an empty namespace is `default`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    fn of(node: &Node) -> Self {
        let text = |path: &[&str]| {
            node.at_path(path)
                .and_then(Node::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let namespace = text(&["metadata", "namespace"]);
        Self {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            namespace: if namespace.is_empty() {
                "default".to_owned()
            } else {
                namespace
            },
            name: text(&["metadata", "name"]),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Where kustomize says a resource was written and what changed it.
fn origin_of(resource: &Resource) -> Origin {
    let place = |origin: &portolan_kustomize::Origin| Place::new(origin.file.as_str(), origin.at);
    let read = Origin::read(place(&resource.origin));
    resource
        .transformations
        .iter()
        .fold(read, |origin, change| {
            origin.then(Step::new(Act::Transform, change.step.clone()).at(place(change)))
        })
}

/// What is no Kubernetes object, or kustomize's own file, is dropped without a word, as Flux does.
fn as_object(node: Node, origin: &Origin, spec: &Kustomization) -> Option<Object> {
    let step = Step::new(Act::Build, format!("Kustomization {}", spec.id));
    let object = Object::new(node, origin.then(step)).ok()?;
    let is_kustomize =
        object.gvk().group == "kustomize.config.k8s.io" && object.kind() == "Kustomization";
    (!is_kustomize).then_some(object)
}
