//! A body that is sent piece by piece, read anew for every try.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// How many pieces wait to be sent.
const WAITING: usize = 4;

/// How often is looked whether something was sent.
const LOOK: Duration = Duration::from_millis(250);

/// Opens a body from its beginning; called once for every try.
type Open = dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync;

/// A body to send: how long it is, and how to read it.
#[derive(Clone)]
pub struct Upload {
    length: u64,
    open: Arc<Open>,
}

/// How much of a body was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent(Arc<AtomicU64>);

impl Upload {
    /// A body of a length, which `open` reads from its beginning.
    pub fn new(
        length: u64,
        open: impl Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            length,
            open: Arc::new(open),
        }
    }

    /// A body that is in memory.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into();
        Self::new(bytes.len() as u64, move || {
            Ok(Box::new(io::Cursor::new(Arc::clone(&bytes))))
        })
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The body for one try; a file that became shorter or cannot be read breaks the request off.
    pub(crate) fn body(&self, sent: Sent) -> reqwest::Body {
        let (give, take) = mpsc::channel::<io::Result<Bytes>>(WAITING);
        let open = Arc::clone(&self.open);
        let length = self.length;
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(&*open, length, &give) {
                // Whoever took the pieces may be gone.
                let _ = give.blocking_send(Err(error));
            }
        });
        let pieces = stream::unfold((take, sent), |(mut take, sent)| async move {
            let piece = take.recv().await?;
            let bytes = piece.as_ref().map_or(0, Bytes::len) as u64;
            sent.0.fetch_add(bytes, Ordering::Relaxed);
            Some((piece, (take, sent)))
        });
        reqwest::Body::wrap_stream(pieces)
    }
}

fn read(open: &Open, length: u64, give: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut file = open()?.take(length);
    let mut left = length;
    while left > 0 {
        let mut piece = vec![0; PIECE];
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(read);
        left -= read as u64;
        if give.blocking_send(Ok(piece.into())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

impl Sent {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until nothing was sent for so long, or until the answer to all of it takes too long.
    pub(crate) async fn stalled(&self, length: u64, idle: Duration, answer: Duration) {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            sleep(LOOK).await;
            let now = self.bytes();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let limit = if now >= length { answer } else { idle };
            if since.elapsed() >= limit {
                return;
            }
        }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({} bytes)", self.length)
    }
}
