//! One Kustomization, from files to objects, in Flux's order.
//!
//! ```text
//! files ──generate──▶ kustomize ──▶ each object: substitute ──▶ Lists opened ──▶ common metadata ──▶ owner labels
//! ```

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use parking_lot::Mutex;
use portolan_budget::Budget;
use portolan_engine::{Key, Unit};
use portolan_kustomize::{Fetch, LoadRestrictor, Options, Reorder, Resource};
use portolan_object::{Act, Digest, Object, Origin, PackDictionary, Place, Step, expand_lists};
use portolan_vfs::{DirEntry, FileKind, Vfs, VfsError};
use portolan_yaml::{Dialect, Node, Style, Text, Value};

use crate::api::{Decryption, Kustomization, NamespacedName};
use crate::cluster::{Cluster, Files, unit_key};
use crate::kustomization::generate::{self, GenerateError};
use crate::kustomization::metadata::{set_common_metadata, set_metadata};
use crate::kustomization::variables::{
    SubstitutionError, UnsetVariable, Variables, is_disabled, opted_out,
};
use crate::problem::error_line;
use crate::session::fingerprint::Fingerprint;
use crate::session::trace::Traced;
use crate::session::{KeptBuild, SessionResult};
use crate::source::artifact::Artifact;
use crate::source::outside::{Decrypt, OutsideError};
use crate::stream::Retention;

/// The labels that say which Kustomization an object belongs to.
const OWNER_NAME: &str = "kustomize.toolkit.fluxcd.io/name";
const OWNER_NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";

/// The label or annotation that keeps an object encrypted.
const DECRYPT_OPT_OUT: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// Why a Kustomization gives no objects.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is nothing to build.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// kustomize refuses.
    #[error("kustomize build failed")]
    Kustomize {
        /// Where the cause is written.
        place: Option<Place>,
        /// What it says.
        #[source]
        source: Box<portolan_kustomize::Error>,
    },
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
    /// An encrypted object cannot be opened.
    #[error("cannot decrypt {object}")]
    Decrypt {
        /// Which object.
        object: String,
        /// Where it was written.
        place: Option<Place>,
        /// Why not.
        #[source]
        source: OutsideError,
    },
    /// An encrypted file that kustomize reads cannot be opened.
    #[error("cannot decrypt `{path}`")]
    DecryptFile {
        /// The file.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: OutsideError,
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

/// Everything that decides what a Kustomization gives.
pub(crate) struct BuildInputs {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) spec: Arc<Kustomization>,
    pub(crate) variables: Option<Variables>,
    pub(crate) files: Files,
    pub(crate) retention: Retention,
}

impl Built {
    /// The same with its objects packed.
    fn packed(mut self, dictionary: &PackDictionary) -> Self {
        Object::pack_all_with(Arc::make_mut(&mut self.objects), dictionary);
        self
    }

    /// The same with other places.
    fn with_places(mut self, change: impl Fn(&Place) -> Place) -> Self {
        let objects = Arc::make_mut(&mut self.objects);
        for object in objects {
            object.set_origin(with_places(&object.origin(), &change));
        }
        for (place, _) in &mut self.unset {
            *place = change(place);
        }
        self
    }
}

/// The same history with other places.
fn with_places(origin: &Origin, change: impl Fn(&Place) -> Place) -> Origin {
    let steps = origin.steps().into_iter();
    steps.fold(Origin::default(), |origin, step| {
        let mut step = step.clone();
        step.place = step.place.as_ref().map(&change);
        origin.then(step)
    })
}

impl BuildError {
    /// The same with other places.
    fn with_places(mut self, change: impl Fn(&Place) -> Place) -> Self {
        match &mut self {
            Self::Generate(GenerateError::Decode { path, at, .. }) => {
                let place = change(&Place::new(path.as_str(), *at));
                *path = Utf8PathBuf::from(place.file.as_str());
            }
            Self::DecryptFile { path, .. } => {
                let place = change(&Place::line(path.as_str(), 1));
                *path = Utf8PathBuf::from(place.file.as_str());
            }
            Self::Kustomize { place, .. }
            | Self::Substitution { place, .. }
            | Self::Decrypt { place, .. } => *place = place.as_ref().map(change),
            Self::Generate(_) | Self::Duplicate(_) => {}
        }
        self
    }

