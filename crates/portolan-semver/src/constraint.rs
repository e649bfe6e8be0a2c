//! Constraints: which versions a text such as `>= 1.2, < 2 || ^3.1` allows.
//!
//! ```text
//! text ──ranges rewritten──▶ groups joined by || ──▶ comparisons joined by comma or space
//! ```
//!
//! A comparison without a pre-release never allows one.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use crate::form::{self, Form};
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

/// `1.2 - 1.4`. Hardly anybody writes ranges so; nothing else needs an expression.
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    const VERSION: &str = r"v?[0-9|xX*]+(?:\.[0-9|xX*]+)?(?:\.[0-9|xX*]+)?(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?";
    const SPACE: &str = r"[\t\n\f\r ]";
    let pattern = format!("{SPACE}*(?<from>{VERSION}){SPACE}+-{SPACE}+(?<to>{VERSION}){SPACE}*");
    Regex::new(&pattern).expect("a constant expression")
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
    let has_range = |part: &[u8]| part[1] == b'-' && is_space(part[0]) && is_space(part[2]);
    if !text.as_bytes().windows(3).any(has_range) {
        return text.to_owned();
    }
    let mut rewritten = text.to_owned();
    for range in RANGE.captures_iter(text) {
        let comparisons = format!(">= {}, <= {} ", &range["from"], &range["to"]);
        rewritten = rewritten.replacen(&range[0], &comparisons, 1);
    }
    rewritten
}

/// Comparisons with commas or spaces between them.
fn parse_group(text: &str) -> Result<Vec<Comparison>, ConstraintError> {
    let improper = || ConstraintError::Improper(text.to_owned());
    let mut read = Vec::new();
    let mut rest = skip_space(text);
    loop {
        let (sign, after) = sign(rest);
        let (form, after) = form::read(skip_space(after), is_digit).ok_or_else(improper)?;
        read.push((sign, form));
        let next = skip_space(after);
        rest = match next.strip_prefix(',') {
            _ if next.is_empty() => break,
            Some(next) => skip_space(next),
            None if next.len() < after.len() => next,
            None => return Err(improper()),
        };
    }
    let comparisons = read.iter();
    comparisons
        .map(|(sign, form)| parse_comparison(*sign, form))
        .collect()
}

/// The sign at the beginning of a text, and what follows it; there is always one, if only the empty one.
fn sign(text: &str) -> ((&'static str, Operator), &str) {
    let mut found = SIGNS
        .iter()
        .filter_map(|known| Some((*known, text.strip_prefix(known.0)?)));
    found.next().unwrap_or((("", Operator::Equal), text))
}

/// A digit or a wildcard; the original lets `|` stand among them and fails later.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'|' | b'x' | b'X' | b'*')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(['\t', '\n', '\x0c', '\r', ' '])
}

fn parse_comparison(
    (sign, operator): (&'static str, Operator),
    form: &Form<'_>,
) -> Result<Comparison, ConstraintError> {
    let [major, minor, patch] = form.numbers;
    let pre = match form.prerelease {
        "" => String::new(),
        words => format!("-{words}"),
    };
    let wild = |number: &str| matches!(number, "" | "x" | "X" | "*");
    let (precision, version) = if wild(major) {
        (Precision::Nothing, format!("0.0.0{pre}"))
    } else if wild(minor) {
        (Precision::Major, format!("{major}.0.0{pre}"))
    } else if wild(patch) {
        (Precision::Minor, format!("{major}.{minor}.0{pre}"))
    } else {
        (Precision::Patch, form.whole.to_owned())
    };
    Ok(Comparison {
        operator,
        sign,
        version: Version::parse(&version).map_err(|_| ConstraintError::Version)?,
        written: form.whole.to_owned(),
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
