//! Something wrong with a book, and where it was written.

use std::fmt;
use std::sync::Arc;

use portolan_yaml::Position;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named to the reader.
    pub file: Arc<str>,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The column in characters, from 1; 0 if it is not known.
    pub column: u32,
}

/// Something wrong with a book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookFault {
    /// Where.
    pub place: Place,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether it may go away when another fault is corrected.
    pub is_consequence: bool,
}

/// The faults of a book. Reading goes on after a fault, so all of them are told at once.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<BookFault>,
}

/// Beyond so many nobody reads on.
const MAX_FAULTS: usize = 200;

impl Place {
    /// A place in a file.
    pub fn new(file: &Arc<str>, at: Position) -> Self {
        Self {
            file: Arc::clone(file),
            line: at.line,
            column: at.column,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => out.write_str(&self.file),
            line => write!(out, "{}:{line}:{}", self.file, self.column),
        }
    }
}

impl fmt::Display for BookFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.message)
    }
}

impl Faults {
    pub(crate) fn add(&mut self, place: Place, message: impl Into<String>) {
        self.add_hint(place, message, None);
    }

    pub(crate) fn add_hint(
        &mut self,
        place: Place,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.push(BookFault {
            place,
            message: message.into(),
            hint,
            is_consequence: false,
        });
    }

    pub(crate) fn push(&mut self, fault: BookFault) {
        if self.found.len() < MAX_FAULTS && !self.found.contains(&fault) {
            self.found.push(fault);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them: root causes first, then by place.
    pub(crate) fn into_sorted(mut self) -> Vec<BookFault> {
        self.found
            .sort_by(|a, b| (a.is_consequence, &a.place).cmp(&(b.is_consequence, &b.place)));
        self.found
    }
}

/// What to write instead of a name that is not known.
pub(crate) fn advice(name: &str, known: &[&str]) -> Option<String> {
    match portolan_object::similar(name, known.iter(), |name| name) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if known.is_empty() => None,
        None => Some(format!("there are {}", known.join(", "))),
    }
}
