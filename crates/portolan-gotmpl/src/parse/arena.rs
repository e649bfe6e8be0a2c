//! Lists that share one piece of memory: items of a tree in the order in which they were completed, linked by index.
//!
//! A tree of vectors costs an allocation for each of its lists, and templates have tens of thousands. Here a list is
//! its first and last index, and everything after an [`Arena::len`] is dropped with one call.

use std::marker::PhantomData;

/// Where the items of many lists lie, each with the index of the next one of its list.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    items: Vec<(T, u32)>,
}

/// Items of an arena in order. It means nothing without the arena that it was filled from.
#[derive(Debug)]
pub(crate) struct List<T> {
    first: u32,
    last: u32,
    count: u32,
    items: PhantomData<fn() -> T>,
}

/// No item: texts are shorter than 4 GiB, so there are never that many.
const NONE: u32 = u32::MAX;

impl<T> Arena<T> {
    /// An arena with room for some items.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            items: Vec::with_capacity(count),
        }
    }

    /// Adds an item to a list.
    pub(crate) fn push(&mut self, list: &mut List<T>, item: T) {
        let index = self.items.len() as u32;
        match self.items.get_mut(list.last as usize) {
            Some((_, next)) => *next = index,
            None => list.first = index,
        }
        list.last = index;
        list.count += 1;
        self.items.push((item, NONE));
    }

    pub(crate) fn iter(&self, list: List<T>) -> impl Iterator<Item = &T> {
        let mut next = list.first;
        std::iter::from_fn(move || {
            let (item, after) = self.items.get(next as usize)?;
            next = *after;
            Some(item)
        })
    }

    pub(crate) fn first(&self, list: List<T>) -> Option<&T> {
        self.items.get(list.first as usize).map(|(item, _)| item)
    }

    pub(crate) fn last(&self, list: List<T>) -> Option<&T> {
        self.items.get(list.last as usize).map(|(item, _)| item)
    }

    /// How many items there are, of all lists.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Forgets all but the first items.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }
}

impl<T> List<T> {
    pub(crate) fn len(self) -> usize {
        self.count as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.count == 0
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
            count: 0,
            items: PhantomData,
        }
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_may_grow_in_turns() {
        let mut arena = Arena::with_capacity(4);
        let (mut odd, mut even) = (List::default(), List::default());
        for number in 0..6 {
            let list = if number % 2 == 0 { &mut even } else { &mut odd };
            arena.push(list, number);
        }
        assert_eq!(arena.iter(even).copied().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(arena.iter(odd).copied().collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!((arena.first(odd), arena.last(odd)), (Some(&1), Some(&5)));
        assert_eq!((odd.len(), List::<u8>::default().is_empty()), (3, true));
    }
}
