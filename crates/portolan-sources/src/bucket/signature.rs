//! Signature Version 4, which authenticates requests to a bucket.

use std::fmt::Write as _;
use std::time::SystemTime;

use portolan_http::{Credentials, Request, Url};
use portolan_oci::Digest;
use sha2::{Digest as _, Sha256};

use crate::time::Moment;

/// Signs requests for one user and region.
pub(super) struct Signer<'a> {
    pub(super) credentials: &'a Credentials,
    pub(super) region: &'a str,
}

const SIGNED_HEADERS: &str = "host;x-amz-content-sha256;x-amz-date";

impl Signer<'_> {
    /// A GET request with its signature; the query must be sorted and encoded already.
    pub(super) fn signed(&self, url: Url, now: SystemTime) -> Request {
        let time = Moment::of(now).compact();
        let nothing = Digest::of(b"");
        let authorization = self.authorization(&url, &time, &nothing.hex());
        Request::get(url)
            .header("x-amz-date", time)
            .header("x-amz-content-sha256", nothing.hex())
            .header("authorization", authorization)
    }

    fn authorization(&self, url: &Url, time: &str, payload: &str) -> String {
        let host = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
            None => url.host_str().unwrap_or_default().to_owned(),
        };
        let canonical = format!(
            "GET\n{}\n{}\nhost:{host}\nx-amz-content-sha256:{payload}\nx-amz-date:{time}\n\n{SIGNED_HEADERS}\n{payload}",
            url.path(),
            url.query().unwrap_or_default()
        );
        let day = time.split('T').next().unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let canonical = Digest::of(canonical.as_bytes());
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", canonical.hex());
        let first = format!("AWS4{}", self.credentials.password.expose());
        let steps = [day, self.region, "s3", "aws4_request", &to_sign];
        let signature = steps
            .iter()
            .fold(first.into_bytes(), |key, text| hmac(&key, text.as_bytes()));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={SIGNED_HEADERS}, Signature={}",
            self.credentials.username,
            hex(&signature)
        )
    }
}

/// HMAC with SHA-256, by its definition (RFC 2104).
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    let short = if key.len() > block.len() {
        Sha256::digest(key).to_vec()
    } else {
        key.to_vec()
    };
    for (place, byte) in block.iter_mut().zip(&short) {
        *place = *byte;
    }
    let keyed = |pad: u8, text: &[u8]| {
        let mut state = Sha256::new();
        state.update(block.map(|byte| byte ^ pad));
        state.update(text);
        state.finalize()
    };
    keyed(0x5c, &keyed(0x36, text)).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A key in a path: every byte but letters, digits, `-._~` and `/` as `%XX`.
pub(super) fn encoded(key: &str) -> String {
    key.split('/')
        .map(encoded_all)
        .collect::<Vec<_>>()
        .join("/")
}

/// A text in a query: the same, and slashes too.
pub(super) fn encoded_all(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys and values of the published example "GET Bucket (List Objects)".
    #[test]
    fn the_published_example_has_the_published_signature() {
        let credentials = Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        );
        let signer = Signer {
            credentials: &credentials,
            region: "us-east-1",
        };
        let url =
            Url::parse("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J").unwrap();
        let nothing = Digest::of(b"");
        let header = signer.authorization(&url, "20130524T000000Z", &nothing.hex());
        let expected = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert!(
            header.ends_with(&format!("Signature={expected}")),
            "{header}"
        );
    }

    #[test]
    fn hmac_gives_the_result_of_rfc_4231() {
        let mac = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(
            hex(&mac),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn keys_are_encoded_byte_by_byte() {
        assert_eq!(encoded("a b/c+d.yaml"), "a%20b/c%2Bd.yaml");
        assert_eq!(encoded_all("a/b"), "a%2Fb");
    }
}
