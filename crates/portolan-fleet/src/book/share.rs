//! A part of the nodes of a run: a count, or a percent of all.

use serde_json::Value;

/// A count, or a percent of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// So many.
    Count(u32),
    /// So many of a hundred.
    Percent(u32),
}

impl Share {
    /// Reads `3` or `"50%"`. The kind has checked the value; anything else is `None`.
    pub fn read(value: &Value) -> Option<Self> {
        if let Some(text) = value.as_str() {
            return text.strip_suffix('%')?.parse().ok().map(Self::Percent);
        }
        u32::try_from(value.as_u64()?).ok().map(Self::Count)
    }

    /// How many of `all` it is, rounded down.
    pub fn of(self, all: usize) -> usize {
        match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => all * percent as usize / 100,
        }
    }
}

/// The sizes of batches for so many nodes: each at least one, the last repeats.
pub fn batch_sizes(batches: &[Share], nodes: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut left = nodes;
    let mut shares = batches.iter();
    let mut share = Share::Percent(100);
    while left > 0 {
        share = shares.next().copied().unwrap_or(share);
        let size = share.of(nodes).clamp(1, left);
        sizes.push(size);
        left -= size;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_rounded_down_and_the_last_repeats() {
        use Share::{Count, Percent};
        for (batches, nodes, expected) in [
            (&[][..], 5, &[5][..]),
            (&[Count(1), Percent(50), Percent(100)], 7, &[1, 3, 3]),
            (&[Percent(10)], 5, &[1, 1, 1, 1, 1]),
            (&[Count(2)], 5, &[2, 2, 1]),
            (&[Count(1)], 0, &[]),
        ] {
            assert_eq!(batch_sizes(batches, nodes), expected);
        }
    }
}
