//! The inventory of a set: a ConfigMap in the cluster with a line for each object.

use std::collections::BTreeMap;
use std::fmt;

use portolan_engine::FieldHasher;
use serde_json::{Value, json};

use super::{ObjectSet, ObjectSetError};
use crate::discovery::Resource;
use crate::error::ClusterError;
use crate::write::ObjectVersion;

/// Says what the ConfigMap is, for people and for `kubectl get -l`.
const LABEL: &str = "portolan.dev/inventory";

/// How often the inventory is written while others write it too.
const MAX_ATTEMPTS: u32 = 50;

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

/// An inventory as it was read.
#[derive(Default)]
struct StoredInventory {
    inventory: Inventory,
    /// The resource version of its ConfigMap; `None` if there is none.
    version: Option<String>,
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

    /// The same without these members, unless the object of that name is another one by now.
    #[must_use]
    pub fn without<'m>(mut self, members: impl IntoIterator<Item = &'m Member>) -> Self {
        for member in members {
            let key = member.key();
            if self
                .members
                .get(&key)
                .is_some_and(|known| known.uid == member.uid)
            {
                self.members.remove(&key);
            }
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
        Ok(self.read_inventory().await?.inventory)
    }

    /// Changes the inventory and returns it as it was before. Several processes may apply the same set at once: each
    /// change is made to what is there at that moment, and `edit` is called again if somebody else was faster.
    pub(super) async fn edit_inventory(
        &self,
        edit: impl Fn(Inventory) -> Inventory,
    ) -> Result<Inventory, ObjectSetError> {
        let mut attempts = 0;
        loop {
            let stored = self.read_inventory().await?;
            let changed = edit(stored.inventory.clone());
            attempts += 1;
            match self.write_inventory(&stored, &changed).await {
                Ok(()) => return Ok(stored.inventory),
                Err(ClusterError::Outdated { .. } | ClusterError::Exists { .. })
                    if attempts < MAX_ATTEMPTS => {}
                // It was deleted after it was read.
                Err(error) if error.is_missing() && attempts < MAX_ATTEMPTS => {}
                Err(error) => return Err(self.inventory_error(error)),
            }
        }
    }

    /// Deletes the inventory if it has no members.
    pub(super) async fn delete_empty_inventory(&self) -> Result<(), ObjectSetError> {
        let stored = self.read_inventory().await?;
        let Some(version) = &stored.version else {
            return Ok(());
        };
        if stored.inventory.members().len() > 0 {
            return Ok(());
        }
        let at = self.at(version);
        let deleted = self.cluster.delete_unchanged(&config_maps(), &at).await;
        // `false`: somebody has added members meanwhile.
        deleted
            .map(|_| ())
            .map_err(|error| self.inventory_error(error))
    }

    async fn read_inventory(&self) -> Result<StoredInventory, ObjectSetError> {
        let kind = config_maps();
        let read = self.cluster.read(&kind, &self.namespace, &self.name);
        let found = read.await.map_err(|error| self.inventory_error(error))?;
        Ok(match found {
            None => StoredInventory::default(),
            Some(found) => StoredInventory {
                inventory: Inventory::from_data(&found["data"]),
                version: Some(
                    found["metadata"]["resourceVersion"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                ),
            },
        })
    }

    /// Writes the inventory, if it is still what it was when it was read.
    async fn write_inventory(
        &self,
        stored: &StoredInventory,
        changed: &Inventory,
    ) -> Result<(), ClusterError> {
        let kind = config_maps();
        let data = changed.to_data();
        let written = match &stored.version {
            None => {
                let object = json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": self.name,
                        "namespace": self.namespace,
                        "labels": {LABEL: self.name},
                    },
                    "data": data,
                });
                self.cluster.create(&kind, &object, &self.manager).await
            }
            Some(version) => {
                let at = self.at(version);
                let data = json!(data);
                self.cluster
                    .replace_field(&kind, &at, ("data", &data), &self.manager)
                    .await
            }
        };
        written.map(|_| ())
    }

    fn at<'v>(&'v self, version: &'v str) -> ObjectVersion<'v> {
        ObjectVersion {
            namespace: &self.namespace,
            name: &self.name,
            resource_version: version,
        }
    }

    fn inventory_error(&self, source: ClusterError) -> ObjectSetError {
        ObjectSetError::Inventory {
            name: format!("{}/{}", self.namespace, self.name),
            source,
        }
    }
}
