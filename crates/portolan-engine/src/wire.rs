//! What the journal says, in the form that leaves the process: one JSON object per event and line.
//!
//! ```json
//! {"seq":7,"at":1700000000123,"key":"artifact/web","event":"done","tookUs":5210}
//! ```
//!
//! Field names are a promise to everyone who stores or streams events.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Key;

/// One numbered event about one unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the event: 1 for the first, without gaps.
    pub seq: u64,
    /// Milliseconds since the epoch that was given to the journal when it was opened.
    pub at: u64,
    /// The unit the event is about.
    pub key: Key,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened to a unit.
///
/// A unit's events are `Queued`, then any number of attempts (`Started`, then `Progress`, `Log` and `Dropped` in any
/// mixture, then `Retrying` if another attempt follows), then exactly one of `Done`, `Failed`, `Skipped`, `Cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "event",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    /// The unit is wanted and waits for its needs and for a free place.
    Queued,
    /// An attempt began.
    Started {
        /// 1 for the first attempt.
        attempt: u32,
    },
    /// The newest report of how far the unit is; reports in quick succession are merged into the last.
    Progress(Progress),
    /// A line the unit had to say.
    Log {
        /// The line, without its end.
        line: String,
    },
    /// Lines that were left out here because the unit said more than its budget.
    Dropped {
        /// How many lines.
        lines: u64,
        /// How many bytes they had.
        bytes: u64,
    },
    /// The attempt failed and another one follows.
    Retrying {
        /// The attempt that failed.
        attempt: u32,
        /// Why it failed.
        error: String,
        /// How long the unit rests before the next attempt.
        delay_ms: u64,
    },
    /// The unit ended well.
    Done {
        /// Microseconds from its first start to its end.
        took_us: u64,
    },
    /// The unit ended badly, by itself.
    Failed {
        /// Why, with the causes.
        error: String,
        /// Microseconds from its first start to its end.
        took_us: u64,
    },
    /// The unit could not be done because another one failed.
    Skipped {
        /// The unit whose failure is the root of it.
        because: Key,
        /// Microseconds from its first start to its end; zero if it never started.
        took_us: u64,
    },
    /// The unit was called off.
    Cancelled {
        /// Microseconds from its first start to its end; zero if it never started.
        took_us: u64,
    },
}

/// How far a unit is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// How much is done, in the unit's own measure.
    pub done: u64,
    /// How much there is to do, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What is being done, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl Event {
    /// Whether nothing follows for this unit.
    pub fn is_end(&self) -> bool {
        matches!(
            self,
            Self::Done { .. } | Self::Failed { .. } | Self::Skipped { .. } | Self::Cancelled { .. }
        )
    }

    /// The bytes the event holds outside of its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Progress(progress) => progress.text.len(),
            Self::Log { line } => line.len(),
            Self::Retrying { error, .. } | Self::Failed { error, .. } => error.len(),
            _ => 0,
        }
    }
}

impl Record {
    /// The record as one line of JSON, without the line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always serialise")
    }

    /// Reads what [`Record::to_json`] wrote.
    pub fn from_json(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: Event, json: &str) {
        let record = Record {
            seq: 7,
            at: 42,
            key: "artifact/web".into(),
            event,
        };
        assert_eq!(record.to_json(), json);
        assert_eq!(Record::from_json(json).unwrap(), record);
    }

    #[test]
    fn every_event_is_one_flat_json_object() {
        check(
            Event::Queued,
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"queued"}"#,
        );
        check(
            Event::Started { attempt: 2 },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"started","attempt":2}"#,
        );
        check(
            Event::Progress(Progress {
                done: 1,
                total: Some(3),
                text: "pull".into(),
            }),
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"progress","done":1,"total":3,"text":"pull"}"#,
        );
        check(
            Event::Progress(Progress {
                done: 1,
                ..Progress::default()
            }),
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"progress","done":1}"#,
        );
        check(
            Event::Log {
                line: "a\nb".into(),
            },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"log","line":"a\nb"}"#,
        );
        check(
            Event::Dropped { lines: 2, bytes: 9 },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"dropped","lines":2,"bytes":9}"#,
        );
        check(
            Event::Retrying {
                attempt: 1,
                error: "no".into(),
                delay_ms: 5,
            },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"retrying","attempt":1,"error":"no","delayMs":5}"#,
        );
        check(
            Event::Done { took_us: 3 },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"done","tookUs":3}"#,
        );
        check(
            Event::Failed {
                error: "no".into(),
                took_us: 3,
            },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"failed","error":"no","tookUs":3}"#,
        );
        check(
            Event::Skipped {
                because: "git/x".into(),
                took_us: 0,
            },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"skipped","because":"git/x","tookUs":0}"#,
        );
        check(
            Event::Cancelled { took_us: 0 },
            r#"{"seq":7,"at":42,"key":"artifact/web","event":"cancelled","tookUs":0}"#,
        );
    }
}
