//! Successive versions of a tree, and where they differ.
//!
//! ```text
//! begin ──▶ tree 0 ──followed_by({apps/a.yaml})──▶ tree 1 ──followed_by({apps/b.yaml})──▶ tree 2
//!           stamp of apps/a.yaml: 0                 1                                      1
//!           stamp of apps:        0                 1                                      2
//! ```
//!
//! Git, or code that watches a directory, knows which files changed between two trees and records them once. Then
//! equal [`Stamp`]s show, without reading anything, that nothing changed below a path.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::Utf8Path;

/// Families of trees that were begun in this process.
static FAMILIES: AtomicU64 = AtomicU64::new(0);

/// Names what lies at and below a path: trees that give equal stamps for a path hold the same there.
///
/// A symbolic link counts by its own text, not by what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    family: u64,
    generation: u64,
}

/// One tree in a line of them, with what was touched on the way to it.
#[derive(Debug, Clone)]
pub struct Lineage {
    family: u64,
    generation: u64,
    touched: Arc<HashMap<String, Touched>>,
}

/// When a path was touched last; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    itself: u64,
    below: u64,
}

impl Stamp {
    /// The stamp as numbers, for digests over what lies at several paths.
    pub fn parts(self) -> [u64; 2] {
        [self.family, self.generation]
    }
}

impl Lineage {
    /// The first tree of a family.
    pub fn begin() -> Self {
        Self {
            family: FAMILIES.fetch_add(1, Ordering::Relaxed),
            generation: 0,
            touched: Arc::default(),
        }
    }

    /// The next tree, which holds the same but for what lies at or below these paths.
    #[must_use]
    pub fn followed_by<'a>(&self, paths: impl IntoIterator<Item = &'a Utf8Path>) -> Self {
        let generation = self.generation + 1;
        let mut touched = HashMap::clone(&self.touched);
        for path in paths {
            for (distance, at) in path.ancestors().enumerate() {
                let when = touched.entry(at.as_str().to_owned()).or_default();
                if distance == 0 {
                    when.itself = generation;
                } else {
                    when.below = generation;
                }
            }
        }
        Self {
            family: self.family,
            generation,
            touched: Arc::new(touched),
        }
    }

    /// The stamp of a path, which must be absolute and clean.
    pub fn stamp(&self, path: &Utf8Path) -> Stamp {
        let when = |path: &str| self.touched.get(path).copied().unwrap_or_default();
        let here = when(path.as_str());
        let mut generation = here.itself.max(here.below).max(when("/").itself);
        let mut above = path.as_str();
        while let Some((parent, _)) = above
            .rsplit_once('/')
            .filter(|(parent, _)| !parent.is_empty())
        {
            generation = generation.max(when(parent).itself);
            above = parent;
        }
        Stamp {
            family: self.family,
            generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(path: &str, trees: &[&Lineage]) -> Vec<u64> {
        let stamp = |tree: &&Lineage| tree.stamp(path.into()).generation;
        trees.iter().map(stamp).collect()
    }

    #[test]
    fn a_touched_path_changes_the_stamps_of_what_holds_it_and_of_what_it_holds() {
        let first = Lineage::begin();
        let second = first.followed_by([Utf8Path::new("/apps/a")]);
        let third = second.followed_by([Utf8Path::new("/apps/b")]);
        let trees = [&first, &second, &third];
        assert_eq!(stamps("/", &trees), [0, 1, 2]);
        assert_eq!(stamps("/apps", &trees), [0, 1, 2]);
        assert_eq!(stamps("/apps/a", &trees), [0, 1, 1]);
        assert_eq!(stamps("/apps/a/deep/file", &trees), [0, 1, 1]);
        assert_eq!(stamps("/apps/c", &trees), [0, 0, 0]);
        assert_eq!(stamps("/app", &trees), [0, 0, 0]);
        let all = third.followed_by([Utf8Path::new("/")]);
        assert_eq!(stamps("/app", &[&third, &all]), [0, 3]);
    }

    #[test]
    fn trees_of_different_families_share_no_stamp() {
        let (one, other) = (Lineage::begin(), Lineage::begin());
        assert_ne!(one.stamp("/a".into()), other.stamp("/a".into()));
    }
}
