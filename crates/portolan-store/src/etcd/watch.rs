//! A watch on etcd that survives the member it runs on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use super::client::Client;
use super::convert::{bounds, event};
use super::endpoints::Member;
use super::wire;
use crate::{Event, NextUpdate, Revision, Span, StoreError, Update, WatchSource};

/// Between two attempts to open a stream. It does not grow: the next attempt asks another member, and who watches must
/// not fall behind.
const PAUSE: Duration = Duration::from_millis(100);
/// Events of one answer in pieces that we put together again.
const MAX_EVENTS: usize = 1_000_000;
/// Requests on a stream that etcd has not taken yet: the first one and one for progress.
const REQUESTS: usize = 2;

pub(super) struct EtcdWatch {
    client: Arc<Client>,
    span: Span,
    /// The revision to go on from. It follows the events, never a header: a header can be ahead of events that are still to come.
    next: Revision,
    stream: Option<Open>,
    /// Whether etcd follows the keys on this stream.
    is_created: bool,
    /// Told by etcd and not yet by us.
    ready: VecDeque<Update>,
    /// The pieces of an answer so far.
    pieces: Vec<Event>,
    /// Why etcd ended the watch, until a new one is opened.
    cancelled: Option<String>,
    error: Option<StoreError>,
}

/// What a cancelled watch means, as the status of a call.
fn cancelled(reason: &str) -> Status {
    if reason.contains("permission denied") {
        Status::permission_denied(reason)
    } else {
        Status::unavailable(reason)
    }
}

struct Open {
    member: Member,
    answers: Streaming<wire::WatchResponse>,
    requests: mpsc::Sender<wire::WatchRequest>,
}

impl EtcdWatch {
    pub(super) fn new(client: Arc<Client>, span: Span, from: Revision) -> Self {
        Self {
            client,
            span,
            next: from,
            stream: None,
            is_created: false,
            ready: VecDeque::new(),
            pieces: Vec::new(),
            cancelled: None,
            error: None,
        }
    }

    /// Opens the stream and waits until etcd follows the keys, so that no compaction after this can be missed. When no member
    /// can be reached now, the first call of [`advance`](Self::advance) tries again.
    pub(super) async fn establish(&mut self, limit: Duration) {
        self.open().await;
        let created = async {
            while let Some(open) = &mut self.stream
                && !self.is_created
            {
                match open.answers.message().await {
                    Ok(Some(answer)) => self.take(answer),
                    Ok(None) | Err(_) => self.stream = None,
                }
            }
        };
        if tokio::time::timeout(limit, created).await.is_err() {
            self.stream = None;
        }
    }

    /// Waits for the next update. Nothing is lost when it is cancelled: what was received is kept, and a stream that was being
    /// opened is opened again.
    pub(super) async fn advance(&mut self) -> Result<Update, StoreError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(update);
            }
            if let Some(error) = &self.error {
                return Err(error.clone());
            }
            if let Some(reason) = self.cancelled.take() {
                self.broken(&cancelled(&reason)).await;
                continue;
            }
            let Some(open) = &mut self.stream else {
                self.open().await;
                continue;
            };
            match open.answers.message().await {
                Ok(Some(answer)) => self.take(answer),
                Ok(None) => {
                    let ended = Status::unavailable("etcd ended the stream");
                    self.broken(&ended).await;
                }
                Err(status) => self.broken(&status).await,
            }
        }
    }

    async fn open(&mut self) {
        let (key, range_end) = bounds(&self.span);
        let create = wire::WatchCreateRequest {
            key,
            range_end,
            start_revision: self.next as i64,
            fragment: true,
            ..wire::WatchCreateRequest::default()
        };
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let create = wire::watch_request::RequestUnion::CreateRequest(create);
        let _ = requests.try_send(wire::WatchRequest {
            request_union: Some(create),
        });
        let messages = stream::unfold(receiver, |mut receiver| async {
            let message = receiver.recv().await?;
            Some((message, receiver))
        });
        let member = self.client.pick();
        self.pieces.clear();
        self.is_created = false;
        match self
            .client
            .stream(&member, "/etcdserverpb.Watch/Watch", messages)
            .await
        {
            Ok(answers) => {
                self.stream = Some(Open {
                    member,
                    answers,
                    requests,
                });
            }
            Err(status) => self.broken(&status).await,
        }
    }

    /// Goes on at another member, unless etcd says that it does not want us.
    async fn broken(&mut self, status: &Status) {
        if let Some(open) = self.stream.take() {
            self.client.judge(&open.member, Some(status));
        }
        match status.code() {
            Code::PermissionDenied | Code::InvalidArgument => {
                let detail = status.message().to_owned();
                self.error = Some(StoreError::Denied { detail });
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }

    fn take(&mut self, answer: wire::WatchResponse) {
        if answer.compact_revision > 0 {
            self.error = Some(StoreError::Compacted {
                asked: self.next,
                oldest: answer.compact_revision as u64,
            });
            self.stream = None;
            return;
        }
        if answer.canceled {
            // The member has no leader, for example. The next one may.
            self.cancelled = Some(answer.cancel_reason);
            return;
        }
        if answer.created {
            self.is_created = true;
            return;
        }
        let is_progress = answer.events.is_empty() && self.pieces.is_empty() && !answer.fragment;
        if is_progress {
            let revision = answer.header.map_or(0, |header| header.revision as u64);
            self.ready.push_back(Update::Progress { revision });
            return;
        }
        self.pieces
            .extend(answer.events.into_iter().filter_map(event));
        if self.pieces.len() > MAX_EVENTS {
            self.error = Some(StoreError::Damaged {
                detail: format!("etcd sends more than {MAX_EVENTS} events at once"),
            });
            return;
        }
        // The last revision of a piece may go on in the next one.
        if !answer.fragment {
            self.tell();
        }
    }

    /// Makes one update for each revision. What was told before, by a stream that broke, is left out.
    fn tell(&mut self) {
        for event in std::mem::take(&mut self.pieces) {
            let revision = event.revision();
            if revision < self.next {
                continue;
            }
            match self.ready.back_mut() {
                Some(Update::Changes {
                    revision: same,
                    events,
                }) if *same == revision => events.push(event),
                _ => self.ready.push_back(Update::Changes {
                    revision,
                    events: vec![event],
                }),
            }
        }
        if let Some(Update::Changes { revision, .. }) = self.ready.back() {
            self.next = self.next.max(revision + 1);
        }
    }
}

impl WatchSource for EtcdWatch {
    fn next(&mut self) -> NextUpdate<'_> {
        Box::pin(self.advance())
    }

    fn request_progress(&mut self) {
        if let Some(open) = &self.stream {
            let progress =
                wire::watch_request::RequestUnion::ProgressRequest(wire::WatchProgressRequest {});
            // With one on the way already, this one is not needed.
            let _ = open.requests.try_send(wire::WatchRequest {
                request_union: Some(progress),
            });
        }
    }
}
