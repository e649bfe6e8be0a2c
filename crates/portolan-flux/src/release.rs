//! One HelmRelease, from chart and values to objects, in Flux's order.
//!
//! ```text
//! chart + values ──template──▶ CRDs, manifests, hooks ──▶ post-renderers ──▶ common metadata ──▶ objects
//! ```

pub(crate) mod chart;
pub(crate) mod chart_dependencies;
pub(crate) mod chart_places;
pub(crate) mod flux_mention;
pub(crate) mod loaded_chart;
pub(crate) mod looked_up;
pub(crate) mod lookup;
pub(crate) mod placement;
pub(crate) mod quick_scan;
pub(crate) mod release_lookups;
pub(crate) mod release_name;
pub(crate) mod release_unit;
pub(crate) mod template_lines;
pub(crate) mod value_hints;
pub(crate) mod values;

use std::collections::HashSet;
use std::sync::Arc;

use camino::Utf8Path;
use parking_lot::Mutex;
use portolan_budget::Budget;
use portolan_helm::values::Tree;
use portolan_helm::{
    Capabilities, Lookup, Rendered, SchemaFetchError, SchemaSource, TemplateError, TemplateInput,
};
use portolan_kustomize::{Fetch, FetchError, LoadRestrictor, Options, Reorder};
use portolan_object::{
    Act, Digest, Gvk, Object, Origin, PackDictionary, PackedObjects, Place, Step, expand_lists,
};
use portolan_vfs::Memory;
use portolan_yaml::{Dialect, List, Map, Node, Text, Value};

use crate::api::{CrdsPolicy, HelmRelease, NamespacedName, PostRenderer};
use crate::kustomization::metadata::{set_common_metadata, set_metadata};
use crate::release::loaded_chart::LoadedChart;
use crate::release::lookup::{Answers, Asking, View};
use crate::release::placement::place;
use crate::release::release_name::{release_name, release_namespace};
use crate::session::fingerprint::Fingerprint;
use crate::version::profile::Profile;

/// The labels that say which HelmRelease an object belongs to.
const OWNER_NAME: &str = "helm.toolkit.fluxcd.io/name";
const OWNER_NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";

/// The file that post-renderers find the rendered objects in.
const RENDERED_FILE: &str = "helm-output.yaml";

/// Why a HelmRelease gives no objects.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// Helm refuses.
    #[error("cannot render chart `{chart}` {version}")]
    Template {
        /// The chart's name.
        chart: String,
        /// The chart's version.
        version: String,
        /// What Helm says.
        #[source]
        source: Box<portolan_helm::Error>,
    },
    /// The schema of the chart's values refers to one that cannot be had.
    #[error(
        "cannot render chart `{chart}` {version}: a part of the schema of its values cannot be fetched"
    )]
    Schema {
        /// The chart's name.
        chart: String,
        /// The chart's version.
        version: String,
        /// Why not.
        #[source]
        source: FetchError,
    },
    /// A document is not YAML, or not as kustomize will have it.
    #[error("cannot read what `{}` gave: {reason}", shown(place))]
    NotYaml {
        /// Where its template begins.
        place: Place,
        /// What is wrong.
        reason: String,
    },
    /// A post-renderer cannot be applied.
    #[error("post-renderer {number} failed")]
    PostRenderer {
        /// Which one, from 1.
        number: usize,
        /// What kustomize says.
        #[source]
        source: Box<portolan_kustomize::Error>,
    },
}

impl ReleaseError {
    /// Whether other values may fix it.
    pub(crate) fn may_be_of_values(&self) -> bool {
        match self {
            Self::Template { source, .. } => !matches!(
                source.as_ref(),
                portolan_helm::Error::Template(
                    TemplateError::Parse { .. } | TemplateError::Stopped { .. }
                )
            ),
            Self::NotYaml { .. } | Self::PostRenderer { .. } => true,
            Self::Schema { .. } => false,
        }
    }
}

/// What a release gave.
#[derive(Debug)]
pub(crate) struct Released {
    objects: Mutex<Held>,
    /// Why Flux would not take what the chart gave, though Helm does.
    pub(crate) refusals: Vec<String>,
    /// What the chart looked up and found.
    pub(crate) answers: Arc<Answers>,
}

/// The objects of a release, in the form that they are needed in.
#[derive(Debug)]
enum Held {
    Plain(Arc<Vec<Object>>),
    /// They wait for their turn.
    Packed(PackedObjects),
    /// Nobody will ask for them again.
    Forgotten,
}

