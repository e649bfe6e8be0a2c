//! Certificates as sprig asks Go for them: version 3, for servers and clients, signed with SHA-256.

use std::net::IpAddr;

use sha1::{Digest, Sha1};

use crate::fmt::quote;
use crate::function::Ctx;
use portolan_go::time::{SECOND, Time, Zone};

use super::der::{
    self, Reader, bits, context, context_bytes, element, integer, object_id, sequence,
};
use super::key::PrivateKey;

/// What a certificate shall say.
pub(super) struct Request {
    pub(super) common_name: String,
    pub(super) names: Names,
    pub(super) days: i64,
    pub(super) role: Role,
}

/// Further names of the subject.
#[derive(Default)]
pub(super) struct Names {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) hosts: Vec<String>,
}

/// What a certificate is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Authority,
    Server,
}

/// What of a certificate counts when it signs another: all of it as DER.
pub(super) struct Issuer {
    subject: Vec<u8>,
    public_info: Vec<u8>,
    key_id: Option<Vec<u8>>,
}

// Object identifiers, encoded.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const KEY_ID: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// A certificate that its own key signs, in DER.
pub(super) fn self_signed(
    ctx: &mut Ctx<'_>,
    request: &Request,
    key: &PrivateKey,
) -> Result<Vec<u8>, String> {
    let issuer = Issuer {
        subject: name(&request.common_name),
        public_info: public_info(key)?,
        key_id: None,
    };
    signed(ctx, request, key, &issuer, key)
}

/// A certificate that an issuer signs, in DER.
pub(super) fn signed(
    ctx: &mut Ctx<'_>,
    request: &Request,
    key: &PrivateKey,
    issuer: &Issuer,
    issuer_key: &PrivateKey,
) -> Result<Vec<u8>, String> {
    let public_info = public_info(key)?;
    if issuer.public_info != self::public_info(issuer_key)? {
        return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
    }
    let mut serial = [0; 16];
    ctx.host.fill_random(&mut serial);
    let subject = name(&request.common_name);
    let algorithm = issuer_key.signature_algorithm();
    let extensions = extensions(request, &public_info, issuer, &subject)?;
    let body = sequence(&[
        &element(context(0), &integer(&[2])),
        &integer(&serial),
        &algorithm,
        &issuer.subject,
        &validity(ctx.host.now(), request.days),
        &subject,
        &public_info,
        &element(context(3), &extensions),
    ]);
    let signature = issuer_key
        .sign(&body)
        .ok_or("x509: only RSA, ECDSA and Ed25519 keys supported")?;
    Ok(sequence(&[&body, &algorithm, &bits(&signature)]))
}

fn public_info(key: &PrivateKey) -> Result<Vec<u8>, String> {
    key.public_info()
        .ok_or_else(|| "x509: unsupported public key type: *dsa.PublicKey".to_owned())
}

/// A name of nothing but a common name, or of nothing.
fn name(common_name: &str) -> Vec<u8> {
    if common_name.is_empty() {
        return sequence(&[]);
    }
    let printable = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    let tag = if common_name.chars().all(printable) {
        der::PRINTABLE_STRING
    } else {
        der::UTF8_STRING
    };
    let attribute = sequence(&[
        &object_id(COMMON_NAME),
        &element(tag, common_name.as_bytes()),
    ]);
    sequence(&[&element(der::SET, &attribute)])
}

/// From now for so many days; Go's durations wrap, and so do these.
fn validity(now: i128, days: i64) -> Vec<u8> {
    let length = days.wrapping_mul(24 * 3_600_000_000_000);
    let moment = |nanoseconds: i128| {
        let time = Time {
            nanoseconds: nanoseconds / SECOND * SECOND,
            zone: Zone::Utc,
        };
        // Two digits for the year are for this half century and the one before.
        let year: i64 = time.format("2006").parse().unwrap_or(0);
        if (1950..2050).contains(&year) {
            element(der::UTC_TIME, time.format("060102150405Z").as_bytes())
        } else {
            element(
                der::GENERALIZED_TIME,
                time.format("20060102150405Z").as_bytes(),
            )
        }
    };
    sequence(&[&moment(now), &moment(now + i128::from(length))])
}

