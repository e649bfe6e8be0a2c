//! A graph as a tree of lines, its columns aligned.

use portolan_review::Graph;

use crate::table::{Canvas, Cell, Table, Tone};

/// The tree of each cluster.
pub(crate) fn tree(graph: &Graph<'_>, canvas: Canvas) -> String {
    let mut table = Table::new([""; 4]);
    for line in graph.tree() {
        if line.is_cluster {
            table.push(vec![Cell::new(line.title.as_str(), Tone::Name)]);
            continue;
        }
        let needs = match line.needs.as_slice() {
            [] => String::new(),
            needs => format!("needs {}", needs.join(", ")),
        };
        let tone = if line.is_ready {
            Tone::Plain
        } else {
            Tone::Bad
        };
        table.push(vec![
            Cell::from(line.title),
            Cell::from(line.detail),
            Cell::from(needs),
            Cell::new(line.content, tone),
        ]);
    }
    table.render(canvas)
}
