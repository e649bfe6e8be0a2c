//! Runs independent pieces of work on several cores, if there is enough work.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::thread;

/// Below this many bytes of input a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 96 * 1024;

/// The most threads: charts are rendered beside each other as well.
const MAX_THREADS: usize = 4;

/// How many threads can run at once: asked once, for the answer lies in several files.
fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    *CORES
}

thread_local! {
    /// Whether work of this thread stays on it.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does some work on this thread alone, for those who do many pieces of work beside each other already: more threads
/// would make none of them quicker, and each takes memory of its own.
pub fn on_one_thread<T>(work: impl FnOnce() -> T) -> T {
    /// What it was before, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_ALONE.set(self.0);
        }
    }
    let _before = Before(IS_ALONE.replace(true));
    work()
}

/// How many threads this much input in this many items is worth.
fn threads(bytes: usize, items: usize) -> usize {
    if IS_ALONE.get() {
        return 1;
    }
    match (bytes / WORTH_A_THREAD + 1).min(items) {
        0 | 1 => 1,
        wanted => wanted.min(cores()).min(MAX_THREADS),
    }
}

/// Applies a function to every item, in order; `bytes` is how much input all of them have.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    bytes: usize,
    apply: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    map_beside(items, bytes, apply, || ()).0
}

/// The same, while this thread does something else first.
pub(crate) fn map_beside<T: Sync, R: Send, B>(
    items: &[T],
    bytes: usize,
    apply: impl Fn(&T) -> R + Sync,
    beside: impl FnOnce() -> B,
) -> (Vec<R>, B) {
    let threads = threads(bytes, items.len());
    if threads < 2 {
        let beside = beside();
        return (items.iter().map(apply).collect(), beside);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, apply(item)));
        }
    };
    let (mut done, beside) = thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let beside = beside();
        let mut done = work();
        for helper in helpers {
            match helper.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        (done, beside)
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    (done.into_iter().map(|(_, result)| result).collect(), beside)
}

/// Applies a function to every item that this thread produces, in order, while it produces the next ones; `bytes` is how
/// much input all of it has.
pub(crate) fn map_produced<T: Send, R: Send, P>(
    bytes: usize,
    apply: impl Fn(T) -> R + Sync,
    produce: impl FnOnce(&mut dyn FnMut(T)) -> P,
) -> (Vec<R>, P) {
    if threads(bytes, 2) < 2 {
        let mut done = Vec::new();
        let produced = produce(&mut |item| done.push(apply(item)));
        return (done, produced);
    }
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let work = || {
        let mut done = Vec::new();
        loop {
            let received = receiver
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok((index, item)) = received else {
                return done;
            };
            done.push((index, apply(item)));
        }
    };
    let (mut done, produced) = thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, work);
        let mut items = 0_usize;
        let produced = produce(&mut |item| {
            // The receiver lives as long as this function, so that sending cannot fail.
            let _ = sender.send((items, item));
            items += 1;
        });
        drop(sender);
        let mut done = work();
        match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(part)) => done.extend(part),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // Without a thread this one has done it all.
            Err(_) => {}
        }
        (done, produced)
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    (
        done.into_iter().map(|(_, result)| result).collect(),
        produced,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..500).collect();
        for bytes in [0, 10 << 20] {
            let (doubled, beside) = map_beside(&items, bytes, |item| item * 2, || "done");
            assert_eq!(beside, "done");
            assert!(
                doubled
                    .iter()
                    .enumerate()
                    .all(|(index, twice)| index * 2 == *twice)
            );
        }
    }

    #[test]
    fn work_stays_on_one_thread_until_it_is_done_or_panics() {
        let own = thread::current().id();
        let ids = || map(&[(); 8], 10 << 20, |()| thread::current().id());
        assert!(on_one_thread(ids).iter().all(|id| *id == own));
        let panicked = std::panic::catch_unwind(|| on_one_thread(|| panic!("as this test wants")));
        assert!(panicked.is_err() && !IS_ALONE.get());
    }

    #[test]
    fn results_come_in_the_order_they_were_produced_in() {
        for bytes in [0, 10 << 20] {
            let (doubled, produced) = map_produced(
                bytes,
                |item: usize| item * 2,
                |push| {
                    (0..500).for_each(push);
                    "done"
                },
            );
            assert_eq!(produced, "done");
            assert!(doubled.into_iter().eq((0..500).map(|item| item * 2)));
        }
    }
}
