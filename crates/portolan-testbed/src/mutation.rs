//! Inputs for parsers, made from good ones with small mistakes, as a fuzzer starts, in a test that takes seconds.
//!
//! The same seed and corpus always give the same input, so a failure can be reproduced.

/// Pieces that parsers stumble over.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\xc3",
    b"\r\n",
    b"\n",
    b"\t",
    b" ",
    b"{{",
    b"}}",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"'",
    b"`",
    b"\\",
    b"|",
    b"-",
    b"---\n",
    b"&a",
    b"*a",
    b"<<: ",
    b"$",
    b"%",
    b"0",
    b"-1",
    b"9223372036854775808",
    b"1e400",
    b"..",
    b"/",
    b"://",
    b"=",
    b":",
    b",",
    b";",
];

/// Returns an input that lies near one of the corpus: bytes changed, taken out, repeated, or taken from another one.
pub fn mutate(seed: u64, corpus: &[&[u8]]) -> Vec<u8> {
    let mut random = RandomNumbers(seed);
    let mut input = random.pick(corpus).map_or_else(Vec::new, <[u8]>::to_vec);
    for _ in 0..=random.below(4) {
        change(&mut input, corpus, &mut random);
    }
    input
}

fn change(input: &mut Vec<u8>, corpus: &[&[u8]], random: &mut RandomNumbers) {
    /// Repeating a part again and again must not fill the memory.
    const MAX_BYTES: usize = 64 << 10;
    let at = random.below(input.len() + 1);
    let end = (at + 1 + random.below(16)).min(input.len());
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 => drop(input.drain(at..end)),
        2 if input.len() < MAX_BYTES => {
            let part = input[at..end].repeat(1 + random.below(50));
            input.splice(at..at, part);
        }
        3 => input.truncate(at),
        4 => {
            let other = random.pick(corpus).unwrap_or_default();
            let from = random.below(other.len() + 1);
            input.splice(at..end, other[from..].iter().copied());
        }
        _ => {
            let piece = random.pick(PIECES).unwrap_or_default();
            input.splice(at..at, piece.iter().copied());
        }
    }
}

/// `SplitMix64`: small, and good enough to spread mistakes.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a [u8]]) -> Option<&'a [u8]> {
        from.get(self.below(from.len())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_input() {
        let corpus: &[&[u8]] = &[b"a: [1, 2]\n", b"{{ .Values.x | quote }}"];
        let inputs: Vec<_> = (0..1000).map(|seed| mutate(seed, corpus)).collect();
        assert!((0..1000).all(|seed| mutate(seed, corpus) == inputs[seed as usize]));
        let mut distinct = inputs;
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 800, "{}", distinct.len());
    }

    #[test]
    fn nothing_can_be_mutated_too() {
        assert!((0..100).all(|seed| mutate(seed, &[]).len() < 1000));
    }
}
