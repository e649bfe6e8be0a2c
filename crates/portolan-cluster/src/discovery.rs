//! What a cluster serves: every resource that can be listed, in its preferred version.

use std::collections::BTreeSet;

use kube::core::ApiResource;
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

    /// Every group version and every kind that the cluster serves, as Helm names them: `apps/v1`, `apps/v1/Deployment`.
    /// A group whose own server is down is left out.
    pub async fn api_versions(&self) -> Result<Vec<String>, ClusterError> {
        let groups: Groups = self.json("/apis", "application/json").await?;
        let of_group = |group: Group| group.versions.into_iter();
        let versions = groups.groups.into_iter().flat_map(of_group);
        let mut names = self.kinds_of("v1").await?;
        for version in versions {
            match self.kinds_of(&version.group_version).await {
                Ok(kinds) => names.extend(kinds),
                Err(ClusterError::Status { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(names)
    }

    /// A group version and the kinds in it.
    async fn kinds_of(&self, api_version: &str) -> Result<Vec<String>, ClusterError> {
        let served: Served = self.json(&root(api_version), "application/json").await?;
        let kinds = served.resources.into_iter();
        let kinds: BTreeSet<String> = kinds
            .filter(|kind| !kind.name.contains('/'))
            .map(|kind| format!("{api_version}/{}", kind.kind))
            .collect();
        Ok(std::iter::once(api_version.to_owned())
            .chain(kinds)
            .collect())
    }

    /// Whether the cluster serves a kind; its definition may come later, or go.
    pub async fn serves(&self, resource: &Resource) -> Result<bool, ClusterError> {
        let served = self.served_by(&resource.api_version).await?;
        Ok(served.iter().any(|served| served.name == resource.name))
    }

    /// Every resource of a version that can be listed; none if the cluster does not serve the version.
    pub(crate) async fn served_by(&self, api_version: &str) -> Result<Vec<Resource>, ClusterError> {
        match self.group(api_version).await {
            Err(error) if error.is_missing() => Ok(Vec::new()),
            served => served,
        }
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
    /// A kind whose objects live in namespaces and can be watched: `apps/v1`, `Deployment`, `deployments`.
    pub fn in_namespaces(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespaced: true,
            watchable: true,
        }
    }

    /// The same for objects that belong to no namespace.
    pub fn without_namespace(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            namespaced: false,
            ..Self::in_namespaces(api_version, kind, name)
        }
    }

    /// The path of one object.
    pub(crate) fn path(&self, namespace: &str, name: &str) -> String {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        format!("{}/{name}", self.query(namespace).path)
    }

    /// The same for kube's own requests.
    pub(crate) fn api_resource(&self) -> ApiResource {
        let (group, version) = self
            .api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version));
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            plural: self.name.clone(),
        }
    }

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
        let path = resource.path(namespace, name);
        match self.get(&path, "application/json").await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_missing() => Ok(None),
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
