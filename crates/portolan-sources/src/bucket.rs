//! S3-compatible buckets: every object below a prefix, as files.
//!
//! ```text
//!   list (page by page) ──▶ objects ──▶ cache ──▶ inventory: path and digest of each ──▶ cache
//!                                                     └──▶ its digest is the pin
//! ```

mod listing;
mod signature;

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use portolan_http::{HttpError, Request, Url};
use portolan_oci::{Digest, ReferenceError};
use portolan_vfs::Memory;

use crate::archive::safe_path;
use crate::error::Naming as _;
use crate::sources::{Downloaded, PinRequest, pinned_digest};
use crate::{Access, Pin, PinKind, SourceError, Sources};
pub use listing::BucketPage;
use signature::Signer;

/// The most pages of a list; each has up to 1,000 objects.
const MAX_PAGES: usize = 1000;
/// The largest page: 1,000 keys of the longest kind fit many times.
const MAX_PAGE_BYTES: u64 = 16 * 1024 * 1024;
/// The most bytes of all pages.
const MAX_LIST_BYTES: u64 = 128 * 1024 * 1024;
/// How long all pages may take together.
const LIST_TIMEOUT: Duration = Duration::from_mins(5);

/// The objects of a bucket.
#[derive(Debug, Clone, Default)]
pub struct BucketRequest {
    /// The server: `host[:port]`; `access.plain_http` leaves TLS out.
    pub endpoint: String,
    /// The bucket's name.
    pub bucket: String,
    /// Takes only objects whose key begins so.
    pub prefix: String,
    /// The region that requests are signed for; `us-east-1` when empty.
    pub region: String,
    /// How to reach it; user name and password are the access key and its secret.
    pub access: Access,
}

/// The files of a bucket.
#[derive(Debug, Clone)]
pub struct BucketFiles {
    /// The digest of the inventory: the same for the same files.
    pub digest: Digest,
    /// The files, by key.
    pub files: Memory,
}

/// The paths of a bucket's files with their digests, sorted.
type Inventory = Vec<(String, String)>;

impl BucketRequest {
    fn pin_request(&self) -> PinRequest {
        let (endpoint, bucket, prefix) = (&self.endpoint, &self.bucket, &self.prefix);
        PinRequest {
            key: format!("bucket {endpoint}/{bucket} {prefix}")
                .trim_end()
                .to_owned(),
            what: format!("bucket `{bucket}` of `{endpoint}`"),
            is_fixed: false,
            url: self.url("").ok().map(String::from),
        }
    }

    /// The address of the bucket, or of an object in it.
    fn url(&self, key: &str) -> Result<Url, HttpError> {
        let scheme = if self.access.plain_http {
            "http"
        } else {
            "https"
        };
        let base = format!("{scheme}://{}/", self.endpoint);
        let mut url = Url::parse(&base).map_err(|_| HttpError::bad_url(&base))?;
        url.set_path(&format!("/{}/{}", self.bucket, signature::encoded(key)));
        Ok(url)
    }

    fn get(&self, mut url: Url, query: &[(&str, &str)]) -> Request {
        if !query.is_empty() {
            // Sorted by name and encoded strictly, as the signature wants it.
            let pairs = query
                .iter()
                .map(|(name, value)| format!("{name}={}", signature::encoded_all(value)));
            url.set_query(Some(&pairs.collect::<Vec<_>>().join("&")));
        }
        match &self.access.credentials {
            None => Request::get(url),
            Some(credentials) => {
                let region = match self.region.as_str() {
                    "" => "us-east-1",
                    region => region,
                };
                let signer = Signer {
                    credentials,
                    region,
                };
                signer.signed(url, SystemTime::now())
            }
        }
    }
}

impl Sources {
    /// Brings the objects of a bucket.
    pub async fn bucket(&self, request: &BucketRequest) -> Result<BucketFiles, SourceError> {
        let wanted = request.pin_request();
        let _turn = self.turn(&wanted.key).await;
        let find = async {
            let digest = self.fetch_bucket(request, &wanted.what).await?;
            Ok(Pin {
                kind: PinKind::Bucket,
                url: request.url("").of(&wanted.what)?.into(),
                version: String::new(),
                digest: digest.to_string(),
            })
        };
        let pin = self.pin(&wanted, find).await?;
        let digest = pinned_digest(&pin, &wanted.what)?;
        let files = self.bucket_files(request, &digest, &wanted.what).await?;
        Ok(BucketFiles { digest, files })
    }

