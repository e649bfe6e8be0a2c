//! The external form of the journal: one line with one JSON object per event.
//!
//! ```json
//! {"seq":7,"at":1700000000123,"run":1,"key":"artifact/web","event":"done","tookUs":5210}
//! ```
//!
//! Field names are stable, because others store and stream events.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Key, RunId};

/// One numbered event about one unit, or about a run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number of the event: 1 for the first, without gaps.
    pub seq: u64,
    /// Milliseconds since the epoch that was given to the journal when it was opened.
    pub at: u64,
    /// The run it belongs to.
    pub run: RunId,
    /// The unit the event is about; `run` for the run as a whole.
    pub key: Key,
    /// What happened.
    pub event: Event,
}

/// What happened to a unit or to a run.
///
/// A run's first event is `Began`, and its last is `Ended`, or `Interrupted` if its process ended before it. A unit's events are `Queued`, then any number of attempts (`Started`, then `Progress`, `Log` and `Dropped` in any
/// mixture, then `Retrying` if another attempt follows), then exactly one of `Done`, `Failed`, `Skipped`, `Cancelled`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The run began.
    Began,
    /// The run ended: every unit that was queued has ended.
    Ended {
        /// How many units ended well.
        done: u64,
        /// How many failed by themselves.
        failed: u64,
        /// How many were skipped because of a failed one.
        skipped: u64,
        /// How many were called off.
        cancelled: u64,
        /// Microseconds that the run took.
        took_us: u64,
    },
    /// The process that ran it ended before the run did: how its open units ended is not known.
    Interrupted,
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
        /// What it made, in short: JSON that the unit gave.
        summary: Option<String>,
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
    /// Something happened outside of units.
    Published {
        /// What such events are called.
        topic: String,
        /// The event as JSON.
        data: String,
    },
}

/// One line of a stream of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// An event.
    Record(Record),
    /// Events that were forgotten before whoever writes the stream could read them.
    Forgotten {
        /// The number of the first one.
        from: u64,
        /// The number of the last one.
        to: u64,
    },
}

/// How far a unit is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// How much is done, in the unit's own measure.
    pub done: u64,
    /// How much there is to do, if that is known.
    pub total: Option<u64>,
    /// What is being done, in a few words.
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

    /// What the event is called in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::Ended { .. } => "ended",
            Self::Interrupted => "interrupted",
            Self::Queued => "queued",
            Self::Started { .. } => "started",
            Self::Progress(_) => "progress",
            Self::Log { .. } => "log",
            Self::Dropped { .. } => "dropped",
            Self::Retrying { .. } => "retrying",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
            Self::Cancelled { .. } => "cancelled",
            Self::Published { .. } => "published",
        }
    }

    /// The bytes the event holds outside of its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Progress(progress) => progress.text.len(),
            Self::Log { line } => line.len(),
            Self::Retrying { error, .. } | Self::Failed { error, .. } => error.len(),
            Self::Done { summary, .. } => summary.as_ref().map_or(0, String::len),
            Self::Published { topic, data } => topic.len() + data.len(),
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

impl Line {
    /// The line's JSON, without the line end.
    pub fn to_json(&self) -> String {
        match self {
            Self::Record(record) => record.to_json(),
            Self::Forgotten { from, to } => {
                format!(r#"{{"event":"{FORGOTTEN}","from":{from},"to":{to}}}"#)
            }
        }
    }

    /// Reads what [`Line::to_json`] wrote.
    pub fn from_json(line: &str) -> Result<Self, serde_json::Error> {
        match serde_json::from_str::<Gap<'_>>(line) {
            Ok(Gap { event, from, to }) if event == FORGOTTEN => Ok(Self::Forgotten { from, to }),
            _ => Record::from_json(line).map(Self::Record),
        }
    }
}

/// What [`Line::Forgotten`] is called in JSON.
const FORGOTTEN: &str = "forgotten";

/// A line about forgotten events, as it is in JSON.
#[derive(Deserialize)]
struct Gap<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    from: u64,
    to: u64,
}

