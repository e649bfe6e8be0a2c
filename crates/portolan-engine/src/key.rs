//! The name of a unit, cheap to copy around and ordered like its text.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

/// The name of a unit, for example `Kustomization/flux-system/apps`.
///
/// `Key<T>` says that the unit makes a `T`: only such a unit can be added under it, and a `T` comes out of it. A `Key`
/// names a unit of any type, for needs and reports. Two units with the same text are the same unit. A clone is a
/// reference count.
pub struct Key<T = Untyped> {
    text: Arc<str>,
    output: PhantomData<fn() -> T>,
}

/// The output of a unit when its type does not matter.
#[derive(Debug)]
pub enum Untyped {}

impl<T> Key<T> {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same key, for where the type of the output does not matter.
    pub fn untyped(&self) -> Key {
        Key::new(Arc::clone(&self.text))
    }

    fn new(text: Arc<str>) -> Self {
        Self {
            text,
            output: PhantomData,
        }
    }
}

impl<T> From<&str> for Key<T> {
    fn from(text: &str) -> Self {
        Self::new(text.into())
    }
}

impl<T> From<String> for Key<T> {
    fn from(text: String) -> Self {
        Self::new(text.into())
    }
}

impl<T> From<&Self> for Key<T> {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl<T> AsRef<str> for Key<T> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// A key is found in maps and sets by its text.
impl<T> Borrow<str> for Key<T> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl<T> fmt::Display for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

// Derived, these would ask the same of the output.

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.text))
    }
}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<T> Eq for Key<T> {}

impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl<T> Hash for Key<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