    /// Where the cause is written, where that is known.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Generate(GenerateError::Decode { path, at, .. }) => {
                Some(Place::new(path.as_str(), *at))
            }
            Self::Kustomize { place, .. }
            | Self::Substitution { place, .. }
            | Self::Decrypt { place, .. } => place.clone(),
            Self::DecryptFile { path, .. } => Some(Place::line(path.as_str(), 1)),
            Self::Generate(_) | Self::Duplicate(_) => None,
        }
    }
}

impl BuildInputs {
    /// The unit for these inputs in these files, and its key.
    pub(crate) fn into_unit(self) -> (Key<SessionResult<Built>>, Unit<SessionResult<Built>>) {
        let digest = self.digest();
        let mut key = Fingerprint::of("Kustomization in files");
        key.digest(&digest);
        self.files.fingerprint(&mut key);
        let key = unit_key("Kustomization", &self.spec.id, &key.finish());
        (key, self.find_or_make(digest))
    }

    /// The digest of everything but the files.
    fn digest(&self) -> Digest {
        let mut key = Fingerprint::of("Kustomization");
        fingerprint(&self.spec, &mut key);
        key.flag(self.variables.is_some());
        if let Some(variables) = &self.variables {
            variables.fingerprint(&mut key);
        }
        if let (Some(_), Some(decrypt)) = (&self.spec.decryption, &self.cluster.decrypt) {
            key.digest(&decrypt.fingerprint());
        }
        key.finish()
    }

    /// A unit that finds the result, or makes it.
    fn find_or_make(self, digest: Digest) -> Unit<SessionResult<Built>> {
        Unit::io(move |cx| async move {
            let artifact = self.files.wait(&cx).await?;
            let session = Arc::clone(&self.cluster.session);
            if self.retention == Retention::Forget {
                let made = cx.compute(move || {
                    let built = self.build_placed(&artifact, artifact.as_ref())?;
                    Ok::<_, BuildError>(built.packed(&session.build_dictionary))
                });
                return Ok(SessionResult(Arc::new(made.await?)));
            }
            let slot = session.builds(&digest).await;
            // Where stamps answer, asking costs less than handing the question to another thread.
            if artifact.is_stamped()
                && let Some(kept) = slot.find(|kept| kept.holds_for(&artifact))
            {
                return Ok(SessionResult(kept.built()));
            }
            let made = cx.compute(move || {
                if let Some(kept) = slot.find(|kept| kept.holds_for(&artifact)) {
                    return Ok(kept.built());
                }
                let traced = Traced::new(&artifact);
                let built = Arc::new(self.build_placed(&artifact, &traced)?);
                let kept = KeptBuild::new(&artifact, traced.into_trace(), &built);
                slot.keep(Arc::new(kept));
                Ok::<_, BuildError>(built)
            });
            Ok(SessionResult(made.await?))
        })
    }

    /// Builds the files of an artifact; places are those in the repository.
    fn build_placed(&self, artifact: &Artifact, files: &dyn Vfs) -> Result<Built, BuildError> {
        let built = self.build(files);
        if !artifact.is_copied() {
            return built;
        }
        let place = |place: &Place| artifact.place_in_repository(place);
        built
            .map(|built| built.with_places(place))
            .map_err(|error| error.with_places(place))
    }

    fn build(&self, files: &dyn Vfs) -> Result<Built, BuildError> {
        let budget = self.cluster.budget.renewed();
        let fetch = self.cluster.fetch.as_deref();
        let decryption = self.spec.decryption.as_ref();
        let Some((decrypt, how)) = self.cluster.decrypt.as_deref().zip(decryption) else {
            return build(
                files,
                &self.spec,
                self.variables.as_ref(),
                fetch,
                None,
                &budget,
            );
        };
        let opened = OpenedFiles {
            files,
            decrypt,
            how,
            refused: Mutex::new(None),
        };
        let keys = Some((decrypt, how));
        let built = build(
            &opened,
            &self.spec,
            self.variables.as_ref(),
            fetch,
            keys,
            &budget,
        );
        // kustomize tries a file that cannot be read in other ways and tells of those: the first cause counts.
        built.map_err(|error| opened.refused.into_inner().unwrap_or(error))
    }
}

