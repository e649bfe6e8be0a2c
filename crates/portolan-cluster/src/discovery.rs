//! What a cluster serves: every resource that can be listed, in its preferred version.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::metadata::Metadata;
use crate::pages::Query;

/// A kind of object that the cluster serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// `deployments`
    pub name: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
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
        let can_list = |kind: &ServedResource| {
            !kind.name.contains('/') && kind.verbs.iter().any(|verb| verb == "list")
        };
        let resource = |kind: ServedResource| Resource {
            api_version: api_version.to_owned(),
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

    /// Gives the metadata of every object of a resource to `take`; of one namespace, when one is named. Helm's records
    /// are left out: they are read as what they hold.
    pub async fn each_of(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        take: impl FnMut(Metadata),
    ) -> Result<(), ClusterError> {
        let root = root(&resource.api_version);
        let holds_records = resource.api_version == "v1"
            && ["secrets", "configmaps"].contains(&resource.name.as_str());
        let query = Query {
            path: match namespace {
                Some(namespace) => format!("{root}/namespaces/{namespace}/{}", resource.name),
                None => format!("{root}/{}", resource.name),
            },
            labels: if holds_records {
                "owner!=helm".to_owned()
            } else {
                String::new()
            },
            fields: String::new(),
        };
        self.each(&query, take).await
    }

    /// Gives every `CustomResourceDefinition` to `take` as JSON text, one at a time: they can be large.
    pub async fn each_definition(&self, mut take: impl FnMut(&[u8])) -> Result<(), ClusterError> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let mut names = Vec::new();
        let query = Query {
            path: path.to_owned(),
            ..Query::default()
        };
        self.each(&query, |metadata| names.push(metadata.name))
            .await?;
        for name in names {
            match self
                .get(&format!("{path}/{name}"), "application/json")
                .await
            {
                Ok(definition) => take(&definition),
                // It went away in the meantime.
                Err(ClusterError::Status { code: 404, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}
