//! Errors in a text: the place, and the message of Go's libraries.

use std::fmt;

use crate::value::node::Position;

/// One mistake in a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", Place(*at))]
pub struct Error {
    /// Where it was noticed; line 0 when it belongs to no place.
    pub at: Position,
    /// What is wrong, in Go's words where Go refuses the same.
    pub message: String,
    /// The line that Go's message names, when it names one; often one less than the true line.
    go_line: u32,
    /// sigs.k8s.io/yaml says it itself, without naming the library.
    bare: bool,
}

/// A result while reading; the error is boxed, since results are moved a lot and errors are rare.
pub(crate) type Fallible<T> = Result<T, Box<Error>>;

/// All mistakes of a text, at least one, in the order of its documents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Errors(Vec<Error>);

/// Why a value cannot be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// JSON has no such number.
    #[error("json: unsupported value: {0}")]
    NotANumber(&'static str),
    /// Go prints through JSON and reads that again, which refuses this character.
    #[error("yaml: control characters are not allowed")]
    ControlCharacter,
    /// Go prints through JSON and reads that again, which refuses keys beyond 1,024 characters or with line breaks.
    #[error("yaml: did not find expected ',' or '}}'")]
    KeyTooLong,
    /// A text that Go reads back differently and then refuses.
    #[error("yaml: {0}")]
    NotReadBack(String),
    /// A scalar whose tag does not fit its text.
    #[error("yaml: cannot decode `{text}` as a {tag}")]
    WrongTag {
        /// The scalar's text.
        text: String,
        /// The tag, as `!!int`.
        tag: String,
    },
    /// A key that is not a string, below the top of an object.
    #[error("json: unsupported type: map[interface {{}}]interface {{}}: key `{0}` is not a string")]
    KeyNotString(String),
    /// A document that is neither a map nor a list.
    #[error("yaml: cannot unmarshal `{0}` into map[string]interface {{}}")]
    NotAnObject(String),
    /// Nesting beyond [`crate::limits::MAX_DEPTH`].
    #[error("exceeded max depth of {}", crate::limits::MAX_DEPTH)]
    TooDeep,
}

/// A place before a message: nothing when there is none.
struct Place(Position);

// === impl Error ===

impl Error {
    /// A mistake at a place.
    pub(crate) fn new(at: Position, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            go_line: 0,
            bare: false,
        }
    }

    /// The same as a message of sigs.k8s.io/yaml, not of the library below it.
    pub(crate) fn without_prefix(mut self) -> Self {
        self.bare = true;
        self
    }

    /// The same with the line that Go's message names.
    pub(crate) fn with_go_line(mut self, line: u32) -> Self {
        self.go_line = line;
        self
    }

    /// The message as Go's library prints it: `yaml: line 3: …`, the line left out where Go leaves it out.
    pub fn go_message(&self) -> String {
        match self.go_line {
            _ if self.bare => self.message.clone(),
            0 => format!("yaml: {}", self.message),
            line => format!("yaml: line {line}: {}", self.message),
        }
    }
}

impl From<Box<Self>> for Error {
    fn from(error: Box<Self>) -> Self {
        *error
    }
}

// === impl Errors ===

impl Errors {
    /// All mistakes found; `None` when there are none.
    pub(crate) fn from_list(errors: Vec<Error>) -> Option<Self> {
        (!errors.is_empty()).then_some(Self(errors))
    }

    /// The first mistake, which is where Go stops.
    pub fn first(&self) -> &Error {
        &self.0[0]
    }

    /// The mistakes in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl From<Box<Error>> for Errors {
    fn from(error: Box<Error>) -> Self {
        Self(vec![*error])
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for error in &self.0 {
            write!(f, "{separator}{error}")?;
            separator = "\n";
        }
        Ok(())
    }
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.line {
            0 => Ok(()),
            line => write!(f, "line {line}, column {}: ", self.0.column),
        }
    }
}