/// The digest of what a Kustomization says that decides its build, and of which data it takes.
pub(crate) fn digest_of_spec(spec: &Kustomization) -> Digest {
    let mut key = Fingerprint::of("spec");
    fingerprint(spec, &mut key);
    key.add(&spec.source);
    key.add(&spec.post_build);
    key.finish()
}

/// Adds what of a Kustomization decides its build.
fn fingerprint(spec: &Kustomization, key: &mut Fingerprint) {
    key.text(&spec.path);
    fingerprint_settings(spec, key);
}

/// Adds what of a Kustomization decides its build, besides its files and variables.
pub(crate) fn fingerprint_settings(spec: &Kustomization, key: &mut Fingerprint) {
    key.text(&spec.id.namespace);
    key.text(&spec.id.name);
    for text in [&spec.target_namespace, &spec.name_prefix, &spec.name_suffix] {
        key.optional(text.as_ref());
    }
    key.texts(&spec.components);
    key.flag(spec.ignore_missing_components);
    let nodes = [
        &spec.patches,
        &spec.patches_strategic_merge,
        &spec.patches_json6902,
        &spec.images,
        &spec.build_metadata,
    ];
    for node in nodes {
        key.node(node.as_ref());
    }
    key.metadata(&spec.common_metadata);
    key.add(&spec.decryption);
}

/// Builds the objects of a Kustomization; `variables` are put in when it has a `postBuild`.
fn build(
    files: &dyn Vfs,
    spec: &Kustomization,
    variables: Option<&Variables>,
    fetch: Option<&dyn Fetch>,
    keys: Option<(&dyn Decrypt, &Decryption)>,
    budget: &Budget,
) -> Result<Built, BuildError> {
    let directory = generate::directory(spec);
    let file = generate::kustomization_file(files, &directory, spec)?;
    let options = Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        fetch,
        kustomization: Some(&file),
        budget: Some(budget),
        ..Options::default()
    };
    let resources = portolan_kustomize::build(&directory, files, &options).map_err(|error| {
        BuildError::Kustomize {
            place: error_line::of_build(&error, files, &directory),
            source: Box::new(error),
        }
    })?;
    let mut objects = Vec::new();
    let mut resources = resources.into_resources();
    for resource in &mut resources {
        settle(&mut resource.node);
    }
    let mut read = Vec::with_capacity(resources.len());
    let mut texts = SharedTexts::default();
    for resource in resources {
        let origin = origin_of(&resource, &mut texts);
        read.push(match keys {
            Some((decrypt, how)) => open(resource.node, origin, decrypt, how)?,
            None => (resource.node, origin),
        });
    }
    let substitutes = read.iter().any(|(node, _)| !opted_out(node));
    let (completed, unset) = substitute(read, variables, files)?;
    let built_by = Step::new(Act::Build, format!("Kustomization {}", spec.id));
    for (node, origin) in completed {
        objects.extend(
            expand_lists(node)
                .into_iter()
                .filter_map(|node| as_object(node, &origin, &built_by)),
        );
    }
    for object in &mut objects {
        set_common_metadata(object, &spec.common_metadata);
    }
    objects.shrink_to_fit();
    Ok(Built {
        objects: Arc::new(objects),
        unset,
        substitutes,
    })
}

/// Opens an object that is encrypted and does not ask to be left alone.
fn open(
    node: Node,
    origin: Origin,
    decrypt: &dyn Decrypt,
    how: &Decryption,
) -> Result<(Node, Origin), BuildError> {
    if is_disabled(&node, DECRYPT_OPT_OUT) {
        return Ok((node, origin));
    }
    let opened = decrypt
        .object(&node, how)
        .map_err(|source| BuildError::Decrypt {
            object: Identity::of(&node).to_string(),
            place: origin.place().cloned(),
            source,
        })?;
    Ok(match opened {
        Some(plain) => (plain, origin.then(Step::new(Act::Decrypt, "decryption"))),
        None => (node, origin),
    })
}

