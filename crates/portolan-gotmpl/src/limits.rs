//! What a template may use up before it is stopped.

/// The limits of one execution; the error names the limit and the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Instructions executed.
    pub steps: u64,
    /// Templates calling templates.
    pub template_depth: usize,
    /// How often one name may be included inside itself; Helm's own limit.
    pub include_depth: usize,
    /// Actions and parentheses nested in one text.
    pub parse_depth: usize,
    /// Bytes of output, what `include` returns counted too.
    pub output_bytes: usize,
    /// Bytes of any single string or items of any single list that a function may make.
    pub value_size: usize,
    /// Bytes of all strings and lists that functions make, taken together.
    pub produced_bytes: usize,
    /// Bytes of a compiled regular expression.
    pub regex_bytes: usize,
}

impl Default for Limits {
    /// A hundred times what the largest public charts need.
    fn default() -> Self {
        Self {
            steps: 500_000_000,
            template_depth: 100_000,
            include_depth: 1_000,
            parse_depth: 200,
            output_bytes: 256 << 20,
            value_size: 64 << 20,
            produced_bytes: 2 << 30,
            regex_bytes: 10 << 20,
        }
    }
}
