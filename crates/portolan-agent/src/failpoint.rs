//! Places where a test can kill the process, to see what is left behind.
//!
//! `PORTOLAN_CRASH_AT=NAME` kills a process with SIGKILL when it passes the place of that name, `NAME:3` when it passes
//! it for the third time. Release builds have no such places.

/// Dies here if a test asks for it.
#[cfg(debug_assertions)]
pub fn failpoint(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Ok(wanted) = std::env::var("PORTOLAN_CRASH_AT") else {
        return;
    };
    let (wanted, count) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted != name || PASSED.fetch_add(1, Ordering::SeqCst) + 1 < count.parse().unwrap_or(1) {
        return;
    }
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // A signal to oneself may arrive a moment later.
    loop {
        std::thread::park();
    }
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
#[inline]
pub fn failpoint(_name: &str) {}
