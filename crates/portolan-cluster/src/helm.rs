//! Helm's records in a cluster: lists them, chooses the current one of a release, and reads the bytes of one record.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::metadata::Metadata;
use crate::pages::Query;

/// Where Helm keeps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Driver {
    /// In Secrets, as it does unless told otherwise.
    Secret,
    /// In ConfigMaps.
    ConfigMap,
}

/// One revision of a release, known by its labels alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordRef {
    /// The namespace.
    pub namespace: String,
    /// The release.
    pub release: String,
    /// The revision.
    pub revision: i64,
    /// `deployed`, `failed`, `pending-upgrade` and so on.
    pub status: String,
    /// Where it lies.
    pub driver: Driver,
    /// The name of its Secret or ConfigMap.
    pub name: String,
    /// What no other object ever has.
    pub uid: String,
    /// Changes whenever the record does.
    pub resource_version: String,
}

impl Driver {
    /// Both, the usual one first.
    pub const ALL: [Self; 2] = [Self::Secret, Self::ConfigMap];

    fn resource(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }

    /// The records in a namespace, or in all of them.
    ///
    /// Superseded revisions, nine tenths of all records, stay where they are.
    pub fn query(self, namespace: Option<&str>) -> Query {
        let path = match namespace {
            Some(namespace) => format!("/api/v1/namespaces/{namespace}/{}", self.resource()),
            None => format!("/api/v1/{}", self.resource()),
        };
        let fields = match self {
            Self::Secret => "type=helm.sh/release.v1".to_owned(),
            Self::ConfigMap => String::new(),
        };
        Query {
            path,
            labels: "owner=helm,status!=superseded".to_owned(),
            fields,
        }
    }
}

impl RecordRef {
    /// The record that an object's metadata tell of.
    pub fn read(metadata: &Metadata, driver: Driver) -> Option<Self> {
        let label = |name: &str| metadata.labels.get(name).cloned();
        Some(Self {
            release: label("name")?,
            revision: label("version")?.parse().ok()?,
            status: label("status").unwrap_or_default(),
            driver,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        })
    }

    /// Whether it is what its release runs.
    pub fn is_deployed(&self) -> bool {
        self.status == "deployed"
    }
}

/// Of each release the newest deployed revision, by namespace and name. Old bugs of Helm left several.
pub fn newest_deployed(records: impl IntoIterator<Item = RecordRef>) -> Vec<RecordRef> {
    let mut newest: HashMap<(String, String), RecordRef> = HashMap::new();
    for record in records.into_iter().filter(RecordRef::is_deployed) {
        let key = (record.namespace.clone(), record.release.clone());
        match newest.get(&key) {
            Some(known) if known.revision >= record.revision => {}
            _ => {
                newest.insert(key, record);
            }
        }
    }
    let mut records: Vec<RecordRef> = newest.into_values().collect();
    records.sort();
    records
}

impl Cluster {
    /// The records of a driver that are not superseded, and the state that a watch can go on from.
    pub async fn records(
        &self,
        driver: Driver,
        namespace: Option<&str>,
    ) -> Result<(Vec<RecordRef>, String), ClusterError> {
        let mut records = Vec::new();
        let query = driver.query(namespace);
        let take = |metadata| records.extend(RecordRef::read(&metadata, driver));
        let resume = self.list(&query, take).await?;
        Ok((records, resume))
    }

    /// The text of a record, as `portolan_helm::storage` decodes it; `None` when it is gone.
    pub async fn record(&self, record: &RecordRef) -> Result<Option<String>, ClusterError> {
        #[derive(Deserialize)]
        struct Holder {
            #[serde(default)]
            data: Data,
        }
        #[derive(Deserialize, Default)]
        struct Data {
            #[serde(default)]
            release: String,
        }
        let RecordRef {
            namespace, name, ..
        } = record;
        let path = format!(
            "/api/v1/namespaces/{namespace}/{}/{name}",
            record.driver.resource()
        );
        match self.json::<Holder>(&path, "application/json").await {
            Ok(holder) => Ok(Some(holder.data.release)),
            Err(ClusterError::Status { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(release: &str, revision: i64, status: &str) -> RecordRef {
        RecordRef {
            namespace: "shop".into(),
            release: release.into(),
            revision,
            status: status.into(),
            driver: Driver::Secret,
            name: format!("sh.helm.release.v1.{release}.v{revision}"),
            uid: String::new(),
            resource_version: String::new(),
        }
    }

    #[test]
    fn the_newest_deployed_revision_counts_not_the_newest() {
        let records = [
            record("web", 9, "deployed"),
            record("web", 11, "failed"),
            record("web", 10, "deployed"),
            record("new", 1, "pending-install"),
        ];
        let chosen = newest_deployed(records);
        assert_eq!(chosen, [record("web", 10, "deployed")]);
    }
}
