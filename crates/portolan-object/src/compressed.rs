//! Bytes in little memory, for what waits and is not read meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush, Status, compress_bound};

/// Compressed bytes; cloning them costs a reference count.
#[derive(Debug, Clone)]
pub struct Compressed(Arc<Stored>);

#[derive(Debug)]
struct Stored {
    /// The length before compression.
    length: usize,
    /// What the bytes were compressed with; many share it.
    dictionary: Option<Arc<[u8]>>,
    compressed: Box<[u8]>,
}

/// A fast level: more would take time from other work for little gain.
const LEVEL: i32 = 3;

/// How far back repetitions are found, as a power of two.
const WINDOW_BITS: u8 = 15;

/// How many of each are kept for the next one who needs one: making them takes longer than compressing a few kilobytes.
const MAX_SPARE: usize = 4;

static DEFLATES: Mutex<Vec<Deflate>> = Mutex::new(Vec::new());
static INFLATES: Mutex<Vec<Inflate>> = Mutex::new(Vec::new());

impl Compressed {
    /// Compresses bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self::with_dictionary(bytes, None)
    }

    /// Compresses bytes that are like those of a dictionary: what is in both takes next to nothing.
    pub(crate) fn with_dictionary(bytes: &[u8], dictionary: Option<Arc<[u8]>>) -> Self {
        let mut deflate =
            taken(&DEFLATES).unwrap_or_else(|| Deflate::new(LEVEL, false, WINDOW_BITS));
        if let Some(dictionary) = &dictionary {
            let primed = deflate.set_dictionary(dictionary);
            assert!(primed.is_ok(), "nothing was compressed yet: {primed:?}");
        }
        let mut compressed = vec![0; compress_bound(bytes.len())];
        let status = deflate.compress(bytes, &mut compressed, DeflateFlush::Finish);
        assert!(
            status == Ok(Status::StreamEnd),
            "there is room for it: {status:?}"
        );
        let end = deflate.total_out() as usize;
        deflate.reset();
        give_back(&DEFLATES, deflate);
        Self(Arc::new(Stored {
            length: bytes.len(),
            dictionary,
            compressed: Box::from(&compressed[..end]),
        }))
    }

    /// The bytes as they were.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.length];
        let mut inflate = taken(&INFLATES).unwrap_or_else(|| Inflate::new(false, WINDOW_BITS));
        if let Some(dictionary) = &self.0.dictionary {
            let primed = inflate.set_dictionary(dictionary);
            assert!(primed.is_ok(), "nothing was read yet: {primed:?}");
        }
        let status = inflate.decompress(&self.0.compressed, &mut bytes, InflateFlush::Finish);
        assert!(
            status == Ok(Status::StreamEnd),
            "only `new` writes them: {status:?}"
        );
        inflate.reset(false);
        give_back(&INFLATES, inflate);
        bytes
    }

    /// How many bytes it takes.
    pub(crate) fn len(&self) -> usize {
        self.0.compressed.len()
    }

    /// Whether both are clones of the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn taken<T>(spare: &Mutex<Vec<T>>) -> Option<T> {
    // A thread that panicked can only have left fewer.
    spare.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn give_back<T>(spare: &Mutex<Vec<T>>, one: T) {
    let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() < MAX_SPARE {
        spare.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        let repeated = b"metadata: {labels: {app: web}}\n".repeat(4000);
        let noise: Vec<u8> = (0_u32..70_000)
            .map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for bytes in [&b""[..], b"x", &repeated, &noise] {
            let compressed = Compressed::new(bytes);
            assert_eq!(compressed.bytes(), bytes);
        }
        assert!(Compressed::new(&repeated).len() * 20 < repeated.len());
    }

    #[test]
    fn what_a_dictionary_has_takes_little() {
        let words: Vec<String> = (0_u32..500)
            .map(|number| format!("{:x}", number.wrapping_mul(2_654_435_761)))
            .collect();
        let first = words.join(" ").into_bytes();
        let second = [&first[..], b" and more"].concat();
        let alone = Compressed::new(&second);
        for length in [1, first.len(), 100] {
            let dictionary = Arc::from(&first[..length]);
            let compressed = Compressed::with_dictionary(&second, Some(dictionary));
            assert_eq!(compressed.bytes(), second);
            assert_eq!(compressed.len() * 8 < alone.len(), length == first.len());
        }
        assert_eq!(alone.bytes(), second);
    }
}
