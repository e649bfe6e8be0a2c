//! What differs between the Go programs whose templates are reproduced.

/// How a template set behaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// What a key is that a map does not have.
    pub missing_key: MissingKey,
    /// Whether `range` counts up to a number: Helm 4 does, Helm 3 refuses.
    pub range_over_int: bool,
}

/// Go's `missingkey` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingKey {
    /// No value at all, printed as `<no value>`: Go's default.
    #[default]
    Invalid,
    /// The zero value of the map's elements: what Helm uses.
    Zero,
    /// An error: Helm's strict mode.
    Error,
}

/// Whether the line of a parse error counts the lines of the comments before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommentLines {
    /// As Go does from 1.24 on, and with it Helm 4.
    #[default]
    Counted,
    /// As Go did before, and with it Helm 3.17.
    Skipped,
}
