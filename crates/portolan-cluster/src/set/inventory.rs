//! The inventory of a set: a ConfigMap in the cluster with a line for each object.

use std::collections::BTreeMap;
use std::fmt;

use portolan_engine::FieldHasher;
use serde_json::{Value, json};

use super::{ObjectSet, ObjectSetError};
use crate::discovery::Resource;
use crate::error::ClusterError;
use crate::write::ApplyOptions;

/// Says what the ConfigMap is, for people and for `kubectl get -l`.
const LABEL: &str = "portolan.dev/inventory";

/// An object of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// Empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which object of that name; empty as long as it is not known.
    pub uid: String,
}

/// The objects of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// By what tells objects apart, whatever the version they are asked for in.
    members: BTreeMap<String, Member>,
}

// === impl Member ===

impl Member {
    /// The member that an object is.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
        }
    }

    /// Takes over what is known only after the object was made.
    pub(super) fn note_uid(&mut self, applied: &Value) {
        let applied = Self::of(applied);
        self.uid = applied.uid;
        self.namespace = applied.namespace;
    }

    /// What tells objects apart, as a name that a ConfigMap's data may have: names of objects may be longer, and hold more.
    fn key(&self) -> String {
        let group = self
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        let mut fields = FieldHasher::of("object");
        fields
            .add(group)
            .add(&self.kind)
            .add(&self.namespace)
            .add(&self.name);
        fields.finish().hex()
    }
}

/// `Deployment default/web`
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

// === impl Inventory ===

impl Inventory {
    /// The inventory of these members.
    pub fn of(members: impl IntoIterator<Item = Member>) -> Self {
        Self::default().with(members)
    }

    /// The same with other members; what is known of the same object is replaced, its uid only by another one.
    #[must_use]
    pub fn with(mut self, members: impl IntoIterator<Item = Member>) -> Self {
        for mut member in members {
            let key = member.key();
            if let Some(known) = self.members.get(&key)
                && member.uid.is_empty()
            {
                member.uid.clone_from(&known.uid);
            }
            self.members.insert(key, member);
        }
        self
    }

    /// Whether it has this object, whichever uid it has.
    pub fn contains(&self, member: &Member) -> bool {
        self.members.contains_key(&member.key())
    }

    /// The members, by kind and name.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &Member> {
        self.members.values()
    }

    pub(super) fn into_members(self) -> impl Iterator<Item = Member> {
        self.members.into_values()
    }

    fn to_data(&self) -> BTreeMap<&str, String> {
        let line = |member: &Member| {
            let Member {
                api_version,
                kind,
                namespace,
                name,
                uid,
            } = member;
            json!([api_version, kind, namespace, name, uid]).to_string()
        };
        let members = self.members.iter();
        members
            .map(|(key, member)| (key.as_str(), line(member)))
            .collect()
    }

    /// Lines that are none of ours are left out; they are kept by whoever wrote them.
    fn from_data(data: &Value) -> Self {
        let lines = data.as_object().into_iter().flatten();
        let members = lines.filter_map(|(_, line)| {
            let parts: [String; 5] = serde_json::from_str(line.as_str()?).ok()?;
            let [api_version, kind, namespace, name, uid] = parts;
            Some(Member {
                api_version,
                kind,
                namespace,
                name,
                uid,
            })
        });
        Self::of(members)
    }
}

/// The members, unless one stands there twice.
pub(super) fn distinct<'m>(
    members: impl Iterator<Item = &'m Member>,
) -> Result<Vec<Member>, ObjectSetError> {
    let mut seen = Inventory::default();
    let mut distinct = Vec::new();
    for member in members {
        if seen.contains(member) {
            return Err(ObjectSetError::Twice(member.clone()));
        }
        seen = seen.with([member.clone()]);
        distinct.push(member.clone());
    }
    Ok(distinct)
}

fn config_maps() -> Resource {
    Resource::in_namespaces("v1", "ConfigMap", "configmaps")
}

impl ObjectSet<'_> {
    /// What the set has in the cluster; nothing if it was never applied.
    pub async fn inventory(&self) -> Result<Inventory, ObjectSetError> {
        let kind = config_maps();
        let read = self.cluster.read(&kind, &self.namespace, &self.name);
        let found = read.await.map_err(|error| self.inventory_error(error))?;
        Ok(found.map_or_else(Inventory::default, |found| {
            Inventory::from_data(&found["data"])
        }))
    }

    /// Replaces the inventory. It is owned by the set's manager, so that lines which are left out are removed.
    pub(super) async fn write_inventory(
        &self,
        inventory: &Inventory,
    ) -> Result<(), ObjectSetError> {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {LABEL: self.name},
            },
            "data": inventory.to_data(),
        });
        let options = ApplyOptions {
            manager: &self.manager,
            force: true,
            dry_run: false,
        };
        let applied = self.cluster.apply(&config_maps(), &object, options).await;
        applied
            .map(|_| ())
            .map_err(|error| self.inventory_error(error))
    }

    fn inventory_error(&self, source: ClusterError) -> ObjectSetError {
        ObjectSetError::Inventory {
            name: format!("{}/{}", self.namespace, self.name),
            source,
        }
    }
}
