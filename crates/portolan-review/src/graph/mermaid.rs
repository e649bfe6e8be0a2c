//! A graph for Markdown pages that can show mermaid.

use std::fmt::Write;

use super::{Graph, Kind, Relation};
use crate::Health;

/// Draws the graph; clusters become boxes when there are several.
pub(super) fn draw(graph: &Graph<'_>) -> String {
    let mut text = String::from("flowchart LR\n");
    let several = graph.clusters.len() > 1;
    for (cluster, name) in graph.clusters.iter().enumerate() {
        if several {
            line(&mut text, &format!("subgraph c{cluster}[{}]", quoted(name)));
        }
        for (at, node) in graph.nodes.iter().enumerate() {
            if node.cluster == cluster {
                let label = quoted(&node.title);
                line(&mut text, &shape(at, node.kind, &label));
            }
        }
        if several {
            line(&mut text, "end");
        }
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            line(&mut text, &format!("n{parent} --> n{at}"));
        }
    }
    for edge in &graph.edges {
        let arrow = match edge.relation {
            Relation::Needs => "-. needs .->",
            Relation::Reads => "-.->",
        };
        line(&mut text, &format!("n{} {arrow} n{}", edge.from, edge.to));
    }
    mark_health(graph, &mut text);
    text
}

fn shape(at: usize, kind: Kind, label: &str) -> String {
    match kind {
        Kind::Kustomization | Kind::Expansion => format!("n{at}[{label}]"),
        Kind::Release => format!("n{at}([{label}])"),
        Kind::Source => format!("n{at}[({label})]"),
        Kind::Object => format!("n{at}>{label}]"),
    }
}

fn mark_health(graph: &Graph<'_>, text: &mut String) {
    for (health, name, colour) in [
        (Health::Failed, "failed", "#c62828"),
        (Health::Noted, "noted", "#ef6c00"),
    ] {
        let nodes = graph.nodes.iter().enumerate();
        let of_health = nodes.filter(|(_, node)| node.health == health);
        let ids: Vec<String> = of_health.map(|(at, _)| format!("n{at}")).collect();
        if !ids.is_empty() {
            line(
                text,
                &format!("classDef {name} stroke:{colour},color:{colour}"),
            );
            line(text, &format!("class {} {name}", ids.join(",")));
        }
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {line}");
}

/// Mermaid knows `#quot;` where others know a backslash.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('#', "#35;").replace('"', "#quot;"))
}
