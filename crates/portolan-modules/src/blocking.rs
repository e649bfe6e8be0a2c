//! Requests of modules, which work without a runtime: each runs on a thread of its own.

use crate::action::ModuleError;
use crate::host::Host;

/// Runs work to its end, or until the step should end. The caller may be part of another runtime.
pub(crate) fn block_on<T: Send, F: Future<Output = Result<T, ModuleError>>>(
    host: &Host,
    work: impl FnOnce() -> F + Send,
) -> Result<T, ModuleError> {
    let failed = |reason: String| ModuleError::failed("start", "a request", reason);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| failed(error.to_string()))?;
            runtime.block_on(async {
                tokio::select! {
                    done = work() => done,
                    () = host.stop.cancelled() => Err(ModuleError::Stopped),
                }
            })
        });
        let ended = thread.join();
        ended.unwrap_or_else(|_| Err(failed("it ended unexpectedly".to_owned())))
    })
}
