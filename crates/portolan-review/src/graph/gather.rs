//! Fills a graph from a rendered repository, from each cluster's root downwards.

use std::collections::{HashMap, HashSet, VecDeque};

use portolan_flux::api::NamespacedName;
use portolan_flux::{Cluster, Emitter, Rendering};
use portolan_object::{Object, OwnerKind, counted};

use super::{Edge, Graph, GraphExtent, Kind, Node, Relation};
use crate::chart_info::ChartInfo;
use crate::inventory::{UsedSource, used_sources};
use crate::{Health, RenderedRepository, Statuses};

pub(super) fn gather(rendered: &RenderedRepository, extent: GraphExtent) -> Graph<'_> {
    let mut graph = Graph::default();
    for (at, (cluster, rendering)) in rendered.clusters.iter().enumerate() {
        graph.clusters.push(cluster.name.to_string());
        let mut gatherer = Gatherer {
            graph: &mut graph,
            cluster: at,
            rendering,
            statuses: rendered.statuses(rendering),
            extent,
            kustomizations: HashMap::new(),
            expansions: HashMap::new(),
            releases: HashMap::new(),
        };
        gatherer.gather(cluster);
    }
    graph
}

struct Gatherer<'g, 'a> {
    graph: &'g mut Graph<'a>,
    cluster: usize,
    rendering: &'a Rendering,
    statuses: Statuses,
    extent: GraphExtent,
    kustomizations: HashMap<&'a NamespacedName, usize>,
    expansions: HashMap<&'a Emitter, usize>,
    releases: HashMap<&'a NamespacedName, usize>,
}

