//! A version: numbers, pre-release and metadata, and the text it was read from.

use std::cmp::Ordering;
use std::fmt;

use crate::form;

/// A semantic version.
///
/// Comparison is by precedence: metadata and spelling do not count, so `v1.2+a` equals `1.2.0`.
#[derive(Debug, Clone)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
    original: String,
}

/// Why a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text has not the form of a version.
    #[error("Invalid Semantic Version")]
    Invalid,
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// A number holds something other than digits.
    #[error("Invalid characters in version")]
    Characters,
    /// A number begins with a zero.
    #[error("Version segment starts with 0")]
    LeadingZero,
    /// The metadata holds something other than letters, digits, dots and hyphens.
    #[error("Invalid Metadata string")]
    Metadata,
    /// The pre-release holds something other than letters, digits, dots and hyphens.
    #[error("Invalid Prerelease string")]
    Prerelease,
    /// A number is too large, when read leniently.
    #[error("Error parsing version segment: {}", parse_uint_error(.0))]
    Segment(String),
    /// A number is too large or missing, when read strictly.
    #[error("{}", parse_uint_error(.0))]
    Number(String),
}

/// Go's words for an integer that does not fit, or that is not there.
fn parse_uint_error(digits: &str) -> String {
    let reason = if digits.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    format!("strconv.ParseUint: parsing \"{digits}\": {reason}")
}

impl Version {
    /// A version of these three numbers.
    pub fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            prerelease: String::new(),
            metadata: String::new(),
            original: format!("{major}.{minor}.{patch}"),
        }
    }

    /// Reads a version leniently: minor and patch may be missing, a `v` may stand in front.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let read = form::read(text, |byte| byte.is_ascii_digit());
        let Some((form, "")) = read else {
            return Err(VersionError::Invalid);
        };
        let number = |digits: &str| match digits {
            "" => Ok(0),
            digits => digits
                .parse()
                .map_err(|_| VersionError::Segment(digits.to_owned())),
        };
        let version = Self {
            major: number(form.numbers[0])?,
            minor: number(form.numbers[1])?,
            patch: number(form.numbers[2])?,
            prerelease: form.prerelease.to_owned(),
            metadata: form.metadata.to_owned(),
            original: text.to_owned(),
        };
        check_prerelease(&version.prerelease)?;
        Ok(version)
    }

    /// Reads a version as the specification writes it: three numbers, no `v`.
    pub fn parse_strict(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Err(VersionError::Empty);
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(VersionError::Invalid);
        };
        let (rest, metadata) = rest.split_once('+').unwrap_or((rest, ""));
        check_metadata(metadata)?;
        let (patch, prerelease) = rest.split_once('-').unwrap_or((rest, ""));
        check_prerelease(prerelease)?;
        for number in [major, minor, patch] {
            check_digits(number)?;
        }
        Ok(Self {
            major: strict_number(major)?,
            minor: strict_number(minor)?,
            patch: strict_number(patch)?,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The second number.
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// What follows `-`, or nothing.
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// What follows `+`, or nothing.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The text that was read.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The release after this one with the same minor; a pre-release becomes its release.
    #[must_use]
    pub fn next_patch(&self) -> Self {
        let step = u64::from(self.prerelease.is_empty());
        self.successor(self.major, self.minor, self.patch.wrapping_add(step))
    }

    /// The next minor release.
    #[must_use]
    pub fn next_minor(&self) -> Self {
        self.successor(self.major, self.minor.wrapping_add(1), 0)
    }

    /// The next major release.
    #[must_use]
    pub fn next_major(&self) -> Self {
        self.successor(self.major.wrapping_add(1), 0, 0)
    }

    /// The same version with another pre-release.
    pub fn with_prerelease(&self, prerelease: &str) -> Result<Self, VersionError> {
        check_prerelease(prerelease)?;
        let mut next = self.clone();
        prerelease.clone_into(&mut next.prerelease);
        Ok(next.respelled())
    }

    /// The same version with other metadata.
    pub fn with_metadata(&self, metadata: &str) -> Result<Self, VersionError> {
        check_metadata(metadata)?;
        let mut next = self.clone();
        metadata.clone_into(&mut next.metadata);
        Ok(next.respelled())
    }

    fn successor(&self, major: u64, minor: u64, patch: u64) -> Self {
        let next = Self {
            original: self.original.clone(),
            ..Self::new(major, minor, patch)
        };
        next.respelled()
    }

    /// Makes the original text follow the fields, with the `v` it had.
    fn respelled(mut self) -> Self {
        let prefix = if self.original.starts_with('v') {
            "v"
        } else {
            ""
        };
        self.original = format!("{prefix}{self}");
        self
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        let released = |version: &Self| version.prerelease.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then(released(self).cmp(&released(other)))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

/// Compares part by part; a missing part is the lowest.
pub(crate) fn compare_prereleases(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (left, right) => {
                let order = compare_parts(left.unwrap_or(""), right.unwrap_or(""));
                if order.is_ne() {
                    return order;
                }
            }
        }
    }
}

/// Numbers before words, numbers by value, words by bytes, nothing before everything.
fn compare_parts(left: &str, right: &str) -> Ordering {
    if left.is_empty() || right.is_empty() {
        return left.len().cmp(&right.len());
    }
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

fn check_prerelease(text: &str) -> Result<(), VersionError> {
    for part in text.split('.') {
        if is_digits(part) {
            if part.len() > 1 && part.starts_with('0') {
                return Err(VersionError::LeadingZero);
            }
        } else if !is_identifier(part) {
            return Err(VersionError::Prerelease);
        }
    }
    Ok(())
}

fn check_metadata(text: &str) -> Result<(), VersionError> {
    if text.split('.').all(is_identifier) {
        Ok(())
    } else {
        Err(VersionError::Metadata)
    }
}

fn check_digits(text: &str) -> Result<(), VersionError> {
    if !is_digits(text) {
        Err(VersionError::Characters)
    } else if text.len() > 1 && text.starts_with('0') {
        Err(VersionError::LeadingZero)
    } else {
        Ok(())
    }
}

fn strict_number(digits: &str) -> Result<u64, VersionError> {
    digits
        .parse()
        .map_err(|_| VersionError::Number(digits.to_owned()))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