/// A record with the fields of every event side by side, as they are in JSON.
///
/// Reading back is what far readers do all day; without a detour through generic values it is several times quicker.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat<'a> {
    seq: u64,
    at: u64,
    /// Absent in records that were written before runs had names.
    #[serde(default)]
    run: u64,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    line: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    because: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    took_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<Value>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    topic: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Flat::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flat = Flat::deserialize(deserializer)?;
        let (seq, at, run) = (flat.seq, flat.at, RunId::from(flat.run));
        let key = Key::from(&*flat.key);
        let event = flat.into_event().map_err(D::Error::custom)?;
        Ok(Self {
            seq,
            at,
            run,
            key,
            event,
        })
    }
}

impl<'a> From<&'a Record> for Flat<'a> {
    fn from(record: &'a Record) -> Self {
        let mut flat = Flat {
            seq: record.seq,
            at: record.at,
            run: record.run.number(),
            key: record.key.as_str().into(),
            event: record.event.name().into(),
            ..Flat::default()
        };
        match &record.event {
            Event::Began | Event::Interrupted | Event::Queued => {}
            Event::Ended {
                done,
                failed,
                skipped,
                cancelled,
                took_us,
            } => {
                flat.done = Some(*done);
                flat.failed = Some(*failed);
                flat.skipped = Some(*skipped);
                flat.cancelled = Some(*cancelled);
                flat.took_us = Some(*took_us);
            }
            Event::Started { attempt } => flat.attempt = Some(*attempt),
            Event::Progress(Progress { done, total, text }) => {
                flat.done = Some(*done);
                flat.total = *total;
                flat.text = (!text.is_empty()).then(|| text.into());
            }
            Event::Log { line } => flat.line = Some(line.into()),
            Event::Dropped { lines, bytes } => {
                flat.lines = Some(*lines);
                flat.bytes = Some(*bytes);
            }
            Event::Retrying {
                attempt,
                error,
                delay_ms,
            } => {
                flat.attempt = Some(*attempt);
                flat.error = Some(error.into());
                flat.delay_ms = Some(*delay_ms);
            }
            Event::Done { took_us, summary } => {
                flat.took_us = Some(*took_us);
                flat.summary = summary.as_deref().map(value);
            }
            Event::Cancelled { took_us } => flat.took_us = Some(*took_us),
            Event::Published { topic, data } => {
                flat.topic = Some(topic.into());
                flat.data = Some(value(data));
            }
            Event::Failed { error, took_us } => {
                flat.error = Some(error.into());
                flat.took_us = Some(*took_us);
            }
            Event::Skipped { because, took_us } => {
                flat.because = Some(because.as_str().into());
                flat.took_us = Some(*took_us);
            }
        }
        flat
    }
}

impl Flat<'_> {
    fn into_event(self) -> Result<Event, String> {
        fn have<T>(name: &str, field: Option<T>) -> Result<T, String> {
            field.ok_or_else(|| format!("missing field `{name}`"))
        }
        let took_us = || have("tookUs", self.took_us);
        let attempt = || have("attempt", self.attempt);
        Ok(match &*self.event {
            "began" => Event::Began,
            "ended" => Event::Ended {
                done: have("done", self.done)?,
                failed: have("failed", self.failed)?,
                skipped: have("skipped", self.skipped)?,
                cancelled: have("cancelled", self.cancelled)?,
                took_us: took_us()?,
            },
            "interrupted" => Event::Interrupted,
            "queued" => Event::Queued,
            "started" => Event::Started {
                attempt: attempt()?,
            },
            "progress" => Event::Progress(Progress {
                done: have("done", self.done)?,
                total: self.total,
                text: self.text.unwrap_or_default().into_owned(),
            }),
            "log" => Event::Log {
                line: have("line", self.line)?.into_owned(),
            },
            "dropped" => Event::Dropped {
                lines: have("lines", self.lines)?,
                bytes: have("bytes", self.bytes)?,
            },
            "retrying" => Event::Retrying {
                attempt: attempt()?,
                error: have("error", self.error)?.into_owned(),
                delay_ms: have("delayMs", self.delay_ms)?,
            },
            "done" => Event::Done {
                took_us: took_us()?,
                summary: self.summary.as_ref().map(Value::to_string),
            },
            "published" => Event::Published {
                topic: have("topic", self.topic)?.into_owned(),
                data: have("data", self.data)?.to_string(),
            },
            "failed" => Event::Failed {
                error: have("error", self.error)?.into_owned(),
                took_us: took_us()?,
            },
            "skipped" => Event::Skipped {
                because: Key::from(&*have("because", self.because)?),
                took_us: took_us()?,
            },
            "cancelled" => Event::Cancelled {
                took_us: took_us()?,
            },
            other => return Err(format!("unknown event `{other}`")),
        })
    }
}

