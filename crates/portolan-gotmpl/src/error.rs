//! Errors, with Go's messages.

use std::fmt;

use portolan_budget::Exceeded;

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    /// The name of the text.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// A template that failed while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecError {
    /// Where it happened; none when no template was running.
    pub place: Option<Place>,
    /// The templates that were running, innermost first, each with the place that called the next.
    pub stack: Vec<Place>,
    /// What happened.
    pub cause: Cause,
}

/// A place in a template's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the text: a file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes as Go counts it: from 0, or on the first line from the start of the text.
    pub column: usize,
    /// The template that was executing: a file or the name of a `define`.
    pub template: String,
    /// The expression.
    pub expression: String,
}

/// Why a template failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A message of the engine or of a function.
    Message(String),
    /// A message that the chart's author wrote (`fail`, `required`).
    Authored {
        /// The function, as `error calling fail: `.
        prefix: String,
        /// The author's words.
        message: String,
    },
    /// A limit was reached, or somebody asked for the end.
    Exceeded {
        /// The function, as `error calling toJson: `; empty outside of functions.
        prefix: String,
        /// The limit.
        exceeded: Exceeded,
    },
    /// An error in a template that this one included or evaluated.
    Nested {
        /// What comes before it, as `error calling include: `.
        prefix: String,
        /// The error inside.
        error: Box<ExecError>,
    },
}

impl ExecError {
    /// An error outside any template.
    pub fn message(message: impl Into<String>) -> Self {
        Self {
            place: None,
            stack: Vec::new(),
            cause: Cause::Message(message.into()),
        }
    }

    /// The author's words, when the innermost cause is `fail` or `required`.
    pub fn authored(&self) -> Option<&str> {
        let mut error = self;
        loop {
            match &error.cause {
                Cause::Message(_) | Cause::Exceeded { .. } => return None,
                Cause::Authored { message, .. } => return Some(message),
                Cause::Nested { error: inner, .. } => error = inner,
            }
        }
    }

    /// The limit that was reached, when that is the innermost cause.
    pub fn exceeded(&self) -> Option<Exceeded> {
        let mut error = self;
        loop {
            match &error.cause {
                Cause::Message(_) | Cause::Authored { .. } => return None,
                Cause::Exceeded { exceeded, .. } => return Some(*exceeded),
                Cause::Nested { error: inner, .. } => error = inner,
            }
        }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = self;
        loop {
            if let Some(place) = &error.place {
                let template = crate::fmt::quote(place.template.as_bytes(), false);
                write!(
                    f,
                    "template: {}: executing {template} at <{}>: ",
                    place.location(),
                    place.expression
                )?;
            }
            match &error.cause {
                Cause::Message(message) => return f.write_str(message),
                Cause::Authored { prefix, message } => return write!(f, "{prefix}{message}"),
                Cause::Exceeded { prefix, exceeded } => {
                    return write!(f, "{prefix}{}", exceeded.with_option());
                }
                Cause::Nested {
                    prefix,
                    error: inner,
                } => {
                    f.write_str(prefix)?;
                    error = inner;
                }
            }
        }
    }
}

impl std::error::Error for ExecError {}

impl Drop for ExecError {
    /// Includes nest a thousand deep and more: the errors inside are freed one by one.
    fn drop(&mut self) {
        let mut cause = std::mem::replace(&mut self.cause, Cause::Message(String::new()));
        while let Cause::Nested { mut error, .. } = cause {
            cause = std::mem::replace(&mut error.cause, Cause::Message(String::new()));
        }
    }
}

impl Place {
    /// File, line and column as Go prints them.
    pub fn location(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}
