//! The records of a release: Secrets, one for each revision, as Helm writes them.
//!
//! A record is handled as JSON and not as a type, so that what another version of Helm wrote is not lost.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use portolan_cluster::{Cluster, ClusterError, Metadata, Query, Resource};
use portolan_helm::storage::{self, StorageError};
use serde_json::{Value, json};

use crate::error::HelmReleaseError;
use crate::target::MANAGER;

/// The type of a Secret that holds a record.
const TYPE: &str = "helm.sh/release.v1";

/// The most bytes of a record: what a Secret holds, less what statuses and times of hooks may add to it later.
const MAX_BYTES: usize = (1 << 20) - (16 << 10);

/// The longest description of a failure.
const MAX_DESCRIPTION: usize = 2048;

/// Says which process works on a pending record, and changes as long as it does.
pub(crate) const HOLDER: &str = "portolan.dev/holder";

/// Labels that belong to the record and not to the release.
const OWN_LABELS: [&str; 6] = [
    "name",
    "owner",
    "status",
    "version",
    "createdAt",
    "modifiedAt",
];

/// What the metadata of a record tell.
#[derive(Debug, Clone)]
pub(crate) struct RecordHead {
    pub(crate) revision: i64,
    pub(crate) status: String,
    metadata: Metadata,
}

/// A record that was read or made.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) revision: i64,
    pub(crate) json: Value,
    resource_version: String,
}

/// The records of one release.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) namespace: &'a str,
    pub(crate) release: &'a str,
}

impl RecordHead {
    /// Whether somebody works on the release.
    pub(crate) fn is_pending(&self) -> bool {
        self.status.starts_with("pending-") || self.status == "uninstalling"
    }

    pub(crate) fn is_deployed(&self) -> bool {
        self.status == "deployed"
    }

