//! A graph as the lines of a tree.

use super::{Graph, Kind};

/// A line of a tree: a node, or the name of a cluster where there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLine {
    /// Whether it names a cluster; then it has a title only.
    pub is_cluster: bool,
    /// The branches that lead to the node, its mark and its name.
    pub title: String,
    /// A path, a chart.
    pub detail: String,
    /// The names of what must be ready first.
    pub needs: Vec<String>,
    /// What it holds, or what is wrong with it.
    pub content: String,
    /// Whether Flux would take it.
    pub is_ready: bool,
}

impl Graph<'_> {
    /// The trees of all clusters, line by line.
    pub fn tree(&self) -> Vec<TreeLine> {
        let children = self.children();
        let mut lines = Vec::new();
        for (cluster, name) in self.clusters.iter().enumerate() {
            let roots: Vec<usize> = self.roots(cluster).collect();
            if self.clusters.len() > 1 && !roots.is_empty() {
                lines.push(TreeLine {
                    is_cluster: true,
                    title: name.clone(),
                    detail: String::new(),
                    needs: Vec::new(),
                    content: String::new(),
                    is_ready: true,
                });
            }
            for root in roots {
                self.add_lines(root, &children, &mut lines);
            }
        }
        lines
    }

    /// Adds a node and everything below it; a stack of its own, because trees may be deep.
    fn add_lines(&self, root: usize, children: &[Vec<usize>], lines: &mut Vec<TreeLine>) {
        let mut stack = vec![(root, String::new(), String::new())];
        while let Some((at, own, below)) = stack.pop() {
            lines.push(self.line(at, &own));
            let children = &children[at];
            for (index, child) in children.iter().enumerate().rev() {
                let is_last = index + 1 == children.len();
                let (branch, stem) = if is_last {
                    ("└── ", "    ")
                } else {
                    ("├── ", "│   ")
                };
                stack.push((*child, format!("{below}{branch}"), format!("{below}{stem}")));
            }
        }
    }

    fn line(&self, at: usize, branch: &str) -> TreeLine {
        let node = &self.nodes[at];
        let mark = match node.kind {
            Kind::Object => "",
            _ if node.suspended => "‖ ",
            _ => node.health.mark(),
        };
        let suspended = if node.suspended { "suspended, " } else { "" };
        TreeLine {
            is_cluster: false,
            title: format!("{branch}{mark}{}", node.title),
            detail: node.detail.clone(),
            needs: node.needs.clone(),
            content: format!("{suspended}{}", node.content),
            is_ready: node.health.is_ready(),
        }
    }
}
