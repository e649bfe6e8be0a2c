//! A graph as a tree of lines, its columns aligned.

use super::{Graph, Kind};
use crate::table::{Canvas, Cell, Table, Tone};

/// Draws the tree of each cluster.
pub(crate) fn tree(graph: &Graph<'_>, canvas: Canvas) -> String {
    let mut painter = Painter {
        graph,
        children: graph.children(),
        table: Table::new([""; 4]),
    };
    for (cluster, name) in graph.clusters.iter().enumerate() {
        let roots: Vec<usize> = graph.roots(cluster).collect();
        if graph.clusters.len() > 1 && !roots.is_empty() {
            painter.table.push(vec![Cell::new(name, Tone::Name)]);
        }
        for root in roots {
            painter.paint(root);
        }
    }
    painter.table.render(canvas)
}

struct Painter<'g, 'a> {
    graph: &'g Graph<'a>,
    children: Vec<Vec<usize>>,
    table: Table,
}

impl Painter<'_, '_> {
    /// Draws a node and everything below it; a stack of its own, because trees may be deep.
    fn paint(&mut self, root: usize) {
        let mut stack = vec![(root, String::new(), String::new())];
        while let Some((at, own, below)) = stack.pop() {
            self.paint_line(at, &own);
            let children = &self.children[at];
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

    fn paint_line(&mut self, at: usize, branch: &str) {
        let node = &self.graph.nodes[at];
        let mark = match node.kind {
            Kind::Object => "",
            _ if node.suspended => "‖ ",
            _ => node.health.mark(),
        };
        let needs = match node.needs.as_slice() {
            [] => String::new(),
            needs => format!("needs {}", needs.join(", ")),
        };
        let tone = if node.health.is_ready() {
            Tone::Plain
        } else {
            Tone::Bad
        };
        let suspended = if node.suspended { "suspended, " } else { "" };
        self.table.push(vec![
            Cell::from(format!("{branch}{mark}{}", node.title)),
            Cell::from(node.detail.as_str()),
            Cell::from(needs),
            Cell::new(format!("{suspended}{}", node.content), tone),
        ]);
    }
}
