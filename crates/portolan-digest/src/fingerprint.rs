//! The digest of a value by its fields.
//!
//! Printed text must never be hashed: it leaves out fields, it changes with a library's version, and two values may
//! print the same. Here every field is written in an unambiguous form: numbers have a fixed width, texts and lists
//! include their length, and an absent value differs from an empty one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Digest, Hasher};

/// A value whose fields can be hashed. Equal values give equal digests, and values that differ give different ones.
///
/// [`fingerprint!`](crate::fingerprint) implements it for structs and enums of the workspace.
pub trait Fingerprint {
    /// Adds every field that tells this value from others of its type.
    fn fingerprint(&self, fields: &mut FieldHasher);
}

/// Takes fields one after the other and gives the digest of all.
#[derive(Debug, Clone)]
pub struct FieldHasher {
    state: Hasher,
}

/// Implements [`Fingerprint`] by naming all fields of a struct, or all variants of an enum with their fields.
///
/// A field or variant that is not named does not compile, so that a new one is not forgotten.
///
/// ```
/// use portolan_digest::{FieldHasher, fingerprint};
///
/// struct Chart { name: String, version: Option<String> }
/// fingerprint!(struct Chart { name, version });
///
/// enum Source { Tree { path: String }, Archive(u64), Nowhere }
/// fingerprint!(enum Source { Tree { path }, Archive(id), Nowhere });
///
/// let digest = |chart: Chart, source: Source| {
///     let mut fields = FieldHasher::of("release");
///     fields.add(&chart).add(&source);
///     fields.finish()
/// };
/// let chart = |version: Option<&str>| Chart { name: "shop".into(), version: version.map(Into::into) };
/// let one = digest(chart(None), Source::Nowhere);
/// assert_ne!(one, digest(chart(Some("")), Source::Nowhere));
/// assert_ne!(one, digest(chart(None), Source::Archive(0)));
/// assert_ne!(one, digest(chart(None), Source::Tree { path: String::new() }));
/// ```
#[macro_export]
macro_rules! fingerprint {
    (struct $type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::Fingerprint for $type {
            fn fingerprint(&self, fields: &mut $crate::FieldHasher) {
                let Self { $($field),* } = self;
                $( fields.add($field); )*
            }
        }
    };
    (enum $type:ty { $(
        $variant:ident $({ $($field:ident),* $(,)? })? $(( $($item:ident),* $(,)? ))?
    ),* $(,)? }) => {
        impl $crate::Fingerprint for $type {
            fn fingerprint(&self, fields: &mut $crate::FieldHasher) {
                match self {
                    $( Self::$variant $({ $($field),* })? $(( $($item),* ))? => {
                        fields.add(stringify!($variant));
                        $( $( fields.add($field); )* )?
                        $( $( fields.add($item); )* )?
                    } )*
                }
            }
        }
    };
}

// === impl FieldHasher ===

impl FieldHasher {
    /// Begins the digest of one kind of value; equal fields of different kinds give different digests.
    pub fn of(kind: &str) -> Self {
        let state = Hasher::default();
        let mut begun = Self { state };
        begun.add(kind);
        begun
    }

    /// Adds a field.
    pub fn add<T: Fingerprint + ?Sized>(&mut self, field: &T) -> &mut Self {
        field.fingerprint(self);
        self
    }

    /// Adds a content, with its length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.fixed((bytes.len() as u64).to_le_bytes());
        self.state.update(bytes);
        self
    }

    /// The digest of everything that was added.
    pub fn finish(self) -> Digest {
        self.state.finish()
    }

    /// Adds bytes whose number is the same for every value of the type.
    fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.state.update(&bytes);
    }
}

// === impl Fingerprint for what values are made of ===

macro_rules! fingerprint_numbers {
    ($($number:ty),*) => {
        $( impl Fingerprint for $number {
            fn fingerprint(&self, fields: &mut FieldHasher) {
                fields.fixed(self.to_le_bytes());
            }
        } )*
    };
}

// `u8` is left out, so that contents go through `bytes` and not through lists of numbers.
fingerprint_numbers!(u16, u32, u64, i16, i32, i64);

impl Fingerprint for bool {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.fixed([u8::from(*self)]);
    }
}

/// As 64 bits on every machine.
impl Fingerprint for usize {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(&(*self as u64));
    }
}

/// By its bits: a number that is none equals itself, and the two zeros differ.
impl Fingerprint for f64 {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.fixed(self.to_bits().to_le_bytes());
    }
}

impl Fingerprint for str {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.bytes(self.as_bytes());
    }
}

impl Fingerprint for String {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(self.as_str());
    }
}

impl Fingerprint for Digest {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.fixed(*self.as_bytes());
    }
}

impl<T: Fingerprint> Fingerprint for Option<T> {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(&self.is_some());
        if let Some(value) = self {
            fields.add(value);
        }
    }
}

impl<T: Fingerprint> Fingerprint for [T] {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(&self.len());
        for item in self {
            fields.add(item);
        }
    }
}

impl<T: Fingerprint> Fingerprint for Vec<T> {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(self.as_slice());
    }
}

impl<T: Fingerprint> Fingerprint for BTreeSet<T> {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(&self.len());
        for item in self {
            fields.add(item);
        }
    }
}

impl<K: Fingerprint, V: Fingerprint> Fingerprint for BTreeMap<K, V> {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(&self.len());
        for (key, value) in self {
            fields.add(key).add(value);
        }
    }
}

impl<A: Fingerprint, B: Fingerprint> Fingerprint for (A, B) {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        fields.add(&self.0).add(&self.1);
    }
}

impl<T: Fingerprint + ?Sized> Fingerprint for &T {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        (*self).fingerprint(fields);
    }
}

impl<T: Fingerprint + ?Sized> Fingerprint for Arc<T> {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        self.as_ref().fingerprint(fields);
    }
}

impl<T: Fingerprint + ?Sized> Fingerprint for Box<T> {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        self.as_ref().fingerprint(fields);
    }
}
