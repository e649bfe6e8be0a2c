//! The runtime of a process, shared by everything in it and started when it is first needed.

use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Runtime;

/// A runtime that many commands do without; clones share it.
#[derive(Clone, Default)]
pub struct LazyRuntime(Arc<Started>);

#[derive(Default)]
struct Started(OnceLock<Runtime>);

impl LazyRuntime {
    /// The runtime; starts its threads the first time.
    pub fn get(&self) -> io::Result<&Runtime> {
        let started = &self.0.0;
        if let Some(runtime) = started.get() {
            return Ok(runtime);
        }
        // Of two that start one at the same moment, one is let go unused; waiting for its threads is not allowed here.
        if let Err(unused) = started.set(Runtime::new()?) {
            unused.shutdown_background();
        }
        started.get().ok_or_else(|| io::Error::other("no runtime"))
    }

    /// Waits for something on a thread of its own: the caller's may belong to a runtime, which would not let it block.
    pub fn wait<T: Send>(&self, work: impl Future<Output = T> + Send) -> io::Result<T> {
        let runtime = self.get()?;
        Ok(std::thread::scope(|scope| {
            let waiting = scope.spawn(|| runtime.block_on(work));
            let joined = waiting.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }))
    }
}

impl Drop for Started {
    /// A runtime may be dropped where waiting is forbidden, and threads that still compute for a cancelled unit must not
    /// hold up the end of the process.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
