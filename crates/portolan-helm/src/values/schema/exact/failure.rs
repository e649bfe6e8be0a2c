//! The errors of a value as a tree: a rule that failed, and why each alternative of it failed.

use std::fmt::{self, Write};

/// A broken rule.
#[derive(Debug, Default)]
pub(super) struct Failure {
    /// The way to the value, as a JSON pointer.
    pub(super) at: String,
    pub(super) rule: Rule,
    /// Why, where one thing alone does not say it.
    pub(super) causes: Vec<Self>,
}

/// Which rule it is.
#[derive(Debug, Default)]
pub(super) enum Rule {
    /// One that says what is wrong.
    Told(String),
    /// Several of one schema.
    #[default]
    Several,
    /// Those of the schema that a reference leads to.
    Referred,
}

impl Failure {
    /// The failures below a heading that adds nothing to them, otherwise the failure itself.
    pub(super) fn into_causes(self) -> Vec<Self> {
        match self.rule {
            Rule::Several => self.causes,
            _ => vec![self],
        }
    }

    /// Writes one line for itself and each below it, the deeper the further in.
    fn write(&self, out: &mut impl Write, indent: usize) -> fmt::Result {
        let hidden = matches!(self.rule, Rule::Referred) && self.causes.len() == 1;
        if !hidden {
            let what = match &self.rule {
                Rule::Told(what) => what,
                Rule::Several | Rule::Referred => "validation failed",
            };
            let at = quoted(&self.at);
            write!(out, "\n{:indent$}- at {at}: {what}", "")?;
        }
        let below = if hidden { indent } else { indent + 2 };
        self.causes
            .iter()
            .try_for_each(|cause| cause.write(out, below))
    }
}

/// Writes failures as a list, one line each, every line begun by a newline.
pub(super) fn lines(failures: &[Failure]) -> String {
    let mut out = String::new();
    for failure in failures {
        // Writing to a string cannot fail.
        let _ = failure.write(&mut out, 0);
    }
    out
}

/// A text in single quotes, escaped as Go escapes it.
pub(super) fn quoted(text: &str) -> String {
    let quoted = portolan_gotmpl::fmt::quote(text.as_bytes(), false);
    let inner = quoted.get(1..quoted.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}

/// Texts in single quotes, one after the other.
pub(super) fn quoted_list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let quoted: Vec<_> = texts.into_iter().map(quoted).collect();
    quoted.join(", ")
}
