//! Private keys: made, read from PEM, written to PEM, and used to sign.

use p256::elliptic_curve::sec1::ToEncodedPoint;
use rsa::pkcs1v15::SigningKey;
use rsa::rand_core::{CryptoRng, RngCore};
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use rsa::{BigUint, RsaPrivateKey};
use sha2::Sha256;

use crate::function::{Ctx, FuncError};

use super::der::{self, Reader, bits, context, element, integer, object_id, sequence};
use super::pem;
use super::prime::random_prime;

/// How long RSA keys are: as in sprig, and where quickness counts.
const CERTIFICATE_BITS: usize = 2048;
const KEY_BITS: usize = 4096;
const QUICK_BITS: usize = 2048;

/// What making keys costs, in steps of ten nanoseconds: RSA of 2048 bits, DSA and those on curves.
const RSA_STEPS: u64 = 6_000_000;
const DSA_STEPS: u64 = 500_000;
const CURVE_STEPS: u64 = 50_000;

/// The exponent that all RSA keys of Go have.
const PUBLIC_EXPONENT: u32 = 65_537;

// Object identifiers, encoded.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A private key of one of sprig's types.
pub(super) enum PrivateKey {
    Rsa(Box<RsaPrivateKey>),
    Ecdsa(p256::SecretKey),
    Ed25519(ed25519_dalek::SigningKey),
    Dsa(Dsa),
}

/// A DSA key: the group, the public and the private number.
pub(super) struct Dsa {
    public: BigUint,
    private: BigUint,
}

/// The group of 2048 bits with a subgroup of 256 bits from RFC 5114; making one takes minutes.
mod dsa_group {
    pub(super) const P: &str = "87A8E61DB4B6663CFFBBD19C651959998CEEF608660DD0F25D2CEED4435E3B00E00DF8F1D61957D4FAF7DF4561B2AA3016C3D91134096FAA3BF4296D830E9A7C209E0C6497517ABD5A8A9D306BCF67ED91F9E6725B4758C022E0B1EF4275BF7B6C5BFC11D45F9088B941F54EB1E59BB8BC39A0BF12307F5C4FDB70C581B23F76B63ACAE1CAA6B7902D52526735488A0EF13C6D9A51BFA4AB3AD8347796524D8EF6A167B5A41825D967E144E5140564251CCACB83E6B486F6B3CA3F7971506026C0B857F689962856DED4010ABD0BE621C3A3960A54E710C375F26375D7014103A4B54330C198AF126116D2276E11715F693877FAD7EF09CADB094AE91E1A1597";
    pub(super) const Q: &str = "8CF83642A709A097B447997640129DA299B1A47D1EB3750BA308B0FE64F5FBD3";
    pub(super) const G: &str = "3FB32C9B73134D0B2E77506660EDBD484CA7B18F21EF205407F4793A1A0BA12510DBC15077BE463FFF4FED4AAC0BB555BE3A6C1B0C6B47B1BC3773BF7E8C6F62901228F8C28CBB18A55AE31341000A650196F931C77A57F2DDF463E5E9EC144B777DE62AAAB8A8628AC376D282D6ED3864E67982428EBC831D14348F6F2F9193B5045AF2767164E1DFC967C1FB3F2E55A4BD1BFFE83B9C80D052B985D182EA0ADB2A3B7313D3FE14C8484B1E052588B9B7D2BBD2DF016199ECD06E1557CD0915B3353BBB64E0EC377FD028370DF92B52C7891428CDC67EB6184B523D1DB246C32F63078490F00EF8D647D148D47954515E2327CFEF98C582664B4C0F6CC41659";
}

fn number(hexadecimal: &str) -> BigUint {
    BigUint::parse_bytes(hexadecimal.as_bytes(), 16).unwrap_or_default()
}

/// The host's random source, for libraries that want one of their own kind.
struct HostRandom<'a, 'h>(&'a mut Ctx<'h>);

