//! Fills a graph from a rendered repository, from each cluster's root downwards.

use std::collections::{HashMap, HashSet, VecDeque};

use portolan_flux::api::NamespacedName;
use portolan_flux::{Cluster, Emitter, Rendering};
use portolan_object::Object;

use super::{Edge, Extent, Graph, Kind, Node, Relation};
use crate::chart::ChartInfo;
use crate::inventory::{UsedSource, used_sources};
use crate::repository::Rendered;
use crate::status::{Health, Statuses};

pub(super) fn gather(rendered: &Rendered, extent: Extent) -> Graph<'_> {
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
    extent: Extent,
    kustomizations: HashMap<&'a NamespacedName, usize>,
    releases: HashMap<&'a NamespacedName, usize>,
}

impl<'a> Gatherer<'_, 'a> {
    fn gather(&mut self, cluster: &Cluster) {
        self.add_kustomizations_from(&cluster.root.id, None);
        // Whatever no way from the root leads to still belongs to the picture.
        for id in self.rendering.walk.kustomizations.keys() {
            self.add_kustomizations_from(id, None);
        }
        if self.extent != Extent::Kustomizations {
            self.add_releases();
        }
        if self.extent == Extent::Objects {
            self.add_objects();
        }
        if self.extent == Extent::Sources {
            self.add_sources();
        }
        self.add_needs();
    }

    /// Adds a Kustomization and those it emits, breadth first, so that the shortest way to each counts.
    fn add_kustomizations_from(&mut self, id: &NamespacedName, parent: Option<usize>) {
        let mut queue = VecDeque::from([(id.clone(), parent)]);
        while let Some((id, parent)) = queue.pop_front() {
            if self.kustomizations.contains_key(&id) {
                continue;
            }
            let Some((at, emitted)) = self.add_kustomization(&id, parent) else {
                continue;
            };
            queue.extend(emitted.into_iter().map(|id| (id, Some(at))));
        }
    }

    fn add_kustomization(
        &mut self,
        id: &NamespacedName,
        parent: Option<usize>,
    ) -> Option<(usize, Vec<NamespacedName>)> {
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
            content: self.content("Kustomization", id, objects),
            health: self.statuses.health("Kustomization", id),
            suspended: spec.is_some_and(|spec| spec.suspend),
            id: id.clone(),
        };
        let at = self.push(node);
        self.kustomizations.insert(id, at);
        let emitted = objects.iter().filter(|object| is_kustomization(object));
        Some((at, emitted.map(name_of).collect()))
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
                content: self.content("HelmRelease", id, objects),
                health: self.statuses.health("HelmRelease", id),
                suspended: spec.is_some_and(|spec| spec.suspend),
                id: id.clone(),
            };
            let at = self.push(node);
            self.releases.insert(id, at);
        }
    }

    /// Everything that is not a node yet: what Kustomizations emit, then what releases do.
    fn add_objects(&mut self) {
        for (id, walked) in &self.rendering.walk.kustomizations {
            let objects = walked.built.iter().flat_map(|built| built.objects.iter());
            let plain = objects.filter(|object| !is_kustomization(object) && !is_release(object));
            let parent = self.kustomizations.get(id).copied();
            for object in plain {
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
                content: format!("{} users", users.len()),
                health: Health::Ready,
                suspended: false,
                id: source.id.clone(),
            };
            let to = self.push(node);
            let kustomizations = self.kustomizations.iter();
            let releases = self.releases.iter();
            let users: HashSet<&str> = users.iter().map(String::as_str).collect();
            let readers = kustomizations
                .map(|(id, at)| (format!("ks/{id}"), *at))
                .chain(releases.map(|(id, at)| (format!("hr/{id}"), *at)))
                .filter(|(name, _)| users.contains(name.as_str()));
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
            // What a ResourceSet or FluxInstance makes hangs under whoever emitted that.
            Emitter::ResourceSet(_) | Emitter::Instance(_) => {
                let expansion = self.rendering.walk.expansions.get(emitter)?;
                self.emitter(&expansion.emitter)
            }
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
    fn content(&self, kind: &'static str, id: &NamespacedName, objects: &[Object]) -> String {
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
        let named = named.map(|(count, what)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("{count} {what}{plural}")
        });
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

fn is_kustomization(object: &Object) -> bool {
    object
        .gvk()
        .is("kustomize.toolkit.fluxcd.io", "Kustomization")
}

fn is_release(object: &Object) -> bool {
    object.gvk().is("helm.toolkit.fluxcd.io", "HelmRelease")
}
