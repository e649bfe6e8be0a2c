//! What strangers send before anybody knows who they are: certificates, join tokens, requests to be a node.

use std::time::Duration;

use portolan_identity::{
    Authority, CertificateSubject, ClientCertificate, JoinToken, RequestedKey, SubjectKind,
};
use portolan_server::{fuzz_enrolment, fuzz_grpc_object};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "client-certificate",
        about: "the certificate that a client shows",
        run: |bytes| {
            let Ok(read) = ClientCertificate::read_unchecked(bytes) else {
                return false;
            };
            let names = read.subject.names();
            let again = CertificateSubject::read(names.iter().map(String::as_str));
            assert_eq!(again, Ok(read.subject), "names read as they are written");
            true
        },
        seeds: certificates,
    },
    Target {
        name: "enrolment",
        about: "the body of a request to be a node",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(fuzz_enrolment),
        seeds: || {
            texts(&[
                r#"{"name": "web-1", "csr": "-----BEGIN CERTIFICATE REQUEST-----", "token": "0a1b", "signature": "AAAA"}"#,
                r#"{"name": "web-1", "name": "web-2"}"#,
                r#"{"token": "../../ca", "signature": "%"}"#,
            ])
        },
    },
    Target {
        name: "grpc-object",
        about: "an object in a gRPC call",
        run: fuzz_grpc_object,
        seeds: || {
            vec![
                b"\x12\x09Namespace\x1a\x03\x0a\x01a".to_vec(),
                b"\x12\x04Node\x1a\x03\x0a\x01a\x22\x00".to_vec(),
            ]
        },
    },
    Target {
        name: "join-token",
        about: "the text of a join token",
        run: |bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let Ok(token) = text.parse::<JoinToken>() else {
                return false;
            };
            let again: Result<JoinToken, _> = token.to_text().parse();
            let again = again.map(|again| again.public_key());
            assert_eq!(
                again,
                Ok(token.public_key()),
                "a token reads as it is written"
            );
            true
        },
        seeds: || {
            let seed = "00".repeat(32);
            texts(&[&format!("ptj_4f6e_0a1b_{seed}"), "ptj_a_b_c", "ptj_____"])
        },
    },
    Target {
        name: "signing-request",
        about: "a request for a certificate",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(|text| RequestedKey::read(text).is_ok()),
        seeds: || {
            texts(&[
                REQUEST,
                "-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n",
            ])
        },
    },
];

/// A certificate as our own authority makes it, whole and cut off.
fn certificates() -> Vec<Vec<u8>> {
    let day = Duration::from_hours(24);
    let made = || {
        let authority = Authority::create("4f6e", 1, 400 * day, day).ok()?;
        let key = RequestedKey::read(REQUEST).ok()?;
        let subject = CertificateSubject {
            fleet: "4f6e".to_owned(),
            kind: SubjectKind::Node,
            id: "7c".to_owned(),
            epoch: 1,
        };
        let made = authority.issue_client(&key, &subject, "web-1", 400 * day, day);
        made.ok().map(|der| der.to_vec())
    };
    let Some(whole) = made() else {
        return Vec::new();
    };
    let half = whole.iter().take(whole.len() / 2).copied().collect();
    vec![whole, half]
}

/// Made once with `openssl req -new`.
const REQUEST: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIHKMHICAQAwEDEOMAwGA1UEAwwFd2ViLTEwWTATBgcqhkjOPQIBBggqhkjOPQMB
BwNCAAQqIDRIptdP4GwDshr7JQeoSoDFwx5Aee3B1W+/y0CZrTZrxuHG/Cs9iBUk
flc1Sretxveu7N+JvMbRGJo6ngWDoAAwCgYIKoZIzj0EAwIDSAAwRQIhAN1EzrmN
8kb/Nr4fOIUdUo/OJ3LeGUlqt2ErF4QKJSXJAiAulnZtSt42BW8ecBSEHvKip4Uu
BBcz51fMjMQRpPDoXQ==
-----END CERTIFICATE REQUEST-----
";
