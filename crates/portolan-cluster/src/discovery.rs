//! What a cluster serves: every resource that can be listed, in its preferred version.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::pages::Query;

/// A kind of object that the cluster serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// `deployments`
    pub name: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether changes of its objects can be watched.
    pub watchable: bool,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: GroupVersion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

#[derive(Deserialize)]
struct Served {
    resources: Vec<ServedResource>,
}

#[derive(Deserialize)]
struct ServedResource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

impl Cluster {
    /// Every resource that can be listed, once each: in the preferred version of its group, or in another one when only
    /// that has it. A group whose own server is down is left out and told in the second list.
    pub async fn resources(&self) -> Result<(Vec<Resource>, Vec<String>), ClusterError> {
        let mut resources = self.group("v1").await?;
        let mut troubles = Vec::new();
        let groups: Groups = self.json("/apis", "application/json").await?;
        for group in groups.groups {
            let mut versions = vec![group.preferred_version.group_version];
            versions.extend(
                group
                    .versions
                    .into_iter()
                    .map(|version| version.group_version),
            );
            let mut seen = BTreeSet::new();
            for (index, version) in versions.iter().enumerate() {
                if versions
                    .iter()
                    .take(index)
                    .any(|earlier| earlier == version)
                {
                    continue;
                }
                match self.group(version).await {
                    Ok(found) => resources.extend(
                        found
                            .into_iter()
                            .filter(|resource| seen.insert(resource.name.clone())),
                    ),
                    Err(error) => troubles.push(format!("{}: {error}", group.name)),
                }
            }
        }
        Ok((resources, troubles))
    }

    async fn group(&self, api_version: &str) -> Result<Vec<Resource>, ClusterError> {
        let served: Served = self.json(&root(api_version), "application/json").await?;
        let can = |kind: &ServedResource, what: &str| kind.verbs.iter().any(|verb| verb == what);
        let can_list = |kind: &ServedResource| !kind.name.contains('/') && can(kind, "list");
        let resource = |kind: ServedResource| Resource {
            api_version: api_version.to_owned(),
            watchable: can(&kind, "watch"),
            kind: kind.kind,
            name: kind.name,
            namespaced: kind.namespaced,
        };
        Ok(served
            .resources
            .into_iter()
            .filter(can_list)
            .map(resource)
            .collect())
    }
}

impl Resource {
    /// Tells resources apart: `apps/v1 deployments`.
    pub fn id(&self) -> String {
        format!("{} {}", self.api_version, self.name)
    }

    /// Its objects; those of one namespace, when one is named. Helm's records are left out: they are read as what they
    /// hold.
    pub fn query(&self, namespace: Option<&str>) -> Query {
        let root = root(&self.api_version);
        let holds_records =
            self.api_version == "v1" && ["secrets", "configmaps"].contains(&self.name.as_str());
        Query {
            path: match namespace.filter(|_| self.namespaced) {
                Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.name),
                None => format!("{root}/{}", self.name),
            },
            labels: if holds_records {
                "owner!=helm".to_owned()
            } else {
                String::new()
            },
            fields: String::new(),
        }
    }
}

impl Cluster {
    /// One object as JSON text; `None` when it is gone.
    pub async fn object(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, ClusterError> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let path = format!("{}/{name}", resource.query(namespace).path);
        match self.get(&path, "application/json").await {
            Ok(object) => Ok(Some(object)),
            Err(ClusterError::Status { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}
