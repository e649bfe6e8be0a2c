//! How the parts of a repository depend on each other: what emits what, what must be ready first, what comes from
//! where.
//!
//! ```text
//! RenderedRepository ──▶ Graph (nodes in tree order, edges) ──▶ tree, dot, mermaid, svg
//! ```
//!
//! A node's parent is the first node that emits it on the way down from its cluster's root, so the parents always
//! form trees.

mod dot;
mod gather;
mod mermaid;
mod svg;
mod tree;

pub use tree::TreeLine;

use portolan_flux::api::NamespacedName;
use portolan_flux::{OBJECT, owner_gvk};
use portolan_object::{
    Candidate, Gvk, KindNames, NoMatch, Noun, Object, ObjectSelection, OwnerKind,
};

use crate::{Health, RenderedRepository};

/// As what a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// For Graphviz.
    Dot,
    /// For Markdown pages.
    Mermaid,
    /// A picture.
    Svg,
}

/// How much a graph shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphExtent {
    /// Kustomizations.
    Kustomizations,
    /// And releases.
    Releases,
    /// And all other objects.
    Objects,
    /// Kustomizations and releases with their sources.
    Sources,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kustomization,
    /// A ResourceSet or FluxInstance.
    Expansion,
    Release,
    Source,
    Object,
}

/// One thing.
#[derive(Debug)]
struct Node<'a> {
    kind: Kind,
    cluster: usize,
    id: NamespacedName,
    /// The definition, where there is one.
    object: Option<&'a Object>,
    /// Who emits it.
    parent: Option<usize>,
    /// `Deployment apps/web`, `HelmRelease apps/web`; a Kustomization's name alone.
    title: String,
    /// A path, a chart.
    detail: String,
    /// The names of what must be ready first.
    needs: Vec<String>,
    /// What it holds, or what is wrong with it.
    content: String,
    health: Health,
    suspended: bool,
}

/// A line between two nodes that is not the one from a parent.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    relation: Relation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// `from` waits until `to` is ready.
    Needs,
    /// `from` takes its files from `to`.
    Reads,
}

/// Everything of the clusters that is asked for.
#[derive(Debug, Default)]
pub struct Graph<'a> {
    /// The names of the clusters.
    clusters: Vec<String>,
    /// Parents before children.
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge>,
}

impl<'a> Graph<'a> {
    /// The graph of a repository; with names, a namespace or labels, of what they name and everything below.
    pub fn of(
        rendered: &'a RenderedRepository,
        extent: GraphExtent,
        selection: &ObjectSelection,
        kinds: &KindNames,
    ) -> Result<Self, NoMatch> {
        let graph = gather::gather(rendered, extent);
        let nodes: Vec<Candidate<'_>> = graph.nodes.iter().map(Node::candidate).collect();
        selection.check(kinds, extent.noun(), &nodes)?;
        drop(nodes);
        let is_skipped = |node: &Node<'_>| {
            let mut skipped = selection.skip_kinds.iter();
            skipped.any(|word| kinds.is(word, &node.gvk()))
        };
        let is_meant = |node: &Node<'_>| selection.selects(kinds, &node.candidate());
        Ok(graph.keep(is_meant, is_skipped))
    }

    /// Draws it.
    pub fn draw(&self, format: GraphFormat) -> String {
        match format {
            GraphFormat::Dot => dot::draw(self),
            GraphFormat::Mermaid => mermaid::draw(self),
            GraphFormat::Svg => svg::draw(self),
        }
    }

    /// The nodes that are wanted and all below them.
    fn keep(
        self,
        is_wanted: impl Fn(&Node<'_>) -> bool,
        is_skipped: impl Fn(&Node<'_>) -> bool,
    ) -> Self {
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        let mut nodes: Vec<Node<'a>> = Vec::new();
        for mut node in self.nodes {
            let parent = node.parent.and_then(|parent| places[parent]);
            let kept = is_wanted(&node) || (parent.is_some() && !is_skipped(&node));
            places.push(kept.then_some(nodes.len()));
            if kept {
                node.parent = parent;
                nodes.push(node);
            }
        }
        let edges = self.edges.into_iter().filter_map(|edge| {
            Some(Edge {
                from: places[edge.from]?,
                to: places[edge.to]?,
                ..edge
            })
        });
        Self {
            clusters: self.clusters,
            edges: edges.collect(),
            nodes,
        }
    }

    /// The nodes that no other emits, of one cluster.
    fn roots(&self, cluster: usize) -> impl Iterator<Item = usize> {
        let is_root = move |node: &Node<'_>| node.parent.is_none() && node.cluster == cluster;
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(move |(_, node)| is_root(node))
            .map(|(at, _)| at)
    }

    /// What each node emits, in order.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(at);
            }
        }
        children
    }
}

impl GraphExtent {
    /// What its nodes are called.
    fn noun(self) -> Noun {
        let (singular, list_command) = match self {
            Self::Kustomizations => ("Kustomization", "portolan get ks"),
            Self::Releases => ("Kustomization or HelmRelease", "portolan get hr --tree"),
            Self::Sources => (
                "Kustomization, HelmRelease or source",
                "portolan get sources",
            ),
            Self::Objects => return OBJECT,
        };
        Noun {
            singular,
            list_command,
        }
    }
}

impl Node<'_> {
    fn gvk(&self) -> Gvk {
        match (self.object, self.kind) {
            (Some(object), _) => object.gvk().clone(),
            (None, Kind::Kustomization) => owner_gvk(OwnerKind::Kustomization),
            (None, Kind::Release) => owner_gvk(OwnerKind::Release),
            (None, kind) => Gvk::new("", "", kind.as_str()),
        }
    }

    /// The node as something that may be selected.
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            gvk: self.gvk(),
            namespace: &self.id.namespace,
            name: &self.id.name,
            object: self.object,
        }
    }
}

impl Kind {
    /// Its name for people.
    fn as_str(self) -> &'static str {
        match self {
            Self::Kustomization => "Kustomization",
            Self::Expansion => "ResourceSet",
            Self::Release => "HelmRelease",
            Self::Source => "Source",
            Self::Object => "Object",
        }
    }
}
