//! Whether what several clients saw of one key could have happened one operation after the other, each between its start
//! and its end.
//!
//! This is the search of Wing and Gong: take an operation that could be the first, apply it, go on with the rest, and go
//! back when nothing fits. Two things keep it short. Values are unique, so an operation fits at few places. And an
//! operation that changes nothing and fits now is taken now: that never spoils an order that exists.

use std::collections::HashSet;

/// A value of the key; `None` when it does not exist.
pub type Seen = Option<u64>;

/// What a client did with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterAction {
    /// Read it and got this.
    Read(Seen),
    /// Replaced it, if it still was `expected`. Every `new` value is written by one operation only.
    Swap {
        /// What it had to be.
        expected: Seen,
        /// What it becomes.
        new: Seen,
        /// Whether it was done; `None` when the client never learned it.
        done: Option<bool>,
    },
}

/// One operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterCall {
    /// When it was sent, on a clock that all clients share.
    pub start: u64,
    /// When it was answered. An operation without a known outcome may take effect at any time after its start.
    pub end: u64,
    /// What was done.
    pub action: RegisterAction,
}

/// What a history is found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryVerdict {
    /// There is an order that explains it.
    Linearizable,
    /// There is none. In the best order this call, by its number, comes next and does not fit.
    NotLinearizable(usize),
    /// No order was found within the steps.
    TooHard,
}

/// Looks for an order of the calls that starts with a key that does not exist.
pub fn judge(calls: &[RegisterCall], max_steps: usize) -> HistoryVerdict {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|number| calls[*number].start);
    let sorted: Vec<RegisterCall> = order.iter().map(|number| calls[*number]).collect();
    let search = Search { calls: &sorted };
    match search.run(max_steps) {
        Found::Order => HistoryVerdict::Linearizable,
        Found::Steps => HistoryVerdict::TooHard,
        Found::Nothing(stuck) => HistoryVerdict::NotLinearizable(order[stuck]),
    }
}

struct Search<'a> {
    /// By their start.
    calls: &'a [RegisterCall],
}

enum Found {
    Order,
    Steps,
    /// The first call that does not fit in the order that goes furthest.
    Nothing(usize),
}

/// Some calls taken, and the value after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Prefix {
    taken: Vec<u64>,
    value: Seen,
}

impl Search<'_> {
    fn run(&self, max_steps: usize) -> Found {
        let empty = Prefix {
            taken: vec![0; self.calls.len().div_ceil(64)],
            value: None,
        };
        let mut visited = HashSet::new();
        let mut waiting = vec![empty];
        let (mut steps, mut furthest) = (0, 0);
        while let Some(mut prefix) = waiting.pop() {
            steps += 1;
            if steps > max_steps {
                return Found::Steps;
            }
            self.take_readers(&mut prefix);
            let Some(stuck) = self.first_left(&prefix) else {
                return Found::Order;
            };
            furthest = furthest.max(stuck);
            if !visited.insert(prefix.clone()) {
                continue;
            }
            for number in self.candidates(&prefix) {
                if let RegisterAction::Swap {
                    expected,
                    new,
                    done,
                } = self.calls[number].action
                    && done != Some(false)
                    && expected == prefix.value
                {
                    let mut next = prefix.clone();
                    next.take(number);
                    next.value = new;
                    waiting.push(next);
                }
            }
        }
        Found::Nothing(furthest)
    }

    /// Takes what changes nothing and fits now, until there is no more.
    fn take_readers(&self, prefix: &mut Prefix) {
        loop {
            let fits = |number: &usize| match self.calls[*number].action {
                RegisterAction::Read(seen) => seen == prefix.value,
                RegisterAction::Swap { expected, done, .. } => {
                    done == Some(false) && expected != prefix.value
                }
            };
            let fitting: Vec<usize> = self.candidates(prefix).into_iter().filter(fits).collect();
            if fitting.is_empty() {
                return;
            }
            for number in fitting {
                prefix.take(number);
            }
        }
    }

    /// The calls that may come next: nothing that is left had ended when they began.
    fn candidates(&self, prefix: &Prefix) -> Vec<usize> {
        let mut found = Vec::new();
        let mut earliest_end = u64::MAX;
        for number in prefix.first_free()..self.calls.len() {
            let call = &self.calls[number];
            if call.start > earliest_end {
                break;
            }
            if !prefix.has(number) {
                if !call.action.is_open() {
                    earliest_end = earliest_end.min(call.end);
                }
                found.push(number);
            }
        }
        found
    }

    /// The first call that must be explained and is not. One without a known outcome need never have happened.
    fn first_left(&self, prefix: &Prefix) -> Option<usize> {
        let mut left =
            (prefix.first_free()..self.calls.len()).filter(|number| !prefix.has(*number));
        left.find(|number| !self.calls[*number].action.is_open())
    }
}

impl RegisterAction {
    fn is_open(&self) -> bool {
        matches!(self, Self::Swap { done: None, .. })
    }
}

impl Prefix {
    fn has(&self, number: usize) -> bool {
        self.taken[number / 64] & (1 << (number % 64)) != 0
    }

    fn take(&mut self, number: usize) {
        self.taken[number / 64] |= 1 << (number % 64);
    }

