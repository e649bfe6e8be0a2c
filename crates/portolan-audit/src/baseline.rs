//! A baseline: findings that are accepted for now, each with a reason and a last day.
//!
//! ```yaml
//! accept:
//! - id: 0a1b2c3d4e5f            # or any of the fields below; `*` stands for any text
//!   kind: Ingress
//!   namespace: shop
//!   name: "web-*"
//!   apiVersion: networking.k8s.io/v1beta1
//!   file: "apps/legacy/*"
//!   level: removed
//!   reason: moves in spring
//!   expires: 2027-03-31
//! ```

use portolan_object::Day;

use crate::finding::Finding;
use crate::level::Level;
use crate::settings::{Item, SettingsError, items};

/// Accepted findings as a file gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// Field and pattern; all must fit.
    patterns: Vec<(&'static str, String)>,
    level: Option<Level>,
    reason: String,
    expires: Day,
}

const PATTERNS: [&str; 6] = ["id", "apiVersion", "kind", "namespace", "name", "file"];

impl Baseline {
    /// Reads a baseline file.
    pub fn read(bytes: &[u8]) -> Result<Self, SettingsError> {
        let mut known = PATTERNS.to_vec();
        known.extend(["level", "reason", "expires"]);
        let entries = items(bytes, "accept", &known, entry)?;
        Ok(Self { entries })
    }

    /// Marks what is accepted; gives a warning for every entry that has expired or fits nothing any more.
    pub fn apply(&self, findings: &mut [Finding], today: Day) -> Vec<String> {
        let mut warnings = Vec::new();
        for entry in &self.entries {
            let fits: Vec<&mut Finding> = findings
                .iter_mut()
                .filter(|finding| entry.fits(finding))
                .collect();
            if fits.is_empty() {
                warnings.push(format!("the baseline entry {entry} fits nothing any more"));
            } else if entry.expires < today {
                warnings.push(format!(
                    "the baseline entry {entry} expired on {}",
                    entry.expires
                ));
            } else {
                for finding in fits {
                    finding.accepted = Some(entry.reason.clone());
                }
            }
        }
        warnings
    }

    /// A baseline that accepts these findings: to be edited by whoever accepts them.
    pub fn text(findings: &[Finding], reason: &str, expires: Day) -> String {
        use std::fmt::Write as _;
        let mut text = String::from(
            "# Findings accepted for now; see `portolan audit files --help`.\naccept:\n",
        );
        for finding in findings {
            let _ = write!(
                text,
                "# {} {} {}, {}\n- id: \"{}\"\n  reason: {}\n  expires: {expires}\n",
                finding.subject.api_version,
                finding.subject.kind,
                finding.object(),
                finding.place(),
                finding.id,
                serde_json::Value::from(reason),
            );
        }
        text
    }
}

fn entry(item: &Item<'_>) -> Result<Entry, SettingsError> {
    let reason = item.needed("reason")?.to_owned();
    item.needed("expires")?;
    let expires = item.parsed("expires")?;
    let patterns = PATTERNS
        .into_iter()
        .filter_map(|key| Some((key, item.text(key)?.to_owned())))
        .collect::<Vec<_>>();
    if patterns.is_empty() {
        item.needed("id")?;
    }
    Ok(Entry {
        patterns,
        level: item.parsed("level")?,
        reason,
        expires: expires.unwrap_or(Day::of_unix_seconds(0)),
    })
}

impl Entry {
    fn fits(&self, finding: &Finding) -> bool {
        let subject = &finding.subject;
        let value = |key: &str| match key {
            "id" => finding.id.as_str(),
            "apiVersion" => &subject.api_version,
            "kind" => &subject.kind,
            "namespace" => &subject.namespace,
            "name" => &subject.name,
            _ => finding.file.as_deref().unwrap_or_default(),
        };
        self.level.is_none_or(|level| level == finding.level)
            && self
                .patterns
                .iter()
                .all(|(key, pattern)| matches(pattern, value(key)))
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self
            .patterns
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        write!(f, "`{}`", words.join(" "))
    }
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{Checker, Site};
    use portolan_yaml::{Dialect, parse_one};

    fn findings() -> Vec<Finding> {
        let text =
            "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web-1}}";
        Checker::default().check(&parse_one(text, Dialect::Helm).unwrap(), &Site::default())
    }

    #[test]
    fn an_entry_accepts_until_its_last_day() {
        let file = "accept: [{kind: PodDisruptionBudget, name: 'web-*', reason: later, expires: 2026-05-31}]";
        let baseline = Baseline::read(file.as_bytes()).unwrap();
        let mut found = findings();
        assert!(
            baseline
                .apply(&mut found, "2026-05-31".parse().unwrap())
                .is_empty()
        );
        assert_eq!(found[0].accepted.as_deref(), Some("later"));
        let mut found = findings();
        let warnings = baseline.apply(&mut found, "2026-06-01".parse().unwrap());
        assert_eq!(found[0].accepted, None);
        assert_eq!(
            warnings,
            ["the baseline entry `kind=PodDisruptionBudget name=web-*` expired on 2026-05-31"]
        );
    }

    #[test]
    fn what_is_written_accepts_what_was_found() {
        let mut found = findings();
        let text = Baseline::text(&found, "later", "2030-01-01".parse().unwrap());
        let baseline = Baseline::read(text.as_bytes()).unwrap();
        assert!(
            baseline
                .apply(&mut found, "2026-01-01".parse().unwrap())
                .is_empty()
        );
        assert!(found[0].accepted.is_some());
    }

    #[test]
    fn an_entry_needs_a_reason_and_a_day() {
        let error = |text: &str| Baseline::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error("accept:\n- {kind: A, expires: 2026-01-01}\n"),
            "line 2: `reason` is missing"
        );
        assert_eq!(
            error("accept:\n- {kind: A, reason: b}\n"),
            "line 2: `expires` is missing"
        );
        assert_eq!(
            error("accept:\n- {reason: b, expires: 2026-01-01}\n"),
            "line 2: `id` is missing"
        );
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("web", "web", true),
            ("web", "web2", false),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
