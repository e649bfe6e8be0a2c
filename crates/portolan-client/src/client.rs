//! A client of the API, for the command line and programs.

use std::fmt::Write as _;
use std::time::Duration;

use portolan_http::{
    Client, HttpError, HttpOptions, Identity, KnownHosts, Request, Secret, Tls, Upload, Url,
};
use portolan_kinds::KindDefinition;
use serde_json::Value;

/// The most bytes of an answer: a page of large objects.
const MAX_ANSWER: u64 = 256 << 20;
/// The longest line of a watch: an object.
const MAX_LINE: usize = 4 << 20;

/// Asks a server.
#[derive(Debug, Clone)]
pub struct FleetClient {
    http: Client,
    server: Url,
    /// `None` with a client certificate.
    token: Option<Secret>,
}

/// By what a server knows its client.
#[derive(Debug, Clone)]
pub enum FleetCredential {
    /// A token of `fleet auth token`.
    Token(Secret),
    /// A certificate of `fleet auth certificate`, and its key, in PEM format.
    Certificate {
        /// The certificate chain.
        certificate: String,
        /// The private key.
        key: Secret,
    },
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetMethod {
    /// Reads.
    Get,
    /// Creates.
    Post,
    /// Replaces or applies.
    Put,
    /// Deletes.
    Delete,
}

/// Names an object or a collection in the API.
#[derive(Debug, Clone)]
pub struct ObjectPath {
    /// The kind.
    pub kind: &'static KindDefinition,
    /// The namespace; `None` for global kinds and all namespaces.
    pub namespace: Option<String>,
    /// The name; `None` for the collection.
    pub name: Option<String>,
}

/// Why a request had no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The server refused it.
    #[error("{message}")]
    Refused {
        /// The status.
        status: u16,
        /// The reason, for programs.
        reason: String,
        /// The reason, for people.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// More about it, for programs.
        details: Value,
    },
    /// There was no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The answer was no answer of a Portolan server.
    #[error("`{0}` did not answer as a Portolan server does")]
    Foreign(String),
    /// The address is none.
    #[error("`{0}` is not an address such as https://server:7443")]
    Address(String),
}

impl FleetClient {
    /// A client with a token of the server at an address, which trusts the given authorities (PEM) besides the machine's.
    ///
    /// # Errors
    /// When the address or an authority cannot be used.
    pub fn new(server: &str, token: Secret, authorities: Vec<String>) -> Result<Self, FleetError> {
        Self::with_credential(server, FleetCredential::Token(token), authorities)
    }

    /// The same with a token or a certificate.
    ///
    /// # Errors
    /// When the address, the certificate or an authority cannot be used.
    pub fn with_credential(
        server: &str,
        credential: FleetCredential,
        authorities: Vec<String>,
    ) -> Result<Self, FleetError> {
        let (token, identity) = match credential {
            FleetCredential::Token(token) => (Some(token), None),
            FleetCredential::Certificate { certificate, key } => {
                (None, Some(Identity { certificate, key }))
            }
        };
        let address = || FleetError::Address(server.to_owned());
        let url = Url::parse(server).map_err(|_| address())?;
        // A token is not sent where others can read it, and comes from a file.
        let has_login = !url.username().is_empty() || url.password().is_some();
        if url.scheme() != "https" || !url.has_host() || has_login {
            return Err(address());
        }
        let options = HttpOptions {
            tls: Tls {
                authorities,
                identity,
                ..Tls::default()
            },
            // Watches are silent for ten seconds at most, and go on for an hour.
            idle_timeout: Duration::from_secs(45),
            request_timeout: Duration::from_hours(2),
            slow_start: Duration::from_hours(2),
            max_redirects: 0,
            // A write that may have happened is not made twice.
            retries: 0,
            hosts: KnownHosts::forgetful(),
            ..HttpOptions::default()
        };
        Ok(Self {
            http: Client::new(&options)?,
            server: url,
            token,
        })
    }

    /// The address of the server.
    pub fn server(&self) -> &str {
        self.server.as_str()
    }