impl<'a> Gatherer<'_, 'a> {
    fn gather(&mut self, cluster: &Cluster) {
        self.add_emitters_from(&Emitter::Kustomization(cluster.root.id.clone()));
        // Whatever no way from the root leads to still belongs to the picture.
        for id in self.rendering.walk.kustomizations.keys() {
            self.add_emitters_from(&Emitter::Kustomization(id.clone()));
        }
        for emitter in self.rendering.walk.expansions.keys() {
            self.add_emitters_from(emitter);
        }
        if self.extent != GraphExtent::Kustomizations {
            self.add_releases();
        }
        if self.extent == GraphExtent::Objects {
            self.add_objects();
        }
        if self.extent == GraphExtent::Sources {
            self.add_sources();
        }
        self.add_needs();
    }

    /// Adds a Kustomization or ResourceSet and those it emits, breadth first, so that the shortest way to each counts.
    fn add_emitters_from(&mut self, first: &Emitter) {
        let mut queue = VecDeque::from([(first.clone(), None)]);
        while let Some((emitter, parent)) = queue.pop_front() {
            if self.emitter(&emitter).is_some() {
                continue;
            }
            let added = match &emitter {
                Emitter::Kustomization(id) => self.add_kustomization(id, parent),
                _ => self.add_expansion(&emitter, parent),
            };
            let Some((at, objects)) = added else { continue };
            let emitted = objects.iter().filter_map(emitter_of);
            queue.extend(emitted.map(|emitter| (emitter, Some(at))));
        }
    }

    fn add_expansion(
        &mut self,
        emitter: &Emitter,
        parent: Option<usize>,
    ) -> Option<(usize, &'a [Object])> {
        let (emitter, expansion) = self.rendering.walk.expansions.get_key_value(emitter)?;
        let objects: &[Object] = expansion.objects.as_ref().map_or(&[], |objects| objects);
        let (kind, id) = (emitter.owner_kind(), emitter.id());
        let node = Node {
            kind: Kind::Expansion,
            cluster: self.cluster,
            title: self.title(&format!("{kind} "), id, parent),
            object: Some(&expansion.definition),
            parent,
            detail: String::new(),
            needs: Vec::new(),
            content: self.content(kind, id, objects),
            health: self.statuses.health(kind, id),
            suspended: false,
            id: id.clone(),
        };
        let at = self.push(node);
        self.expansions.insert(emitter, at);
        Some((at, objects))
    }

    fn add_kustomization(
        &mut self,
        id: &NamespacedName,
        parent: Option<usize>,
    ) -> Option<(usize, &'a [Object])> {
        let (id, walked) = self.rendering.walk.kustomizations.get_key_value(id)?;
        let spec = walked.spec.as_ref().ok();
        let objects: &[Object] = walked.built.as_ref().map_or(&[], |built| &built.objects);
        let node = Node {
            kind: Kind::Kustomization,
            cluster: self.cluster,
            title: self.title("", id, parent),
            object: walked.definition.as_ref(),
            parent,
            detail: spec.map_or_else(String::new, |spec| shown_path(&spec.path)),
            needs: spec.map_or_else(Vec::new, |spec| {
                let dependencies = spec.depends_on.iter();
                dependencies.map(|one| one.id.name.to_string()).collect()
            }),
            content: self.content(OwnerKind::Kustomization, id, objects),
            health: self.statuses.health(OwnerKind::Kustomization, id),
            suspended: spec.is_some_and(|spec| spec.suspend),
            id: id.clone(),
        };
        let at = self.push(node);
        self.kustomizations.insert(id, at);
        Some((at, objects))
    }

    fn add_releases(&mut self) {
        let mut by_parent: Vec<_> = self.rendering.releases.iter().collect();
        by_parent.sort_by_key(|(id, release)| (self.emitter(&release.emitter), (*id).clone()));
        for (id, release) in by_parent {
            let spec = release.spec.as_ref().ok();
            let chart = ChartInfo::of(release);
            let parent = self.emitter(&release.emitter);
            let objects: &[Object] = release.objects.as_ref().map_or(&[], |objects| objects);
            let node = Node {
                kind: Kind::Release,
                cluster: self.cluster,
                title: self.title("HelmRelease ", id, parent),
                object: Some(&release.definition),
                parent,
                detail: format!("chart {} {}", chart.name, chart.version),
                needs: spec.map_or_else(Vec::new, |spec| {
                    let dependencies = spec.depends_on.iter();
                    dependencies.map(|one| one.id.name.to_string()).collect()
                }),
                content: self.content(OwnerKind::Release, id, objects),
                health: self.statuses.health(OwnerKind::Release, id),
                suspended: spec.is_some_and(|spec| spec.suspend),
                id: id.clone(),
            };
            let at = self.push(node);
            self.releases.insert(id, at);
        }
    }

    /// Everything that is not a node yet: what Kustomizations and ResourceSets emit, then what releases do.
    fn add_objects(&mut self) {
        let is_plain = |object: &&Object| emitter_of(object).is_none() && !is_release(object);
        for (id, walked) in &self.rendering.walk.kustomizations {
            let objects = walked.built.iter().flat_map(|built| built.objects.iter());
            let parent = self.kustomizations.get(id).copied();
            for object in objects.filter(is_plain) {
                self.add_object(object, parent);
            }
        }
        for (emitter, expansion) in &self.rendering.walk.expansions {
            let objects = expansion.objects.iter().flat_map(|objects| objects.iter());
            let parent = self.expansions.get(emitter).copied();
            for object in objects.filter(is_plain) {
                self.add_object(object, parent);
            }
        }
        for (id, release) in &self.rendering.releases {
            let parent = self.releases.get(id).copied();
            for object in release.objects.iter().flat_map(|objects| objects.iter()) {
                self.add_object(object, parent);
            }
        }
    }

    fn add_object(&mut self, object: &'a Object, parent: Option<usize>) {
        let id = name_of(object);
        let name = if id.namespace.is_empty() {
            id.name.to_string()
        } else {
            id.to_string()
        };
        let node = Node {
            kind: Kind::Object,
            cluster: self.cluster,
            title: format!("{} {name}", object.kind()),
            object: Some(object),
            parent,
            detail: String::new(),
            needs: Vec::new(),
            content: String::new(),
            health: Health::Ready,
            suspended: false,
            id,
        };
        self.push(node);
    }

    fn add_sources(&mut self) {
        let rendering = self.rendering;
        for (source, used) in used_sources(rendering) {
            let UsedSource { object, users } = used;
            let node = Node {
                kind: Kind::Source,
                cluster: self.cluster,
                title: source.to_string(),
                object,
                parent: None,
                detail: String::new(),
                needs: Vec::new(),
                content: counted(users.len(), "user"),
                health: Health::Ready,
                suspended: false,
                id: source.id.clone(),
            };
            let to = self.push(node);
            let kustomizations = self.kustomizations.iter();
            let releases = self.releases.iter();
            let users: HashSet<&Emitter> = users.iter().collect();
            let readers = kustomizations
                .map(|(id, at)| (Emitter::Kustomization((*id).clone()), *at))
                .chain(releases.map(|(id, at)| (Emitter::Release((*id).clone()), *at)))
                .filter(|(user, _)| users.contains(user));
            let mut readers: Vec<usize> = readers.map(|(_, at)| at).collect();
            readers.sort_unstable();
            let edges = readers.into_iter().map(|from| Edge {
                from,
                to,
                relation: Relation::Reads,
            });
            self.graph.edges.extend(edges);
        }
    }

    fn add_needs(&mut self) {
        let mut edges = Vec::new();
        for (id, from) in &self.kustomizations {
            if let Some(Ok(spec)) = self
                .rendering
                .walk
                .kustomizations
                .get(*id)
                .map(|one| &one.spec)
            {
                let needed = spec.depends_on.iter();
                edges.extend(
                    needed
                        .filter_map(|one| self.kustomizations.get(&one.id))
                        .map(|to| (*from, *to)),
                );
            }
        }
        for (id, from) in &self.releases {
            if let Some(Ok(spec)) = self.rendering.releases.get(*id).map(|one| &one.spec) {
                let needed = spec.depends_on.iter();
                edges.extend(
                    needed
                        .filter_map(|one| self.releases.get(&one.id))
                        .map(|to| (*from, *to)),
                );
            }
        }
        edges.sort_unstable();
        let edges = edges.into_iter().map(|(from, to)| Edge {
            from,
            to,
            relation: Relation::Needs,
        });
        self.graph.edges.extend(edges);
    }

    fn push(&mut self, node: Node<'a>) -> usize {
        self.graph.nodes.push(node);
        self.graph.nodes.len() - 1
    }

    fn emitter(&self, emitter: &Emitter) -> Option<usize> {
        match emitter {
            Emitter::Kustomization(id) => self.kustomizations.get(id).copied(),
            Emitter::Release(id) => self.releases.get(id).copied(),
            Emitter::ResourceSet(_) | Emitter::Instance(_) => self.expansions.get(emitter).copied(),
        }
    }

    /// The name, with the namespace when the parent has another.
    fn title(&self, kind: &str, id: &NamespacedName, parent: Option<usize>) -> String {
        let above = parent.and_then(|parent| self.graph.nodes.get(parent));
        if above.is_some_and(|above| above.id.namespace == id.namespace) {
            format!("{kind}{}", id.name)
        } else {
            format!("{kind}{id}")
        }
    }

    /// `4 releases, 58 objects`, or what is wrong.
    fn content(&self, kind: OwnerKind, id: &NamespacedName, objects: &[Object]) -> String {
        if let Some(message) = self.statuses.message(kind, id) {
            return message.to_owned();
        }
        let of_flux = |object: &&Object| is_kustomization(object) || is_release(object);
        let others = objects.iter().filter(|object| !of_flux(object)).count();
        let releases = objects.iter().filter(|object| is_release(object)).count();
        // The root usually holds its own definition.
        let children = objects.iter().filter(|object| is_kustomization(object));
        let children = children.filter(|object| name_of(object) != *id).count();
        let counts = [
            (children, "Kustomization"),
            (releases, "release"),
            (others, "object"),
        ];
        let named = counts.iter().filter(|(count, _)| *count > 0);
        let named = named.map(|(count, what)| counted(*count, what));
        named.collect::<Vec<_>>().join(", ")
    }
}

/// `./clusters/production` as `clusters/production`; the top as `.`.
fn shown_path(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_matches('/');
    if path.is_empty() { "." } else { path }.to_owned()
}

fn name_of(object: &Object) -> NamespacedName {
    NamespacedName::new(object.namespace().to_owned(), object.name().to_owned())
}

/// The object as something that emits others.
fn emitter_of(object: &Object) -> Option<Emitter> {
    const OPERATOR: &str = "fluxcd.controlplane.io";
    let id = name_of(object);
    if is_kustomization(object) {
        Some(Emitter::Kustomization(id))
    } else if object.gvk().is(OPERATOR, "ResourceSet") {
        Some(Emitter::ResourceSet(id))
    } else if object.gvk().is(OPERATOR, "FluxInstance") {
        Some(Emitter::Instance(id))
    } else {
        None
    }
}

fn is_kustomization(object: &Object) -> bool {
    object
        .gvk()
        .is("kustomize.toolkit.fluxcd.io", "Kustomization")
}

fn is_release(object: &Object) -> bool {
    object.gvk().is("helm.toolkit.fluxcd.io", "HelmRelease")
}
