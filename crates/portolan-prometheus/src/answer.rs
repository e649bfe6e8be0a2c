//! The body of an answer to a query.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::series::{Sample, Series};

/// What Prometheus answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Series with samples.
    Series(Vec<Series>),
    /// The query is right and found nothing.
    Nothing,
    /// The server did not answer in time; it may at the next try.
    Slow(String),
    /// The server refuses the query; it will again.
    Refused(String),
    /// The server cannot answer, or what it says cannot be read.
    Down(String),
    /// More was found than is looked at.
    TooMuch(String),
}

/// How much of an answer is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body.
    pub bytes: usize,
    /// Series.
    pub series: usize,
    /// Samples of all series together.
    pub samples: usize,
}

impl Default for Limits {
    /// A thousand pods with every response code, scraped each second, for two minutes.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            series: 20_000,
            samples: 1_000_000,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    status: String,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    #[serde(default)]
    result: Value,
}

#[derive(Deserialize)]
struct RawSeries {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    value: Option<RawSample>,
    #[serde(default)]
    values: Vec<RawSample>,
}

/// A moment in seconds, and a value as text: JSON has no `NaN`.
type RawSample = (f64, String);

/// Reads the body of an answer with this HTTP status.
pub fn parse_answer(status: u16, body: &[u8], limits: Limits) -> Answer {
    if body.len() > limits.bytes {
        return Answer::TooMuch(format!(
            "{} bytes; at most {} are read",
            body.len(),
            limits.bytes
        ));
    }
    let Ok(body) = serde_json::from_slice::<Body>(body) else {
        return match status {
            408 | 429 | 503 | 504 => Answer::Slow(format!("HTTP status {status}")),
            200..=299 => Answer::Down("the answer is not Prometheus'".to_owned()),
            400..=499 => Answer::Refused(format!("HTTP status {status}")),
            _ => Answer::Down(format!("HTTP status {status}")),
        };
    };
    match (body.status.as_str(), body.data) {
        ("success", Some(data)) => read_data(data, limits),
        ("success", None) => Answer::Down("the answer has no data".to_owned()),
        _ => refused(status, &body.error_type, &body.error),
    }
}

fn refused(status: u16, kind: &str, error: &str) -> Answer {
    let message = format!("{kind}: {error}");
    match (kind, status) {
        ("timeout" | "canceled", _) | (_, 408 | 429 | 503 | 504) => Answer::Slow(message),
        ("bad_data" | "execution" | "not_acceptable", _) => Answer::Refused(message),
        _ => Answer::Down(message),
    }
}

fn read_data(data: Data, limits: Limits) -> Answer {
    let unreadable =
        |error: serde_json::Error| Answer::Down(format!("the answer cannot be read: {error}"));
    let raw = match data.result_type.as_str() {
        "vector" | "matrix" => serde_json::from_value::<Vec<RawSeries>>(data.result),
        "scalar" => serde_json::from_value::<RawSample>(data.result).map(|sample| {
            vec![RawSeries {
                metric: BTreeMap::new(),
                value: Some(sample),
                values: Vec::new(),
            }]
        }),
        other => return Answer::Refused(format!("the query gives a {other}, not numbers")),
    };
    let raw = match raw {
        Ok(raw) => raw,
        Err(error) => return unreadable(error),
    };
    if raw.len() > limits.series {
        return Answer::TooMuch(format!(
            "{} series; at most {} are read",
            raw.len(),
            limits.series
        ));
    }
    let samples: usize = raw.iter().map(|series| series.values.len() + 1).sum();
    if samples > limits.samples {
        return Answer::TooMuch(format!(
            "{samples} samples; at most {} are read",
            limits.samples
        ));
    }
    let series: Option<Vec<Series>> = raw.into_iter().map(read_series).collect();
    match series {
        None => Answer::Down("the answer has a value that is none".to_owned()),
        Some(series) if series.iter().all(|series| series.samples.is_empty()) => Answer::Nothing,
        Some(series) => Answer::Series(series),
    }
}

/// Reads a series; `None` if a value is no number. Samples are put in order, and of one moment the last counts.
fn read_series(raw: RawSeries) -> Option<Series> {
    let values = raw.values.into_iter().chain(raw.value);
    let mut samples = Vec::new();
    for (seconds, value) in values {
        if !seconds.is_finite() || seconds.abs() > LATEST {
            return None;
        }
        samples.push(Sample {
            at: (seconds * 1_000.0).round() as i64,
            value: read_value(&value)?,
        });
    }
    samples.sort_by_key(|sample| sample.at);
    samples.reverse();
    samples.dedup_by_key(|sample| sample.at);
    samples.reverse();
    Some(Series {
        labels: raw.metric,
        samples,
    })
}

/// The year 10000, in seconds.
const LATEST: f64 = 253_402_300_800.0;

fn read_value(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}
