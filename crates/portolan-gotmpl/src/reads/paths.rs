//! The paths below the values of a chart that its templates may read.

use std::collections::{BTreeMap, BTreeSet};

use portolan_yaml::Text;

/// How deep a path is followed; below that, everything counts as read.
const MAX_DEPTH: u32 = 24;

/// The most paths that are told apart.
const MAX_PATHS: usize = 200_000;

/// The key of values that a chart shares with all charts below it.
const GLOBAL: &str = "global";

/// Paths that may be read, as a tree of keys.
#[derive(Debug, Clone)]
pub struct ReadPaths {
    nodes: Vec<Node>,
    text_charts: BTreeSet<u32>,
}

/// A path: its place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(u32);

#[derive(Debug, Clone, Default)]
struct Node {
    children: BTreeMap<Text, PathId>,
    depth: u32,
    is_whole: bool,
    is_tested: bool,
    is_chart: bool,
}

const TOP: PathId = PathId(0);

impl Default for ReadPaths {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            text_charts: BTreeSet::new(),
        }
    }
}

impl ReadPaths {
    /// The values of the topmost chart.
    pub fn top(&self) -> PathId {
        TOP
    }

    /// Whether everything at a path and below it may be read.
    pub fn is_whole(&self, path: PathId) -> bool {
        self.node(path).is_whole
    }

    /// Whether a template asks if there is anything at a path.
    pub fn is_tested(&self, path: PathId) -> bool {
        self.node(path).is_tested
    }

    /// The path of a key, if that may be read.
    pub fn find(&self, path: PathId, key: &str) -> Option<PathId> {
        self.node(path).children.get(key).copied()
    }

    /// The keys at a path that may be read.
    pub fn keys(&self, path: PathId) -> impl Iterator<Item = &Text> {
        self.node(path).children.keys()
    }

    /// Whether templates execute texts that come from values or files.
    pub fn executes_texts(&self) -> bool {
        !self.text_charts.is_empty()
    }

    /// Notes that everything below some keys is read.
    pub fn read_keys<'k>(&mut self, keys: impl IntoIterator<Item = &'k str>) {
        let path = keys
            .into_iter()
            .fold(TOP, |path, key| self.child(path, key));
        self.read(path);
    }

    pub(super) fn text_charts(&self) -> impl Iterator<Item = u32> {
        self.text_charts.iter().copied()
    }

    pub(super) fn set_text_charts(&mut self, charts: BTreeSet<u32>) {
        self.text_charts = charts;
    }

    /// The values of a chart.
    pub(super) fn chart(&mut self, keys: &[Text]) -> PathId {
        let child = |path, key: &Text| self.child(path, key);
        let path = keys.iter().fold(TOP, child);
        self.node_mut(path).is_chart = true;
        path
    }

    pub(super) fn is_chart(&self, path: PathId) -> bool {
        self.node(path).is_chart
    }

    /// The path of a key, made where it is not known yet. A chart sees what is shared under a key of its own.
    pub(super) fn child(&mut self, path: PathId, key: &str) -> PathId {
        let parent = self.node(path);
        if parent.is_whole {
            return path;
        }
        let path = if parent.is_chart && key == GLOBAL {
            TOP
        } else {
            path
        };
        let parent = self.node(path);
        if let Some(known) = parent.children.get(key) {
            return *known;
        }
        if parent.depth >= MAX_DEPTH || self.nodes.len() >= MAX_PATHS {
            self.read(path);
            return path;
        }
        let made = PathId(self.nodes.len() as u32);
        let depth = parent.depth + 1;
        self.nodes.push(Node {
            depth,
            ..Node::default()
        });
        self.node_mut(path).children.insert(Text::from(key), made);
        made
    }

    /// Notes that everything at a path is read.
    pub(super) fn read(&mut self, path: PathId) {
        if self.node(path).is_chart && path != TOP {
            let shared = self.child(TOP, GLOBAL);
            self.node_mut(shared).is_whole = true;
        }
        self.node_mut(path).is_whole = true;
    }

    /// Notes that a template asks whether there is anything at a path.
    pub(super) fn test(&mut self, path: PathId) {
        self.node_mut(path).is_tested = true;
    }

    pub(super) fn read_everything(&mut self) {
        self.node_mut(TOP).is_whole = true;
    }

    fn node(&self, path: PathId) -> &Node {
        &self.nodes[path.0 as usize]
    }

    fn node_mut(&mut self, path: PathId) -> &mut Node {
        &mut self.nodes[path.0 as usize]
    }
}
