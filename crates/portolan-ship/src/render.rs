//! The objects of deploy steps, with the images that were built put in.
//!
//! A reference to the repository of an artifact becomes `repository:tag@sha256:…`, wherever an object names an image; all
//! other references stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::{Gvk, ImageRef, images};
use portolan_secret::hide_values;
use portolan_vfs::Disk;
use portolan_yaml::{Dialect, Node, from_json, parse, to_json, write_kustomize};
use serde_json::Value;

use crate::builder::inside;
use crate::document::{DeploySource, DeployStep, Ship};
use crate::flux_objects::flux_objects;
use crate::git_images::{GitImagesError, named_images};
use crate::helm_chart::HelmChart;

/// The longest manifest that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The most files of a step.
const MAX_FILES: usize = 10_000;

/// A step with its objects.
#[derive(Debug, Clone)]
pub struct RenderedStep {
    /// The step.
    pub step: DeployStep,
    /// Its objects, as they are written.
    pub objects: Vec<Value>,
    /// The artifacts that they name.
    pub artifacts: BTreeSet<String>,
    /// The chart that they come from.
    pub(crate) chart: Option<HelmChart>,
}

/// Why the objects of a step cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A path leads out of the project.
    #[error("`{0}` leads out of the directory of the document")]
    Outside(String),
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}:{line}:{column}: {message}")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// Where.
        line: u32,
        /// Where.
        column: u32,
        /// What is wrong.
        message: String,
    },
    /// There is too much.
    #[error("`{path}` has more than {MAX_FILES} files")]
    TooMany {
        /// The directory.
        path: Utf8PathBuf,
    },
    /// A chart cannot be loaded or rendered.
    #[error("cannot render the chart `{path}`: {message}")]
    Chart {
        /// The chart.
        path: String,
        /// Why.
        message: String,
    },
    /// A Flux repository cannot be rendered.
    #[error("cannot render the Flux repository `{path}`: {message}")]
    Flux {
        /// The directory of the cluster.
        path: String,
        /// Why.
        message: String,
    },
    /// Files of a git repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitImagesError),
    /// A step has no chart although it needs one.
    #[error("the step `{0}` has no chart")]
    NoChart(String),
    /// An overlay cannot be built.
    #[error("cannot build the overlay `{path}`: {message}")]
    Kustomize {
        /// The overlay.
        path: String,
        /// Why.
        message: String,
    },
}

/// Renders the steps of a document; images are put in later.
pub fn render(
    ship: &Ship,
    directory: &Utf8Path,
) -> Result<Vec<RenderedStep>, (String, RenderError)> {
    let mut steps = Vec::new();
    for step in &ship.deploy {
        let rendered = render_step(ship, step, directory);
        steps.push(rendered.map_err(|error| (step.name.clone(), error))?);
    }
    Ok(steps)
}

fn render_step(
    ship: &Ship,
    step: &DeployStep,
    directory: &Utf8Path,
) -> Result<RenderedStep, RenderError> {
    let chart = match &step.source {
        DeploySource::Helm(source) => Some(HelmChart::load(step, source, directory)?),
        _ => None,
    };
    let (objects, mut artifacts) = match &chart {
        // Until there are images, repositories stand for them.
        Some(chart) => {
            let repositories = ship.artifacts.iter();
            let repositories =
                repositories.map(|artifact| (artifact.name.clone(), artifact.image.clone()));
            let named = chart.source.images.values().cloned().collect();
            // A chart may need the cluster: who renders without one is told by `with_images`.
            let objects = chart.objects(&repositories.collect());
            (objects.unwrap_or_default(), named)
        }
        None => (
            objects(step, directory)?,
            named_in_files(ship, step, directory)?,
        ),
    };
    artifacts.extend(named(ship, &objects));
    Ok(RenderedStep {
        step: step.clone(),
        objects,
        artifacts,
        chart,
    })
}

impl RenderedStep {
    /// A step whose objects were rendered before.
    pub fn of_objects(step: DeployStep, objects: Vec<Value>) -> Self {
        Self {
            step,
            objects,
            artifacts: BTreeSet::new(),
            chart: None,
        }
    }

