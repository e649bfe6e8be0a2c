//! The entries of a table of values: sorted by key in one piece of memory.
//!
//! Most tables have a handful of entries, and there are many: those of a chart's values, and of every object that a
//! `lookup` finds. A tree map would reserve room for eleven entries in each.

use std::cmp::Ordering;
use std::fmt;

use portolan_yaml::Text;

use super::tree::Tree;

/// The entries of a table by key.
#[derive(Clone, PartialEq, Default)]
pub struct Table(Vec<(Text, Tree)>);

/// The entries of a table in the order of their keys.
pub type TableIter<'a> = std::iter::Map<
    std::slice::Iter<'a, (Text, Tree)>,
    fn(&'a (Text, Tree)) -> (&'a Text, &'a Tree),
>;

impl Table {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        let (_, value) = self.0.get(self.find(key).ok()?)?;
        Some(value)
    }

    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Tree> {
        let at = self.find(key).ok()?;
        let (_, value) = self.0.get_mut(at)?;
        Some(value)
    }

    /// Puts a value under a key, in place of the one that was there.
    pub fn insert(&mut self, key: Text, value: Tree) {
        match self.find(&key) {
            Ok(at) => {
                if let Some((_, before)) = self.0.get_mut(at) {
                    *before = value;
                }
            }
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Takes a key out; returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Tree> {
        let at = self.find(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// The entries of both; `both` says the value of a key that is in both.
    #[must_use]
    pub fn merged(&self, upper: &Self, both: impl Fn(&Tree, &Tree) -> Tree) -> Self {
        let mut merged = Vec::with_capacity(self.len() + upper.len());
        let (mut lower, mut upper) = (self.0.iter().peekable(), upper.0.iter().peekable());
        loop {
            let order = match (lower.peek(), upper.peek()) {
                (Some((below, _)), Some((above, _))) => below.cmp(above),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let below = lower.next_if(|_| order != Ordering::Greater);
            let above = upper.next_if(|_| order != Ordering::Less);
            match (below, above) {
                (Some((key, below)), Some((_, above))) => {
                    merged.push((key.clone(), both(below, above)));
                }
                (one, other) => merged.extend(one.or(other).cloned()),
            }
        }
        merged.shrink_to_fit();
        Self(merged)
    }

    /// Every entry, in the order of the keys.
    pub fn iter<'a>(&'a self) -> TableIter<'a> {
        let parts: fn(&'a (Text, Tree)) -> (&'a Text, &'a Tree) = |(key, value)| (key, value);
        self.0.iter().map(parts)
    }

    /// Every key, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Text> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Every value, in the order of the keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Tree> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Where a key stands, or where it would.
    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(known, _)| known.as_str().cmp(key))
    }
}

/// Of several entries with one key, the last counts.
impl FromIterator<(Text, Tree)> for Table {
    fn from_iter<I: IntoIterator<Item = (Text, Tree)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        let is_rising = |pair: &[(Text, Tree)]| match pair {
            [(first, _), (second, _)] => first.cmp(second) == Ordering::Less,
            _ => true,
        };
        if !entries.windows(2).all(is_rising) {
            entries.sort_by(|(first, _), (second, _)| first.cmp(second));
            // The one that is kept stands first, so the later value goes there.
            entries.dedup_by(|later, kept| {
                let is_same = later.0 == kept.0;
                if is_same {
                    std::mem::swap(later, kept);
                }
                is_same
            });
        }
        entries.shrink_to_fit();
        Self(entries)
    }
}

impl<'a> IntoIterator for &'a Table {
    type Item = (&'a Text, &'a Tree);
    type IntoIter = TableIter<'a>;

    fn into_iter(self) -> TableIter<'a> {
        self.iter()
    }
}

impl<const N: usize> From<[(Text, Tree); N]> for Table {
    fn from(entries: [(Text, Tree); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&'static str, i64)]) -> Table {
        let entries = entries.iter();
        entries
            .map(|(key, number)| (Text::from_static(key), Tree::Int(*number)))
            .collect()
    }

    #[test]
    fn entries_are_sorted_and_the_last_of_a_key_counts() {
        let table = table(&[("b", 1), ("a", 2), ("b", 3), ("c", 4), ("b", 5)]);
        let entries: Vec<_> = table
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        assert_eq!(
            entries,
            [
                ("a", &Tree::Int(2)),
                ("b", &Tree::Int(5)),
                ("c", &Tree::Int(4))
            ]
        );
        assert_eq!(table, self::table(&[("a", 2), ("b", 5), ("c", 4)]));
    }

    #[test]
    fn two_tables_are_merged_in_order() {
        let lower = table(&[("a", 1), ("c", 2), ("d", 3)]);
        let upper = table(&[("b", 4), ("c", 5), ("e", 6)]);
        let merged = lower.merged(&upper, |below, above| {
            Tree::List(vec![below.clone(), above.clone()].into())
        });
        assert!(
            merged
                .keys()
                .map(Text::as_str)
                .eq(["a", "b", "c", "d", "e"])
        );
        let both = Tree::List(vec![Tree::Int(2), Tree::Int(5)].into());
        assert_eq!(merged.get("c"), Some(&both));
        let upper_wins = |_: &Tree, above: &Tree| above.clone();
        assert_eq!(lower.merged(&Table::default(), upper_wins), lower);
        assert_eq!(Table::default().merged(&lower, upper_wins), lower);
    }

    #[test]
    fn entries_are_put_in_found_and_taken_out_by_key() {
        let mut table = Table::default();
        for (key, number) in [("m", 1), ("a", 2), ("z", 3), ("m", 4)] {
            table.insert(key.into(), Tree::Int(number));
        }
        assert!(table.keys().map(Text::as_str).eq(["a", "m", "z"]));
        *table.get_mut("a").unwrap() = Tree::Null;
        assert_eq!(table.get("a"), Some(&Tree::Null));
        assert_eq!(table.remove("m"), Some(Tree::Int(4)));
        assert_eq!(
            (table.remove("m"), table.get("b"), table.len()),
            (None, None, 2)
        );
    }
}
