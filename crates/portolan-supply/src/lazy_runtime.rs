//! The runtime of a process, shared by everything in it and started when it is first needed.

use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};

use tokio::runtime::{Builder, Runtime};

/// A runtime that many commands do without; clones share it.
#[derive(Clone, Default)]
pub struct LazyRuntime(Arc<Started>);

#[derive(Default)]
struct Started(OnceLock<Runtime>);

impl LazyRuntime {
    /// The runtime; starts its threads the first time.
    pub fn get(&self) -> io::Result<&Runtime> {
        self.get_or_start(Runtime::new)
    }

    /// The runtime; starts it the first time with so many threads for what waits. Each thread has memory of its own that
    /// the others do not use, so what mostly computes, on other threads, wants few.
    pub fn with_workers(&self, workers: usize) -> io::Result<&Runtime> {
        self.get_or_start(|| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers.max(1)).enable_all().build()
        })
    }

    fn get_or_start(&self, start: impl FnOnce() -> io::Result<Runtime>) -> io::Result<&Runtime> {
        let started = &self.0.0;
        if let Some(runtime) = started.get() {
            return Ok(runtime);
        }
        // Of two that start one at the same moment, one is let go unused; waiting for its threads is not allowed here.
        if let Err(unused) = started.set(start()?) {
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
