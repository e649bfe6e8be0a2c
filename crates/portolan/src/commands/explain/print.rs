//! An explanation as a tree for people, and as a record for programs.

use portolan_review::explain::ObjectExplanation;
use portolan_yaml::{List, Node, Value};

use crate::listing::record as fields;
use crate::table::{Canvas, Cell, Table, Tone};

/// The explanation as a tree.
pub(super) fn text(
    explanation: &ObjectExplanation,
    cluster: Option<&str>,
    canvas: Canvas,
) -> String {
    let head = &explanation.head;
    let mut text = match cluster {
        Some(cluster) => format!("{cluster}: {head}\n"),
        None => format!("{head}\n"),
    };
    if explanation.causes.is_empty() {
        text.push_str("└─ ");
        text.push_str(explanation.otherwise);
        text.push('\n');
    }
    let mut table = Table::new([""; 3]);
    for (index, cause) in explanation.causes.iter().enumerate() {
        let branch = if index + 1 == explanation.causes.len() {
            "└─"
        } else {
            "├─"
        };
        table.push(vec![
            Cell::from(format!("{branch} {}", cause.what)),
            Cell::new(cause.place.as_str(), Tone::Name),
            Cell::from(cause.text.as_str()),
        ]);
    }
    text.push_str(&table.render(canvas));
    text
}

/// The explanation for programs.
pub(super) fn record(explanation: &ObjectExplanation) -> Node {
    let causes = explanation.causes.iter().map(|cause| {
        fields([
            ("what", Node::string(cause.what.as_str())),
            ("place", Node::string(cause.place.as_str())),
            ("text", Node::string(cause.text.as_str())),
        ])
    });
    fields([
        ("value", Node::string(explanation.head.as_str())),
        (
            "because",
            Node::new(Value::List(List::from_items(causes.collect()))),
        ),
    ])
}
