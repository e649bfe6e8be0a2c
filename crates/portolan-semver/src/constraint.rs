//! Constraints: what versions a text such as `>= 1.2, < 2 || ^3.1` admits.
//!
//! ```text
//! text ──ranges rewritten──▶ groups joined by || ──▶ comparisons joined by comma or space
//! ```
//!
//! A comparison without a pre-release never admits one.

use std::fmt;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::version::{Version, compare_prereleases};

/// Groups of comparisons; a version must satisfy all of one group.
#[derive(Debug, Clone)]
pub struct Constraints {
    groups: Vec<Vec<Comparison>>,
}

/// Why a text is no constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// The text has not the form of a constraint.
    #[error("improper constraint: {0}")]
    Improper(String),
    /// The text has the form, but its version has not.
    #[error("constraint Parser Error")]
    Version,
}

/// An operator with its version.
#[derive(Debug, Clone)]
struct Comparison {
    operator: Operator,
    /// The operator as it was written.
    sign: &'static str,
    version: Version,
    /// The version as it was written, wildcards and all.
    written: String,
    precision: Precision,
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Which parts of the version were given; the others are wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    Nothing,
    Major,
    Minor,
    Patch,
}

/// Every sign with what it means, longest first.
const SIGNS: &[(&str, Operator)] = &[
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::Equal),
];

const SIGN: &str = r"!=|>=|=>|<=|=<|~>|=|>|<|~|\^|";
const SPACE: &str = r"[\t\n\f\r ]";

/// A version with wildcards; the original lets `|` stand among the digits and fails later.
fn version_pattern(prefix: &str) -> String {
    let number = r"[0-9|xX*]+";
    let words = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*";
    format!(
        r"v?(?<{prefix}major>{number})(?<{prefix}minor>\.{number})?(?<{prefix}patch>\.{number})?(?<{prefix}pre>-{words})?(?:\+{words})?"
    )
}

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant expression")
}

/// `1.2 - 1.4`.
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    let (from, to) = (version_pattern("from_"), version_pattern("to_"));
    compile(&format!(
        "{SPACE}*(?<from>{from}){SPACE}+-{SPACE}+(?<to>{to}){SPACE}*"
    ))
});

/// A whole group of comparisons.
static GROUP: LazyLock<Regex> = LazyLock::new(|| {
    let (first, next) = (version_pattern("first_"), version_pattern("next_"));
    compile(&format!(
        "^(?:{SPACE}*(?:{SIGN}){SPACE}*(?:{first}){SPACE}*)(?:(?:{SPACE}+|,{SPACE}*)(?:{SIGN}){SPACE}*(?:{next}){SPACE}*)*$"
    ))
});

/// One comparison of a group.
static COMPARISON: LazyLock<Regex> = LazyLock::new(|| {
    let version = version_pattern("");
    compile(&format!("(?<sign>{SIGN}){SPACE}*(?<version>{version})"))
});

impl Constraints {
    /// Reads a constraint.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        let groups = rewrite_ranges(text)
            .split("||")
            .map(parse_group)
            .collect::<Result<_, _>>()?;
        Ok(Self { groups })
    }

    /// Whether a version satisfies the constraint.
    pub fn check(&self, version: &Version) -> bool {
        let admits = |comparison: &Comparison| comparison.check(version).is_ok();
        self.groups.iter().any(|group| group.iter().all(admits))
    }

    /// Why a version does not satisfy the constraint: one reason for each comparison that refuses it.
    pub fn validate(&self, version: &Version) -> Result<(), Vec<String>> {
        let mut reasons = Vec::new();
        let mut prerelease_told = false;
        for group in &self.groups {
            let mut satisfied = true;
            for comparison in group {
                let refusal = if comparison.refuses_prerelease(version) {
                    let told = std::mem::replace(&mut prerelease_told, true);
                    (!told).then(|| only_releases(version))
                } else if let Err(reason) = comparison.check(version) {
                    Some(reason)
                } else {
                    continue;
                };
                satisfied = false;
                reasons.extend(refusal);
            }
            if satisfied {
                return Ok(());
            }
        }
        Err(reasons)
    }
}

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, group) in self.groups.iter().enumerate() {
            if index > 0 {
                f.write_str(" || ")?;
            }
            for (index, comparison) in group.iter().enumerate() {
                let space = if index > 0 { " " } else { "" };
                write!(f, "{space}{}{}", comparison.sign, comparison.written)?;
            }
        }
        Ok(())
    }
}

/// Writes `a - b` as `>= a, <= b`.
fn rewrite_ranges(text: &str) -> String {
    let mut rewritten = text.to_owned();
    for range in RANGE.captures_iter(text) {
        let comparisons = format!(">= {}, <= {} ", &range["from"], &range["to"]);
        rewritten = rewritten.replacen(&range[0], &comparisons, 1);
    }
    rewritten
}

fn parse_group(text: &str) -> Result<Vec<Comparison>, ConstraintError> {
    if !GROUP.is_match(text) {
        return Err(ConstraintError::Improper(text.to_owned()));
    }
    COMPARISON
        .captures_iter(text)
        .map(|parts| parse_comparison(&parts))
        .collect()
}

