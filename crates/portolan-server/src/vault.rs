//! Secrets that are in Vault: read from its key-value engine, version 2, when somebody may read them.
//!
//! An admin gives each namespace one path prefix (`vaultPrefix`, such as `secret/teams/web`): its first part is the
//! engine's mount, and nothing outside it can be read.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use portolan_http::{Client, HttpError, HttpOptions, KnownHosts, Request, Secret, Tls, Url};
use serde_json::{Map, Value};

use crate::error::{ApiError, RefusalReason};

/// The most bytes of an answer.
const MAX_ANSWER: u64 = 1 << 20;

/// Where Vault is, and who asks it.
#[derive(Debug, Clone)]
pub struct VaultOptions {
    /// Its address, such as `https://vault.example.com:8200`.
    pub address: String,
    /// The file with the token, which is read before every request.
    pub token_file: PathBuf,
    /// Certificate authorities (PEM) trusted besides the machine's.
    pub authorities: Vec<String>,
}

/// Asks Vault.
pub(crate) struct Vault {
    client: Client,
    address: Url,
    token_file: PathBuf,
}

impl Vault {
    pub(crate) fn new(options: VaultOptions) -> Result<Self, HttpError> {
        let address = Url::parse(&options.address).ok().filter(Url::has_host);
        let address = address.ok_or_else(|| HttpError::bad_url(&options.address))?;
        let options_of_http = HttpOptions {
            tls: Tls {
                authorities: options.authorities,
                ..Tls::default()
            },
            response_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(20),
            max_redirects: 0,
            hosts: KnownHosts::forgetful(),
            ..HttpOptions::default()
        };
        Ok(Self {
            client: Client::new(&options_of_http)?,
            address,
            token_file: options.token_file,
        })
    }

    /// The values of a secret below the prefix of a namespace; only `keys`, if there are some.
    pub(crate) async fn read(
        &self,
        prefix: &str,
        path: &str,
        keys: &[String],
    ) -> Result<Map<String, Value>, ApiError> {
        let url = self.url(prefix, path)?;
        let token = std::fs::read_to_string(&self.token_file);
        let token = token.map_err(|error| {
            ApiError::unavailable(format!("the token for Vault cannot be read: {error}"))
        })?;
        let request = Request::get(url).secret_header("x-vault-token", &Secret::from(token.trim()));
        let response = self.client.send(&request).await;
        let response = response.map_err(|_| ApiError::unavailable("Vault does not answer"))?;
        let status = response.status();
        if status != 200 {
            return Err(refused(status, path));
        }
        let body = response.bytes(MAX_ANSWER).await;
        let body = body.map_err(|_| ApiError::unavailable("the answer of Vault broke off"))?;
        let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(Value::Object(found)) = body.pointer_mut("/data/data").map(Value::take) else {
            let message = "Vault did not answer as its key-value engine, version 2, does";
            return Err(bad_gateway(message.to_owned()));
        };
        let missing = keys.iter().find(|key| !found.contains_key(*key));
        if let Some(missing) = missing {
            return Err(bad_gateway(format!(
                "the secret in Vault has no key `{missing}`"
            )));
        }
        let wanted = found
            .into_iter()
            .filter(|(key, _)| keys.is_empty() || keys.contains(key));
        Ok(wanted.map(|(key, value)| (key, as_text(value))).collect())
    }

    /// The address of a secret, which never leads out of the prefix.
    fn url(&self, prefix: &str, path: &str) -> Result<Url, ApiError> {
        let parts: Vec<&str> = prefix
            .split('/')
            .chain(path.split('/'))
            .filter(|part| !part.is_empty())
            .collect();
        let is_plain =
            |part: &&str| !matches!(*part, "." | "..") && !part.contains(['?', '#', '%', '\\']);
        let Some((mount, rest)) = parts.split_first().filter(|_| parts.iter().all(is_plain)) else {
            return Err(ApiError::bad_request(
                "the prefix of the namespace in Vault is not a plain path",
            ));
        };
        let mut url = self.address.clone();
        let cannot = || ApiError::internal("the address of Vault cannot be used");
        let mut segments = url.path_segments_mut().map_err(|()| cannot())?;
        segments
            .clear()
            .push("v1")
            .push(mount)
            .push("data")
            .extend(rest);
        drop(segments);
        Ok(url)
    }
}

/// Vault can hold numbers and lists; a Secret holds texts.
fn as_text(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text),
        other => Value::String(other.to_string()),
    }
}

fn refused(status: u16, path: &str) -> ApiError {
    match status {
        403 => bad_gateway("Vault does not allow this server to read the secret".to_owned()),
        404 => bad_gateway(format!(
            "there is no secret `{path}` in Vault below the prefix of the namespace"
        )),
        status => ApiError::unavailable(format!("Vault answered {status}")),
    }
}

fn bad_gateway(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_GATEWAY, RefusalReason::Unavailable, message)
}
