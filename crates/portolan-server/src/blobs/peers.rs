//! How servers hand blobs to each other: over TLS, each with a certificate that it signs for itself. Only servers have
//! the key of the authority, so nobody else can have such a certificate.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use portolan_http::{
    Client, HttpError, HttpOptions, Identity, KnownHosts, Request, Secret, Tls, Upload, Url,
};
use portolan_identity::{
    CertificateSubject, IdentityError, NodeKey, RequestedKey, SubjectKind, certificates_to_pem,
};
use portolan_store::blob::BlobName;

use super::MAX_BLOB;
use crate::authorities::Authorities;

/// How long a server uses one certificate.
const USED_FOR: Duration = Duration::from_hours(1);
/// How long it is valid: longer than it is used, and for clocks that differ.
const LIFE: Duration = Duration::from_hours(3);
/// How long another server is waited for.
const PATIENCE: Duration = Duration::from_secs(8);

/// Asks the other servers.
pub(crate) struct BlobPeers {
    server: String,
    authorities: Arc<Authorities>,
    /// A client, and when its certificate was made.
    client: Mutex<Option<(Duration, Client)>>,
}

/// Why another server gave nothing.
#[derive(Debug, thiserror::Error)]
enum PeerError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("its address `{0}` is none")]
    Address(String),
    #[error("it answered {0}")]
    Status(u16),
    #[error("it sent something else")]
    OtherContent,
}

impl BlobPeers {
    pub(crate) fn new(server: &str, authorities: Arc<Authorities>) -> Self {
        Self {
            server: server.to_owned(),
            authorities,
            client: Mutex::default(),
        }
    }

    /// Puts content on another server; the error is for people.
    pub(super) async fn send(
        &self,
        address: &str,
        name: BlobName,
        content: &Bytes,
    ) -> Result<(), String> {
        let sent = self.try_send(address, name, content).await;
        sent.map_err(|error| error.to_string())
    }

    /// Reads content from another server and checks it.
    pub(super) async fn fetch(&self, address: &str, name: BlobName) -> Result<Vec<u8>, String> {
        let fetched = self.try_fetch(address, name).await;
        fetched.map_err(|error| error.to_string())
    }

    async fn try_send(
        &self,
        address: &str,
        name: BlobName,
        content: &Bytes,
    ) -> Result<(), PeerError> {
        let body = Upload::bytes(&content[..]);
        let request = Request::put(url(address, name)?, body)
            .header("content-type", "application/octet-stream");
        let response = self.client()?.send(&request).await?;
        match response.status() {
            200 => Ok(()),
            status => Err(PeerError::Status(status)),
        }
    }

    async fn try_fetch(&self, address: &str, name: BlobName) -> Result<Vec<u8>, PeerError> {
        let request = Request::get(url(address, name)?);
        let response = self.client()?.send(&request).await?;
        if response.status() != 200 {
            return Err(PeerError::Status(response.status()));
        }
        let content = response.bytes(MAX_BLOB as u64).await?;
        if BlobName::of(&content) != name {
            return Err(PeerError::OtherContent);
        }
        Ok(content)
    }

    fn client(&self) -> Result<Client, PeerError> {
        let now = self.authorities.now();
        let mut kept = self.client.lock();
        if let Some((made, client)) = &*kept
            && now < *made + USED_FOR
        {
            return Ok(client.clone());
        }
        let client = self.new_client(now)?;
        *kept = Some((now, client.clone()));
        Ok(client)
    }

    fn new_client(&self, now: Duration) -> Result<Client, PeerError> {
        let loaded = self.authorities.current();
        let key = NodeKey::generate()?;
        let requested = RequestedKey::read(&key.signing_request()?)?;
        let subject = CertificateSubject {
            fleet: loaded.fleet.clone(),
            kind: SubjectKind::Server,
            id: self.server.clone(),
            epoch: 1,
        };
        let signer = loaded.signer();
        let issued = signer.issue_client(&requested, &subject, &self.server, now, LIFE)?;
        let options = HttpOptions {
            tls: Tls {
                authorities: vec![loaded.bundle()],
                identity: Some(Identity {
                    certificate: certificates_to_pem(&[issued]),
                    key: Secret::from(key.to_pem().to_string()),
                }),
                ..Tls::default()
            },
            request_timeout: PATIENCE,
            max_redirects: 0,
            retries: 0,
            hosts: KnownHosts::forgetful(),
            ..HttpOptions::default()
        };
        Ok(Client::new(&options)?)
    }
}

fn url(address: &str, name: BlobName) -> Result<Url, PeerError> {
    let wrong = || PeerError::Address(address.to_owned());
    let url = Url::parse(address).map_err(|_| wrong())?;
    url.join(&format!("/api/v1alpha/blobs/{name}"))
        .map_err(|_| wrong())
}
