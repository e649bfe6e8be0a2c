//! A release: the name and namespace a chart is installed under, and the rules for names.

/// What templates see as `.Release`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// The namespace it is installed to.
    pub namespace: String,
    /// How often it was installed and upgraded, from 1.
    pub revision: i64,
    /// Whether this is an upgrade; an installation otherwise.
    pub is_upgrade: bool,
}

/// The longest release name.
pub const MAX_NAME_BYTES: usize = 53;

/// A name that Helm refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is none.
    #[error("release name {0:?}: no name provided")]
    Missing(String),
    /// It is too long, or has characters that are not allowed.
    #[error(
        "release name {0:?}: invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    )]
    Invalid(String),
}

impl Release {
    /// The first installation of a release.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            revision: 1,
            is_upgrade: false,
        }
    }

    /// Checks the name by Helm's rules: parts of lower-case letters, digits and inner hyphens, joined by dots.
    pub fn validate(&self) -> Result<(), NameError> {
        if self.name.is_empty() {
            return Err(NameError::Missing(self.name.clone()));
        }
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(legal)
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        if self.name.len() <= MAX_NAME_BYTES && self.name.split('.').all(part) {
            Ok(())
        } else {
            Err(NameError::Invalid(self.name.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kubernetes() {
        for name in ["web", "a.b-c", "0", &"a".repeat(53)] {
            assert!(Release::new(name, "d").validate().is_ok(), "{name}");
        }
        for name in ["", "Web", "-a", "a-", "a..b", "a_b", &"a".repeat(54)] {
            assert!(Release::new(name, "d").validate().is_err(), "{name}");
        }
    }
}
