//! The state of a user, package or unit as named values, and what a step changes of them.

use std::fmt::Write as _;

use portolan_digest::Digest;

use crate::plan::{Change, ChangeKind, Subject};

/// Named values in the order in which people read them. Empty if the thing does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    values: Vec<(String, String)>,
}

impl State {
    /// Adds a value, or replaces the one with this name.
    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.values.push((name, value)),
        }
        self
    }

    /// Whether the thing does not exist.
    pub(crate) fn is_absent(&self) -> bool {
        self.values.is_empty()
    }

    /// What becomes of a subject in this state when it gets another one; `None` if both are equal.
    pub(crate) fn change_to(&self, after: &Self, subject: Subject) -> Option<Change> {
        if self == after {
            return None;
        }
        let kind = match (self.is_absent(), after.is_absent()) {
            (true, _) => ChangeKind::Create,
            (_, true) => ChangeKind::Remove,
            _ => ChangeKind::Update,
        };
        Some(Change {
            subject,
            kind,
            before: self.digest(),
            after: after.digest(),
            diff: self.diff(after),
        })
    }

    /// Something that is done to a subject and leaves no difference, such as a restart.
    pub(crate) fn act(&self, subject: Subject, what: impl Into<String>) -> Change {
        Change {
            subject,
            kind: ChangeKind::Act,
            before: self.digest(),
            after: self.digest(),
            diff: what.into(),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The values that differ, as lines of a diff.
    fn diff(&self, after: &Self) -> String {
        let added = after
            .values
            .iter()
            .filter(|(name, _)| self.value(name).is_none());
        let mut text = String::new();
        for (name, _) in self.values.iter().chain(added) {
            let (old, new) = (self.value(name), after.value(name));
            if old == new {
                continue;
            }
            // Writing to a text cannot fail.
            if let Some(old) = old {
                let _ = writeln!(text, "-{name}: {old}");
            }
            if let Some(new) = new {
                let _ = writeln!(text, "+{name}: {new}");
            }
        }
        text
    }

    fn digest(&self) -> Digest {
        let mut text = Vec::new();
        for (name, value) in &self.values {
            for part in [name, value] {
                text.extend((part.len() as u64).to_be_bytes());
                text.extend(part.as_bytes());
            }
        }
        Digest::of(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(shell: &str) -> State {
        State::default().with("uid", "1000").with("shell", shell)
    }

    fn subject() -> Subject {
        Subject::User("web".to_owned())
    }

    #[test]
    fn only_values_that_differ_are_shown() {
        let change = user("/bin/sh")
            .change_to(&user("/bin/bash"), subject())
            .unwrap();
        assert_eq!(change.kind, ChangeKind::Update);
        assert_eq!(change.diff, "-shell: /bin/sh\n+shell: /bin/bash\n");
        assert!(
            user("/bin/sh")
                .change_to(&user("/bin/sh"), subject())
                .is_none()
        );
    }
}
