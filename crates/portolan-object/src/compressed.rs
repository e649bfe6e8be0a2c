//! Bytes in little memory, for what waits and is not read meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush, Status, compress_bound};

/// Compressed bytes; cloning them costs a reference count.
#[derive(Debug, Clone)]
pub struct Compressed(Arc<[u8]>);

/// A fast level: more would take time from other work for little gain.
const LEVEL: i32 = 3;

/// How far back repetitions are found, as a power of two.
const WINDOW_BITS: u8 = 15;

/// The length before compression stands in front.
const LENGTH_BYTES: usize = size_of::<u64>();

/// How many of each are kept for the next one who needs one: making them takes longer than compressing a few kilobytes.
const MAX_SPARE: usize = 4;

static DEFLATES: Mutex<Vec<Deflate>> = Mutex::new(Vec::new());
static INFLATES: Mutex<Vec<Inflate>> = Mutex::new(Vec::new());

impl Compressed {
    /// Compresses bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut deflate =
            taken(&DEFLATES).unwrap_or_else(|| Deflate::new(LEVEL, false, WINDOW_BITS));
        let mut compressed = vec![0; LENGTH_BYTES + compress_bound(bytes.len())];
        let (length, body) = compressed.split_at_mut(LENGTH_BYTES);
        length.copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let status = deflate.compress(bytes, body, DeflateFlush::Finish);
        assert!(
            status == Ok(Status::StreamEnd),
            "there is room for it: {status:?}"
        );
        let end = LENGTH_BYTES + deflate.total_out() as usize;
        deflate.reset();
        give_back(&DEFLATES, deflate);
        Self(Arc::from(&compressed[..end]))
    }

    /// The bytes as they were.
    pub fn bytes(&self) -> Vec<u8> {
        let (length, body) = self.0.split_at(LENGTH_BYTES);
        let length = length.try_into().map_or(0, u64::from_le_bytes);
        let mut bytes = vec![0; length as usize];
        let mut inflate = taken(&INFLATES).unwrap_or_else(|| Inflate::new(false, WINDOW_BITS));
        let status = inflate.decompress(body, &mut bytes, InflateFlush::Finish);
        assert!(
            status == Ok(Status::StreamEnd),
            "only `new` writes them: {status:?}"
        );
        inflate.reset(false);
        give_back(&INFLATES, inflate);
        bytes
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
        assert!(Compressed::new(&repeated).0.len() * 20 < repeated.len());
    }
}