fn extensions(
    request: &Request,
    public_info: &[u8],
    issuer: &Issuer,
    subject: &[u8],
) -> Result<Vec<u8>, String> {
    let authority = request.role == Role::Authority;
    // Digital signature and key encipherment; authorities also sign certificates.
    let usage: &[u8] = if authority { &[2, 0xa4] } else { &[5, 0xa0] };
    let extended = sequence(&[&object_id(SERVER_AUTH), &object_id(CLIENT_AUTH)]);
    let is_authority = element(der::BOOLEAN, &[0xff]);
    let constraints = if authority {
        sequence(&[&is_authority])
    } else {
        sequence(&[])
    };
    let mut all = vec![
        extension(
            KEY_USAGE,
            Weight::Critical,
            &element(der::BIT_STRING, usage),
        ),
        extension(EXTENDED_USAGE, Weight::Normal, &extended),
        extension(CONSTRAINTS, Weight::Critical, &constraints),
    ];
    if authority {
        let id = element(der::OCTET_STRING, &key_id(public_info));
        all.push(extension(KEY_ID, Weight::Normal, &id));
    }
    if let Some(id) = issuer.key_id.as_ref().filter(|_| issuer.subject != subject) {
        let id = sequence(&[&element(context_bytes(0), id)]);
        all.push(extension(AUTHORITY_KEY_ID, Weight::Normal, &id));
    }
    let names = alternative_names(&request.names)?;
    if !names.is_empty() {
        let names = element(der::SEQUENCE, &names);
        all.push(extension(ALTERNATIVE_NAMES, Weight::Normal, &names));
    }
    Ok(element(der::SEQUENCE, &all.concat()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Critical,
    Normal,
}

fn extension(id: &[u8], weight: Weight, content: &[u8]) -> Vec<u8> {
    let critical = element(der::BOOLEAN, &[0xff]);
    let critical = if weight == Weight::Critical {
        critical
    } else {
        Vec::new()
    };
    sequence(&[
        &object_id(id),
        &critical,
        &element(der::OCTET_STRING, content),
    ])
}

/// The digest of the public key's bits.
fn key_id(public_info: &[u8]) -> Vec<u8> {
    let mut fields = Reader::new(public_info).next().map(der::Element::inside);
    let bits = fields.as_mut().and_then(|fields| {
        fields.next()?;
        fields.expect(der::BIT_STRING)?.content.split_first()
    });
    Sha1::digest(bits.map_or(&[][..], |(_, bytes)| bytes)).to_vec()
}

fn alternative_names(names: &Names) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for host in &names.hosts {
        if !host.is_ascii() {
            let shown = quote(host.as_bytes(), false);
            return Err(format!("x509: {shown} cannot be encoded as an IA5String"));
        }
        out.extend(element(context_bytes(2), host.as_bytes()));
    }
    for address in &names.addresses {
        let bytes = match address.to_canonical() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        out.extend(element(context_bytes(7), &bytes));
    }
    Ok(out)
}

impl Issuer {
    /// Reads what counts of a certificate; the error is Go's.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        Self::parse(bytes).ok_or_else(|| "x509: malformed certificate".to_owned())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut body = Reader::new(bytes)
            .expect(der::SEQUENCE)?
            .inside()
            .expect(der::SEQUENCE)?
            .inside();
        let first = body.next()?;
        if first.tag == context(0) {
            body.expect(der::INTEGER)?;
        }
        body.expect(der::SEQUENCE)?;
        body.expect(der::SEQUENCE)?;
        body.expect(der::SEQUENCE)?;
        let subject = body.expect(der::SEQUENCE)?.whole.to_vec();
        let public_info = body.expect(der::SEQUENCE)?.whole.to_vec();
        let mut key_id = None;
        while let Some(field) = body.next() {
            if field.tag == context(3) {
                key_id = find_key_id(field.inside());
            }
        }
        Some(Self {
            subject,
            public_info,
            key_id,
        })
    }
}

fn find_key_id(mut extensions: Reader<'_>) -> Option<Vec<u8>> {
    let mut all = extensions.expect(der::SEQUENCE)?.inside();
    while let Some(extension) = all.next() {
        let mut fields = extension.inside();
        if fields.expect(der::OBJECT_ID)?.content != KEY_ID {
            continue;
        }
        let content = fields.expect(der::OCTET_STRING)?;
        return Some(content.inside().expect(der::OCTET_STRING)?.content.to_vec());
    }
    None
}
