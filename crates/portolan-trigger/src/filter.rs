//! Which events are made at all: lists of types that are allowed and denied.

use portolan_go::wildcard;
use serde::{Deserialize, Serialize};

/// Events that say that others were lost, or that a trigger was switched off, cannot be denied.
const NEVER_DENIED: [&str; 2] = ["events.dropped", "trigger.tripped"];

/// Types of events that are allowed and denied, as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventFilterSpec {
    /// Patterns such as `run.*` or `beacon.disk`; everything without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns that stand above those that allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// Types of events that are allowed and denied.
///
/// ```
/// use portolan_trigger::{EventFilter, EventFilterSpec};
///
/// let spec: EventFilterSpec = serde_json::from_str(r#"{"allow": ["run.*", "beacon.*"], "deny": ["*.ok"]}"#)?;
/// let filter = EventFilter::new(&spec)?;
/// assert!(filter.allows("run.step.failed"));
/// assert!(!filter.allows("run.step.ok"));
/// assert!(!filter.allows("node.joined"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    allow: Vec<String>,
    deny: Vec<String>,
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a pattern of event types: it has letters, digits, `-`, `.`, `*` and `?` only"
)]
pub struct FilterPatternError(pub String);

/// The most patterns of a list.
const MAX_PATTERNS: usize = 200;

impl EventFilter {
    /// Reads the lists.
    ///
    /// # Errors
    /// When a pattern has other signs, or a list is too long.
    pub fn new(spec: &EventFilterSpec) -> Result<Self, FilterPatternError> {
        Ok(Self {
            allow: checked(&spec.allow)?,
            deny: checked(&spec.deny)?,
        })
    }

    /// Whether events of a type are made.
    pub fn allows(&self, kind: &str) -> bool {
        let any = |patterns: &[String]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| wildcard::matches(pattern, kind) == Ok(true))
        };
        NEVER_DENIED.contains(&kind)
            || (!any(&self.deny) && (self.allow.is_empty() || any(&self.allow)))
    }
}

fn checked(patterns: &[String]) -> Result<Vec<String>, FilterPatternError> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-.*?".contains(&byte);
    for (index, pattern) in patterns.iter().enumerate() {
        let is_good = !pattern.is_empty() && pattern.len() <= 128 && pattern.bytes().all(is_sign);
        if !is_good || index >= MAX_PATTERNS {
            return Err(FilterPatternError(pattern.chars().take(128).collect()));
        }
    }
    Ok(patterns.to_vec())
}
