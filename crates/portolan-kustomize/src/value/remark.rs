//! Schemas that comments give to fields: `containers: # {"x-kubernetes-patch-merge-key": "name", …}`.
//!
//! kyaml reads a comment that is a JSON object as the schema of its field and lets it decide how a list merges. Trees
//! here have no comments, so such comments are found in the text of a file and kept by the place of the value that
//! they describe. Nearly all files have none and cost only one text search.

use std::collections::HashMap;

use portolan_yaml::{Node, Position, Value, from_json};

/// The remarks of a file, by where the value of the field begins.
#[derive(Debug, Default)]
pub(crate) struct Remarks(HashMap<Position, Node>);

impl Remarks {
    /// Finds the remarks of a file; `None` where it has none.
    pub(crate) fn read(bytes: &[u8], documents: &[Node]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let comments: Vec<Comment> = (1..).zip(text.lines()).filter_map(Comment::read).collect();
        if comments.is_empty() {
            return None;
        }
        let mut values = Vec::new();
        for document in documents {
            collect_values(document, &mut values);
        }
        let placed = comments.into_iter().filter_map(|comment| {
            let value = comment.value_of(&values)?;
            Some((value, comment.schema))
        });
        Some(Self(placed.collect()))
    }

    /// What a comment says of the field with this value.
    pub(crate) fn get(&self, value: &Node) -> Option<&Node> {
        self.0.get(&value.at)
    }
}

/// A comment that is a schema.
struct Comment {
    schema: Node,
    at: Position,
    /// Whether a whole field stands before it on its line.
    is_behind_value: bool,
}

impl Comment {
    fn read((line, text): (u32, &str)) -> Option<Self> {
        let start = text.find('#')?;
        let (before, comment) = text.split_at_checked(start)?;
        let json = comment.trim_start_matches('#').trim();
        if !json.starts_with('{') {
            return None;
        }
        let before = before.trim();
        Some(Self {
            schema: from_json(json).ok()?,
            at: Position {
                line,
                column: u32::try_from(start).ok()?.saturating_add(1),
            },
            is_behind_value: !before.is_empty() && !before.ends_with(':') && before != "-",
        })
    }

    /// Where the value begins that the comment speaks of.
    fn value_of(&self, values: &[Position]) -> Option<Position> {
        let order = |at: &Position| (at.line, at.column);
        if self.is_behind_value {
            let same_line = values.iter().filter(|at| at.line == self.at.line);
            return same_line.max_by_key(|at| order(at)).copied();
        }
        let later = values.iter().filter(|at| order(at) > order(&self.at));
        later.min_by_key(|at| order(at)).copied()
    }
}

fn collect_values(node: &Node, values: &mut Vec<Position>) {
    match &node.value {
        Value::Map(map) => {
            for entry in map {
                values.push(entry.value.at);
                collect_values(&entry.value, values);
            }
        }
        Value::List(list) => list.iter().for_each(|item| collect_values(item, values)),
        Value::Scalar(_) => {}
    }
}
