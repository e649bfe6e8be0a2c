//! The shortest edit script between two sequences: Myers' greedy algorithm on the part between the common start and
//! end.

/// The most insertions and removals that are searched for; sequences further apart are replaced as a whole. It bounds
/// the time to a few million steps and the memory to a few megabytes.
const MAX_DISTANCE: usize = 1_000;

/// A run of both sequences; the ranges of all runs cover both sequences in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// Equal items, from here in the old and there in the new sequence.
    Same {
        /// The first in the old sequence.
        old: usize,
        /// The first in the new sequence.
        new: usize,
        /// How many.
        count: usize,
    },
    /// Old items that are replaced by new ones; either may be none.
    Replaced {
        /// The old ones.
        old: std::ops::Range<usize>,
        /// The new ones.
        new: std::ops::Range<usize>,
    },
}

/// Aligns two sequences.
pub fn align<T: PartialEq>(old: &[T], new: &[T]) -> Vec<Run> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let from_end = old_rest.iter().rev().zip(new_rest.iter().rev());
    let suffix = from_end.take_while(|(a, b)| a == b).count();
    let old_middle = &old_rest[..old_rest.len() - suffix];
    let new_middle = &new_rest[..new_rest.len() - suffix];

    let mut matches: Vec<(usize, usize)> = (0..prefix).map(|at| (at, at)).collect();
    let middle = common(old_middle, new_middle);
    matches.extend(middle.into_iter().map(|(a, b)| (a + prefix, b + prefix)));
    matches.extend((0..suffix).map(|at| (old.len() - suffix + at, new.len() - suffix + at)));
    runs(&matches, old.len(), new.len())
}

/// The pairs of a longest common subsequence; none when the sequences are too far apart.
fn common<T: PartialEq>(old: &[T], new: &[T]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let limit = (old.len() + new.len()).min(MAX_DISTANCE);
    // `reached[d]` holds, for each diagonal -d..=d in steps of two, how far into `old` d edits lead.
    let mut reached: Vec<Vec<usize>> = Vec::new();
    for distance in 0..=limit {
        let row = advance(old, new, reached.last());
        let is_end = (0..=distance).any(|slot| {
            let x = row[slot];
            x >= old.len() && y_of(x, slot, distance) >= new.len()
        });
        reached.push(row);
        if is_end {
            return walk_back(old, new, &reached);
        }
    }
    Vec::new()
}

/// The furthest points after one more edit.
fn advance<T: PartialEq>(old: &[T], new: &[T], last: Option<&Vec<usize>>) -> Vec<usize> {
    let distance = last.map_or(0, Vec::len);
    let start = |slot: usize| match last {
        None => 0,
        Some(last) => {
            // From the diagonal above an item of `new` is added, from the one below an item of `old` is removed.
            let added = last.get(slot).copied();
            let removed = slot
                .checked_sub(1)
                .and_then(|slot| last.get(slot))
                .map(|x| x + 1);
            added.max(removed).unwrap_or(0).min(old.len())
        }
    };
    (0..=distance)
        .map(|slot| {
            let x = start(slot);
            let y = y_of(x, slot, distance);
            let tail = old[x..].iter().zip(new.get(y..).unwrap_or(&[]));
            x + tail.take_while(|(a, b)| a == b).count()
        })
        .collect()
}

/// The place in `new`: slot `s` of row `d` is the diagonal `x - y = 2s - d`.
fn y_of(x: usize, slot: usize, distance: usize) -> usize {
    (x + distance).saturating_sub(2 * slot)
}

fn walk_back<T: PartialEq>(old: &[T], new: &[T], reached: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut x, mut y) = (old.len(), new.len());
    for distance in (0..reached.len()).rev() {
        let slot = (x + distance).saturating_sub(y) / 2;
        let last = distance.checked_sub(1).map(|last| &reached[last]);
        let added = last.and_then(|last| last.get(slot).copied());
        let removed =
            last.and_then(|last| slot.checked_sub(1).and_then(|slot| last.get(slot).copied()));
        let is_addition = added >= removed.map(|x| x + 1);
        let start = match (last, is_addition) {
            (None, _) => 0,
            (_, true) => added.unwrap_or(0),
            (_, false) => removed.map_or(0, |x| x + 1),
        };
        while x > start && y > 0 {
            x -= 1;
            y -= 1;
            pairs.push((x, y));
        }
        if last.is_some() {
            if is_addition {
                y = y.saturating_sub(1);
            } else {
                x = x.saturating_sub(1);
            }
        }
    }
    pairs.reverse();
    pairs
}

fn runs(matches: &[(usize, usize)], old_len: usize, new_len: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut x, mut y) = (0, 0);
    for &(a, b) in matches.iter().chain([&(old_len, new_len)]) {
        if a > x || b > y {
            runs.push(Run::Replaced {
                old: x..a,
                new: y..b,
            });
        }
        if a < old_len && b < new_len {
            match runs.last_mut() {
                Some(Run::Same { count, .. }) => *count += 1,
                _ => runs.push(Run::Same {
                    old: a,
                    new: b,
                    count: 1,
                }),
            }
        }
        (x, y) = (a + 1, b + 1);
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rebuilt(old: &[u8], new: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for run in align(old, new) {
            match run {
                Run::Same {
                    old: a,
                    new: b,
                    count,
                } => {
                    assert_eq!(old[a..a + count], new[b..b + count]);
                    left.extend(&old[a..a + count]);
                    right.extend(&new[b..b + count]);
                }
                Run::Replaced { old: a, new: b } => {
                    left.extend(&old[a]);
                    right.extend(&new[b]);
                }
            }
        }
        (left, right)
    }

    fn distance(old: &[u8], new: &[u8]) -> usize {
        let edits = |run: &Run| match run {
            Run::Same { .. } => 0,
            Run::Replaced { old, new } => old.len() + new.len(),
        };
        align(old, new).iter().map(edits).sum()
    }

    #[test]
    fn one_inserted_item_is_one_edit() {
        assert_eq!(distance(b"abcdef", b"abXcdef"), 1);
        assert_eq!(distance(b"abcabba", b"cbabac"), 5);
        assert_eq!(distance(b"", b"abc"), 3);
    }

    #[test]
    fn sequences_far_apart_are_replaced_as_a_whole() {
        let (old, new) = (vec![1; 5_000], vec![2; 5_000]);
        assert_eq!(
            align(&old, &new),
            [Run::Replaced {
                old: 0..5_000,
                new: 0..5_000
            }]
        );
    }

    proptest! {
        #[test]
        fn the_runs_cover_both_sequences(old in prop::collection::vec(0u8..4, 0..24), new in prop::collection::vec(0u8..4, 0..24)) {
            prop_assert_eq!(rebuilt(&old, &new), (old.clone(), new.clone()));
            prop_assert_eq!(distance(&old, &new), longest_common(&old, &new));
        }
    }

    /// How many items are in one sequence only, by the textbook table.
    fn longest_common(old: &[u8], new: &[u8]) -> usize {
        let mut table = vec![vec![0usize; new.len() + 1]; old.len() + 1];
        for (i, a) in old.iter().enumerate() {
            for (j, b) in new.iter().enumerate() {
                table[i + 1][j + 1] = if a == b {
                    table[i][j] + 1
                } else {
                    table[i][j + 1].max(table[i + 1][j])
                };
            }
        }
        old.len() + new.len() - 2 * table[old.len()][new.len()]
    }
}
