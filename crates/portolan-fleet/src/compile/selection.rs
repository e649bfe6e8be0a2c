//! Which steps a run takes, by their tags.

use std::collections::BTreeSet;

use portolan_digest::Hasher;

use crate::book::{Step, Work};

/// Which steps a run takes: all, those with one of some tags, and none with one of others.
///
/// A step with the tag `always` is taken unless it is skipped by name; one with `never` only if one of its tags is asked
/// for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagSelection {
    /// Only steps with one of these; all without any.
    pub tags: BTreeSet<String>,
    /// No steps with one of these.
    pub skip: BTreeSet<String>,
}

impl TagSelection {
    /// Whether every step without the tag `never` is taken.
    pub fn is_everything(&self) -> bool {
        self.tags.is_empty() && self.skip.is_empty()
    }

    /// Whether a step with these tags is taken.
    pub(crate) fn takes(&self, tags: &BTreeSet<String>) -> bool {
        if !tags.is_disjoint(&self.skip) {
            return false;
        }
        if !tags.is_disjoint(&self.tags) {
            return true;
        }
        if tags.contains("never") {
            return false;
        }
        self.tags.is_empty() || tags.contains("always")
    }

    /// Removes steps that are not taken. A block without steps goes too.
    pub(crate) fn apply(&self, steps: &mut Vec<Step>) {
        steps.retain_mut(|step| match &mut step.work {
            Work::Block(block) => {
                self.apply(&mut block.steps);
                self.apply(&mut block.rescue);
                self.apply(&mut block.always);
                !block.steps.is_empty()
            }
            _ => self.takes(&step.options.tags),
        });
    }

    pub(super) fn hash(&self, hasher: &mut Hasher) {
        for (sign, tags) in [(b"+", &self.tags), (b"-", &self.skip)] {
            for tag in tags {
                hasher.update(sign);
                hasher.update(tag.as_bytes());
                hasher.update(&[0]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_select_as_documented() {
        let set = |text: &str| -> BTreeSet<String> {
            text.split_whitespace().map(str::to_owned).collect()
        };
        for (tags, skip, of_step, taken) in [
            ("", "", "", true),
            ("", "", "never", false),
            ("users", "", "users", true),
            ("users", "", "web", false),
            ("users", "", "always", true),
            ("debug", "", "never debug", true),
            ("", "users", "users", false),
            ("users", "users", "users", false),
            ("", "always", "always", false),
        ] {
            let selection = TagSelection {
                tags: set(tags),
                skip: set(skip),
            };
            assert_eq!(
                selection.takes(&set(of_step)),
                taken,
                "{tags}/{skip} {of_step}"
            );
        }
    }
}
