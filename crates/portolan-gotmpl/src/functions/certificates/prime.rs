//! Prime numbers for RSA keys.
//!
//! ```text
//! random start ──▶ sieve of the numbers after it ──▶ one power for each that is left ──▶ Miller and Rabin for the first
//! ```
//!
//! The sieve removes nearly all numbers and costs a few additions each; a power costs a millisecond.

use std::sync::LazyLock;

use rsa::BigUint;
use rsa::rand_core::RngCore;

/// Primes below this are sieved out: about 40 of the numbers that are left are tried for one prime.
const SIEVE_LIMIT: u32 = 1 << 14;

/// How many odd numbers after a start are looked at; most starts have a prime among them.
const WINDOW: usize = 1 << 11;

/// Random bases tried in the end; for numbers of this length even five leave a chance below 2^-100.
const ROUNDS: usize = 8;

/// A prime of so many bits, the two highest set, as keys need them; `bits` is a multiple of 8.
pub(super) fn random_prime(random: &mut impl RngCore, bits: usize) -> BigUint {
    let mut bytes = vec![0; bits / 8];
    loop {
        random.fill_bytes(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first |= 0xc0;
        }
        if let Some(last) = bytes.last_mut() {
            *last |= 1;
        }
        let start = BigUint::from_bytes_be(&bytes);
        if let Some(prime) = prime_after(&start, random) {
            return prime;
        }
    }
}

/// The first prime among the odd numbers from here on.
fn prime_after(start: &BigUint, random: &mut impl RngCore) -> Option<BigUint> {
    let left = sieve(start).into_iter().enumerate();
    let mut candidates = left
        .filter(|(_, composite)| !composite)
        .map(|(index, _)| start + BigUint::from(2 * index));
    candidates.find(|number| passes_fermat(number) && is_prime(number, random))
}

/// For each odd number from here on whether a small prime divides it.
fn sieve(start: &BigUint) -> Vec<bool> {
    let mut composite = vec![false; WINDOW];
    for prime in SMALL_PRIMES.iter() {
        let rest = remainder(start, *prime);
        // Half of what is missing to the next odd multiple.
        let missing = (*prime - rest) % *prime;
        let first = if missing.is_multiple_of(2) {
            missing / 2
        } else {
            missing.midpoint(*prime)
        };
        for place in composite
            .iter_mut()
            .skip(first as usize)
            .step_by(*prime as usize)
        {
            *place = true;
        }
    }
    composite
}

fn remainder(number: &BigUint, prime: u32) -> u32 {
    let rest = number % BigUint::from(prime);
    rest.to_bytes_le()
        .iter()
        .rev()
        .fold(0, |rest, byte| rest << 8 | u32::from(*byte))
}

static SMALL_PRIMES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let is_prime = |number: &u32| {
        let mut divisors = (3..).step_by(2).take_while(|d| d * d <= *number);
        divisors.all(|divisor| !number.is_multiple_of(divisor))
    };
    (3..SIEVE_LIMIT).step_by(2).filter(is_prime).collect()
});

/// Whether 2 raised to the number less one leaves 1: true of primes, and of hardly any other number.
fn passes_fermat(number: &BigUint) -> bool {
    let one = BigUint::from(1_u8);
    BigUint::from(2_u8).modpow(&(number - &one), number) == one
}

/// The test of Miller and Rabin with random bases.
fn is_prime(number: &BigUint, random: &mut impl RngCore) -> bool {
    let one = BigUint::from(1_u8);
    let less_one = number - &one;
    let twos = less_one.trailing_zeros().unwrap_or_default();
    let odd = &less_one >> twos;
    (0..ROUNDS).all(|_| {
        let base = BigUint::from(random.next_u64() | 2);
        let mut power = base.modpow(&odd, number);
        if power == one || power == less_one {
            return true;
        }
        (1..twos).any(|_| {
            power = &power * &power % number;
            power == less_one
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A random source that counts.
    struct Counting(u64);

    impl RngCore for Counting {
        fn next_u32(&mut self) -> u32 {
            self.next_u64() as u32
        }

        fn next_u64(&mut self) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            self.0
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill_with(|| (self.next_u64() >> 32) as u8);
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
            self.fill_bytes(bytes);
            Ok(())
        }
    }

    #[test]
    fn the_first_prime_after_a_number_is_found() {
        let after = |start: u64| prime_after(&BigUint::from(start), &mut Counting(7));
        assert_eq!(after(1_000_000_001), Some(BigUint::from(1_000_000_007_u64)));
        assert_eq!(
            after(18_446_744_073_709_551_521),
            Some(BigUint::from(18_446_744_073_709_551_521_u64))
        );
    }

    #[test]
    fn composites_that_look_like_primes_are_refused() {
        // Carmichael numbers pass Fermat's test with nearly every base.
        for number in [825_265_u64, 321_197_185, 5_394_826_801] {
            assert!(
                !is_prime(&BigUint::from(number), &mut Counting(3)),
                "{number}"
            );
        }
    }

    #[test]
    fn a_prime_has_the_bits_that_were_asked_for() {
        let prime = random_prime(&mut Counting(1), 256);
        assert_eq!(prime.bits(), 256);
        assert!(is_prime(&prime, &mut Counting(2)));
    }
}
