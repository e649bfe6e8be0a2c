//! What templates can ask the host for: clock, random numbers, cluster and name service.
//!
//! [`Seeded`] answers from a seed alone, so equal input renders equal output; callers that want Helm's own behaviour
//! implement [`Host`] with a real clock and real random numbers.

use std::collections::BTreeMap;

use crate::value::Value;

/// Answers what cannot be computed from the template and its values.
pub trait Host {
    /// The time now: nanoseconds since 1970 in UTC.
    fn now(&self) -> i128;

    /// Fills a buffer with random bytes.
    fn fill_random(&mut self, buffer: &mut [u8]);

    /// Whether keys may be of kinds that are made at once, in place of those that sprig makes.
    ///
    /// Making RSA keys takes from tenths of seconds to seconds; a host for real releases answers no.
    fn quick_keys(&self) -> bool {
        true
    }

    /// The salt for a password's digest: random, or where keys may be quick the same for the same password, so that a
    /// secret that is rendered again for its checksum is the same secret.
    fn salt(&mut self, password: &[u8]) -> [u8; 16] {
        let _ = password;
        let mut salt = [0; 16];
        self.fill_random(&mut salt);
        salt
    }

    /// Objects of the cluster, as `lookup` asks for them: an empty map where there is none.
    fn lookup(&mut self, query: &LookupQuery<'_>) -> Value {
        let _ = query;
        Value::map(BTreeMap::new())
    }

    /// An address of a host name; empty without a name service.
    fn address_of(&mut self, name: &str) -> String {
        let _ = name;
        String::new()
    }
}

/// What `lookup` asks for; an empty name lists all, an empty namespace all namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupQuery<'a> {
    /// Group and version.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// A host whose clock stands still and whose randomness follows from a seed.
#[derive(Debug, Clone)]
pub struct Seeded {
    now: i128,
    seed: u64,
    state: [u64; 4],
}

impl Seeded {
    /// A host for a seed, such as the release's name and namespace, and a time in nanoseconds since 1970.
    pub fn new(seed: &str, now: i128) -> Self {
        // FNV-1a spreads the seed, SplitMix64 fills the generator's state from it.
        let seed = spread(0xcbf2_9ce4_8422_2325, seed.as_bytes());
        let mut next = seed;
        let state = std::array::from_fn(|_| split_mix(&mut next));
        Self { now, seed, state }
    }

    /// The next number of xoshiro256**.
    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }
}

impl Host for Seeded {
    fn now(&self) -> i128 {
        self.now
    }

    fn fill_random(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    fn salt(&mut self, password: &[u8]) -> [u8; 16] {
        let mut next = spread(self.seed, password);
        let halves = [split_mix(&mut next), split_mix(&mut next)];
        (u128::from(halves[0]) << 64 | u128::from(halves[1])).to_le_bytes()
    }
}

/// Mixes bytes into a hash by FNV-1a.
fn spread(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
