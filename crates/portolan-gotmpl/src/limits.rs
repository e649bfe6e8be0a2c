//! How deep and how large the parts of a template may be. Its budget limits what it may use while it runs.

/// The limits of one execution; the error names the limit and the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Templates calling templates.
    pub template_depth: usize,
    /// How often one name may be included inside itself; Helm's own limit.
    pub include_depth: usize,
    /// Actions and parentheses nested in one text.
    pub parse_depth: usize,
    /// Bytes of a compiled regular expression.
    pub regex_bytes: usize,
}

impl Default for Limits {
    /// A hundred times what the largest public charts need.
    fn default() -> Self {
        Self {
            template_depth: 100_000,
            include_depth: 1_000,
            parse_depth: 200,
            regex_bytes: 10 << 20,
        }
    }
}
