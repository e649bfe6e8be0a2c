//! The log of a container, line by line; a connection that breaks is made again where it broke.
//!
//! The server can only be asked for lines from a whole second on, so each line is asked for with its time, and those
//! that were read before are left out. If the last line that was read is not found again, something is missing, and
//! the reader is told.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use portolan_budget::{Backoff, RetryPolicy};
use serde_json::Value;
use tokio::time::Instant;

use super::target::TargetPod;
use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::{ClusterError, ErrorKind};
use crate::pages::encode;

/// The longest line that is passed on in one piece.
const MAX_LINE_BYTES: usize = 256 * 1024;

/// How long a log may be silent before it is asked for again: the connection may be dead, though nobody has said so.
const SILENCE: Duration = Duration::from_mins(5);

/// The pauses before a connection is made again.
const PAUSES: RetryPolicy = RetryPolicy::new(Duration::from_millis(250), Duration::from_secs(10));

/// Which part of a log is read.
#[derive(Debug, Clone, Default)]
pub struct PodLogOptions {
    /// The container; the first one if left out.
    pub container: Option<String>,
    /// Whether lines that come later are waited for, until the container or its pod is gone.
    pub follow: bool,
    /// Only lines that are not older.
    pub since: Option<Duration>,
    /// Only so many of the last lines.
    pub tail: Option<u64>,
    /// The log of the container before its last restart.
    pub previous: bool,
}

/// Something in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent {
    /// A line, without its end.
    Line(Vec<u8>),
    /// Lines may be missing here, and why.
    Gap(String),
}

/// A log that is read.
pub struct PodLog {
    cluster: Cluster,
    pod: TargetPod,
    options: PodLogOptions,
    opened: Instant,
    body: Option<Body>,
    buffer: Vec<u8>,
    events: VecDeque<LogEvent>,
    position: Position,
    pauses: Backoff,
    was_opened: bool,
    is_over: bool,
}

/// How far a log was read.
#[derive(Debug, Default)]
struct Position {
    /// The time of the last line, and how many lines of that time were read.
    last: Option<(Timestamp, u64)>,
    /// While lines of the time of the last one are read again: how many so far.
    again: Option<u64>,
    /// Whether the line that is being read is left out, or is the rest of one that was too long.
    rest: Option<bool>,
}

impl Cluster {
    /// A log; nothing is asked for yet.
    pub fn pod_log(&self, pod: &TargetPod, options: PodLogOptions) -> PodLog {
        PodLog {
            cluster: self.clone(),
            pod: pod.clone(),
            options,
            opened: Instant::now(),
            body: None,
            buffer: Vec::new(),
            events: VecDeque::new(),
            position: Position::default(),
            pauses: PAUSES.backoff(),
            was_opened: false,
            is_over: false,
        }
    }
}

