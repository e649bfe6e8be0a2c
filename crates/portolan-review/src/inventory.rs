//! What a rendered repository contains: objects, each with its owner and its final namespace, and sources, each with
//! its users.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use portolan_flux::api::{Chart, ChartSpec, NamespacedName, SourceRef};
use portolan_flux::{Cluster, Emitter, Rendering, SelectableOwner, owner_gvk, release_namespace};
use portolan_object::{
    Candidate, Gvk, KindNames, Object, ObjectId, OwnerKind, Scope, defined_kinds, scope,
};
use portolan_yaml::Text;

use crate::RenderedRepository;

/// A rendered object in its place.
#[derive(Clone)]
pub struct PlacedObject<'a> {
    /// The cluster it is for.
    pub cluster: &'a Cluster,
    /// Who emits it.
    pub owner: Emitter,
    /// The object.
    pub object: &'a Object,
    /// What names it, with the namespace that Helm leaves to the release.
    pub id: ObjectId,
}

impl PlacedObject<'_> {
    /// The object as something that may be selected.
    pub fn candidate(&self) -> Candidate<'_> {
        Candidate {
            gvk: self.id.gvk.clone(),
            namespace: &self.id.namespace,
            name: &self.id.name,
            object: Some(self.object),
        }
    }
}

/// The API group of Flux's sources.
pub const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";

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
pub struct UsedSource<'a> {
    /// The object that declares it, if one does.
    pub object: Option<&'a Object>,
    /// Kustomizations and HelmReleases.
    pub users: Vec<Emitter>,
}

/// Every Kustomization, HelmRelease, ResourceSet and FluxInstance of a cluster, rendered or not.
pub fn owners(rendering: &Rendering) -> Vec<SelectableOwner<'_>> {
    let walk = &rendering.walk;
    let mut owners = Vec::new();
    for (id, walked) in &walk.kustomizations {
        let kind = OwnerKind::Kustomization;
        let definition = walked.definition.as_ref();
        owners.push(owner(kind, names(id), definition, walked.built.is_some()));
    }
    for (emitter, expansion) in &walk.expansions {
        let (kind, id) = (emitter.owner_kind(), names(emitter.id()));
        let is_rendered = expansion.objects.is_some();
        owners.push(owner(kind, id, Some(&expansion.definition), is_rendered));
    }
    let mut releases = HashSet::new();
    for (id, release) in &rendering.releases {
        releases.insert(names(id));
        let is_rendered = release.objects.is_some();
        let definition = Some(&release.definition);
        owners.push(owner(
            OwnerKind::Release,
            names(id),
            definition,
            is_rendered,
        ));
    }
    for id in rendering.unchanged.keys() {
        if releases.insert(names(id)) {
            owners.push(owner(OwnerKind::Release, names(id), None, false));
        }
    }
    // Only what was asked for is rendered, but all that was found on the way is known.
    let kind = OwnerKind::Release;
    for (_, object) in walk.index.of_kind(kind.group(), kind.as_str()) {
        let id = (object.namespace(), object.name());
        if releases.insert(id) {
            owners.push(owner(kind, id, Some(object), false));
        }
    }
    owners
}

fn owner<'a>(
    kind: OwnerKind,
    (namespace, name): (&'a str, &'a str),
    object: Option<&'a Object>,
    is_rendered: bool,
) -> SelectableOwner<'a> {
    SelectableOwner {
        candidate: Candidate {
            gvk: owner_gvk(kind),
            namespace,
            name,
            object,
        },
        is_rendered,
    }
}

fn names(id: &NamespacedName) -> (&str, &str) {
    (&id.namespace, &id.name)
}

/// What kinds are called, those included that the repository defines.
pub fn kind_names(placed: &[PlacedObject<'_>]) -> KindNames {
    let mut names = KindNames::default();
    let is_definition = |object: &&Object| object.kind() == "CustomResourceDefinition";
    for definition in placed.iter().map(|one| one.object).filter(is_definition) {
        names.define(definition.node());
    }
    names
}

/// Every namespace in which an owner or an object lies, or that an object is the definition of.
pub fn namespaces(rendered: &RenderedRepository) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, rendering) in &rendered.clusters {
        let owners = owners(rendering).into_iter();
        names.extend(owners.map(|owner| owner.candidate.namespace.to_owned()));
    }
    for placed in objects(rendered) {
        names.insert(placed.id.namespace.to_string());
        if placed.id.gvk.is("", "Namespace") {
            names.insert(placed.id.name.to_string());
        }
    }
    names.remove("");
    names
}

/// Every object of every cluster: of Kustomizations, then of ResourceSets, then of releases, each by name and in the order Flux applies it.
pub fn objects(rendered: &RenderedRepository) -> Vec<PlacedObject<'_>> {
    let clusters = rendered.clusters.iter();
    clusters
        .flat_map(|(cluster, rendering)| objects_of(cluster, rendering))
        .collect()
}

/// Every object of a cluster.
pub fn objects_of<'a>(cluster: &'a Cluster, rendering: &'a Rendering) -> Vec<PlacedObject<'a>> {
    let mut placed = Vec::new();
    for (id, walked) in &rendering.walk.kustomizations {
        for object in walked.built.iter().flat_map(|built| built.objects.iter()) {
            placed.push(PlacedObject {
                cluster,
                owner: Emitter::Kustomization(id.clone()),
                object,
                id: object.id().clone(),
            });
        }
    }
    for (emitter, expansion) in &rendering.walk.expansions {
        for object in expansion.objects.iter().flat_map(|objects| objects.iter()) {
            placed.push(PlacedObject {
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
            placed.push(PlacedObject {
                cluster,
                owner: Emitter::Release(id.clone()),
                object,
                id: in_namespace(object, namespace, &without_namespace),
            });
        }
    }
    placed
}

/// What names each object of every owner, in the order in which the owner gives them.
pub fn ids_by_owner(cluster: &Cluster, rendering: &Rendering) -> BTreeMap<Emitter, Vec<ObjectId>> {
    let mut ids: BTreeMap<Emitter, Vec<ObjectId>> = BTreeMap::new();
    for placed in objects_of(cluster, rendering) {
        ids.entry(placed.owner).or_default().push(placed.id);
    }
    ids
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
pub fn used_sources(rendering: &Rendering) -> BTreeMap<SourceRef, UsedSource<'_>> {
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
    let mut used = |source: &SourceRef, user: Emitter| {
        sources.entry(source.clone()).or_default().users.push(user);
    };
    for (id, walked) in &rendering.walk.kustomizations {
        if let Ok(spec) = &walked.spec {
            used(&spec.source, Emitter::Kustomization(id.clone()));
        }
    }
    for (id, release) in &rendering.releases {
        if let Ok(spec) = &release.spec {
            let (Chart::Reference(source) | Chart::Spec(ChartSpec { source, .. })) = &spec.chart;
            used(source, Emitter::Release(id.clone()));
        }
    }
    sources
}