impl RngCore for HostRandom<'_, '_> {
    fn next_u32(&mut self) -> u32 {
        self.next_u64() as u32
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.host.fill_random(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for HostRandom<'_, '_> {}

impl PrivateKey {
    /// A key of a type that `genPrivateKey` knows; the error is what it prints.
    pub(super) fn generate(
        ctx: &mut Ctx<'_>,
        kind: &str,
    ) -> Result<Result<Self, String>, FuncError> {
        Ok(match kind {
            "" | "rsa" => {
                let bits = if ctx.host.quick_keys() {
                    QUICK_BITS
                } else {
                    KEY_BITS
                };
                let key = Self::rsa(ctx, bits)?;
                key.ok_or_else(|| "failed to generate private key".to_owned())
            }
            "ecdsa" => Ok(Self::ecdsa(ctx)?),
            "ed25519" => {
                ctx.step(CURVE_STEPS)?;
                let mut seed = [0; 32];
                ctx.host.fill_random(&mut seed);
                Ok(Self::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed)))
            }
            "dsa" => {
                ctx.step(DSA_STEPS)?;
                let mut bytes = [0; 40];
                ctx.host.fill_random(&mut bytes);
                let (p, q, g) = (
                    number(dsa_group::P),
                    number(dsa_group::Q),
                    number(dsa_group::G),
                );
                let one = BigUint::from(1_u8);
                let private = BigUint::from_bytes_be(&bytes) % (q - &one) + one;
                let public = g.modpow(&private, &p);
                Ok(Self::Dsa(Dsa { public, private }))
            }
            other => Err(format!("Unknown type {other}")),
        })
    }

    /// A key for a certificate: RSA as in sprig, ECDSA where quickness counts.
    pub(super) fn for_certificate(ctx: &mut Ctx<'_>) -> Result<Self, FuncError> {
        if !ctx.host.quick_keys()
            && let Some(key) = Self::rsa(ctx, CERTIFICATE_BITS)?
        {
            return Ok(key);
        }
        Self::ecdsa(ctx)
    }

    fn rsa(ctx: &mut Ctx<'_>, bits: usize) -> Result<Option<Self>, FuncError> {
        // Twice the bits take ten times as long.
        ctx.step(if bits > QUICK_BITS {
            10 * RSA_STEPS
        } else {
            RSA_STEPS
        })?;
        let mut random = HostRandom(ctx);
        // Two primes that are no good together, which is next to impossible, are made anew.
        Ok((0..4).find_map(|_| {
            let [p, q] = [(); 2].map(|()| random_prime(&mut random, bits / 2));
            let key = RsaPrivateKey::from_p_q(p, q, BigUint::from(PUBLIC_EXPONENT)).ok()?;
            Some(Self::Rsa(Box::new(key)))
        }))
    }

    fn ecdsa(ctx: &mut Ctx<'_>) -> Result<Self, FuncError> {
        ctx.step(CURVE_STEPS)?;
        Ok(Self::Ecdsa(p256::SecretKey::random(&mut HostRandom(ctx))))
    }

    /// The key in the form that Go writes for its type.
    pub(super) fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => pem::encode("RSA PRIVATE KEY", &rsa_to_der(key)),
            Self::Ecdsa(key) => pem::encode("EC PRIVATE KEY", &ecdsa_to_der(key)),
            Self::Ed25519(key) => pem::encode("PRIVATE KEY", &ed25519_to_der(key)),
            Self::Dsa(key) => pem::encode("DSA PRIVATE KEY", &dsa_to_der(key)),
        }
    }

    /// Reads a key of any type that Go reads; the error is sprig's.
    pub(super) fn from_pem(text: &str) -> Result<Self, String> {
        let block = pem::decode(text).ok_or("no PEM data in input")?;
        let read = |read: fn(&[u8]) -> Option<Self>, act: &str| {
            read(&block.bytes).ok_or_else(|| format!("{act}: asn1: structure error"))
        };
        match block.label.as_str() {
            "PRIVATE KEY" => read(pkcs8_from_der, "decoding PEM as PKCS#8"),
            "RSA PRIVATE KEY" => read(rsa_from_der, "parsing RSA private key from PEM"),
            "EC PRIVATE KEY" => read(ecdsa_from_der, "parsing EC private key from PEM"),
            "DSA PRIVATE KEY" => read(dsa_from_der, "parsing DSA private key from PEM"),
            label if label.ends_with(" PRIVATE KEY") => {
                Err(format!("invalid private key type {label}"))
            }
            label => Err(format!("no private key data in PEM block of type {label}")),
        }
    }

    /// The public key with its algorithm, in DER; none for DSA, which certificates do not take.
    pub(super) fn public_info(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Rsa(key) => {
                let algorithm = sequence(&[&object_id(RSA), &element(der::NULL, &[])]);
                sequence(&[&algorithm, &bits(&rsa_public(key))])
            }
            Self::Ecdsa(key) => {
                let algorithm = sequence(&[&object_id(EC), &object_id(P256)]);
                sequence(&[&algorithm, &bits(&point(key))])
            }
            Self::Ed25519(key) => {
                let algorithm = sequence(&[&object_id(ED25519)]);
                sequence(&[&algorithm, &bits(key.verifying_key().as_bytes())])
            }
            Self::Dsa(_) => return None,
        })
    }

    /// A signature; none for DSA, which certificates do not take.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        Some(match self {
            Self::Rsa(key) => {
                let signer = SigningKey::<Sha256>::new(key.as_ref().clone());
                signer.try_sign(message).ok()?.to_vec()
            }
            Self::Ecdsa(key) => {
                let signer = p256::ecdsa::SigningKey::from(key);
                let signature: p256::ecdsa::Signature = signer.try_sign(message).ok()?;
                signature.to_der().as_bytes().to_vec()
            }
            Self::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
            Self::Dsa(_) => return None,
        })
    }

    /// The algorithm it signs with, in DER.
    pub(super) fn signature_algorithm(&self) -> Vec<u8> {
        match self {
            Self::Rsa(_) => sequence(&[&object_id(RSA_WITH_SHA256), &element(der::NULL, &[])]),
            Self::Ecdsa(_) => sequence(&[&object_id(ECDSA_WITH_SHA256)]),
            Self::Ed25519(_) | Self::Dsa(_) => sequence(&[&object_id(ED25519)]),
        }
    }
}

