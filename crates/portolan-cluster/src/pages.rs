//! Lists, read page by page as metadata only.
//!
//! A list that takes long can outlive its token: the server then answers 410 and, when it can, with a token that goes on
//! at the newest state. That is taken; else the list begins anew, so whoever takes the items must bear to see one twice.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::metadata::Metadata;

/// How many objects a page has.
pub const PAGE_SIZE: usize = 256;

/// How often a list may outlive its token.
const RESTARTS: u32 = 5;

/// Asks for metadata in place of whole objects.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

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

/// How a list went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Listed {
    /// The state that a watch can go on from.
    pub(crate) resource_version: String,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Option<Vec<Item>>,
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
    /// Gives the metadata of every object to `take`, a page at a time; nothing is kept here.
    pub async fn each(
        &self,
        query: &Query,
        take: impl FnMut(Metadata),
    ) -> Result<(), ClusterError> {
        self.list(query, take).await.map(|_| ())
    }

    pub(crate) async fn list(
        &self,
        query: &Query,
        mut take: impl FnMut(Metadata),
    ) -> Result<Listed, ClusterError> {
        let mut next = String::new();
        let mut listed = Listed::default();
        let mut restarts = 0;
        loop {
            // Without a resource version: older servers ignore the limit when one is sent.
            let mut more = format!("limit={PAGE_SIZE}");
            if !next.is_empty() {
                let _ = write!(more, "&continue={}", encode(&next));
            }
            let page: Page = match self.json(&query.target(&more), METADATA_LIST).await {
                Ok(page) => page,
                Err(ClusterError::Gone { fresh, .. }) if restarts < RESTARTS => {
                    restarts += 1;
                    next = fresh.unwrap_or_default();
                    continue;
                }
                Err(error) => return Err(error),
            };
            page.items
                .into_iter()
                .flatten()
                .for_each(|item| take(item.metadata));
            listed.resource_version = page.metadata.resource_version;
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(listed);
            }
        }
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