impl PodLog {
    /// The next line or gap; `None` at the end. An error is one that trying again does not heal.
    ///
    /// The future can be dropped without losing a line.
    pub async fn next(&mut self) -> Result<Option<LogEvent>, ClusterError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.is_over {
                return Ok(None);
            }
            let read = match &mut self.body {
                None => self.open().await.map(|()| true),
                Some(body) => read(body, &mut self.buffer, self.cluster.server()).await,
            };
            match read {
                Ok(true) => self.take_lines(),
                Ok(false) => self.end_of_body().await?,
                Err(error) if self.options.follow && is_passing(&error) => {
                    self.body = None;
                    self.wait().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn open(&mut self) -> Result<(), ClusterError> {
        let path = self.path();
        let response = self.cluster.open_body(&path, "*/*").await?;
        self.was_opened = true;
        self.body = Some(response.into_body());
        self.buffer.clear();
        self.position.rest = None;
        self.position.again = self.position.last.map(|_| 0);
        Ok(())
    }

    fn path(&self) -> String {
        let PodLogOptions {
            container,
            follow,
            since,
            tail,
            previous,
        } = &self.options;
        let mut path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?timestamps=true",
            self.pod.namespace, self.pod.name
        );
        let mut add = |name: &str, value: &str| {
            path.push('&');
            path.push_str(name);
            path.push('=');
            path.push_str(&encode(value));
        };
        if let Some(container) = container.as_ref().or(self.pod.containers.first()) {
            add("container", container);
        }
        if *follow {
            add("follow", "true");
        }
        if *previous {
            add("previous", "true");
        }
        if let Some((last, _)) = self.position.last {
            // The server knows whole seconds only.
            let second = Timestamp::from_second(last.as_second()).unwrap_or(last);
            add("sinceTime", &second.to_string());
            return path;
        }
        let waited = self.opened.elapsed();
        if let Some(since) = since.filter(|_| tail.is_none() || !self.was_opened) {
            let seconds = (since + waited).as_secs().max(1);
            add("sinceSeconds", &seconds.to_string());
        }
        match tail {
            // What came after the first look is not limited to so many lines.
            Some(_) if self.was_opened => add("sinceSeconds", &(waited.as_secs() + 1).to_string()),
            Some(tail) => add("tailLines", &tail.to_string()),
            None => {}
        }
        path
    }

    /// Takes the whole lines out of the buffer.
    fn take_lines(&mut self) {
        let mut start = 0;
        while let Some(length) = self.buffer[start..].iter().position(|byte| *byte == b'\n') {
            let line = &self.buffer[start..start + length];
            self.position.line(line, true, &mut self.events);
            start += length + 1;
        }
        self.buffer.drain(..start);
        if self.buffer.len() >= MAX_LINE_BYTES {
            self.position.line(&self.buffer, false, &mut self.events);
            self.buffer.clear();
        }
        if start > 0 {
            self.pauses.reset();
        }
    }

    /// The server sends no more: the container has ended, or it was the server's own end.
    async fn end_of_body(&mut self) -> Result<(), ClusterError> {
        self.body = None;
        if !self.buffer.is_empty() {
            let line = std::mem::take(&mut self.buffer);
            self.position.line(&line, true, &mut self.events);
        }
        if !self.options.follow || self.options.previous {
            self.is_over = true;
            return Ok(());
        }
        match self.container_state().await {
            Ok(ContainerState::Ended) => self.is_over = true,
            Ok(ContainerState::Running) => self.wait().await,
            Err(error) if is_passing(&error) => self.wait().await,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn container_state(&mut self) -> Result<ContainerState, ClusterError> {
        let pods = Resource::in_namespaces("v1", "Pod", "pods");
        let (namespace, name) = (&self.pod.namespace, &self.pod.name);
        let Some(pod) = self.cluster.read(&pods, namespace, name).await? else {
            return Ok(ContainerState::Ended);
        };
        let has_ended = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        ) || self.is_terminated(&pod);
        let is_another = pod["metadata"]["uid"] != self.pod.uid.as_str();
        Ok(if has_ended || is_another {
            ContainerState::Ended
        } else {
            ContainerState::Running
        })
    }

    /// Whether the container has ended and is not started again.
    fn is_terminated(&self, pod: &Value) -> bool {
        let container = self.options.container.as_ref();
        let container = container.or(self.pod.containers.first());
        let states = pod["status"]["containerStatuses"].as_array();
        let mut states = states.into_iter().flatten();
        let state = states.find(|state| state["name"].as_str() == container.map(String::as_str));
        let Some(ended) = state.map(|state| &state["state"]["terminated"]) else {
            return false;
        };
        ended.is_object()
            && match pod["spec"]["restartPolicy"].as_str() {
                Some("Never") => true,
                Some("OnFailure") => ended["exitCode"] == 0,
                _ => false,
            }
    }

    async fn wait(&mut self) {
        tokio::time::sleep(self.pauses.next_wait()).await;
    }
}

enum ContainerState {
    /// It runs, or will be started again.
    Running,
    Ended,
}

// === impl Position ===

impl Position {
    /// Takes a line, or the first part of one that is too long.
    fn line(&mut self, line: &[u8], is_whole: bool, events: &mut VecDeque<LogEvent>) {
        if let Some(is_left_out) = self.rest {
            if is_whole {
                self.rest = None;
            }
            if !is_left_out {
                events.push_back(LogEvent::Line(line.to_vec()));
            }
            return;
        }
        let (time, text) = split(line);
        let is_left_out = time.is_some_and(|time| self.was_read(time, events));
        if !is_whole {
            self.rest = Some(is_left_out);
        }
        if is_left_out {
            return;
        }
        if let Some(time) = time {
            self.last = match self.last {
                Some((last, count)) if last == time => Some((last, count + 1)),
                _ => Some((time, 1)),
            };
        }
        events.push_back(LogEvent::Line(text.to_vec()));
    }

    /// Whether a line of this time was read before the connection broke. The first line that was not says whether
    /// lines are missing between.
    fn was_read(&mut self, time: Timestamp, events: &mut VecDeque<LogEvent>) -> bool {
        let (Some(again), Some((last, count))) = (self.again, self.last) else {
            return false;
        };
        if time < last {
            return true;
        }
        if time == last && again < count {
            self.again = Some(again + 1);
            return true;
        }
        self.again = None;
        if again < count {
            let why = "the log no longer has the line before: it was rotated, or the container was started again";
            events.push_back(LogEvent::Gap(why.to_owned()));
        }
        false
    }
}

/// The time that the server puts before a line, and the line. A line of a server that puts none is kept whole.
fn split(line: &[u8]) -> (Option<Timestamp>, &[u8]) {
    let parsed = line.iter().position(|byte| *byte == b' ').and_then(|end| {
        let time = std::str::from_utf8(&line[..end]).ok()?;
        Some((time.parse().ok()?, &line[end + 1..]))
    });
    match parsed {
        Some((time, text)) => (Some(time), text),
        None => (None, line),
    }
}

/// Reads more of a body; `false` at its end.
async fn read(body: &mut Body, buffer: &mut Vec<u8>, server: &str) -> Result<bool, ClusterError> {
    let frame = tokio::time::timeout(SILENCE, body.frame()).await;
    // It is asked for again, from the last line on.
    let Ok(Some(frame)) = frame else {
        return Ok(false);
    };
    let frame = frame.map_err(|error| ClusterError::unreachable(server, &error))?;
    buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
    Ok(true)
}

/// Whether the same may succeed a little later.
fn is_passing(error: &ClusterError) -> bool {
    // A container that is still to be started is told as a bad request.
    if let ClusterError::Status {
        code: 400, message, ..
    } = error
    {
        return message.contains("waiting to start");
    }
    matches!(
        error.kind(),
        ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Throttled | ErrorKind::Server
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(position: &mut Position, lines: &[&str]) -> Vec<String> {
        let mut events = VecDeque::new();
        for line in lines {
            position.line(line.as_bytes(), true, &mut events);
        }
        let text = |event| match event {
            LogEvent::Line(line) => String::from_utf8_lossy(&line).into_owned(),
            LogEvent::Gap(_) => "GAP".to_owned(),
        };
        events.into_iter().map(text).collect()
    }

    fn reconnect(position: &mut Position) {
        position.again = position.last.map(|_| 0);
    }

    #[test]
    fn lines_that_were_read_before_are_left_out_after_a_reconnect() {
        let mut position = Position::default();
        let first = [
            "2026-01-01T00:00:01.5Z a",
            "2026-01-01T00:00:01.7Z b",
            "2026-01-01T00:00:01.7Z c",
        ];
        assert_eq!(lines(&mut position, &first), ["a", "b", "c"]);
        reconnect(&mut position);
        let all = [
            &first[..],
            &["2026-01-01T00:00:01.7Z d", "2026-01-01T00:00:02Z e"],
        ]
        .concat();
        assert_eq!(lines(&mut position, &all), ["d", "e"]);
        reconnect(&mut position);
        assert_eq!(lines(&mut position, &["2026-01-01T00:00:02Z e"]), [""; 0]);
    }

    #[test]
    fn a_line_that_is_gone_after_a_reconnect_is_told_as_a_gap() {
        let mut position = Position::default();
        lines(&mut position, &["2026-01-01T00:00:01Z a"]);
        reconnect(&mut position);
        let later = ["2026-01-01T00:00:05Z x", "2026-01-01T00:00:06Z y"];
        assert_eq!(lines(&mut position, &later), ["GAP", "x", "y"]);
    }

    #[test]
    fn a_line_without_a_time_is_passed_on_whole() {
        let mut position = Position::default();
        assert_eq!(
            lines(&mut position, &["no time here", ""]),
            ["no time here", ""]
        );
    }
}