fn rsa_public(key: &RsaPrivateKey) -> Vec<u8> {
    let (n, e) = (key.n().to_bytes_be(), key.e().to_bytes_be());
    sequence(&[&integer(&n), &integer(&e)])
}

fn point(key: &p256::SecretKey) -> Vec<u8> {
    key.public_key().to_encoded_point(false).as_bytes().to_vec()
}

fn rsa_to_der(key: &RsaPrivateKey) -> Vec<u8> {
    let number = |value: &BigUint| integer(&value.to_bytes_be());
    let one = BigUint::from(1_u8);
    let [p, q] = key.primes() else {
        return Vec::new();
    };
    let exponents = [key.d() % (p - &one), key.d() % (q - &one)];
    // Fermat: the inverse of q is its power of p - 2.
    let inverse = q.modpow(&(p - BigUint::from(2_u8)), p);
    sequence(&[
        &integer(&[0]),
        &number(key.n()),
        &number(key.e()),
        &number(key.d()),
        &number(p),
        &number(q),
        &number(&exponents[0]),
        &number(&exponents[1]),
        &number(&inverse),
    ])
}

fn rsa_from_der(bytes: &[u8]) -> Option<PrivateKey> {
    let mut fields = Reader::new(bytes).expect(der::SEQUENCE)?.inside();
    let mut number = || Some(BigUint::from_bytes_be(fields.expect(der::INTEGER)?.content));
    let _version = number()?;
    let (n, e, d, p, q) = (number()?, number()?, number()?, number()?, number()?);
    let key = RsaPrivateKey::from_components(n, e, d, vec![p, q]).ok()?;
    Some(PrivateKey::Rsa(Box::new(key)))
}

fn ecdsa_to_der(key: &p256::SecretKey) -> Vec<u8> {
    sequence(&[
        &integer(&[1]),
        &element(der::OCTET_STRING, &key.to_bytes()),
        &element(context(0), &object_id(P256)),
        &element(context(1), &bits(&point(key))),
    ])
}

fn ecdsa_from_der(bytes: &[u8]) -> Option<PrivateKey> {
    let mut fields = Reader::new(bytes).expect(der::SEQUENCE)?.inside();
    fields.expect(der::INTEGER)?;
    let secret = fields.expect(der::OCTET_STRING)?.content;
    p256::SecretKey::from_slice(secret)
        .ok()
        .map(PrivateKey::Ecdsa)
}

fn ed25519_to_der(key: &ed25519_dalek::SigningKey) -> Vec<u8> {
    let seed = element(der::OCTET_STRING, key.as_bytes());
    sequence(&[
        &integer(&[0]),
        &sequence(&[&object_id(ED25519)]),
        &element(der::OCTET_STRING, &seed),
    ])
}

fn pkcs8_from_der(bytes: &[u8]) -> Option<PrivateKey> {
    let mut fields = Reader::new(bytes).expect(der::SEQUENCE)?.inside();
    fields.expect(der::INTEGER)?;
    let algorithm = fields
        .expect(der::SEQUENCE)?
        .inside()
        .expect(der::OBJECT_ID)?
        .content;
    let key = fields.expect(der::OCTET_STRING)?.content;
    match algorithm {
        RSA => rsa_from_der(key),
        EC => ecdsa_from_der(key),
        ED25519 => {
            let seed = Reader::new(key).expect(der::OCTET_STRING)?.content;
            let seed = seed.try_into().ok()?;
            Some(PrivateKey::Ed25519(ed25519_dalek::SigningKey::from_bytes(
                seed,
            )))
        }
        _ => None,
    }
}

fn dsa_to_der(key: &Dsa) -> Vec<u8> {
    let number = |value: &BigUint| integer(&value.to_bytes_be());
    let group = [dsa_group::P, dsa_group::Q, dsa_group::G].map(|part| number(&self::number(part)));
    sequence(&[
        &integer(&[0]),
        &group.concat(),
        &number(&key.public),
        &number(&key.private),
    ])
}

fn dsa_from_der(bytes: &[u8]) -> Option<PrivateKey> {
    let mut fields = Reader::new(bytes).expect(der::SEQUENCE)?.inside();
    let mut number = || Some(BigUint::from_bytes_be(fields.expect(der::INTEGER)?.content));
    for _ in 0..4 {
        number()?;
    }
    let (public, private) = (number()?, number()?);
    Some(PrivateKey::Dsa(Dsa { public, private }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dsa_group_is_one() {
        let (p, q, g) = (
            number(dsa_group::P),
            number(dsa_group::Q),
            number(dsa_group::G),
        );
        assert_eq!(g.modpow(&q, &p), BigUint::from(1_u8));
        assert_eq!((&p - BigUint::from(1_u8)) % &q, BigUint::from(0_u8));
    }
}
