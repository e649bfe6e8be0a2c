//! Something wrong with an object, and where it was written.

use std::fmt;

use portolan_object::FieldPath;
use portolan_yaml::{Node, Position};

/// Something wrong with a field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFault {
    /// The field, as in `spec.rules[0].verbs`; empty for the whole object.
    pub path: String,
    /// Where it was written; line 0 if that is not known.
    pub at: Position,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.line > 0 {
            write!(out, "{}:{}: ", self.at.line, self.at.column)?;
        }
        if self.path.is_empty() {
            out.write_str(&self.message)
        } else {
            write!(out, "`{}` {}", self.path, self.message)
        }
    }
}

/// The faults of an object. Reading goes on after a fault, so all of them are told at once.
pub(crate) struct Faults<'n> {
    /// The object as it was written, to find the line of a field.
    root: Option<&'n Node>,
    found: Vec<FieldFault>,
}

/// Beyond so many nobody reads on.
const MAX_FAULTS: usize = 100;

impl<'n> Faults<'n> {
    pub(crate) fn of(root: Option<&'n Node>) -> Self {
        Self {
            root,
            found: Vec::new(),
        }
    }

    /// A fault of a field.
    pub(crate) fn add(&mut self, path: &FieldPath, message: impl Into<String>) {
        self.add_hint(path, message, None);
    }

    /// A fault of a field with advice.
    pub(crate) fn add_hint(
        &mut self,
        path: &FieldPath,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let at = self
            .root
            .map_or(Position::default(), |root| place(root, path));
        self.push(at, path.to_string(), message.into(), hint);
    }

    /// A fault of a key, at the key and not at its value.
    pub(crate) fn add_key(
        &mut self,
        at: Position,
        path: &FieldPath,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.push(at, path.to_string(), message.into(), hint);
    }

    fn push(&mut self, at: Position, path: String, message: String, hint: Option<String>) {
        if self.found.len() < MAX_FAULTS {
            self.found.push(FieldFault {
                path,
                at,
                message,
                hint,
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them, by line.
    pub(crate) fn into_sorted(mut self) -> Vec<FieldFault> {
        self.found
            .sort_by_key(|fault| (fault.at.line, fault.at.column));
        self.found
    }
}

/// Where a field was written, or the nearest one above it that was: at its value if that is short, else at its key.
fn place(root: &Node, path: &FieldPath) -> Position {
    let written = path.written_in(root);
    let is_whole = written.depth == path.segments().len();
    if is_whole && written.node.as_scalar().is_some() {
        written.node.at
    } else {
        written.at
    }
}