    /// Its objects with images put in, by the name of the artifact.
    pub fn with_images(
        &self,
        ship: &Ship,
        images: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, RenderError> {
        let mut objects = match &self.chart {
            Some(chart) => chart.objects(images)?,
            None => self.objects.clone(),
        };
        for object in &mut objects {
            put_images(object, ship, images);
        }
        Ok(objects)
    }
}

/// The artifacts whose images stand in the files of a git repository.
fn named_in_files(
    ship: &Ship,
    step: &DeployStep,
    directory: &Utf8Path,
) -> Result<BTreeSet<String>, RenderError> {
    match &step.source {
        DeploySource::Git(source) => Ok(named_images(source, ship, directory)?),
        _ => Ok(BTreeSet::new()),
    }
}

/// Puts the images of artifacts into an object, wherever it names their repositories; says whether it names one.
pub(crate) fn put_images(
    object: &mut Value,
    ship: &Ship,
    images: &BTreeMap<String, String>,
) -> bool {
    let by_repository = repositories(ship);
    let mut is_changed = false;
    for (path, reference) in references(object) {
        let artifact = by_repository.get(&canonical(&reference).unwrap_or_default());
        let image = artifact.and_then(|name| images.get(*name));
        if let (Some(image), Some(field)) = (image, field(object, &path)) {
            is_changed |= field.as_str() != Some(image);
            *field = Value::from(image.as_str());
        }
    }
    is_changed
}

/// Objects as YAML documents, and how many of them are Secrets whose values are hidden.
pub fn manifests_yaml(
    objects: &[Value],
    shows_secrets: bool,
) -> Result<(String, usize), portolan_yaml::WriteError> {
    let (mut text, mut hidden) = (String::new(), 0);
    for object in objects {
        // JSON that was just written is JSON.
        let mut node: Node = from_json(&object.to_string()).unwrap_or_else(|_| Node::null());
        if let Some(without) = hide_values(&node).filter(|_| !shows_secrets) {
            node = without;
            hidden += 1;
        }
        text.push_str("---\n");
        text.push_str(&write_kustomize(&node)?);
    }
    Ok((text, hidden))
}

/// The artifacts that no step names.
pub fn unnamed<'a>(ship: &'a Ship, steps: &[RenderedStep]) -> Vec<&'a str> {
    let is_named = |name: &str| steps.iter().any(|step| step.artifacts.contains(name));
    let names = ship.artifacts.iter().map(|artifact| artifact.name.as_str());
    names.filter(|name| !is_named(name)).collect()
}

fn objects(step: &DeployStep, directory: &Utf8Path) -> Result<Vec<Value>, RenderError> {
    match &step.source {
        DeploySource::Manifests(paths) => {
            let mut objects = Vec::new();
            for path in paths {
                let place =
                    inside(directory, path).ok_or_else(|| RenderError::Outside(path.clone()))?;
                for file in files(&place)? {
                    let shown = file.strip_prefix(directory).unwrap_or(&file);
                    objects.extend(read_file(&file, shown)?);
                }
            }
            Ok(objects)
        }
        DeploySource::Kustomize(path) => {
            inside(directory, path).ok_or_else(|| RenderError::Outside(path.clone()))?;
            overlay(path, directory)
        }
        DeploySource::Flux(source) => flux_objects(source, directory),
        // A chart was rendered before, and the others have no objects.
        DeploySource::Helm(_) | DeploySource::Git(_) | DeploySource::Rollout(_) => Ok(Vec::new()),
    }
}

fn overlay(path: &str, directory: &Utf8Path) -> Result<Vec<Value>, RenderError> {
    let failed = |message: String| RenderError::Kustomize {
        path: path.to_owned(),
        message,
    };
    let disk = Disk::open(directory).map_err(|error| failed(error.to_string()))?;
    let root = Utf8Path::new("/").join(path);
    let options = portolan_kustomize::Options::default();
    let set = portolan_kustomize::build(&root, &disk, &options);
    let set = set.map_err(|error| failed(portolan_engine::with_causes(&error)))?;
    let text = portolan_kustomize::to_yaml(&set).map_err(|error| failed(error.to_string()))?;
    read_manifests(&text, Utf8Path::new(path))
}