    /// The process of ours that works on it.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.metadata.annotations.get(HOLDER).map(String::as_str)
    }

    pub(crate) fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// Labels that a user gave the release; the next revision has them too.
    pub(crate) fn user_labels(&self) -> BTreeMap<String, String> {
        let labels = self.metadata.labels.iter();
        let given = labels.filter(|(name, _)| !OWN_LABELS.contains(&name.as_str()));
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

impl Record {
    pub(crate) fn status(&self) -> &str {
        self.json["info"]["status"].as_str().unwrap_or_default()
    }

    pub(crate) fn manifest(&self) -> &str {
        self.json["manifest"].as_str().unwrap_or_default()
    }

    /// Says how it stands with the revision.
    pub(crate) fn set_status(&mut self, status: &str, description: &str) {
        let mut description = description.to_owned();
        description.truncate(description.floor_char_boundary(MAX_DESCRIPTION));
        self.json["info"]["status"] = status.into();
        self.json["info"]["description"] = description.into();
    }
}

/// The time, as records have it.
pub(crate) fn now() -> String {
    Timestamp::now().to_string()
}

impl Records<'_> {
    /// All revisions, the oldest first.
    pub(crate) async fn heads(&self) -> Result<Vec<RecordHead>, ClusterError> {
        let query = Query {
            path: format!("/api/v1/namespaces/{}/secrets", self.namespace),
            labels: format!("owner=helm,name={}", self.release),
            fields: format!("type={TYPE}"),
        };
        let mut heads = Vec::new();
        let list = self.cluster.list(&query, |metadata: Metadata| {
            let label = |name: &str| metadata.labels.get(name).cloned();
            if let Some(revision) = label("version").and_then(|text| text.parse().ok()) {
                heads.push(RecordHead {
                    revision,
                    status: label("status").unwrap_or_default(),
                    metadata,
                });
            }
        });
        list.await?;
        heads.sort_by_key(|head| head.revision);
        Ok(heads)
    }

    /// One revision; `None` if it is gone.
    pub(crate) async fn read(&self, revision: i64) -> Result<Option<Record>, HelmReleaseError> {
        let name = storage::secret_name(self.release, revision);
        let found = self.cluster.read(&secrets(), self.namespace, &name).await?;
        let Some(object) = found else {
            return Ok(None);
        };
        let bytes = object["data"]["release"].as_str().unwrap_or_default();
        let json = storage::unpack(bytes.as_bytes())
            .and_then(|json| Ok(serde_json::from_slice(&json)?))
            .map_err(|source| HelmReleaseError::Record { revision, source })?;
        Ok(Some(Record {
            revision,
            json,
            resource_version: resource_version(&object),
        }))
    }

    /// Makes the record of a revision, held by a process. One that exists means that somebody else was faster.
    pub(crate) async fn create(
        &self,
        revision: i64,
        json: Value,
        labels: BTreeMap<String, String>,
        holder: &str,
    ) -> Result<Record, HelmReleaseError> {
        let status = json["info"]["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let packed = packed(revision, &json)?;
        let mut all = labels;
        all.extend([
            ("name".to_owned(), self.release.to_owned()),
            ("owner".to_owned(), "helm".to_owned()),
            ("status".to_owned(), status.clone()),
            ("version".to_owned(), revision.to_string()),
            ("createdAt".to_owned(), seconds()),
        ]);
        let name = storage::secret_name(self.release, revision);
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": all,
                "annotations": {HOLDER: holder},
            },
            "type": TYPE,
            "data": {"release": STANDARD.encode(&packed)},
        });
        let made = match self.cluster.create(&secrets(), &object, MANAGER).await {
            Err(ClusterError::Exists { .. }) => {
                // A request whose answer was lost is sent twice: then it is our own.
                let found = self.cluster.read(&secrets(), self.namespace, &name).await?;
                let is_ours = |found: &Value| found["metadata"]["annotations"][HOLDER] == *holder;
                found.filter(is_ours).ok_or(HelmReleaseError::Pending {
                    revision,
                    status,
                    hint: "",
                })?
            }
            made => made?,
        };
        Ok(Record {
            revision,
            json,
            resource_version: resource_version(&made),
        })
    }

    /// Writes a record that is still as it was read.
    pub(crate) async fn write(&self, record: &mut Record) -> Result<(), HelmReleaseError> {
        let packed = packed(record.revision, &record.json)?;
        let is_pending =
            record.status().starts_with("pending-") || record.status() == "uninstalling";
        let mut patch = json!({
            "metadata": {"labels": {"status": record.status(), "modifiedAt": seconds()}},
            "data": {"release": STANDARD.encode(&packed)},
        });
        if !is_pending {
            patch["metadata"]["annotations"] = json!({HOLDER: null});
        }
        self.patch(record, patch).await
    }

    /// Says that the process still works on a record.
    pub(crate) async fn renew(
        &self,
        record: &mut Record,
        holder: &str,
    ) -> Result<(), HelmReleaseError> {
        let patch = json!({"metadata": {"annotations": {
            HOLDER: holder,
            "portolan.dev/renewed": now(),
        }}});
        self.patch(record, patch).await
    }

    async fn patch(&self, record: &mut Record, mut patch: Value) -> Result<(), HelmReleaseError> {
        patch["metadata"]["resourceVersion"] = record.resource_version.as_str().into();
        let name = storage::secret_name(self.release, record.revision);
        let place = (self.namespace, name.as_str());
        let written = self.cluster.merge(&secrets(), place, &patch, MANAGER).await;
        let written = match written {
            Err(ClusterError::Outdated { .. }) => {
                return Err(HelmReleaseError::Lost(record.revision));
            }
            Err(error) if error.is_missing() => {
                return Err(HelmReleaseError::Lost(record.revision));
            }
            written => written?,
        };
        record.resource_version = resource_version(&written);
        Ok(())
    }

    pub(crate) async fn remove(&self, head: &RecordHead) -> Result<(), ClusterError> {
        let place = (self.namespace, head.metadata.name.as_str());
        let kind = secrets();
        let removed = self.cluster.delete(&kind, place, &head.metadata.uid).await;
        removed.map(|_| ())
    }

    /// Removes the oldest revisions until there is room for another one; what is deployed stays.
    pub(crate) async fn make_room(
        &self,
        heads: &[RecordHead],
        most: usize,
    ) -> Result<(), ClusterError> {
        if most == 0 {
            return Ok(());
        }
        let surplus = (heads.len() + 1).saturating_sub(most);
        let deployed = heads.iter().rev().find(|head| head.is_deployed());
        let deployed = deployed.map(|head| head.revision);
        let old = heads.iter().filter(|head| Some(head.revision) != deployed);
        for head in old.take(surplus) {
            self.remove(head).await?;
        }
        Ok(())
    }
}

/// The text of a record, if a Secret can hold it.
pub(crate) fn packed(revision: i64, json: &Value) -> Result<String, HelmReleaseError> {
    let packed = storage::pack(json)
        .map_err(|source: StorageError| HelmReleaseError::Record { revision, source })?;
    if packed.len() > MAX_BYTES {
        return Err(HelmReleaseError::TooLarge(packed.len()));
    }
    Ok(packed)
}

fn secrets() -> Resource {
    Resource::in_namespaces("v1", "Secret", "secrets")
}

fn resource_version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().to_owned()
}

fn seconds() -> String {
    Timestamp::now().as_second().to_string()
}