    async fn bucket_files(
        &self,
        request: &BucketRequest,
        digest: &Digest,
        what: &str,
    ) -> Result<Memory, SourceError> {
        let fetch = async {
            let actual = self.fetch_bucket(request, what).await?;
            changed_unless(digest, &actual, what)
        };
        let inventory = self.content(digest, what, fetch).await?;
        let inventory: Inventory = serde_json::from_slice(&inventory)
            .map_err(|error| bucket_error(what, &error.to_string()))?;
        let mut files = Memory::new();
        for (key, digest) in inventory {
            let digest = digest
                .parse::<Digest>()
                .map_err(ReferenceError::from)
                .of(what)?;
            let object = format!("object `{key}` of {what}");
            let fetch = async {
                let actual = self.fetch_object(request, &key, &object).await?;
                changed_unless(&digest, &actual.digest, &object)
            };
            let content = self.content(&digest, &object, fetch).await?;
            files.insert(safe_path(key.as_bytes()).of(what)?, content);
        }
        Ok(files)
    }

    /// Fetches every object and puts the inventory into the cache.
    async fn fetch_bucket(
        &self,
        request: &BucketRequest,
        what: &str,
    ) -> Result<Digest, SourceError> {
        let mut inventory = Inventory::new();
        let mut total = 0;
        let listed = tokio::time::timeout(LIST_TIMEOUT, self.list_bucket(request, what)).await;
        let objects = listed.map_err(|_| bucket_error(what, "its list does not end"))??;
        let announced = objects.iter().map(|object| object.size);
        self.check_size(announced.fold(0, u64::saturating_add), what)?;
        for object in objects {
            let name = format!("object `{}` of {what}", object.key);
            safe_path(object.key.as_bytes()).of(&name)?;
            let fetched = self.fetch_object(request, &object.key, &name).await?;
            // The list may announce less than what comes.
            total += fetched.size;
            self.check_size(total, what)?;
            inventory.push((object.key, fetched.digest.to_string()));
        }
        inventory.sort();
        let text = serde_json::to_vec(&inventory).expect("strings become JSON");
        self.cache().put(&text)
    }

    async fn list_bucket(
        &self,
        request: &BucketRequest,
        what: &str,
    ) -> Result<Vec<listing::BucketObject>, SourceError> {
        let client = self.client(&request.access, what)?;
        let url = request.url("").of(what)?;
        let mut objects = Vec::new();
        let mut token: Option<String> = None;
        let mut seen = HashSet::new();
        let mut left = MAX_LIST_BYTES;
        for _ in 0..MAX_PAGES {
            let mut query = vec![("list-type", "2"), ("prefix", request.prefix.as_str())];
            if let Some(token) = &token {
                query.insert(0, ("continuation-token", token));
            }
            let get = request.get(url.clone(), &query);
            let response = client.fetch(&get).await.of(what)?;
            let body = response.bytes(MAX_PAGE_BYTES.min(left)).await.of(what)?;
            left = left.saturating_sub(body.len() as u64);
            let page = BucketPage::parse(&body).map_err(|reason| bucket_error(what, reason))?;
            objects.extend(page.objects);
            if objects.len() > self.limits().entries {
                break;
            }
            match page.next {
                Some(next) if !seen.insert(next.clone()) => {
                    let reason = "its list does not end: a page leads back to an earlier one";
                    return Err(bucket_error(what, reason));
                }
                Some(next) => token = Some(next),
                None => return Ok(objects),
            }
        }
        Err(bucket_error(what, "it has too many objects"))
    }

    async fn fetch_object(
        &self,
        request: &BucketRequest,
        key: &str,
        what: &str,
    ) -> Result<Downloaded, SourceError> {
        let get = request.get(request.url(key).of(what)?, &[]);
        let limit = self.limits().file_bytes;
        self.download(&request.access, &get, limit, what).await
    }

    fn check_size(&self, size: u64, what: &str) -> Result<(), SourceError> {
        let limit = self.limits().artifact_bytes;
        if size <= limit {
            return Ok(());
        }
        Err(SourceError::TooLarge {
            what: what.to_owned(),
            size,
            limit,
        })
    }
}

fn changed_unless(expected: &Digest, actual: &Digest, what: &str) -> Result<(), SourceError> {
    if expected == actual {
        return Ok(());
    }
    Err(SourceError::Changed {
        what: what.to_owned(),
        pinned: expected.to_string(),
        actual: actual.to_string(),
    })
}

fn bucket_error(what: &str, reason: &str) -> SourceError {
    SourceError::Bucket {
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}
