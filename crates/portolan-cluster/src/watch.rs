//! A watch: the metadata of what changes in a list, as it changes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use http::Response;
use http_body_util::{BodyExt as _, Collected, Limited};
use kube::client::Body;
use serde::Deserialize;

use crate::cluster::{Cluster, status};
use crate::error::ClusterError;
use crate::metadata::Metadata;
use crate::pages::Query;

/// Asks for metadata in place of whole objects.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The longest event that is read; metadata are far smaller.
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// The longest refusal that is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// How long the server is asked to keep a watch, in seconds: the least, and how many more at most. Many watches that
/// begin together shall not all end together.
const LIFE_SECONDS: u64 = 240;
const SPREAD_SECONDS: u64 = 60;

/// How long nothing may come: a bookmark comes every minute, and the server ends every watch in the end. After that the
/// connection is dead, though nobody has said so.
const SILENCE: Duration = Duration::from_secs(LIFE_SECONDS + SPREAD_SECONDS + 30);

/// What happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It is new or other than before.
    Changed(Metadata),
    /// It is gone, or no longer in the list.
    Gone(Metadata),
}

/// An open watch.
pub struct Watch {
    server: String,
    path: String,
    body: Body,
    buffer: Vec<u8>,
    resource_version: String,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: u16,
}

impl Cluster {
    /// Watches a list from a state on.
    pub async fn watch(
        &self,
        query: &Query,
        resource_version: &str,
    ) -> Result<Watch, ClusterError> {
        let more = format!(
            "watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={resource_version}",
            life(query)
        );
        let path = query.target(&more);
        let response = self.open_body(&path, METADATA).await?;
        Ok(Watch {
            server: self.server().to_owned(),
            path,
            body: response.into_body(),
            buffer: Vec::new(),
            resource_version: resource_version.to_owned(),
        })
    }
}

impl Cluster {
    /// A successful answer whose body is still to come; a refusal is read to its end.
    pub(crate) async fn open_body(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<Response<Body>, ClusterError> {
        let opened = tokio::time::timeout(self.patience(), self.head(path, accept)).await;
        opened.map_err(|_| self.too_slow(path))?
    }

    async fn head(&self, path: &str, accept: &str) -> Result<Response<Body>, ClusterError> {
        let response = self.open(path, accept).await?;
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let body = Limited::new(response.into_body(), MAX_REFUSAL_BYTES);
        let body = body.collect().await;
        let bytes = body.map(Collected::to_bytes).unwrap_or_default();
        Err(status(path, code, &bytes))
    }
}

/// The seconds that a watch shall last; other for other lists.
fn life(query: &Query) -> u64 {
    let mut hasher = DefaultHasher::new();
    query.path.hash(&mut hasher);
    LIFE_SECONDS + hasher.finish() % SPREAD_SECONDS
}

impl Watch {
    /// The state that another watch can go on from.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The next event; `None` when the server ended the watch, which it does every few minutes.
    pub async fn next(&mut self) -> Result<Option<Event>, ClusterError> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(event) = self.event(&line)? {
                    return Ok(Some(event));
                }
            }
            let frame = tokio::time::timeout(SILENCE, self.body.frame()).await;
            let frame = frame.map_err(|_| ClusterError::Timeout {
                server: self.server.clone(),
                path: self.path.clone(),
                after: SILENCE,
            })?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let data = frame
                .map_err(|error| ClusterError::unreachable(&self.server, &error))?
                .into_data()
                .unwrap_or_default();
            if self.buffer.len() + data.len() > MAX_EVENT_BYTES {
                return Err(self.bad(format!("an event is larger than {MAX_EVENT_BYTES} bytes")));
            }
            self.buffer.extend_from_slice(&data);
        }
    }

    fn event(&mut self, line: &[u8]) -> Result<Option<Event>, ClusterError> {
        let line: Line =
            serde_json::from_slice(line).map_err(|error| self.bad(error.to_string()))?;
        let metadata = line.object.metadata;
        if !metadata.resource_version.is_empty() {
            self.resource_version.clone_from(&metadata.resource_version);
        }
        match line.kind.as_str() {
            "ADDED" | "MODIFIED" => Ok(Some(Event::Changed(metadata))),
            "DELETED" => Ok(Some(Event::Gone(metadata))),
            "ERROR" if line.object.code == 410 => Err(ClusterError::Gone {
                path: self.path.clone(),
                fresh: None,
            }),
            "ERROR" => Err(self.bad(line.object.message)),
            // A bookmark: the server is alive and nothing happened.
            _ => Ok(None),
        }
    }

    fn bad(&self, message: String) -> ClusterError {
        ClusterError::Answer {
            path: self.path.clone(),
            message,
        }
    }
}
