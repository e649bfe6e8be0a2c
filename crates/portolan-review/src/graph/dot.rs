//! A graph for Graphviz.

use std::fmt::Write;

use super::{Graph, Kind, Relation};
use crate::Health;

/// Draws the graph; clusters become boxes when there are several.
pub(super) fn draw(graph: &Graph<'_>) -> String {
    let mut text = String::from(
        "digraph portolan {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n",
    );
    let several = graph.clusters.len() > 1;
    for (cluster, name) in graph.clusters.iter().enumerate() {
        if several {
            let name = quoted(name);
            line(
                &mut text,
                &format!("subgraph cluster_{cluster} {{ label={name};"),
            );
        }
        for (at, node) in graph.nodes.iter().enumerate() {
            if node.cluster == cluster {
                let label = quoted(&format!("{}\n{}", node.title, node.detail));
                let look = look(node.kind, node.health);
                line(&mut text, &format!("n{at} [label={label}{look}];"));
            }
        }
        if several {
            line(&mut text, "}");
        }
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            line(&mut text, &format!("n{parent} -> n{at};"));
        }
    }
    for edge in &graph.edges {
        let look = match edge.relation {
            Relation::Needs => "style=dashed, label=needs, constraint=false",
            Relation::Reads => "style=dotted",
        };
        line(
            &mut text,
            &format!("n{} -> n{} [{look}];", edge.from, edge.to),
        );
    }
    text.push_str("}\n");
    text
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {line}");
}

fn look(kind: Kind, health: Health) -> &'static str {
    match (kind, health) {
        (_, Health::Failed) => ", color=red",
        (_, Health::Noted) => ", color=orange",
        (Kind::Source, _) => ", shape=cylinder",
        (Kind::Object, _) => ", shape=plain",
        _ => "",
    }
}

fn quoted(text: &str) -> String {
    let text = text.trim_end().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}
