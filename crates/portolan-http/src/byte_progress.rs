//! The progress of a download, for code that shows it.

use std::fmt;
use std::sync::Arc;

/// Is told how many bytes have come, and how many there will be when that is known; clones tell the same listener.
#[derive(Clone, Default)]
pub struct ByteProgress(Option<Arc<Listener>>);

type Listener = dyn Fn(u64, Option<u64>) + Send + Sync;

impl ByteProgress {
    /// Calls a function with the bytes so far and those in all.
    pub fn new(listen: impl Fn(u64, Option<u64>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listen)))
    }

    /// Reports the bytes so far and those in all.
    pub fn report(&self, done: u64, total: Option<u64>) {
        if let Some(listen) = &self.0 {
            listen(done, total);
        }
    }
}

impl fmt::Debug for ByteProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByteProgress")
            .field(&self.0.is_some())
            .finish()
    }
}
