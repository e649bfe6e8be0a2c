//! What chunks of packed objects have in common, so that each further chunk takes little memory.
//!
//! The releases of a chart print the same objects but for some names, and so do the Kustomizations of most
//! repositories. A dictionary is one of the chunks that were packed before, as it was:
//!
//! ```text
//! first chunks ──▶ compressed alone
//! one of them ──▶ dictionary ──▶ those that follow: compressed with it, a small part of their size alone
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use crate::compressed::Compressed;

/// Learns from the chunks that it compresses.
#[derive(Debug, Default)]
pub struct PackDictionary(Mutex<Learned>);

#[derive(Debug, Default)]
struct Learned {
    dictionary: Option<Arc<[u8]>>,
    /// How often the dictionary was replaced.
    replaced: u32,
    /// How many chunks were compressed since.
    chunks: usize,
}

/// How many bytes of a chunk are learned: each chunk is compared with all of them.
const MAX_BYTES: usize = 16 << 10;

/// After how many chunks the first dictionary is taken: it is not compressed, so one for fewer chunks is not worth its
/// memory. Each further one takes twice as many, so that there are only a few whatever the chunks are.
const MIN_CHUNKS: usize = 4;

/// A chunk that is not compressed to this part of its size is not like the dictionary.
const GOOD_PART: usize = 8;

impl PackDictionary {
    /// Compresses a chunk.
    pub(crate) fn compress(&self, chunk: &[u8]) -> Compressed {
        let dictionary = self.with_learned(|learned| learned.dictionary.clone());
        let compressed = Compressed::with_dictionary(chunk, dictionary);
        self.with_learned(|learned| learned.note(chunk, compressed.len()));
        compressed
    }

    fn with_learned<T>(&self, work: impl FnOnce(&mut Learned) -> T) -> T {
        // A thread that panicked can only have noted less.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Learned {
    fn note(&mut self, chunk: &[u8], compressed: usize) {
        self.chunks += 1;
        let is_time = self.chunks >> self.replaced.min(usize::BITS - 1) > MIN_CHUNKS;
        if is_time && compressed * GOOD_PART > chunk.len() {
            let learned = chunk.get(..MAX_BYTES).unwrap_or(chunk);
            self.dictionary = Some(Arc::from(learned));
            self.replaced += 1;
            self.chunks = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that repeat nothing, the same for the same seed.
    fn chunk(seed: u32) -> Vec<u8> {
        let mut state = seed;
        let words = (0..300).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("{state:08x}")
        });
        words.collect::<Vec<_>>().join(" ").into_bytes()
    }

    #[test]
    fn a_chunk_like_those_before_takes_a_small_part() {
        let dictionary = PackDictionary::default();
        let alone = dictionary.compress(&chunk(7)).len();
        for _ in 0..MIN_CHUNKS {
            dictionary.compress(&chunk(7));
        }
        let last = dictionary.compress(&chunk(7));
        assert_eq!(last.bytes(), chunk(7));
        assert!(last.len() * 10 < alone, "{} of {alone}", last.len());
    }

    #[test]
    fn chunks_that_are_not_alike_have_few_dictionaries_and_are_the_same_again() {
        let dictionary = PackDictionary::default();
        let compressed: Vec<_> = (0..500)
            .map(|seed| (seed, dictionary.compress(&chunk(seed))))
            .collect();
        for (seed, compressed) in compressed {
            assert_eq!(compressed.bytes(), chunk(seed));
        }
        let replaced = dictionary.with_learned(|learned| learned.replaced);
        assert!((2..9).contains(&replaced), "{replaced}");
    }
}
