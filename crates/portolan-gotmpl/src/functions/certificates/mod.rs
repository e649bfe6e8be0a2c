//! Keys and certificates: `genPrivateKey`, `genCA` and related functions.
//!
//! ```text
//! key (RSA, ECDSA, Ed25519, DSA) ──┐
//! what it shall certify ───────────┴──▶ x509 ──der──▶ pem ──▶ a certificate object
//! ```
//!
//! If the host asks for quick keys, as a seeded one does, certificates get ECDSA keys instead of RSA keys, and
//! `genPrivateKey "rsa"` makes keys of 2048 bits instead of 4096. So a render stays quick, and equal seeds give equal
//! keys.

mod der;
mod key;
mod pem;
mod prime;
mod x509;

use std::borrow::Cow;
use std::net::IpAddr;

use crate::fmt::display;
use crate::function::{Args, Ctx, FuncError};
use crate::functions::encoding::base64_decode;
use crate::object::Object;
use crate::value::Value;

use key::PrivateKey;
use x509::{Issuer, Names, Request, Role};

type Answer = Result<Value, FuncError>;

/// A certificate and its private key, both in PEM.
pub(super) struct Certificate {
    certificate: String,
    key: String,
}

impl Object for Certificate {
    fn type_name(&self) -> Cow<'static, str> {
        "sprig.certificate".into()
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(self.certificate.as_str().into()),
            "Key" => Some(self.key.as_str().into()),
            _ => None,
        }
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        let names = ["Cert", "Key"];
        Some(
            names
                .map(|name| (name, self.field(name).unwrap_or_default()))
                .into(),
        )
    }
}

pub(super) fn gen_private_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(match PrivateKey::generate(ctx, &args.str(0))? {
        Ok(key) => key.to_pem(),
        Err(message) => message,
    }
    .into())
}

pub(super) fn build_custom_cert(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let decoded = |index, what| {
        base64_decode(args.bytes(index))
            .map_err(|_| FuncError::new(format!("unable to decode base64 {what}")))
    };
    let (certificate, key) = (decoded(0, "certificate")?, decoded(1, "private key")?);
    let (certificate, key) = (
        String::from_utf8_lossy(&certificate),
        String::from_utf8_lossy(&key),
    );
    let block =
        pem::decode(&certificate).ok_or_else(|| FuncError::new("unable to decode certificate"))?;
    Issuer::read(&block.bytes).map_err(|error| {
        FuncError::new(format!(
            "error parsing certificate: decodedCert.Bytes: {error}"
        ))
    })?;
    read_key(&key, "error parsing private key")?;
    Ok(Value::object(Certificate {
        certificate: certificate.into_owned(),
        key: key.into_owned(),
    }))
}

// The families differ in where the key comes from and who signs.

pub(super) fn gen_ca(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let key = PrivateKey::for_certificate(ctx)?;
    self_signed(ctx, &authority(args), &key)
}

pub(super) fn gen_ca_with_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let key = read_key(&args.str(2), "parsing private key")?;
    self_signed(ctx, &authority(args), &key)
}

pub(super) fn gen_self_signed_cert(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let request = server(args)?;
    let key = PrivateKey::for_certificate(ctx)?;
    self_signed(ctx, &request, &key)
}

pub(super) fn gen_self_signed_cert_with_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let key = read_key(&args.str(4), "parsing private key")?;
    self_signed(ctx, &server(args)?, &key)
}

pub(super) fn gen_signed_cert(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let key = PrivateKey::for_certificate(ctx)?;
    signed(ctx, args, &key)
}

pub(super) fn gen_signed_cert_with_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let key = read_key(&args.str(5), "parsing private key")?;
    signed(ctx, args, &key)
}

fn read_key(text: &str, act: &str) -> Result<PrivateKey, FuncError> {
    PrivateKey::from_pem(text).map_err(|error| FuncError::new(format!("{act}: {error}")))
}

/// A request of the arguments name and days.
fn authority(args: Args<'_>) -> Request {
    Request {
        common_name: args.str(0).into_owned(),
        names: Names::default(),
        days: args.int(1),
        role: Role::Authority,
    }
}

/// A request of the arguments name, addresses, alternative names and days.
fn server(args: Args<'_>) -> Result<Request, FuncError> {
    Ok(Request {
        common_name: args.str(0).into_owned(),
        names: Names {
            addresses: addresses(args.get(1))?,
            hosts: hosts(args.get(2))?,
        },
        days: args.int(3),
        role: Role::Server,
    })
}

/// Signing takes about a hundredth of a second with the longest keys.
const SIGNATURE_STEPS: u64 = 500_000;

fn self_signed(ctx: &mut Ctx<'_>, request: &Request, key: &PrivateKey) -> Answer {
    ctx.step(SIGNATURE_STEPS)?;
    let certificate = x509::self_signed(ctx, request, key);
    finished(certificate, key)
}

fn signed(ctx: &mut Ctx<'_>, args: Args<'_>, key: &PrivateKey) -> Answer {
    let Some(authority) = args.get(4).downcast::<Certificate>() else {
        return Err(FuncError::new("unable to decode certificate"));
    };
    let block = pem::decode(&authority.certificate)
        .ok_or_else(|| FuncError::new("unable to decode certificate"))?;
    let issuer = Issuer::read(&block.bytes).map_err(|error| {
        FuncError::new(format!(
            "error parsing certificate: decodedSignerCert.Bytes: {error}"
        ))
    })?;
    let issuer_key = read_key(&authority.key, "error parsing private key")?;
    let request = server(args)?;
    ctx.step(SIGNATURE_STEPS)?;
    finished(x509::signed(ctx, &request, key, &issuer, &issuer_key), key)
}

fn finished(certificate: Result<Vec<u8>, String>, key: &PrivateKey) -> Answer {
    let bytes = certificate
        .map_err(|error| FuncError::new(format!("error creating certificate: {error}")))?;
    Ok(Value::object(Certificate {
        certificate: pem::encode("CERTIFICATE", &bytes),
        key: key.to_pem(),
    }))
}

fn addresses(list: &Value) -> Result<Vec<IpAddr>, FuncError> {
    let items = list.as_list().map(|list| list.to_vec()).unwrap_or_default();
    let address = |item: &Value| {
        let Some(text) = item.as_str() else {
            let shown = display(item);
            return Err(FuncError::new(format!(
                "error parsing ip: {shown} is not a string"
            )));
        };
        text.parse()
            .map_err(|_| FuncError::new(format!("error parsing ip: {text}")))
    };
    items.iter().map(address).collect()
}

fn hosts(list: &Value) -> Result<Vec<String>, FuncError> {
    let items = list.as_list().map(|list| list.to_vec()).unwrap_or_default();
    let host = |item: &Value| match item.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(FuncError::new(format!(
            "error processing alternate dns name: {} is not a string",
            display(item)
        ))),
    };
    items.iter().map(host).collect()
}
