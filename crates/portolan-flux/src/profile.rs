//! What a version of Flux does differently from the others.

/// The behaviour of a version of Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// A variable that nobody sets is an error (since Flux 2.9).
    pub strict_substitution: bool,
    /// Charts are rendered as Helm 4 does, hooks go through post-renderers (since Flux 2.8).
    pub helm4: bool,
}

/// A text that is no version of Flux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version of Flux: write it as in `2.9` or `v2.9.5`")]
pub struct BadFluxVersion(String);

impl Profile {
    /// The newest Flux known.
    pub const NEWEST: Self = Self {
        strict_substitution: true,
        helm4: true,
    };

    /// The profile of a version such as `2.9`, `v2.8.1` or `2.x`.
    pub fn for_version(version: &str) -> Result<Self, BadFluxVersion> {
        let bad = || BadFluxVersion(version.to_owned());
        let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
        let major: u32 = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or_else(bad)?;
        let minor = match parts.next() {
            None | Some("x" | "X" | "*") => u32::MAX,
            Some(part) => part.parse().map_err(|_| bad())?,
        };
        Ok(Self {
            strict_substitution: (major, minor) >= (2, 9),
            helm4: (major, minor) >= (2, 8),
        })
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::NEWEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_substitution_came_with_2_9() {
        assert!(!Profile::for_version("v2.8.3").unwrap().strict_substitution);
        assert!(Profile::for_version("2.9").unwrap().strict_substitution);
        assert!(Profile::for_version("2.x").unwrap().strict_substitution);
        assert!(Profile::for_version("newest").is_err());
    }
}
