//! Moments and lengths of time, as Kubernetes writes them.
//!
//! Nothing here reads a clock: the moment of a decision comes in from outside.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A moment, in whole seconds as in the metadata of an object. Written as `2026-01-31T12:00:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A length of time in milliseconds. Written as `10s`, `1h30m` or `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// Why a text is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no length of time such as `10s`, `5m` or `1h30m`")]
pub struct SpanError(String);

/// The longest time that is understood, a hundred years.
const LONGEST: u64 = 100 * 366 * 24 * 3_600 * 1_000;

// === impl Time ===

impl Time {
    /// Returns the moment so many seconds after the start of 1970.
    pub fn from_unix(seconds: i64) -> Self {
        // Outside of these years a moment cannot be written down.
        Self(seconds.clamp(-62_135_596_800, 253_402_207_200))
    }

    /// Returns the seconds since the start of 1970.
    pub fn unix(self) -> i64 {
        self.0
    }

    /// Returns how many seconds lie between an earlier moment and this one; zero if that one is later.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Returns the moment so much later.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        Self::from_unix(self.0.saturating_add_unsigned(span.seconds()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(timestamp) => write!(f, "{timestamp}"),
            Err(_) => write!(f, "{} s", self.0),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let timestamp = Timestamp::from_str(&text).map_err(de::Error::custom)?;
        Ok(Self::from_unix(timestamp.as_second()))
    }
}

// === impl Span ===

impl Span {
    /// Returns a length of so many seconds.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// Returns the length in whole seconds, rounded down.
    pub fn seconds(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the length in milliseconds.
    pub fn milliseconds(self) -> u64 {
        self.0
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let refused = || SpanError(text.to_owned());
        let mut rest = text;
        let mut sum: u64 = 0;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            let units = after
                .bytes()
                .take_while(|byte| !byte.is_ascii_digit())
                .count();
            let (unit, after) = after.split_at(units);
            let milliseconds: u64 = match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                _ => return Err(refused()),
            };
            let number: u64 = number.parse().map_err(|_| refused())?;
            let part = number.checked_mul(milliseconds).ok_or_else(refused)?;
            sum = sum.checked_add(part).ok_or_else(refused)?;
            rest = after;
        }
        if text.is_empty() || sum > LONGEST {
            return Err(refused());
        }
        Ok(Self(sum))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, milliseconds) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
            if rest >= milliseconds {
                write!(f, "{}{unit}", rest / milliseconds)?;
                rest %= milliseconds;
            }
        }
        Ok(())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written() {
        for (text, milliseconds, written) in [
            ("10s", 10_000, "10s"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("500ms", 500, "500ms"),
            ("0s", 0, "0s"),
        ] {
            let span: Span = text.parse().expect(text);
            assert_eq!(span.milliseconds(), milliseconds);
            assert_eq!(span.to_string(), written);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "10",
            "s",
            "1d",
            "-1s",
            "1.5h",
            "99999999999999999999s",
            "99999999h",
            "1s ",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_written_as_kubernetes_does() {
        let time = Time::from_unix(1_767_225_600);
        let json = serde_json::to_string(&time).expect("JSON");
        assert_eq!(json, "\"2026-01-01T00:00:00Z\"");
        assert_eq!(serde_json::from_str::<Time>(&json).expect("a moment"), time);
    }

    #[test]
    fn any_moment_can_be_written_and_read() {
        for seconds in [i64::MIN, -1, 0, i64::MAX] {
            let time = Time::from_unix(seconds);
            let json = serde_json::to_string(&time).expect("JSON");
            assert_eq!(serde_json::from_str::<Time>(&json).expect("a moment"), time);
        }
    }
}