/// JSON inside of JSON is not quoted again.
fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::from(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: Event, json: &str) {
        let record = Record {
            seq: 7,
            at: 42,
            run: RunId::from(3),
            key: "artifact/web".into(),
            event,
        };
        assert_eq!(record.to_json(), json);
        assert_eq!(Record::from_json(json).unwrap(), record);
    }

    #[test]
    fn an_event_that_lacks_a_field_or_is_unknown_is_refused() {
        let read = |rest| Record::from_json(&format!(r#"{{"seq":1,"at":0,"key":"a",{rest}}}"#));
        let error = read(r#""event":"started""#).unwrap_err();
        assert!(error.to_string().starts_with("missing field `attempt`"));
        let error = read(r#""event":"exploded""#).unwrap_err();
        assert!(error.to_string().starts_with("unknown event `exploded`"));
        assert!(read(r#""event":"queued","addedLater":[1]"#).is_ok());
    }

    #[test]
    fn a_line_is_an_event_or_a_gap() {
        let gap = r#"{"event":"forgotten","from":3,"to":9}"#;
        let read = Line::from_json(gap).unwrap();
        assert_eq!(read, Line::Forgotten { from: 3, to: 9 });
        assert_eq!(read.to_json(), gap);
        let record = r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"queued"}"#;
        assert_eq!(Line::from_json(record).unwrap().to_json(), record);
        assert!(Line::from_json(r#"{"event":"forgotten","from":3}"#).is_err());
    }

    #[test]
    fn every_event_is_one_flat_json_object() {
        check(
            Event::Began,
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"began"}"#,
        );
        check(
            Event::Ended {
                done: 4,
                failed: 1,
                skipped: 2,
                cancelled: 0,
                took_us: 9,
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"ended","done":4,"failed":1,"skipped":2,"cancelled":0,"tookUs":9}"#,
        );
        check(
            Event::Interrupted,
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"interrupted"}"#,
        );
        check(
            Event::Queued,
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"queued"}"#,
        );
        check(
            Event::Started { attempt: 2 },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"started","attempt":2}"#,
        );
        check(
            Event::Progress(Progress {
                done: 1,
                total: Some(3),
                text: "pull".into(),
            }),
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"progress","done":1,"total":3,"text":"pull"}"#,
        );
        check(
            Event::Progress(Progress {
                done: 1,
                ..Progress::default()
            }),
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"progress","done":1}"#,
        );
        check(
            Event::Log {
                line: "a\nb".into(),
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"log","line":"a\nb"}"#,
        );
        check(
            Event::Dropped { lines: 2, bytes: 9 },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"dropped","lines":2,"bytes":9}"#,
        );
        check(
            Event::Retrying {
                attempt: 1,
                error: "no".into(),
                delay_ms: 5,
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"retrying","attempt":1,"error":"no","delayMs":5}"#,
        );
        check(
            Event::Done {
                took_us: 3,
                summary: None,
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"done","tookUs":3}"#,
        );
        check(
            Event::Done {
                took_us: 3,
                summary: Some(r#"{"digest":"sha256:1"}"#.into()),
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"done","tookUs":3,"summary":{"digest":"sha256:1"}}"#,
        );
        check(
            Event::Failed {
                error: "no".into(),
                took_us: 3,
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"failed","error":"no","tookUs":3}"#,
        );
        check(
            Event::Skipped {
                because: "git/x".into(),
                took_us: 0,
            },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"skipped","because":"git/x","tookUs":0}"#,
        );
        check(
            Event::Cancelled { took_us: 0 },
            r#"{"seq":7,"at":42,"run":3,"key":"artifact/web","event":"cancelled","tookUs":0}"#,
        );
    }
}
