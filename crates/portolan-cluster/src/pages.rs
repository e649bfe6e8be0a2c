//! Lists, read page by page: as metadata wherever that is enough, as whole objects where it is not.
//!
//! The continue token can expire during a long list. The server then answers 410, if possible with a token that
//! continues at the newest state. If there is one, it is used; otherwise the list starts again. So a caller may see
//! an item twice.

use std::fmt::Write as _;

use kube::core::DynamicObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::metadata::Metadata;
use crate::shallow::ShallowObject;

/// How many objects a page of metadata has.
pub const PAGE_SIZE: usize = 256;

/// How many objects a page of whole objects has.
const WHOLE_PAGE_SIZE: usize = 64;

/// How often a list may outlive its token.
const RESTARTS: u32 = 5;

/// How many pages a list may have: two and a half million objects of one kind. A server that always names another page
/// would else be followed for ever.
pub(crate) const MAX_PAGES: usize = 10_000;

/// Asks for metadata in place of whole objects.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// The collection's path: `/api/v1/secrets`.
    pub path: String,
    /// A label selector; may be empty.
    pub labels: String,
    /// A field selector; may be empty.
    pub fields: String,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<T>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PageMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: Metadata,
}

/// How a list's pages look.
struct Form {
    accept: &'static str,
    page_size: usize,
}

impl Query {
    pub(crate) fn target(&self, more: &str) -> String {
        let mut target = format!("{}?{more}", self.path);
        for (name, value) in [
            ("labelSelector", &self.labels),
            ("fieldSelector", &self.fields),
        ] {
            if !value.is_empty() {
                let _ = write!(target, "&{name}={}", encode(value));
            }
        }
        target
    }
}

impl Cluster {
    /// Gives the metadata of every object to `take`, a page at a time; nothing is kept here. Returns the state that a
    /// watch can go on from.
    pub async fn list(
        &self,
        query: &Query,
        mut take: impl FnMut(Metadata),
    ) -> Result<String, ClusterError> {
        let form = Form {
            accept: METADATA_LIST,
            page_size: PAGE_SIZE,
        };
        self.pages(query, &form, |item: Item| take(item.metadata))
            .await
    }

    /// The same with whole objects, in smaller pages. The objects of a list do not say what they are.
    pub async fn list_whole(
        &self,
        query: &Query,
        take: impl FnMut(Value),
    ) -> Result<String, ClusterError> {
        let form = Form {
            accept: "application/json",
            page_size: WHOLE_PAGE_SIZE,
        };
        self.pages(query, &form, take).await
    }

    /// The same; of an object that is nested deeper than anybody needs, only the metadata and [`crate::TOO_DEEP`], so
    /// that the others can still be listed.
    pub async fn list_shallow(
        &self,
        query: &Query,
        mut take: impl FnMut(DynamicObject),
    ) -> Result<String, ClusterError> {
        let form = Form {
            accept: "application/json",
            page_size: WHOLE_PAGE_SIZE,
        };
        self.pages(query, &form, |object: ShallowObject| take(object.0))
            .await
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        query: &Query,
        form: &Form,
        mut take: impl FnMut(T),
    ) -> Result<String, ClusterError> {
        let mut next = String::new();
        let mut restarts = 0;
        for _ in 0..self.max_pages() {
            // Without a resource version: older servers ignore the limit when one is sent.
            let mut more = format!("limit={}", form.page_size);
            if !next.is_empty() {
                let _ = write!(more, "&continue={}", encode(&next));
            }
            let page: Page<T> = match self.json(&query.target(&more), form.accept).await {
                Ok(page) => page,
                Err(ClusterError::Gone { fresh, .. }) if restarts < RESTARTS => {
                    restarts += 1;
                    next = fresh.unwrap_or_default();
                    continue;
                }
                Err(error) => return Err(error),
            };
            page.items.into_iter().flatten().for_each(&mut take);
            if page.metadata.next.is_empty() {
                return Ok(page.metadata.resource_version);
            }
            if next == page.metadata.next {
                return Err(endless(
                    query,
                    "it names the same next page again and again",
                ));
            }
            next = page.metadata.next;
        }
        let message = format!("it has more than {} pages", self.max_pages());
        Err(endless(query, &message))
    }
}

fn endless(query: &Query, message: &str) -> ClusterError {
    ClusterError::Answer {
        path: query.path.clone(),
        message: message.to_owned(),
    }
}

/// A value inside a URL's query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}
