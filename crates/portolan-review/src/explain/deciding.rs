//! Renders with one line changed, and checks whether the field changes.

use std::sync::Arc;

use camino::Utf8Path;
use portolan_flux::api::NamespacedName;
use portolan_flux::{Demand, Emitter, Name, Rendering, Wanted};
use portolan_object::{Object, canonical_json};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::Node;

use super::candidate_lines::CandidateLine;
use super::field_query::FieldQuery;
use crate::experiment::{ChangedFile, Experiment};
use crate::inventory::PlacedObject;
use crate::{FluxRepository, Runner};

/// The candidates on which the field depends.
pub(super) fn deciding<R: Runner>(
    placed: &PlacedObject<'_>,
    field: &FieldQuery,
    value: &Node,
    candidates: Vec<CandidateLine>,
    repository: &FluxRepository,
    runner: &R,
) -> Result<Vec<CandidateLine>, R::Error> {
    let files: Arc<dyn Vfs> = Arc::new(repository.disk.clone());
    let root = placed.cluster.root.path.trim_start_matches('/');
    let root = resolve(Utf8Path::new("/"), root);
    let experiment = Experiment {
        files,
        repository: &repository.rooted(Some(root)),
    };
    let changes = candidates.iter().map(|candidate| ChangedFile {
        path: candidate.file.clone(),
        content: candidate.changed.as_bytes().to_vec(),
    });
    let renderings = experiment.renderings(changes, &demand(&placed.owner), runner)?;
    let differs = |rendering: &Rendering| {
        let other = counterpart(placed, rendering).and_then(|object| field.get(object.node()));
        other.is_some_and(|other| canonical_json(other).ok() != canonical_json(value).ok())
    };
    let tried = candidates.into_iter().zip(renderings);
    let deciding = tried.filter(|(_, rendering)| {
        let rendering = rendering.as_ref();
        rendering.is_some_and(|rendering| differs(rendering))
    });
    Ok(deciding.map(|(candidate, _)| candidate).collect())
}

/// The owner and no more than what it is made of.
fn demand(owner: &Emitter) -> Demand {
    let named = |id: &NamespacedName| {
        Wanted::Named(vec![Name {
            namespace: Some(id.namespace.clone()),
            name: id.name.clone(),
        }])
    };
    match owner {
        Emitter::Kustomization(id) => Demand {
            kustomizations: named(id),
            releases: Wanted::None,
        },
        Emitter::Release(id) => Demand {
            kustomizations: Wanted::None,
            releases: named(id),
        },
        // What a ResourceSet makes may depend on all that is emitted.
        Emitter::ResourceSet(_) | Emitter::Instance(_) => Demand {
            kustomizations: Wanted::All,
            releases: Wanted::None,
        },
    }
}

/// The same object in another render; a generated one may have another hash in its name.
fn counterpart<'a>(placed: &PlacedObject<'_>, rendering: &'a Rendering) -> Option<&'a Object> {
    let objects: &[Object] = match &placed.owner {
        Emitter::Kustomization(id) => {
            let walked = rendering.walk.kustomizations.get(id)?;
            &walked.built.as_ref()?.objects
        }
        Emitter::Release(id) => rendering.releases.get(id)?.objects.as_ref()?,
        emitter @ (Emitter::ResourceSet(_) | Emitter::Instance(_)) => expanded(rendering, emitter)?,
    };
    let wanted = placed.object.id();
    let same = objects.iter().find(|object| object.id() == wanted);
    // A change may move it to another namespace: then it still stands at the same place.
    let place = placed.object.place();
    let moved = || {
        objects.iter().find(|object| {
            place.is_some() && object.gvk() == &wanted.gvk && object.place() == place
        })
    };
    same.or_else(|| {
        let (stem, _) = wanted.name.rsplit_once('-')?;
        objects.iter().find(|object| {
            object.gvk() == &wanted.gvk
                && object.namespace() == wanted.namespace.as_str()
                && object
                    .name()
                    .rsplit_once('-')
                    .is_some_and(|(other, _)| other == stem)
        })
    })
    .or_else(moved)
}

fn expanded<'a>(rendering: &'a Rendering, emitter: &Emitter) -> Option<&'a [Object]> {
    let expansion = rendering.walk.expansions.get(emitter)?;
    Some(expansion.objects.as_ref()?)
}
