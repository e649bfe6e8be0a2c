//! Single files from web servers: kustomize's remote resources, archives.

use portolan_http::Request;
use portolan_oci::Digest;

use crate::error::Naming as _;
use crate::sources::{PinRequest, pinned_digest, without_login};
use crate::{Access, Pin, PinKind, SourceError, Sources};

/// A file by its address.
#[derive(Debug, Clone, Default)]
pub struct FileRequest {
    /// The address: `https://…`.
    pub url: String,
    /// The digest it must have, when it is known.
    pub digest: Option<Digest>,
    /// How to reach it.
    pub access: Access,
}

/// A file's content.
#[derive(Debug, Clone)]
pub struct FetchedFile {
    /// Its digest.
    pub digest: Digest,
    /// Its bytes.
    pub content: Vec<u8>,
}

impl FileRequest {
    fn pin_request(&self) -> PinRequest {
        let url = without_login(&self.url);
        PinRequest {
            key: format!("file {url}"),
            what: format!("file `{url}`"),
            is_fixed: self.digest.is_some(),
            url: Some(url),
        }
    }
}

impl Sources {
    /// Brings a file.
    pub async fn http_file(&self, request: &FileRequest) -> Result<FetchedFile, SourceError> {
        let wanted = request.pin_request();
        let _turn = self.turn(&wanted.key).await;
        let find = async {
            let digest = self.download_file(request, &wanted.what).await?;
            Ok(Pin {
                kind: PinKind::File,
                url: without_login(&request.url),
                version: String::new(),
                digest: digest.to_string(),
            })
        };
        let pin = self.pin(&wanted, find).await?;
        let pinned = pinned_digest(&pin, &wanted.what)?;
        let digest = request.digest.unwrap_or(pinned);
        let fetch = async {
            let actual = self.download_file(request, &wanted.what).await?;
            check(&digest, &actual, &wanted.what)
        };
        check(&digest, &pinned, &wanted.what)?;
        let content = self.content(&digest, &wanted.what, fetch).await?;
        Ok(FetchedFile { digest, content })
    }

    async fn download_file(
        &self,
        request: &FileRequest,
        what: &str,
    ) -> Result<Digest, SourceError> {
        let mut get = Request::parse(&request.url).of(what)?;
        if let Some(credentials) = &request.access.credentials {
            get = get.basic(credentials);
        }
        let limit = self.limits().file_bytes;
        let downloaded = self.download(&request.access, &get, limit, what).await?;
        Ok(downloaded.digest)
    }
}

fn check(expected: &Digest, actual: &Digest, what: &str) -> Result<(), SourceError> {
    if expected == actual {
        return Ok(());
    }
    Err(SourceError::Changed {
        what: what.to_owned(),
        pinned: expected.to_string(),
        actual: actual.to_string(),
    })
}
