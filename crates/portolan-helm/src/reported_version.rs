//! The Kubernetes version that templates see: a release, its further numbers, and what a vendor added.
//!
//! ```text
//! v1.30.1-gke.100 = release 1.30, further number 1, suffix `-gke.100`
//! ```

use std::fmt;

use portolan_object::KubeVersion;
use portolan_semver::Version;

use crate::profile::Profile;

/// A Kubernetes version as a cluster reports it to templates. Prints as `v1.31.4+k3s1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedVersion {
    release: KubeVersion,
    /// The patch number, and whatever numbers follow it. Helm 4 leaves out a patch number that was not written.
    further: Vec<u64>,
    /// What follows the numbers, with its first character: `-gke.100`, `+k3s1`.
    suffix: String,
}

/// The text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid kube version '{0}': Invalid Semantic Version")]
pub struct BadKubeVersion(pub String);

impl ReportedVersion {
    /// The first version of a release: `v1.32.0`.
    pub fn first_of(release: KubeVersion) -> Self {
        Self {
            release,
            further: vec![0],
            suffix: String::new(),
        }
    }

    /// The release that it is a version of.
    pub fn release(&self) -> KubeVersion {
        self.release
    }

    /// The version without its suffix: what Helm 4 prints, and compares with a chart's range.
    #[must_use]
    pub(crate) fn without_suffix(&self) -> Self {
        Self {
            suffix: String::new(),
            ..self.clone()
        }
    }

    /// Reads a version, with or without a leading `v`, and completes it to three numbers.
    pub fn parse(text: &str) -> Result<Self, BadKubeVersion> {
        let bad = || BadKubeVersion(text.to_owned());
        let version = Version::parse(text).map_err(|_| bad())?;
        let number = |number: u64| u32::try_from(number).map_err(|_| bad());
        let part = |mark: char, part: &str| match part {
            "" => String::new(),
            part => format!("{mark}{part}"),
        };
        Ok(Self {
            release: KubeVersion::new(number(version.major())?, number(version.minor())?),
            further: vec![version.patch()],
            suffix: part('-', version.prerelease()) + &part('+', version.metadata()),
        })
    }

    /// Reads a version as this Helm does: Helm 4 takes two numbers or more, and adds none.
    pub fn parse_for(profile: Profile, text: &str) -> Result<Self, BadKubeVersion> {
        match profile {
            Profile::Helm3 => Self::parse(text),
            Profile::Helm4 => parse_generic(text).ok_or_else(|| BadKubeVersion(text.to_owned())),
        }
    }
}

/// `ParseGeneric` of Kubernetes: numbers with points between them, none with a leading zero, then anything.
fn parse_generic(text: &str) -> Option<ReportedVersion> {
    let text = text.trim_start();
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let mut numbers = Vec::new();
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (digits, behind) = rest.split_at(end.unwrap_or(rest.len()));
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        numbers.push(digits.parse::<u64>().ok()?);
        rest = behind;
        let next = rest.strip_prefix('.');
        match next.filter(|next| next.starts_with(|c: char| c.is_ascii_digit())) {
            Some(next) => rest = next,
            None => break,
        }
    }
    let [major, minor, further @ ..] = numbers.as_slice() else {
        return None;
    };
    Some(ReportedVersion {
        release: KubeVersion::new(u32::try_from(*major).ok()?, u32::try_from(*minor).ok()?),
        further: further.to_vec(),
        suffix: rest.to_owned(),
    })
}

impl fmt::Display for ReportedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.release)?;
        for number in &self.further {
            write!(f, ".{number}")?;
        }
        f.write_str(&self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_completed() {
        let read = |text: &str| ReportedVersion::parse(text).map(|version| version.to_string());
        assert_eq!(read("1.29").as_deref(), Ok("v1.29.0"));
        assert_eq!(
            read("v1.31.4-rc.1+k3s1").as_deref(),
            Ok("v1.31.4-rc.1+k3s1")
        );
        assert!(read("new").is_err());
        let version = ReportedVersion::parse("1.29").expect("a version");
        assert_eq!(version.release(), KubeVersion::new(1, 29));
        assert_eq!(version, ReportedVersion::first_of(KubeVersion::new(1, 29)));
    }

    /// As helm 4.2.4 prints them.
    #[test]
    fn helm_4_keeps_a_version_as_it_is_written() {
        let read = |text: &str| {
            let version = ReportedVersion::parse_for(Profile::Helm4, text)?;
            Ok::<_, BadKubeVersion>(format!("{version} {}", version.without_suffix()))
        };
        let check = |text: &str, expected: &str| assert_eq!(read(text).as_deref(), Ok(expected));
        check("1.29", "v1.29 v1.29");
        check("v1.30.1-gke.100", "v1.30.1-gke.100 v1.30.1");
        check("1.31.0+x", "v1.31.0+x v1.31.0");
        check("1.31.2.7.", "v1.31.2.7. v1.31.2.7");
        for bad in ["1", "abc", "v01.2", "", "1.29.01", "1..2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
