//! The objects of a Flux repository, rendered as Flux does, without the objects of Flux itself. Nothing is fetched: sources
//! and charts must be in the repository.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_flux::{Demand, Wanted};
use portolan_git::Repository;
use portolan_object::Severity;
use portolan_review::{FluxRepository, QuietRunner};
use portolan_yaml::to_json;
use serde_json::Value;

use crate::builder::inside;
use crate::document::FluxSource;
use crate::render::RenderError;

/// How many problems of a repository are told.
const TOLD: usize = 5;

/// Renders the cluster of a step.
pub(crate) fn flux_objects(
    source: &FluxSource,
    directory: &Utf8Path,
) -> Result<Vec<Value>, RenderError> {
    let cluster =
        inside(directory, &source.path).ok_or_else(|| RenderError::Outside(source.path.clone()))?;
    let failed = |message: String| RenderError::Flux {
        path: source.path.clone(),
        message,
    };
    // Paths in a Flux repository begin at its root, which may lie above the document.
    let root = repository_root(directory);
    let path = cluster.strip_prefix(&root).unwrap_or(&cluster);
    let repository = FluxRepository::at(&root).map_err(|error| failed(error.to_string()))?;
    let runner = QuietRunner::new().map_err(|error| failed(error.to_string()))?;
    let demand = Demand {
        kustomizations: Wanted::All,
        releases: Wanted::All,
    };
    let rendered = repository
        .rooted(Some(path.to_owned()))
        .render(demand, &runner)
        .map_err(|error| failed(error.to_string()))?;
    let problems: Vec<String> = rendered
        .problems()
        .into_iter()
        .filter(|(_, problem)| problem.severity == Severity::Error)
        .map(|(sentence, _)| sentence)
        .take(TOLD)
        .collect();
    if !problems.is_empty() {
        return Err(failed(problems.join("; ")));
    }
    let mut objects = Vec::new();
    let mut left: Vec<&String> = source.only.iter().collect();
    for (_, rendering) in &rendered.clusters {
        for output in rendering.outputs() {
            let name = output.emitter.id().name.as_str();
            if !source.only.is_empty() && source.only.iter().all(|only| only != name) {
                continue;
            }
            left.retain(|only| *only != name);
            for object in output.objects.iter() {
                let json = to_json(object.node()).map_err(|error| failed(error.to_string()))?;
                let value: Value =
                    serde_json::from_str(&json).map_err(|error| failed(error.to_string()))?;
                if !is_of_flux(&value) {
                    objects.push(value);
                }
            }
        }
    }
    match left.first() {
        Some(name) => Err(failed(format!(
            "it has no Kustomization or HelmRelease `{name}`"
        ))),
        None => Ok(objects),
    }
}

fn repository_root(directory: &Utf8Path) -> Utf8PathBuf {
    let repository = Repository::discover(directory).ok();
    let root = repository.and_then(|repository| repository.work_tree().map(Utf8Path::to_owned));
    let root = root.and_then(|root| root.canonicalize_utf8().ok());
    root.filter(|root| directory.starts_with(root))
        .unwrap_or_else(|| directory.to_owned())
}

/// What Flux itself reads is not applied: its objects are rendered instead.
fn is_of_flux(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    group.ends_with(".toolkit.fluxcd.io") || group == "fluxcd.controlplane.io"
}