impl Released {
    /// The objects, unless they were forgotten; packed ones stay packed.
    pub(crate) fn objects(&self) -> Option<Arc<Vec<Object>>> {
        match &*self.objects.lock() {
            Held::Plain(objects) => Some(Arc::clone(objects)),
            Held::Packed(packed) => Some(Arc::new(packed.unpack())),
            Held::Forgotten => None,
        }
    }

    /// Keeps the objects in little memory until somebody asks for them. Those that the condition accepts are packed
    /// together: somebody else may keep only those.
    pub(crate) fn pack(
        &self,
        dictionaries: &ReleaseDictionaries,
        condition: impl Fn(&Object) -> bool,
    ) {
        let mut held = self.objects.lock();
        if let Held::Plain(objects) = &mut *held {
            let objects = Arc::make_mut(objects);
            let accepted = objects.iter_mut().filter(|object| condition(object));
            Object::pack_all_with(accepted, &dictionaries.kept);
            Object::pack_all_with(objects, &dictionaries.others);
        }
    }

    /// Keeps the objects packed, and without their ids. Gives those that the condition accepts, unless this was done
    /// before.
    pub(crate) fn shelve(
        &self,
        dictionaries: &ReleaseDictionaries,
        condition: impl Fn(&Object) -> bool,
    ) -> Option<Vec<Object>> {
        self.pack(dictionaries, &condition);
        let mut held = self.objects.lock();
        let Held::Plain(objects) = &mut *held else {
            return None;
        };
        let objects = Arc::make_mut(objects);
        let packed = PackedObjects::pack(objects);
        let kept = objects.iter().filter(|object| condition(object)).cloned();
        let kept = kept.collect();
        *held = Held::Packed(packed);
        Some(kept)
    }

    /// Lets go of the objects, which nobody will ask for again.
    pub(crate) fn forget(&self) {
        *self.objects.lock() = Held::Forgotten;
    }
}

/// What the releases of one chart have in common, by whether others may want to know of the objects.
#[derive(Debug, Default)]
pub(crate) struct ReleaseDictionaries {
    kept: PackDictionary,
    others: PackDictionary,
}

/// The digest of everything that decides what a release gives, but for what its chart looks up.
pub(crate) fn fingerprint(
    release: &HelmRelease,
    chart: &LoadedChart,
    values: &Tree,
    capabilities: &Capabilities,
    profile: Profile,
) -> Digest {
    let mut key = Fingerprint::of("HelmRelease");
    key.digest(&chart.digest());
    chart.fingerprint_capabilities(capabilities, &mut key);
    key.flag(profile.helm4);
    key.tree(values);
    fingerprint_spec(release, &mut key);
    key.finish()
}

/// The digest of everything that decides what a release gives.
pub(crate) fn with_answers(digest: Digest, answers: &Answers) -> Digest {
    if answers.is_empty() {
        return digest;
    }
    let mut key = Fingerprint::of("HelmRelease that looks up");
    key.digest(&digest);
    answers.fingerprint(&mut key);
    key.finish()
}

/// Adds what of a release's own fields decides its render, besides chart and values.
pub(crate) fn fingerprint_spec(release: &HelmRelease, key: &mut Fingerprint) {
    fingerprint_settings(release, key);
    fingerprint_post_renderers(release, key);
}

/// Adds what of a release's own fields decides its render, besides chart, values and post-renderers.
pub(crate) fn fingerprint_settings(release: &HelmRelease, key: &mut Fingerprint) {
    key.text(&release.id.namespace);
    key.text(&release.id.name);
    key.text(&release_name(release));
    key.text(release_namespace(release));
    key.flag(release.crds == CrdsPolicy::Apply);
    key.flag(release.disable_hooks);
    key.flag(release.disable_schema_validation);
    key.metadata(&release.common_metadata);
}

/// Adds the kustomize steps on what the chart gives.
pub(crate) fn fingerprint_post_renderers(release: &HelmRelease, key: &mut Fingerprint) {
    for renderer in &release.post_renderers {
        let nodes = [
            &renderer.patches,
            &renderer.patches_strategic_merge,
            &renderer.patches_json6902,
            &renderer.images,
        ];
        for node in nodes {
            key.node(node.as_ref());
        }
    }
}

/// What a chart is told of the cluster, and how it is rendered.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) profile: Profile,
    /// What it may look up.
    pub(crate) view: Option<View>,
}

