//! Spans of time in specs, as users write them: `90s`, `10m`, `1h30m`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_go::time::parse_span;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time that is written as `90s`, `10m` or `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WrittenSpan(pub Duration);

impl WrittenSpan {
    /// A span of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl std::fmt::Display for WrittenSpan {
    /// In whole numbers, so that it can be read again; Go would print `1.5s` for `1s500ms`.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        let parts = [
            (seconds / 3600, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
            (millis.into(), "ms"),
        ];
        if parts.iter().all(|(number, _)| *number == 0) {
            return out.write_str("0s");
        }
        let mut parts = parts.iter().filter(|(number, _)| *number > 0);
        parts.try_for_each(|(number, unit)| write!(out, "{number}{unit}"))
    }
}

impl Serialize for WrittenSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WrittenSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_span(&text).map(Self).ok_or_else(|| {
            let message = "must be a span of time such as `90s`, `10m` or `1h30m`";
            D::Error::custom(message)
        })
    }
}

/// A moment later by a span; the last moment there is if that is past it.
pub(crate) fn later(moment: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    moment.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// A moment earlier by a span; the first moment there is if that is before it.
pub(crate) fn earlier(moment: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    moment.checked_sub(span).unwrap_or(Timestamp::MIN)
}

/// How long ago a moment was; nothing for one that is still to come.
pub(crate) fn since(moment: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(moment)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_printed_as_people_write_it() {
        for text in [
            "90s", "1m30s", "10m", "1h", "1h30m", "250ms", "1s500ms", "24h", "0s",
        ] {
            let Some(span) = parse_span(text) else {
                panic!("{text} is a span");
            };
            let printed = WrittenSpan(span).to_string();
            assert_eq!(parse_span(&printed), Some(span), "{printed}");
        }
        assert_eq!(WrittenSpan::seconds(3600).to_string(), "1h");
        assert_eq!(WrittenSpan::seconds(600).to_string(), "10m");
    }
}
