//! A version of Flux, or a range of them, as repositories and people write it.

use std::fmt;
use std::str::FromStr;

use portolan_semver::{Constraints, Version};

use crate::version::profile::Profile;

/// A version such as `2.9`, `v2.8.1` or `2.x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FluxVersion {
    written: String,
    major: u32,
    /// `None` for a range that has every minor version.
    minor: Option<u32>,
}

/// A text that is no version of Flux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version of Flux: write it as in `2.9` or `v2.9.5`")]
pub struct BadFluxVersion(String);

/// The newest release of Flux whose behaviour is known.
const NEWEST_KNOWN: (u32, u32) = (2, 9);

/// Minor releases of the Flux operator, newest first, with the newest Flux that the manifests of each hold.
const OF_OPERATOR: [(u32, u32); 7] = [(53, 9), (42, 8), (30, 7), (21, 6), (15, 5), (10, 4), (0, 3)];

/// More than any minor release of Flux has patches.
const MAX_PATCHES: u32 = 40;

/// The oldest release of Flux whose behaviour is known.
const OLDEST_KNOWN: (u32, u32) = (2, 0);

impl FluxVersion {
    /// The newest version whose behaviour is known.
    pub fn newest_known() -> Self {
        let (major, minor) = NEWEST_KNOWN;
        Self {
            written: format!("{major}.{minor}"),
            major,
            minor: Some(minor),
        }
    }

    /// The newest version in the manifests that the Flux operator published with one of its releases, such as `v0.46.0`;
    /// `None` if the text is no such release.
    pub(crate) fn newest_of_operator(release: &str) -> Option<Self> {
        let mut parts = release.trim_start_matches('v').split('.');
        let is_first = parts.next() == Some("0");
        let minor: u32 = parts.next().filter(|_| is_first)?.parse().ok()?;
        let (_, flux) = OF_OPERATOR.iter().find(|(first, _)| minor >= *first)?;
        // A later release than those known may hold a later Flux.
        let is_newest = (2, *flux) == NEWEST_KNOWN;
        let version = format!("2.{flux}");
        version.parse().ok().filter(|_| !is_newest)
    }

    /// The newest known release in a range such as `~2.7` or `>=2.5 <2.8`; `None` if there is none in it.
    fn newest_in(range: &str) -> Option<Self> {
        let constraints = Constraints::parse(range).ok()?;
        let (major, newest) = NEWEST_KNOWN;
        let has = |minor: u32| {
            let mut patches = (0..MAX_PATCHES).map(|patch| format!("{major}.{minor}.{patch}"));
            patches.any(|version| {
                let version = Version::parse(&version);
                version.is_ok_and(|version| constraints.check(&version))
            })
        };
        // A range without an end has later ones too.
        let minor = if has(newest + 1) {
            None
        } else {
            Some((0..=newest).rev().find(|minor| has(*minor))?)
        };
        Some(Self {
            written: range.to_owned(),
            major,
            minor,
        })
    }

    /// Whether it is a range that has every minor version.
    pub(crate) fn is_any_minor(&self) -> bool {
        self.minor.is_none()
    }

    /// What this version does differently from others.
    pub fn profile(&self) -> Profile {
        Profile {
            strict_substitution: self.is_at_least((2, 9)),
            helm4: self.is_at_least((2, 8)),
        }
    }

    /// The known version that stands in for one that is newer or older than all of them; `None` if it is known itself.
    pub fn stand_in(&self) -> Option<String> {
        let of = |(major, minor): (u32, u32)| Some(format!("{major}.{minor}"));
        match self.minor {
            Some(minor) if (self.major, minor) > NEWEST_KNOWN => of(NEWEST_KNOWN),
            None if self.major > NEWEST_KNOWN.0 => of(NEWEST_KNOWN),
            _ if self.major < OLDEST_KNOWN.0 => of(OLDEST_KNOWN),
            _ => None,
        }
    }

    /// Whether it is a release or a later one; a range counts as its newest.
    fn is_at_least(&self, (major, minor): (u32, u32)) -> bool {
        let is_late_enough = self.minor.is_none_or(|own| own >= minor);
        self.major > major || (self.major == major && is_late_enough)
    }
}

impl FromStr for FluxVersion {
    type Err = BadFluxVersion;

    fn from_str(text: &str) -> Result<Self, BadFluxVersion> {
        let bad = || BadFluxVersion(text.to_owned());
        if text.contains(['<', '>', '=', '~', '^', ',', '|', ' ']) {
            return Self::newest_in(text.trim()).ok_or_else(bad);
        }
        let written = text.trim().trim_start_matches('v');
        let mut parts = written.split(['.', '-', '+']);
        let number = |part: &str| part.parse::<u32>().map_err(|_| bad());
        let major = number(parts.next().unwrap_or_default())?;
        let minor = match parts.next() {
            None | Some("x" | "X" | "*") => None,
            Some(part) => Some(number(part)?),
        };
        Ok(Self {
            written: written.to_owned(),
            major,
            minor,
        })
    }
}

impl fmt::Display for FluxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_the_newest_known_release_in_it() {
        for (range, strict) in [
            ("~2.7", false),
            ("=2.7.0", false),
            ("<2.8", false),
            (">=2.5 <2.8", false),
            (">= 2.7.0, < 2.8.0", false),
            ("^2.7", true),
            (">=2.6", true),
        ] {
            assert_eq!(
                version(range).profile().strict_substitution,
                strict,
                "{range}"
            );
        }
        for none in [">9", "<0.1"] {
            assert!(none.parse::<FluxVersion>().is_err(), "{none}");
        }
    }

    fn version(text: &str) -> FluxVersion {
        text.parse().unwrap()
    }

    #[test]
    fn strict_substitution_came_with_2_9() {
        assert!(!version("v2.8.3").profile().strict_substitution);
        assert!(version("2.9").profile().strict_substitution);
        assert!(version("2.x").profile().strict_substitution);
        assert!("newest".parse::<FluxVersion>().is_err());
    }

    #[test]
    fn helm_4_came_with_2_8() {
        assert!(!version("2.7.5").profile().helm4 && version("2.8.0").profile().helm4);
        assert!(!version("0.41").profile().helm4 && version("3").profile().helm4);
    }

    #[test]
    fn another_version_stands_in_for_one_that_is_not_known() {
        for (text, expected) in [
            ("2.9.1", None),
            ("2.x", None),
            ("v2.0.0", None),
            ("2.10", Some("2.9")),
            ("3.x", Some("2.9")),
            ("0.41.2", Some("2.0")),
        ] {
            assert_eq!(version(text).stand_in().as_deref(), expected, "{text}");
        }
        assert_eq!(FluxVersion::newest_known().stand_in(), None);
        assert_eq!(FluxVersion::newest_known().profile(), Profile::NEWEST);
    }
}