/// Renders a release.
pub(crate) fn render(
    release: &HelmRelease,
    chart: &LoadedChart,
    values: Tree,
    surroundings: &Surroundings,
    asking: Option<Arc<Asking>>,
    fetch: Option<Arc<dyn Fetch>>,
    budget: &Budget,
) -> Result<Released, ReleaseError> {
    let helm_chart = chart.chart();
    let metadata = &helm_chart.package().metadata;
    let profile = surroundings.profile;
    let lookup = asking.clone().map(|asking| asking as Arc<dyn Lookup>);
    let schemas = fetch.map(|fetch| Arc::new(Schemas::new(fetch)));
    let input = TemplateInput {
        schemas: schemas
            .clone()
            .map(|schemas| schemas as Arc<dyn SchemaSource>),
        budget: budget.clone(),
        lookup,
        ..input(release, values, &surroundings.capabilities, profile)
    };
    let rendered = portolan_helm::template(&helm_chart, &input).map_err(|source| {
        let (chart, version) = (metadata.name.clone(), metadata.version.clone());
        match schemas.and_then(|schemas| schemas.failure.lock().take()) {
            Some(source) => ReleaseError::Schema {
                chart,
                version,
                source,
            },
            None => ReleaseError::Template {
                chart,
                version,
                source: Box::new(source),
            },
        }
    })?;
    let mut refusals = Vec::new();
    let mut objects = parse(release, &rendered, chart, profile, &mut refusals)?;
    for (index, renderer) in release.post_renderers.iter().enumerate() {
        objects = post_render(&objects, renderer, budget).map_err(|source| {
            ReleaseError::PostRenderer {
                number: index + 1,
                source: Box::new(source),
            }
        })?;
    }
    for object in &mut objects {
        set_common_metadata(object, &release.common_metadata);
    }
    place(&mut objects, release_namespace(release));
    objects.shrink_to_fit();
    Ok(Released {
        objects: Mutex::new(Held::Plain(Arc::new(objects))),
        refusals,
        answers: Arc::new(asking.map(|asking| asking.answers()).unwrap_or_default()),
    })
}

/// Puts the labels on an object by which Flux knows whose it is; they win over common labels.
pub fn set_owner_labels(object: &mut Object, owner: &NamespacedName) {
    let labels = [
        (Text::from_static(OWNER_NAME), owner.name.clone()),
        (Text::from_static(OWNER_NAMESPACE), owner.namespace.clone()),
    ];
    set_metadata(object, "labels", &labels);
}

fn input(
    release: &HelmRelease,
    values: Tree,
    capabilities: &Arc<Capabilities>,
    profile: Profile,
) -> TemplateInput {
    let name = release_name(release).to_string();
    let namespace = release_namespace(release).to_string();
    TemplateInput {
        values,
        capabilities: Arc::clone(capabilities),
        profile: profile.helm(),
        skip_schema_validation: release.disable_schema_validation,
        ..TemplateInput::new(portolan_helm::Release::new(name, namespace))
    }
}

/// Brings schemas that a chart refers to as remote bases are brought.
struct Schemas {
    fetch: Arc<dyn Fetch>,
    /// Why one could not be brought: Helm's error holds the text of it only.
    failure: Mutex<Option<FetchError>>,
}

impl Schemas {
    fn new(fetch: Arc<dyn Fetch>) -> Self {
        Self {
            fetch,
            failure: Mutex::new(None),
        }
    }
}

impl SchemaSource for Schemas {
    fn fetch(&self, url: &str) -> Result<Vec<u8>, SchemaFetchError> {
        self.fetch.file(url).map_err(|error| {
            let text = error.to_string();
            self.failure.lock().replace(error);
            text.into()
        })
    }
}

