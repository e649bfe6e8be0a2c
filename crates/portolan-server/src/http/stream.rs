//! A watch as an answer that goes on: lines of JSON, or server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, header};
use portolan_listen::ResponseTime;
use tokio::time::Instant;

use crate::access::Action;
use crate::server::{ApiServer, Caller, Target};
use crate::watching::{MessageKind, ObjectWatch, WatchMessage};

/// How long a watch may go on; a client that is still there resumes it.
pub(super) const WATCH_TIME: Duration = Duration::from_hours(1);
/// How often it is checked whether the client may still watch.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Ends a watch whose client has lost its token, its certificate or its right.
pub(super) struct WatchAccess {
    server: Arc<ApiServer>,
    caller: Caller,
    target: Target,
    next_check: Instant,
}

impl WatchAccess {
    pub(super) fn new(server: Arc<ApiServer>, caller: Caller, target: Target) -> Self {
        Self {
            server,
            caller,
            target,
            next_check: Instant::now() + CHECK_EVERY,
        }
    }

    /// Whether the token exists and the right is still there.
    async fn is_valid(&mut self) -> bool {
        self.next_check = Instant::now() + CHECK_EVERY;
        let action = Action {
            verb: "watch",
            kind: self.target.kind.name,
            namespace: self.target.namespace.as_deref(),
            name: None,
        };
        if self
            .server
            .access
            .check(&self.caller.identity, &action)
            .is_err()
        {
            return false;
        }
        self.server.is_alive(&self.caller.identity).await
    }
}

struct Stream {
    watch: ObjectWatch,
    access: WatchAccess,
    until: Instant,
    is_done: bool,
}

/// The messages of a watch, until its client has lost its right or the server ends.
pub(super) fn messages(
    watch: ObjectWatch,
    access: WatchAccess,
) -> impl futures_util::Stream<Item = WatchMessage> + Send + 'static {
    let start = Stream {
        watch,
        access,
        until: Instant::now() + WATCH_TIME,
        is_done: false,
    };
    stream::unfold(start, |mut stream| async move {
        let message = stream.next().await?;
        Some((message, stream))
    })
}

pub(super) fn reply(watch: ObjectWatch, access: WatchAccess, is_sse: bool) -> Response {
    let pieces = messages(watch, access)
        .map(move |message| Ok::<Bytes, std::convert::Infallible>(piece(&message, is_sse)));
    let mut response = Response::new(Body::from_stream(pieces));
    let kind = if is_sse {
        "text/event-stream"
    } else {
        "application/x-ndjson"
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    response
        .extensions_mut()
        .insert(ResponseTime(WATCH_TIME + Duration::from_mins(1)));
    response
}

impl Stream {
    async fn next(&mut self) -> Option<WatchMessage> {
        while !self.is_done {
            let ending = self.access.server.ending.clone();
            tokio::select! {
                message = self.watch.next() => {
                    let message = message?;
                    if !self.access.server.may_go_on(&self.access.caller.identity) {
                        return None;
                    }
                    return Some(message);
                }
                () = ending.cancelled() => return Some(self.last()),
                () = tokio::time::sleep_until(self.until) => return Some(self.last()),
                () = tokio::time::sleep_until(self.access.next_check) => {
                    if !self.access.is_valid().await {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// A bookmark, so that the client can go on elsewhere.
    fn last(&mut self) -> WatchMessage {
        self.is_done = true;
        self.watch.bookmark()
    }
}

fn piece(message: &WatchMessage, is_sse: bool) -> Bytes {
    if !is_sse {
        return message.line();
    }
    let word = message.kind.word();
    let id = match message.kind {
        MessageKind::Expired => String::new(),
        _ => format!("id: {}\n", message.position),
    };
    let line = message.line();
    let data = String::from_utf8_lossy(&line);
    Bytes::from(format!("{id}event: {word}\ndata: {}\n\n", data.trim_end()))
}
