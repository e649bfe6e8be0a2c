//! A sequence that is cheap to clone, and copied when a shared one is changed.
//!
//! A parsed sequence stays in one piece of memory with its reference count, because most are never changed; only one
//! that grows or shrinks is moved into a vector.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Elements behind a reference count.
pub(crate) enum Shared<T> {
    /// As many as there were from the start.
    Fixed(Arc<[T]>),
    /// Any number of them.
    Growing(Arc<Vec<T>>),
}

impl<T> Shared<T> {
    /// Whether both are one and the same in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && std::ptr::eq(self.as_ptr(), other.as_ptr())
    }
}

impl<T: Clone> Shared<T> {
    /// The elements, to change one by one.
    pub(crate) fn slice_mut(&mut self) -> &mut [T] {
        match self {
            Self::Fixed(elements) => Arc::make_mut(elements),
            Self::Growing(elements) => Arc::<Vec<T>>::make_mut(elements),
        }
    }
}

impl<T: Clone + Default> Shared<T> {
    /// The elements, to change in any way.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<T> {
        if let Self::Fixed(elements) = self {
            let elements = match Arc::get_mut(elements) {
                Some(own) => own.iter_mut().map(std::mem::take).collect(),
                None => elements.to_vec(),
            };
            *self = Self::from(elements);
        }
        match self {
            Self::Growing(elements) => Arc::make_mut(elements),
            // A fixed one was replaced above, and a vector makes a growing one.
            Self::Fixed(_) => unreachable!("it was just replaced"),
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Fixed(elements) => elements,
            Self::Growing(elements) => elements,
        }
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(elements: Vec<T>) -> Self {
        Self::Growing(Arc::new(elements))
    }
}

/// From an iterator that knows its length, the elements go straight to their place.
impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self::Fixed(elements.into_iter().collect())
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Fixed(elements) => Self::Fixed(Arc::clone(elements)),
            Self::Growing(elements) => Self::Growing(Arc::clone(elements)),
        }
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::Fixed(Arc::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_never_shows_in_a_clone() {
        let first: Shared<String> = ["a", "b"].map(String::from).into_iter().collect();
        let mut second = first.clone();
        assert!(first.is_same(&second));
        second.to_mut().push("c".to_owned());
        let mut third = second.clone();
        third.slice_mut()[0] = "d".to_owned();
        assert_eq!(
            (&*first, &*second),
            (
                &["a", "b"].map(String::from)[..],
                &["a", "b", "c"].map(String::from)[..]
            )
        );
        assert_eq!(third[0], "d");
    }

    #[test]
    fn what_has_one_owner_is_moved_when_it_grows() {
        let mut own: Shared<String> = ["a".to_owned()].into_iter().collect();
        let place = own[0].as_ptr();
        own.to_mut().push("b".to_owned());
        assert!(std::ptr::eq(own[0].as_ptr(), place));
    }
}