/// The files of a path: itself, or what lies below it, sorted.
fn files(path: &Utf8Path) -> Result<Vec<Utf8PathBuf>, RenderError> {
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        move |source| RenderError::Read { path, source }
    };
    if path.metadata().map_err(failed(path))?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut left) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in directory.read_dir_utf8().map_err(failed(&directory))? {
            let entry = entry.map_err(failed(&directory))?;
            let kind = entry.file_type().map_err(failed(&directory))?;
            let is_hidden = entry.file_name().starts_with('.');
            let is_manifest = matches!(entry.path().extension(), Some("yaml" | "yml" | "json"));
            if kind.is_dir() && !is_hidden {
                left.push(entry.into_path());
            } else if kind.is_file() && is_manifest {
                found.push(entry.into_path());
            }
            if found.len() + left.len() > MAX_FILES {
                let path = path.to_owned();
                return Err(RenderError::TooMany { path });
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_file(file: &Utf8Path, shown: &Utf8Path) -> Result<Vec<Value>, RenderError> {
    let failed = |source| RenderError::Read {
        path: shown.to_owned(),
        source,
    };
    if file.metadata().map_err(failed)?.len() > MAX_FILE_BYTES {
        let source = io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 64 MiB");
        return Err(failed(source));
    }
    read_manifests(&std::fs::read_to_string(file).map_err(failed)?, shown)
}

/// The objects of a text; lists are taken apart.
pub fn read_manifests(text: &str, shown: &Utf8Path) -> Result<Vec<Value>, RenderError> {
    let parse_error = |at: portolan_yaml::Position, message: String| RenderError::Parse {
        path: shown.to_owned(),
        line: at.line,
        column: at.column,
        message,
    };
    let documents = parse(text.to_owned(), Dialect::Kustomize)
        .map_err(|errors| parse_error(errors.first().at, errors.first().message.clone()))?;
    let mut objects = Vec::new();
    for document in documents.iter().filter(|document| !document.is_null()) {
        let json =
            to_json(document).map_err(|error| parse_error(document.at, error.to_string()))?;
        let value: Value = serde_json::from_str(&json)
            .map_err(|error| parse_error(document.at, error.to_string()))?;
        let is_list = value["kind"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("List"));
        match value.get("items").and_then(Value::as_array) {
            Some(items) if is_list => objects.extend(items.iter().cloned()),
            _ if value["kind"].is_string() && value["metadata"]["name"].is_string() => {
                objects.push(value);
            }
            _ => {
                let message =
                    "this is no object: it needs `apiVersion`, `kind` and `metadata.name`";
                return Err(parse_error(document.at, message.to_owned()));
            }
        }
    }
    Ok(objects)
}

/// The artifacts by the canonical names of their repositories: the one that the document names, and the one that images go to.
pub(crate) fn repositories(ship: &Ship) -> BTreeMap<String, &str> {
    let artifacts = ship.artifacts.iter();
    let known = artifacts.flat_map(|artifact| {
        let names = [&artifact.image, &artifact.named].into_iter();
        names.filter_map(|name| Some((canonical(name)?, artifact.name.as_str())))
    });
    known.collect()
}

/// The artifacts that objects name.
pub(crate) fn named(ship: &Ship, objects: &[Value]) -> BTreeSet<String> {
    let by_repository = repositories(ship);
    let references = objects.iter().flat_map(references);
    let names =
        references.filter_map(|(_, reference)| by_repository.get(&canonical(&reference)?).copied());
    names.map(str::to_owned).collect()
}

pub(crate) fn canonical(reference: &str) -> Option<String> {
    let image: ImageRef = reference.parse().ok()?;
    Some(format!("{}/{}", image.registry(), image.repository()))
}

/// The images that an object names, each with the path of its field.
fn references(object: &Value) -> Vec<(String, String)> {
    let Ok(node) = from_json(&object.to_string()) else {
        return Vec::new();
    };
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let gvk = Gvk::from_api_version(text("apiVersion"), text("kind"));
    let found = images(&gvk, &node).into_iter();
    found
        .map(|image| (image.path, image.reference.to_string()))
        .collect()
}

/// The text at a path such as `spec.template.spec.containers[0].image`.
fn field<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut place = object;
    for part in path.split('.') {
        let (key, indexes) = match part.split_once('[') {
            Some((key, rest)) => (key, rest.trim_end_matches(']')),
            None => (part, ""),
        };
        place = place.get_mut(key)?;
        for index in indexes.split("][").filter(|index| !index.is_empty()) {
            place = place.get_mut(index.parse::<usize>().ok()?)?;
        }
    }
    place.is_string().then_some(place)
}
