//! A finding as report formats see it.

/// How bad a finding is, as report formats know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Somebody should look.
    Warning,
    /// Something is wrong.
    Error,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Stays the same as long as the finding does.
    pub id: String,
    /// The rule that found it.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about: `Deployment shop/web`.
    pub subject: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// The file, relative to where the command ran.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// Why it is accepted, when it is.
    pub accepted: Option<String>,
}

/// A rule that entries name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it finds, in a sentence.
    pub meaning: &'static str,
}