fn parse_comparison(parts: &Captures<'_>) -> Result<Comparison, ConstraintError> {
    let part = |name| parts.name(name).map_or("", |part| part.as_str());
    let (major, minor, patch) = (part("major"), part("minor"), part("patch"));
    let (pre, written) = (part("pre"), part("version"));
    let wild = |number: &str| matches!(number, "" | "x" | "X" | "*" | ".x" | ".X" | ".*");
    let (precision, version) = if wild(major) {
        (Precision::Nothing, format!("0.0.0{pre}"))
    } else if wild(minor) {
        (Precision::Major, format!("{major}.0.0{pre}"))
    } else if wild(patch) {
        (Precision::Minor, format!("{major}{minor}.0{pre}"))
    } else {
        (Precision::Patch, written.to_owned())
    };
    let (sign, operator) = SIGNS
        .iter()
        .find(|(sign, _)| *sign == part("sign"))
        .copied()
        .unwrap_or(("", Operator::Equal));
    Ok(Comparison {
        operator,
        sign,
        version: Version::parse(&version).map_err(|_| ConstraintError::Version)?,
        written: written.to_owned(),
        precision,
    })
}

fn only_releases(version: &Version) -> String {
    format!(
        "{version} is a prerelease version and the constraint is only looking for release versions"
    )
}

impl Comparison {
    fn refuses_prerelease(&self, version: &Version) -> bool {
        !version.prerelease().is_empty() && self.version.prerelease().is_empty()
    }

    /// Nothing when the version is admitted, else the reason why not.
    fn check(&self, version: &Version) -> Result<(), String> {
        let exact = self.precision == Precision::Patch;
        let compares_text = matches!(self.operator, Operator::NotEqual) && exact;
        if self.refuses_prerelease(version) && !compares_text {
            return Err(only_releases(version));
        }
        match self.operator {
            Operator::Equal if exact => {
                self.expect(version == &self.version, version, "is not equal to")
            }
            Operator::Equal | Operator::Tilde => self.check_tilde(version),
            Operator::NotEqual => self.expect(self.differs(version), version, "is equal to"),
            Operator::Greater => {
                self.expect(self.is_below(version), version, "is less than or equal to")
            }
            Operator::Less => self.expect(
                version < &self.version,
                version,
                "is greater than or equal to",
            ),
            Operator::GreaterOrEqual => {
                self.expect(version >= &self.version, version, "is less than")
            }
            Operator::LessOrEqual => {
                self.expect(self.is_not_below(version), version, "is greater than")
            }
            Operator::Caret => self.check_caret(version),
        }
    }

    fn expect(&self, holds: bool, version: &Version, otherwise: &str) -> Result<(), String> {
        if holds {
            Ok(())
        } else {
            Err(format!("{version} {otherwise} {}", self.written))
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let ours = &self.version;
        match self.precision {
            _ if self.precision != Precision::Patch && ours.major() != version.major() => true,
            Precision::Major => false,
            Precision::Minor | Precision::Nothing if ours.minor() != version.minor() => true,
            Precision::Minor => {
                compare_prereleases(version.prerelease(), ours.prerelease()).is_ne()
            }
            Precision::Nothing | Precision::Patch => version != ours,
        }
    }

    /// `>`: with wildcards the version must lie beyond the whole range.
    fn is_below(&self, version: &Version) -> bool {
        let ours = &self.version;
        if self.precision == Precision::Patch || version.major() != ours.major() {
            return version > ours;
        }
        match self.precision {
            Precision::Major => false,
            Precision::Minor => version.minor() > ours.minor(),
            Precision::Nothing | Precision::Patch => version > ours,
        }
    }

    /// `<=`: with wildcards the version may lie anywhere in the range.
    fn is_not_below(&self, version: &Version) -> bool {
        let ours = &self.version;
        if self.precision == Precision::Patch {
            return version <= ours;
        }
        let same_major = version.major() == ours.major();
        let beyond_minor = version.minor() > ours.minor() && self.precision != Precision::Major;
        version.major() <= ours.major() && !(same_major && beyond_minor)
    }

    fn check_tilde(&self, version: &Version) -> Result<(), String> {
        let ours = &self.version;
        self.expect(version >= ours, version, "is less than")?;
        let zero = (ours.major(), ours.minor(), ours.patch()) == (0, 0, 0);
        if zero && matches!(self.precision, Precision::Nothing | Precision::Patch) {
            return Ok(());
        }
        let same_major = version.major() == ours.major();
        self.expect(same_major, version, "does not have same major version as")?;
        let same_minor = version.minor() == ours.minor() || self.precision == Precision::Major;
        self.expect(
            same_minor,
            version,
            "does not have same major and minor version as",
        )
    }

    fn check_caret(&self, version: &Version) -> Result<(), String> {
        let ours = &self.version;
        self.expect(version >= ours, version, "is less than")?;
        let same_major = version.major() == ours.major();
        self.expect(same_major, version, "does not have same major version as")?;
        if ours.major() > 0 || self.precision == Precision::Major {
            return Ok(());
        }
        let same_minor = version.minor() == ours.minor();
        if ours.minor() > 0 || self.precision == Precision::Minor {
            return self
                .expect(same_minor, version, "does not have same minor version as")
                .map_err(|reason| {
                    reason + ". Expected minor versions to match when constraint major version is 0"
                });
        }
        self.expect(same_minor, version, "does not have same minor version as")?;
        self.expect(version.patch() == ours.patch(), version, "does not equal")
            .map_err(|reason| {
                reason
                    + ". Expect version and constraint to equal when major and minor versions are 0"
            })
    }
}