/// Objects of `crds/` first, then manifests, then hooks; tests are no part of a release.
///
/// Manifests go through kustomize on their way, which refuses a key or an object that is there twice: that is told, and
/// they are read as Helm reads them. Definitions go to the cluster as they are, and so do the hooks of Flux with Helm 3.
fn parse(
    release: &HelmRelease,
    rendered: &Rendered,
    chart: &LoadedChart,
    profile: Profile,
    refusals: &mut Vec<String>,
) -> Result<Vec<Object>, ReleaseError> {
    let name = Text::from(format!("chart {} {}", chart.name(), chart.version()));
    let built_by = Step::new(Act::Build, format!("HelmRelease {}", release.id));
    let mut lines = chart.lines.finder(chart.chart().package());
    let mut objects = Vec::new();
    let mut ids = HashSet::new();
    let mut take = |file: &Text, text: &Text, way: Way| {
        let begins = lines.position(file, text);
        let place = chart.place(file, begins);
        let not_yaml = |reason| ReleaseError::NotYaml {
            place: place.clone(),
            reason,
        };
        // Helm 3 ends each document with a line break when it hands them to kustomize.
        let ended = (way == Way::Kustomize && !profile.helm4)
            .then(|| Text::from(format!("{}\n", text.as_str())));
        let nodes = match read(ended.as_ref().unwrap_or(text), way) {
            Err(reason) if way == Way::Kustomize => {
                refusals.push(not_yaml(reason).to_string());
                read(text, Way::Direct)
            }
            read => read,
        };
        let nodes = nodes.map_err(not_yaml)?;
        for node in nodes.into_iter().flat_map(expand_lists) {
            // A definition in `crds/` is no template: it begins where it was read.
            let at = if begins.line == 0 { node.at } else { begins };
            let place = chart.place(file, at);
            let step = Step::new(Act::Template, name.clone()).at(place.clone());
            let origin = Origin::default().then(step).then(built_by.clone());
            let Ok(object) = Object::new(node, origin) else {
                continue;
            };
            if way == Way::Kustomize && !ids.insert(identity(&object)) {
                let object = object.id();
                refusals.push(format!(
                    "the chart gives {object} twice, the second time in `{}`",
                    shown(&place)
                ));
            }
            objects.push(object);
        }
        Ok(())
    };
    if release.crds == CrdsPolicy::Apply {
        for crd in &rendered.crds {
            let text = String::from_utf8_lossy(&crd.content);
            take(
                &Text::from(crd.path.as_str()),
                &Text::from(text.as_ref()),
                Way::Direct,
            )?;
        }
    }
    for manifest in &rendered.manifests {
        take(&manifest.source, &manifest.text, Way::Kustomize)?;
    }
    if !release.disable_hooks {
        let way = if profile.helm4 {
            Way::Kustomize
        } else {
            Way::Direct
        };
        for hook in rendered.hooks.iter().filter(|hook| !hook.is_test()) {
            take(&hook.manifest.source, &hook.manifest.text, way)?;
        }
    }
    Ok(objects)
}

/// A place as it is shown: relative to the repository.
fn shown(place: &Place) -> String {
    place.to_string().trim_start_matches('/').to_owned()
}

/// How a rendered document gets to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through kustomize, which puts Flux's labels on.
    Kustomize,
    /// As it is.
    Direct,
}

/// Reads a template's output as whoever takes it does: kustomize refuses repeated keys, for others the last one wins.
fn read(text: &Text, way: Way) -> Result<Vec<Node>, String> {
    let dialect = match way {
        Way::Kustomize => Dialect::Kustomize,
        Way::Direct => Dialect::Helm,
    };
    portolan_yaml::parse(text.clone(), dialect).map_err(|errors| errors.to_string())
}

/// What makes two objects the same to kustomize: no namespace is `default`.
fn identity(object: &Object) -> (Gvk, Text, Text) {
    let namespace = match object.namespace() {
        "" => "default",
        namespace => namespace,
    };
    (
        object.gvk().clone(),
        Text::from(namespace),
        Text::from(object.name()),
    )
}

/// Runs the objects through kustomize with the renderer's patches and images.
fn post_render(
    objects: &[Object],
    renderer: &PostRenderer,
    budget: &Budget,
) -> Result<Vec<Object>, portolan_kustomize::Error> {
    let origins: Vec<Origin> = objects.iter().map(Object::origin).collect();
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&portolan_yaml::write_kustomize(object.node()).unwrap_or_default());
    }
    let mut files = Memory::new();
    files.insert(format!("/{RENDERED_FILE}"), text);
    let file = kustomization(renderer);
    let options = Options {
        load_restrictor: LoadRestrictor::RootOnly,
        reorder: Reorder::None,
        kustomization: Some(&file),
        budget: Some(budget),
        ..Options::default()
    };
    let resources = portolan_kustomize::build(Utf8Path::new("/"), &files, &options)?;
    let origin = |index: usize| origins.get(index).cloned().unwrap_or_default();
    let patched = Step::new(Act::Patch, "postRenderers");
    Ok(resources
        .into_resources()
        .into_iter()
        .enumerate()
        .filter_map(|(index, resource)| {
            Object::new(resource.node, origin(index).then(patched.clone())).ok()
        })
        .collect())
}

fn kustomization(renderer: &PostRenderer) -> Node {
    let mut file = Map::new();
    file.insert(
        "apiVersion",
        Node::string("kustomize.config.k8s.io/v1beta1"),
    );
    file.insert("kind", Node::string("Kustomization"));
    let resources = List::from_items(vec![Node::string(RENDERED_FILE)]);
    file.insert("resources", Node::new(Value::List(resources)));
    let fields = [
        ("patches", &renderer.patches),
        ("patchesStrategicMerge", &renderer.patches_strategic_merge),
        ("patchesJson6902", &renderer.patches_json6902),
        ("images", &renderer.images),
    ];
    for (field, value) in fields {
        if let Some(value) = value {
            file.insert(field, value.clone());
        }
    }
    Node::new(Value::Map(file))
}
