//! What a rendered repository holds: objects, each with its owner and the namespace it ends up in, and sources, each
//! with its users.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use portolan_flux::api::{Chart, ChartSpec, NamespacedName, SourceRef};
use portolan_flux::{Cluster, Emitter, Rendering, release_namespace};
use portolan_object::{Gvk, Object, ObjectId, Scope, defined_kinds, scope};
use portolan_yaml::Text;

use crate::repository::Rendered;

/// A rendered object in its place.
#[derive(Clone)]
pub(crate) struct Placed<'a> {
    /// The cluster it is for.
    pub(crate) cluster: &'a Cluster,
    /// Who emits it.
    pub(crate) owner: Emitter,
    /// The object.
    pub(crate) object: &'a Object,
    /// What names it, with the namespace that Helm leaves to the release.
    pub(crate) id: ObjectId,
}

/// The API group of Flux's sources.
pub(crate) const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";

/// Its kinds.
const SOURCE_KINDS: [&str; 6] = [
    "Bucket",
    "ExternalArtifact",
    "GitRepository",
    "HelmChart",
    "HelmRepository",
    "OCIRepository",
];

/// A source with its users.
#[derive(Default)]
pub(crate) struct UsedSource<'a> {
    /// The object that declares it, if one does.
    pub(crate) object: Option<&'a Object>,
    /// `ks/flux-system/apps`, `hr/apps/podinfo`
    pub(crate) users: Vec<String>,
}

/// Every namespace that something of a cluster lies in, names or is released into.
pub(crate) fn namespaces(rendering: &Rendering) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let walk = &rendering.walk;
    for (id, walked) in &walk.kustomizations {
        names.insert(id.namespace.to_string());
        let target = walked
            .spec
            .as_ref()
            .ok()
            .and_then(|spec| spec.target_namespace.as_ref());
        names.extend(target.map(ToString::to_string));
    }
    let releases = rendering.releases.iter();
    for (id, release) in releases {
        names.insert(id.namespace.to_string());
        let target = release
            .spec
            .as_ref()
            .ok()
            .map(|spec| release_namespace(spec).to_string());
        names.extend(target);
    }
    names.extend(
        rendering
            .unchanged
            .keys()
            .map(|id| id.namespace.to_string()),
    );
    for object in walk.index.emitted().flat_map(|(_, objects)| objects.iter()) {
        names.insert(object.namespace().to_owned());
        if object.gvk().is("", "Namespace") {
            names.insert(object.name().to_owned());
        }
    }
    names.remove("");
    names
}

/// Every object of every cluster: of Kustomizations, then of ResourceSets, then of releases, each by name and in the order Flux applies it.
pub(crate) fn objects(rendered: &Rendered) -> Vec<Placed<'_>> {
    let clusters = rendered.clusters.iter();
    clusters
        .flat_map(|(cluster, rendering)| objects_of(cluster, rendering))
        .collect()
}

fn objects_of<'a>(cluster: &'a Cluster, rendering: &'a Rendering) -> Vec<Placed<'a>> {
    let mut placed = Vec::new();
    for (id, walked) in &rendering.walk.kustomizations {
        for object in walked.built.iter().flat_map(|built| built.objects.iter()) {
            placed.push(Placed {
                cluster,
                owner: Emitter::Kustomization(id.clone()),
                object,
                id: object.id().clone(),
            });
        }
    }
    for (emitter, expansion) in &rendering.walk.expansions {
        for object in expansion.objects.iter().flat_map(|objects| objects.iter()) {
            placed.push(Placed {
                cluster,
                owner: emitter.clone(),
                object,
                id: object.id().clone(),
            });
        }
    }
    let without_namespace = cluster_wide_kinds(rendering);
    for (id, release) in &rendering.releases {
        let namespace = match &release.spec {
            Ok(spec) => release_namespace(spec),
            Err(_) => &id.namespace,
        };
        for object in release.objects.iter().flat_map(|objects| objects.iter()) {
            placed.push(Placed {
                cluster,
                owner: Emitter::Release(id.clone()),
                object,
                id: in_namespace(object, namespace, &without_namespace),
            });
        }
    }
    placed
}

/// Helm leaves the namespace out where it is the release's own.
fn in_namespace(object: &Object, namespace: &Text, cluster_wide: &HashSet<Gvk>) -> ObjectId {
    let mut id = object.id().clone();
    let is_cluster_wide = scope(&id.gvk) == Some(Scope::Cluster) || cluster_wide.contains(&id.gvk);
    if id.namespace.is_empty() && !is_cluster_wide {
        id.namespace = namespace.clone();
    }
    id
}

/// The custom kinds that the repository itself defines for the whole cluster.
fn cluster_wide_kinds(rendering: &Rendering) -> HashSet<Gvk> {
    let of_kustomizations = rendering.walk.kustomizations.values();
    let of_kustomizations = of_kustomizations.flat_map(|walked| &walked.built);
    let of_releases = rendering.releases.values();
    let of_releases = of_releases.flat_map(|release| &release.objects);
    let lists = of_kustomizations
        .map(|built| &built.objects)
        .chain(of_releases);
    let definitions = lists
        .flat_map(|objects| objects.iter())
        .filter(|object| object.kind() == "CustomResourceDefinition");
    definitions
        .flat_map(|definition| defined_kinds(definition.node()))
        .filter(|defined| defined.scope == Scope::Cluster)
        .map(|defined| defined.gvk)
        .collect()
}

/// Every source that is declared or used.
pub(crate) fn used_sources(rendering: &Rendering) -> BTreeMap<SourceRef, UsedSource<'_>> {
    let mut sources: BTreeMap<SourceRef, UsedSource<'_>> = BTreeMap::new();
    for kind in SOURCE_KINDS {
        for (_, object) in rendering.walk.index.of_kind(SOURCE_GROUP, kind) {
            let source = SourceRef {
                kind: kind.into(),
                id: NamespacedName::new(object.namespace().to_owned(), object.name().to_owned()),
            };
            sources
                .entry(source)
                .or_default()
                .object
                .get_or_insert(object);
        }
    }
    let mut used = |source: &SourceRef, user: String| {
        sources.entry(source.clone()).or_default().users.push(user);
    };
    for (id, walked) in &rendering.walk.kustomizations {
        if let Ok(spec) = &walked.spec {
            used(&spec.source, format!("ks/{id}"));
        }
    }
    for (id, release) in &rendering.releases {
        if let Ok(spec) = &release.spec {
            let (Chart::Reference(source) | Chart::Spec(ChartSpec { source, .. })) = &spec.chart;
            used(source, format!("hr/{id}"));
        }
    }
    sources
}