/// Files that generators and patches read, opened on the way.
struct OpenedFiles<'a> {
    files: &'a dyn Vfs,
    decrypt: &'a dyn Decrypt,
    how: &'a Decryption,
    /// Why the first file that cannot be opened cannot be opened.
    refused: Mutex<Option<BuildError>>,
}

impl Vfs for OpenedFiles<'_> {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let content = self.files.read(path)?;
        match self.decrypt.file(path, &content, self.how) {
            Ok(Some(plain)) => Ok(plain),
            Ok(None) => Ok(content),
            Err(source) => {
                let message = source.to_string();
                let path = path.to_owned();
                let mut refused = self.refused.lock();
                refused.get_or_insert(BuildError::DecryptFile {
                    path: path.clone(),
                    source,
                });
                Err(VfsError::Io {
                    path,
                    source: std::io::Error::other(message),
                })
            }
        }
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        self.files.list(directory)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        self.files.kind(path)
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        self.files.canonicalize(path)
    }
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
    read: Vec<(Node, Origin)>,
    variables: Option<&Variables>,
    files: &dyn Vfs,
) -> Result<Completed, BuildError> {
    let Some(variables) = variables else {
        return Ok((read, Vec::new()));
    };
    let mut ids: HashMap<Identity, usize> = HashMap::new();
    for (node, _) in &read {
        *ids.entry(Identity::of(node)).or_default() += 1;
    }
    let mut done = Vec::with_capacity(read.len());
    let mut unset = Vec::new();
    for (node, origin) in read {
        if !variables.applies_to(&node) {
            done.push((node, origin));
            continue;
        }
        let before = Identity::of(&node);
        let (node, unset_here) =
            variables
                .substitute(&node)
                .map_err(|source| BuildError::Substitution {
                    object: before.to_string(),
                    place: expression_place(&origin, files, source.line()),
                    source,
                })?;
        unset.extend(unset_here.map(|variable| {
            let place = expression_place(&origin, files, &variable.line);
            (place.unwrap_or_else(|| Place::line("", 0)), variable)
        }));
        let after = Identity::of(&node);
        if after != before {
            ids.entry(before).and_modify(|count| *count -= 1);
            let count = ids.entry(after.clone()).or_default();
            *count += 1;
            if *count > 1 {
                return Err(BuildError::Duplicate(after.to_string()));
            }
        }
        let step = Step::new(Act::Substitute, Text::from_static("postBuild"));
        done.push((node, origin.then(step)));
    }
    Ok((done, unset))
}

fn expression_place(origin: &Origin, files: &dyn Vfs, line: &str) -> Option<Place> {
    let object = origin.place()?;
    Some(error_line::of_expression(files, object, line))
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
fn origin_of(resource: &Resource, texts: &mut SharedTexts) -> Origin {
    let written = &resource.origin;
    let file = texts.get(written.file.as_str());
    let read = Origin::read(Place::new(file, written.at));
    let changes = resource.transformations.iter();
    changes.fold(read, |origin, change| {
        let place = Place::new(texts.get(change.file.as_str()), change.at);
        let step = Step::new(Act::Transform, texts.get(&change.step));
        origin.then(step.at(place))
    })
}

/// The texts that many steps of a build name, each once.
#[derive(Default)]
struct SharedTexts(HashSet<Text>);

impl SharedTexts {
    /// A text that is no part of a longer one, which it would keep in memory.
    fn get(&mut self, text: &str) -> Text {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let own = Text::from(text);
        self.0.insert(own.clone());
        own
    }
}

/// What is no Kubernetes object, or kustomize's own file, is dropped without a word, as Flux does.
fn as_object(node: Node, origin: &Origin, built_by: &Step) -> Option<Object> {
    let object = Object::new(node, origin.then(built_by.clone())).ok()?;
    let is_kustomize =
        object.gvk().group == "kustomize.config.k8s.io" && object.kind() == "Kustomization";
    (!is_kustomize).then_some(object)
}
