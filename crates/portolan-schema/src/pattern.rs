//! Regular expressions from CRDs, compiled under limits when the first value needs them.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};

/// The largest compiled pattern, in bytes: large enough for real ones, small enough that a hostile one costs little.
const LARGEST: usize = 1 << 20;

/// The size that nearly all patterns fit.
const USUAL: usize = 64 << 10;

/// What the patterns of one definition may take up together.
const ALL_OF_A_DEFINITION: usize = 64 << 20;

/// A pattern that is compiled when it is first used.
#[derive(Clone)]
pub(crate) struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
    allowance: Allowance,
}

/// What the patterns of one definition may still take up; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<AtomicUsize>);

impl Pattern {
    pub(crate) fn new(text: &str, allowance: Allowance) -> Self {
        Self {
            text: text.to_owned(),
            compiled: OnceLock::new(),
            allowance,
        }
    }

    /// Whether a text matches; a pattern that does not compile here is left to the API server and matches everything.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| {
            let usual = self
                .allowance
                .takes(USUAL)
                .then(|| sized(&self.text, USUAL));
            usual.flatten().or_else(|| {
                let fits = self.allowance.takes(LARGEST);
                fits.then(|| sized(&self.text, LARGEST)).flatten()
            })
        });
        compiled
            .as_ref()
            .is_none_or(|pattern| pattern.is_match(text))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(ALL_OF_A_DEFINITION)))
    }
}

impl Allowance {
    fn takes(&self, bytes: usize) -> bool {
        let rest = |left: usize| left.checked_sub(bytes);
        let order = Ordering::Relaxed;
        self.0.fetch_update(order, order, rest).is_ok()
    }
}

fn sized(text: &str, bytes: usize) -> Option<Regex> {
    RegexBuilder::new(text).size_limit(bytes).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_one_definition_share_an_allowance() {
        let allowance = Allowance::default();
        let hostile = |number: usize| format!("^{number}(\\w{{900}}){{9}}$");
        for number in 0..1_000 {
            let pattern = Pattern::new(&hostile(number), allowance.clone());
            assert!(pattern.matches("anything"), "too large to judge");
        }
        assert!(Pattern::new("^a$", allowance).matches("b"), "nothing left");
        assert!(!Pattern::new("^a$", Allowance::default()).matches("b"));
    }
}
