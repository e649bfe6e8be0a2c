//! Events as a stream: JSON lines, or server-sent events for browsers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use portolan_engine::{Batch, Journal, JournalFiles, ReadError, Reader, Record};
use portolan_listen::ResponseTime;
use serde_json::json;

use super::state::{fold, to_json};
use super::{Refusal, failed};
use crate::document::API_VERSION;
use crate::runs::ShipRun;

/// How often a stream without events says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a stream may go on.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// Where events come from.
pub(super) enum Source {
    /// The run of this process.
    Live { reader: Box<Reader>, follow: bool },
    /// A run of another process, as far as it is.
    Files(Box<JournalFiles>),
}

/// What a source gave.
enum Next {
    Batch(Batch),
    Records(Vec<Record>),
    Nothing,
    End,
}

impl Source {
    pub(super) fn journal(journal: &Journal, after: u64, follow: bool) -> Self {
        let reader = Box::new(journal.after(after));
        Self::Live { reader, follow }
    }

    pub(super) fn files(run: &ShipRun, after: u64) -> Self {
        Self::Files(Box::new(run.events_after(after)))
    }

    async fn next(&mut self) -> Result<Next, ReadError> {
        match self {
            Self::Live {
                reader,
                follow: true,
            } => match tokio::time::timeout(HEARTBEAT, reader.next()).await {
                Err(_) => Ok(Next::Nothing),
                Ok(batch) => Ok(batch?.map_or(Next::End, Next::Batch)),
            },
            Self::Live { reader, .. } => Ok(reader.try_next()?.map_or(Next::End, Next::Batch)),
            Self::Files(files) => {
                let records = files.read()?;
                Ok(if records.is_empty() {
                    Next::End
                } else {
                    Next::Records(records)
                })
            }
        }
    }

    fn seek(&mut self, after: u64) {
        match self {
            Self::Live { reader, .. } => reader.seek(after),
            Self::Files(files) => files.seek(after),
        }
    }
}

/// JSON lines; 410 with the first number and a snapshot if the beginning is no longer kept.
pub(super) async fn ndjson(mut source: Source, run: &ShipRun) -> Result<Response, Refusal> {
    let first = match source.next().await {
        Ok(first) => first,
        Err(ReadError::Forgotten { oldest, .. }) => return Ok(gone(oldest, run)),
        Err(error) => return Err(failed(&error)),
    };
    let lines = Lines {
        source,
        waiting: VecDeque::from([first]),
        run: None,
    };
    Ok(answer(lines, "application/x-ndjson"))
}

/// Server-sent events. A browser never comes back after an error, so what is no longer kept is told in the stream.
pub(super) fn sse(source: Source, run: ShipRun) -> Response {
    let lines = Lines {
        source,
        waiting: VecDeque::new(),
        run: Some(run),
    };
    answer(lines, "text/event-stream")
}

/// A stream of events.
struct Lines {
    source: Source,
    waiting: VecDeque<Next>,
    /// For server-sent events: the run, for snapshots.
    run: Option<ShipRun>,
}

impl Lines {
    async fn next(&mut self) -> Option<Bytes> {
        let next = match self.waiting.pop_front() {
            Some(next) => Ok(next),
            None => self.source.next().await,
        };
        let is_sse = self.run.is_some();
        match next {
            Ok(Next::Nothing) if is_sse => Some(Bytes::from_static(b": still there\n\n")),
            Ok(Next::Nothing) => Some(Bytes::from_static(b"\n")),
            Ok(Next::Batch(batch)) => {
                let mut text = String::new();
                batch.each_json(|seq, json| add_line(&mut text, seq, json, is_sse));
                Some(text.into())
            }
            Ok(Next::Records(records)) => {
                let mut text = String::new();
                for record in &records {
                    add_line(&mut text, record.seq, &record.to_json(), is_sse);
                }
                Some(text.into())
            }
            Err(ReadError::Forgotten { oldest, .. }) => {
                self.source.seek(oldest - 1);
                let snapshot = self.run.as_ref().map(|run| snapshot(oldest, run));
                Some(snapshot.unwrap_or_else(|| forgotten(oldest)).into())
            }
            // Where the journal cannot be read back the stream ends too, and whoever asks again is told why.
            Ok(Next::End) | Err(_) => None,
        }
    }
}

fn add_line(text: &mut String, seq: u64, json: &str, is_sse: bool) {
    let fields = json.strip_prefix('{').unwrap_or(json);
    let line = format_args!("{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"Event\",{fields}");
    let _ = if is_sse {
        writeln!(text, "id: {seq}\ndata: {line}\n")
    } else {
        writeln!(text, "{line}")
    };
}

fn forgotten(oldest: u64) -> String {
    format!(
        "{}\n",
        json!({"apiVersion": API_VERSION, "kind": "Event", "forgottenBefore": oldest})
    )
}

/// An event that says where the run stood before the oldest one that is kept.
fn snapshot(oldest: u64, run: &ShipRun) -> String {
    let state = fold(run, oldest).map(|state| to_json(&state, run.id()));
    let state = state.unwrap_or_default();
    format!("id: {}\nevent: snapshot\ndata: {state}\n\n", oldest - 1)
}

fn gone(oldest: u64, run: &ShipRun) -> Response {
    let state = fold(run, u64::MAX).map(|state| to_json(&state, run.id()));
    let value = json!({
        "apiVersion": API_VERSION, "kind": "Error", "status": 410,
        "error": format!("events before {oldest} are no longer kept"),
        "first": oldest, "snapshot": state.unwrap_or_default(),
    });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::GONE, kind, format!("{value}\n")).into_response()
}

fn answer(lines: Lines, kind: &'static str) -> Response {
    let pieces = stream::unfold(lines, |mut lines| async move {
        let piece = lines.next().await?;
        Some((Ok::<_, Infallible>(piece), lines))
    });
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let mut response = (headers, Body::from_stream(pieces)).into_response();
    response.extensions_mut().insert(ResponseTime(LONGEST));
    response
}