    /// Sends a request and returns the JSON of the answer.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn request(
        &self,
        method: FleetMethod,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<Value, FleetError> {
        let request = self.prepare(method, path, query, body)?;
        let response = self.http.send(&request).await?;
        let status = response.status();
        let bytes = response.bytes(MAX_ANSWER).await?;
        let value = serde_json::from_slice(&bytes);
        let value: Value = value.map_err(|_| FleetError::Foreign(self.server.to_string()))?;
        if (200..300).contains(&status) {
            Ok(value)
        } else {
            Err(refused(status, &value))
        }
    }

    /// Lists all objects, page by page.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn list(
        &self,
        path: &ObjectPath,
        query: &[(&str, &str)],
    ) -> Result<(Vec<Value>, String), FleetError> {
        let (mut items, mut next) = (Vec::new(), String::new());
        loop {
            let mut query = query.to_vec();
            if !next.is_empty() {
                query.push(("continue", &next));
            }
            let mut page = self
                .request(FleetMethod::Get, &path.to_string(), &query, None)
                .await?;
            let found = page["items"].as_array_mut().map(std::mem::take);
            items.extend(found.unwrap_or_default());
            match page["metadata"]["continue"].as_str() {
                Some(token) => token.clone_into(&mut next),
                None => {
                    let version = page["metadata"]["resourceVersion"].as_str();
                    return Ok((items, version.unwrap_or_default().to_owned()));
                }
            }
        }
    }

    /// Follows objects; `each` gets every message and says whether to go on. Returns when the server ends the watch.
    ///
    /// # Errors
    /// When the server refuses it, or the connection breaks.
    pub async fn watch(
        &self,
        path: &ObjectPath,
        query: &[(&str, &str)],
        mut each: impl FnMut(Value) -> bool,
    ) -> Result<(), FleetError> {
        let mut query = query.to_vec();
        query.push(("watch", "true"));
        let request = self.prepare(FleetMethod::Get, &path.to_string(), &query, None)?;
        let mut response = self.http.send(&request).await?;
        let status = response.status();
        if status != 200 {
            let bytes = response.bytes(MAX_ANSWER).await?;
            return Err(refused(
                status,
                &serde_json::from_slice(&bytes).unwrap_or_default(),
            ));
        }
        let foreign = || FleetError::Foreign(self.server.to_string());
        let mut buffer: Vec<u8> = Vec::new();
        while let Some(chunk) = response.chunk(u64::MAX).await? {
            buffer.extend_from_slice(chunk.as_ref());
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let message = serde_json::from_slice(&line).map_err(|_| foreign())?;
                if !each(message) {
                    return Ok(());
                }
            }
            if buffer.len() > MAX_LINE {
                return Err(foreign());
            }
        }
        Ok(())
    }

    fn prepare(
        &self,
        method: FleetMethod,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<Request, FleetError> {
        let mut url = self
            .server
            .join(path)
            .map_err(|_| FleetError::Address(path.to_owned()))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = match method {
            FleetMethod::Get => Request::get(url),
            FleetMethod::Delete => Request::delete(url),
            FleetMethod::Post => Request::get(url).json(body.unwrap_or("{}").to_owned()),
            FleetMethod::Put => {
                let body = Upload::bytes(body.unwrap_or("{}").as_bytes());
                Request::put(url, body).header("content-type", "application/json")
            }
        };
        Ok(match &self.token {
            Some(token) => request.bearer(token),
            None => request,
        })
    }
}

impl std::fmt::Display for ObjectPath {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("/api/v1alpha/")?;
        if let Some(namespace) = self
            .namespace
            .as_deref()
            .filter(|_| self.kind.is_namespaced)
        {
            write!(out, "namespaces/{}/", escaped(namespace))?;
        }
        out.write_str(self.kind.plural)?;
        match &self.name {
            Some(name) => write!(out, "/{}", escaped(name)),
            None => Ok(()),
        }
    }
}

/// A part of a path, with everything escaped that could end it.
fn escaped(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn refused(status: u16, value: &Value) -> FleetError {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    FleetError::Refused {
        status,
        reason: text("reason").unwrap_or_default(),
        message: text("error").unwrap_or_else(|| format!("the server answered {status}")),
        hint: text("hint"),
        details: value["details"].clone(),
    }
}
