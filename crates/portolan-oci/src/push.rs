//! Pushes: blobs that are not there yet, and manifests.
//!
//! ```text
//! HEAD blob ──200──▶ there
//!    └──404──▶ POST uploads?mount=…&from=… ──201──▶ mounted from another repository
//!                        └──202──▶ PUT, streamed ──201──▶ sent
//! ```

use portolan_http::{HttpError, Request, Upload, Url};

use crate::registry::check_status;
use crate::{Digest, OciError, Pointer, Reference, Registry, Repository};

/// How a blob came to be in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushedBlob {
    /// It was there.
    Present,
    /// It was in another repository of the registry.
    Mounted,
    /// It was sent.
    Sent,
}

impl Registry {
    /// Whether a repository has a blob.
    pub async fn has_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<bool, OciError> {
        let url = self.url(repository, &format!("blobs/{digest}"))?;
        self.is_there(repository, url, &format!("{repository}@{digest}"))
            .await
    }

    /// Whether a repository has a manifest under a tag or digest, and of which digest it is if the registry says.
    pub async fn has_manifest(&self, reference: &Reference) -> Result<bool, OciError> {
        let repository = &reference.repository;
        let url = self.url(repository, &format!("manifests/{}", pointer(reference)))?;
        self.is_there(repository, url, reference).await
    }

    async fn is_there(
        &self,
        repository: &Repository,
        url: Url,
        subject: &impl ToString,
    ) -> Result<bool, OciError> {
        let types = crate::media_type::ALL.join(", ");
        let request = Request::head(url).header("accept", types);
        let (response, with_login) = self.send(repository, request, subject).await?;
        match check_status(response, subject, with_login) {
            Ok(_) => Ok(true),
            Err(OciError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts a blob into a repository unless it is there. `mount_from` is a repository of the same registry that has it.
    pub async fn push_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        body: &Upload,
        mount_from: Option<&Repository>,
    ) -> Result<PushedBlob, OciError> {
        let subject = format!("{repository}@{digest}");
        if self.has_blob(repository, digest).await? {
            return Ok(PushedBlob::Present);
        }
        let mut begin = self.url(repository, "blobs/uploads/")?;
        let from = mount_from.filter(|from| from.registry() == repository.registry());
        if let Some(from) = from.filter(|from| *from != repository) {
            let mut query = begin.query_pairs_mut();
            query.append_pair("mount", &digest.to_string());
            query.append_pair("from", from.name());
        }
        let request = Request::post(begin.clone());
        let (response, with_login) = self.send(repository, request, &subject).await?;
        let response = check_status(response, &subject, with_login)?;
        if response.status() == 201 {
            return Ok(PushedBlob::Mounted);
        }
        let location = response.header("location").unwrap_or_default();
        let mut place = begin
            .join(location)
            .map_err(|_| HttpError::bad_url(location))?;
        // What is sent, and the login with it, go to the registry alone.
        if location.is_empty() || place.origin() != begin.origin() {
            return Err(OciError::ForeignUpload { subject });
        }
        drop(response);
        place
            .query_pairs_mut()
            .append_pair("digest", &digest.to_string());
        let request =
            Request::put(place, body.clone()).header("content-type", "application/octet-stream");
        let (response, with_login) = self.send(repository, request, &subject).await?;
        let response = check_status(response, &subject, with_login)?;
        if response.status() != 201 {
            return Err(OciError::NotStored {
                subject,
                status: response.status(),
            });
        }
        Ok(PushedBlob::Sent)
    }

    /// Puts a manifest under a tag or digest; its blobs must be there.
    pub async fn push_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), OciError> {
        let repository = &reference.repository;
        let url = self.url(repository, &format!("manifests/{}", pointer(reference)))?;
        let request = Request::put(url, Upload::bytes(bytes)).header("content-type", media_type);
        let (response, with_login) = self.send(repository, request, reference).await?;
        let response = check_status(response, reference, with_login)?;
        let stored = response
            .header("docker-content-digest")
            .and_then(|text| text.parse().ok());
        let wanted = Digest::of(bytes);
        match stored {
            Some(actual) if actual != wanted => Err(OciError::DigestMismatch {
                subject: reference.to_string(),
                expected: wanted,
                actual,
            }),
            _ => Ok(()),
        }
    }
}

fn pointer(reference: &Reference) -> String {
    match &reference.pointer {
        Some(Pointer::Digest(digest)) => digest.to_string(),
        Some(Pointer::Tag(tag)) => tag.clone(),
        None => "latest".to_owned(),
    }
}
