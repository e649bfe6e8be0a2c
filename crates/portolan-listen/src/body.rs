//! Bodies: request bodies with limits on size and time, answer bodies with what must be recorded at their end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body as AnswerBody, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

/// Why a request's body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the request's body is too large")]
    TooLarge,
    #[error("the request's body came too slowly")]
    TooSlow,
}

/// What became of a request's body, for who answers: the router may say it in words of its own.
#[derive(Clone, Default)]
pub(crate) struct Verdict(Arc<AtomicU8>);

impl Verdict {
    pub(crate) fn refused(&self) -> Option<Refused> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(Refused::TooLarge),
            2 => Some(Refused::TooSlow),
            _ => None,
        }
    }

    fn set(&self, refused: Refused) {
        let number = match refused {
            Refused::TooLarge => 1,
            Refused::TooSlow => 2,
        };
        self.0.store(number, Ordering::Release);
    }
}

/// In the extensions of every request: lets a handler that knows the caller take a body without limits on size and time,
/// such as a stream that goes on for days.
#[derive(Debug, Clone, Default)]
pub struct BodyRelease(Arc<AtomicBool>);

impl BodyRelease {
    /// Takes the limits away.
    pub fn release(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_released(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A request's body that ends with an error at a limit.
pub(crate) struct RequestBody {
    inner: Incoming,
    release: BodyRelease,
    left: u64,
    deadline: Pin<Box<Sleep>>,
    verdict: Verdict,
}

impl RequestBody {
    pub(crate) fn new(
        inner: Incoming,
        bytes: u64,
        deadline: Instant,
        verdict: Verdict,
        release: BodyRelease,
    ) -> Self {
        Self {
            inner,
            release,
            left: bytes,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            verdict,
        }
    }

    fn refuse(&self, refused: Refused) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.verdict.set(refused);
        Poll::Ready(Some(Err(axum::Error::new(refused))))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let is_released = self.release.is_released();
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) if is_released => Poll::Ready(Some(Ok(frame))),
            Poll::Pending if is_released => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                let Some(left) = self.left.checked_sub(bytes) else {
                    return self.refuse(Refused::TooLarge);
                };
                self.left = left;
                // A drip that never stops to flow would never be pending.
                if self.deadline.deadline() <= Instant::now() {
                    return self.refuse(Refused::TooSlow);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(axum::Error::new(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.deadline.as_mut().poll(cx) {
                Poll::Ready(()) => self.refuse(Refused::TooSlow),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The most bytes of an answer that are handed over at once. A large piece would count as sent as soon as the connection
/// holds it, though the client has read nothing of it.
const PIECE_BYTES: usize = 64 * 1024;

/// An answer's body; `taken` is told of each piece, and `end` how many bytes were handed over when it is dropped, sent or not.
pub(crate) struct TrackedBody {
    inner: AnswerBody,
    taken: Box<dyn Fn() + Send>,
    /// What the inner body gave and was not handed over yet.
    rest: Bytes,
    bytes: u64,
    end: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl TrackedBody {
    pub(crate) fn new(
        inner: AnswerBody,
        taken: impl Fn() + Send + 'static,
        end: impl FnOnce(u64) + Send + 'static,
    ) -> Self {
        Self {
            inner,
            taken: Box::new(taken),
            rest: Bytes::new(),
            bytes: 0,
            end: Some(Box::new(end)),
        }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return Poll::Ready(other),
            }
        }
        let count = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(count);
        self.bytes += count as u64;
        (self.taken)();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.inner.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end(self.bytes);
        }
    }
}