    /// A number below which everything is taken.
    fn first_free(&self) -> usize {
        let full = self.taken.iter().take_while(|word| **word == u64::MAX);
        full.count() * 64
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const STEPS: usize = 100_000;

    fn read(start: u64, end: u64, seen: Seen) -> RegisterCall {
        let action = RegisterAction::Read(seen);
        RegisterCall { start, end, action }
    }

    fn swap(start: u64, end: u64, expected: Seen, new: Seen, done: Option<bool>) -> RegisterCall {
        let action = RegisterAction::Swap {
            expected,
            new,
            done,
        };
        RegisterCall { start, end, action }
    }

    fn is_fine(calls: &[RegisterCall]) -> bool {
        match judge(calls, STEPS) {
            HistoryVerdict::Linearizable => true,
            HistoryVerdict::NotLinearizable(_) => false,
            HistoryVerdict::TooHard => unreachable!("the histories here are short"),
        }
    }

    #[test]
    fn a_read_sees_what_was_written_before_it_began() {
        let write = swap(0, 1, None, Some(1), Some(true));
        assert!(is_fine(&[write, read(2, 3, Some(1))]));
        assert_eq!(
            judge(&[write, read(2, 3, None)], STEPS),
            HistoryVerdict::NotLinearizable(1)
        );
    }

    #[test]
    fn a_read_during_a_write_sees_either() {
        let write = swap(0, 9, None, Some(1), Some(true));
        assert!(is_fine(&[write, read(2, 3, None), read(4, 5, Some(1))]));
        assert!(!is_fine(&[write, read(2, 3, Some(1)), read(4, 5, None)]));
    }

    #[test]
    fn two_swaps_of_one_value_are_not_both_done() {
        let first = swap(0, 5, None, Some(1), Some(true));
        assert!(!is_fine(&[first, swap(1, 6, None, Some(2), Some(true))]));
        assert!(is_fine(&[first, swap(1, 6, None, Some(2), Some(false))]));
    }

    #[test]
    fn an_unknown_write_may_have_happened_late_or_never_but_not_twice() {
        let unknown = swap(0, 1, None, Some(1), None);
        assert!(is_fine(&[unknown, read(5, 6, None)]));
        assert!(is_fine(&[unknown, read(5, 6, None), read(7, 8, Some(1))]));
        assert!(!is_fine(&[unknown, read(5, 6, Some(1)), read(7, 8, None)]));
        let removed = swap(7, 8, Some(1), None, Some(true));
        assert!(is_fine(&[
            unknown,
            read(5, 6, Some(1)),
            removed,
            read(9, 10, None)
        ]));
        assert!(!is_fine(&[
            unknown,
            read(5, 6, Some(1)),
            removed,
            read(9, 10, Some(1))
        ]));
    }

    #[test]
    fn a_value_that_nobody_wrote_is_found() {
        assert!(!is_fine(&[read(0, 1, Some(7))]));
    }

    #[test]
    fn a_search_that_takes_too_long_says_so() {
        let write = swap(0, 1, None, Some(1), Some(true));
        assert_eq!(judge(&[write], 1), HistoryVerdict::TooHard);
    }

    /// Tries every order, without any of the shortcuts.
    fn has_order(left: &[RegisterCall], value: Seen) -> bool {
        let must = |call: &RegisterCall| !call.action.is_open();
        if !left.iter().any(must) {
            return true;
        }
        (0..left.len()).any(|number| {
            let call = left[number];
            let is_late = left
                .iter()
                .any(|other| must(other) && other.end < call.start);
            let next = match call.action {
                RegisterAction::Read(seen) => (seen == value).then_some(value),
                RegisterAction::Swap {
                    expected,
                    new,
                    done,
                } => match (expected == value, done) {
                    (true, Some(true) | None) => Some(new),
                    (false, Some(false) | None) => Some(value),
                    _ => None,
                },
            };
            let mut rest = left.to_vec();
            rest.remove(number);
            !is_late && next.is_some_and(|value| has_order(&rest, value))
        })
    }

    #[test]
    fn it_agrees_with_trying_every_order() {
        let (mut fine, mut wrong) = (0, 0);
        for seed in 0..20_000 {
            let mut random = StdRng::seed_from_u64(seed);
            let calls: Vec<RegisterCall> = (0..6)
                .map(|number| {
                    let start = random.random_range(0..12);
                    let end = start + random.random_range(0..6);
                    let any = |random: &mut StdRng| {
                        let value = random.random_range(0..4);
                        (value > 0).then_some(value)
                    };
                    if number > 2 {
                        return read(start, end, any(&mut random));
                    }
                    let done =
                        [Some(true), Some(true), Some(false), None][random.random_range(0..4)];
                    swap(start, end, any(&mut random), Some(number + 1), done)
                })
                .collect();
            let expected = has_order(&calls, None);
            assert_eq!(is_fine(&calls), expected, "seed {seed}: {calls:#?}");
            *if expected { &mut fine } else { &mut wrong } += 1;
        }
        assert!(fine > 100 && wrong > 100, "{fine} fine, {wrong} wrong");
    }

    /// Clients of a register that really is one, many at once.
    #[test]
    fn a_long_history_of_a_real_register_is_explained_quickly() {
        let mut random = StdRng::seed_from_u64(1);
        let (mut value, mut fresh, mut clock) = (None, 0, 0);
        let mut calls = Vec::new();
        for _ in 0..5_000 {
            clock += random.random_range(1..4);
            let (start, end) = (
                clock - random.random_range(0..9).min(clock),
                clock + random.random_range(0..9),
            );
            if random.random_bool(0.5) {
                calls.push(read(start, end, value));
                continue;
            }
            fresh += 1;
            let is_stale = random.random_bool(0.3);
            let expected = if is_stale { Some(u64::MAX) } else { value };
            let is_known = random.random_bool(0.9);
            calls.push(swap(
                start,
                end,
                expected,
                Some(fresh),
                is_known.then_some(!is_stale),
            ));
            if !is_stale {
                value = Some(fresh);
            }
        }
        assert_eq!(judge(&calls, STEPS), HistoryVerdict::Linearizable);
        let wrong = calls.len() / 2;
        calls[wrong].action = RegisterAction::Read(Some(u64::MAX - 1));
        assert!(!is_fine(&calls));
    }
}
