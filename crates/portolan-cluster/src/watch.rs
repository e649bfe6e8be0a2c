//! A watch on Helm's records: metadata of what changed, as it changes.

use http_body_util::{BodyExt as _, Collected};
use kube::client::Body;
use serde::Deserialize;

use crate::cluster::{Cluster, status};
use crate::error::ClusterError;
use crate::helm::{Driver, RecordRef};
use crate::metadata::Metadata;

/// Asks for metadata in place of whole objects.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The longest event that is read; metadata are far smaller.
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// What happened to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// It is new or other than before.
    Record(RecordRef),
    /// It is gone, or superseded.
    Gone(RecordRef),
}

/// An open watch.
pub struct Watch {
    driver: Driver,
    path: String,
    body: Body,
    buffer: Vec<u8>,
    resource_version: String,
}

#[derive(Deserialize)]
struct Event {
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
    /// Watches the records of a driver from a state on.
    pub async fn watch_records(
        &self,
        driver: Driver,
        namespace: Option<&str>,
        resource_version: &str,
    ) -> Result<Watch, ClusterError> {
        let more = format!(
            "watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion={resource_version}"
        );
        let path = driver.query(namespace).target(&more);
        let opened = tokio::time::timeout(self.patience(), self.open(&path, METADATA)).await;
        let response = opened.map_err(|_| ClusterError::Timeout {
            path: path.clone(),
            after: self.patience(),
        })??;
        if !response.status().is_success() {
            let code = response.status();
            let body = response.into_body().collect().await;
            let bytes = body.map(Collected::to_bytes).unwrap_or_default();
            return Err(status(&path, code, &bytes));
        }
        Ok(Watch {
            driver,
            path,
            body: response.into_body(),
            buffer: Vec::new(),
            resource_version: resource_version.to_owned(),
        })
    }
}

impl Watch {
    /// The state that another watch can go on from.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The next change; `None` when the server ended the watch, which it does every few minutes.
    pub async fn next(&mut self) -> Result<Option<Changed>, ClusterError> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(changed) = self.event(&line)? {
                    return Ok(Some(changed));
                }
            }
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let data = frame
                .map_err(ClusterError::Unreachable)?
                .into_data()
                .unwrap_or_default();
            if self.buffer.len() + data.len() > MAX_EVENT_BYTES {
                return Err(self.bad(format!("an event is larger than {MAX_EVENT_BYTES} bytes")));
            }
            self.buffer.extend_from_slice(&data);
        }
    }

    fn event(&mut self, line: &[u8]) -> Result<Option<Changed>, ClusterError> {
        let event: Event =
            serde_json::from_slice(line).map_err(|error| self.bad(error.to_string()))?;
        let metadata = event.object.metadata;
        if !metadata.resource_version.is_empty() {
            self.resource_version.clone_from(&metadata.resource_version);
        }
        match event.kind.as_str() {
            "ADDED" | "MODIFIED" => {
                Ok(RecordRef::read(&metadata, self.driver).map(Changed::Record))
            }
            "DELETED" => Ok(RecordRef::read(&metadata, self.driver).map(Changed::Gone)),
            "ERROR" if event.object.code == 410 => Err(ClusterError::Gone {
                path: self.path.clone(),
                fresh: None,
            }),
            "ERROR" => Err(self.bad(event.object.message)),
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
