//! What an agent does to become a node, and to stay one.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ClientConfig;
use rustls::time_provider::TimeProvider;
use serde_json::{Value, json};

use crate::certificate::ClientCertificate;
use crate::error::{EnrolError, IdentityError, malformed};
use crate::join_token::{EnrolProof, JoinToken};
use crate::key::NodeKey;
use crate::pem::certificates_from_pem;
use crate::pin::CaPin;
use crate::transport::{Answer, MachineTime, Transport};

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks a server for certificates.
#[derive(Clone)]
pub struct EnrolClient {
    transport: Transport,
}

/// What became of a request to be a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enrolment {
    /// The node has a certificate.
    Enrolled(Enrolled),
    /// Somebody has to approve the key first; ask again with the same key.
    Pending {
        /// What they should compare.
        fingerprint: CaPin,
    },
}

/// An enrolled node: everything but its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolled {
    /// The fleet.
    pub fleet: String,
    /// The uuid of the Node.
    pub node_uid: String,
    /// The name of the Node.
    pub name: String,
    /// The certificate chain in PEM format.
    pub certificate: String,
    /// The authorities that servers are known by, in PEM format. A renewal may bring others.
    pub authorities: String,
    /// Until when the certificate is valid, since 1970.
    pub expires: Duration,
    /// When it should be renewed, since 1970: at half its life.
    pub renew_at: Duration,
}

impl EnrolClient {
    /// A client of the server at an address such as `https://server:7443`.
    pub fn new(server: &str) -> Self {
        Self {
            transport: Transport {
                address: server.trim_end_matches('/').to_owned(),
                timeout: TIMEOUT,
                time: Arc::new(MachineTime),
            },
        }
    }

    /// The same client with another clock, which certificates of the server are checked by.
    #[must_use]
    pub fn with_time(mut self, time: Arc<dyn TimeProvider>) -> Self {
        self.transport.time = time;
        self
    }

    /// Asks to be a node. Without a join token somebody has to approve it.
    ///
    /// A request that got no answer can be made again with the same key: it gets the answer of the first one.
    ///
    /// # Errors
    /// When the server cannot be reached, is not the one of the pin, or refuses it.
    pub async fn enrol(
        &self,
        ca_pin: CaPin,
        join_token: Option<&JoinToken>,
        name: &str,
        key: &NodeKey,
    ) -> Result<Enrolment, EnrolError> {
        let config = self.transport.pinned(ca_pin)?;
        let body = |exporter: &_| {
            let mut body = json!({"name": name, "csr": key.signing_request()?});
            if let Some(token) = join_token {
                let proof = EnrolProof {
                    exporter,
                    key: key.fingerprint(),
                    fleet: token.fleet(),
                };
                body["token"] = token.id().into();
                body["signature"] = STANDARD.encode(token.sign(&proof)).into();
            }
            Ok(body)
        };
        let answer = self.transport.post(config, "/api/v1alpha/enrolments", body);
        let (status, value) = answer.await?;
        match status {
            200 => self.read(&value).map(Enrolment::Enrolled),
            202 => Ok(Enrolment::Pending {
                fingerprint: key.fingerprint(),
            }),
            _ => Err(refused((status, value))),
        }
    }

    /// Replaces the certificate of a node by one for a new key.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses it.
    pub async fn renew(
        &self,
        enrolled: &Enrolled,
        key: &NodeKey,
        new_key: &NodeKey,
    ) -> Result<Enrolled, EnrolError> {
        let config = self
            .transport
            .mutual(&enrolled.authorities, &enrolled.certificate, key)?;
        let body = |_: &_| Ok(json!({"csr": new_key.signing_request()?}));
        let path = "/api/v1alpha/enrolments/renew";
        let (status, value) = self.transport.post(config, path, body).await?;
        match status {
            200 => self.read(&value),
            _ => Err(refused((status, value))),
        }
    }

    /// TLS settings of an enrolled node, for its streams.
    ///
    /// # Errors
    /// When a certificate or the key cannot be used.
    pub fn tls(&self, enrolled: &Enrolled, key: &NodeKey) -> Result<ClientConfig, EnrolError> {
        self.transport
            .mutual(&enrolled.authorities, &enrolled.certificate, key)
    }

    fn read(&self, value: &Value) -> Result<Enrolled, EnrolError> {
        Enrolled::read(value).map_err(|_| EnrolError::Foreign {
            server: self.transport.address.clone(),
        })
    }
}

impl Enrolled {
    /// Reads the answer of a server, or what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// When something is missing, or a certificate is none.
    pub fn read(value: &Value) -> Result<Self, IdentityError> {
        let wrong = || malformed("enrolment");
        let text = |key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.map(str::to_owned).ok_or_else(wrong)
        };
        let (certificate, authorities) = (text("certificate")?, text("authorities")?);
        certificates_from_pem(&authorities)?;
        let chain = certificates_from_pem(&certificate)?;
        let first = chain.first().ok_or_else(wrong)?;
        let read = ClientCertificate::read_unchecked(first)?;
        Ok(Self {
            fleet: text("fleet")?,
            node_uid: text("uid")?,
            name: text("name")?,
            certificate,
            authorities,
            expires: read.expires,
            renew_at: read.starts + read.expires.saturating_sub(read.starts) / 2,
        })
    }

    /// The enrolment as JSON, for a file of the agent.
    pub fn to_json(&self) -> Value {
        json!({
            "fleet": self.fleet, "uid": self.node_uid, "name": self.name,
            "certificate": self.certificate, "authorities": self.authorities,
        })
    }
}

fn refused((status, value): Answer) -> EnrolError {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    EnrolError::Refused {
        status,
        reason: text("reason").unwrap_or_default(),
        message: text("error").unwrap_or_else(|| format!("the server answered {status}")),
        hint: text("hint"),
    }
}
