//! Independent pieces of work on several cores, where they are worth it.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    let worth = bytes / WORTH_A_THREAD + 1;
    let threads = match worth.min(items.len()) {
        0 | 1 => 1,
        wanted => wanted.min(cores()).min(MAX_THREADS),
    };
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
}
