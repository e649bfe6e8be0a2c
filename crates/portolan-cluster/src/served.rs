//! Which kinds a cluster serves, asked for once for each API version.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::set::MemberError;

/// The kinds that a cluster is known to serve.
pub struct ServedKinds<'a> {
    cluster: &'a Cluster,
    by_version: BTreeMap<String, Vec<Resource>>,
}

impl<'a> ServedKinds<'a> {
    /// Knows nothing yet.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            by_version: BTreeMap::new(),
        }
    }

    /// Forgets what is known, as after a definition was made.
    pub fn forget(&mut self) {
        self.by_version.clear();
    }

    /// The kind of an object as the cluster serves it; asked for again while it is not known.
    ///
    /// # Errors
    /// When the object does not say what it is, or the cluster does not serve its kind.
    pub async fn resource(&mut self, object: &Value) -> Result<Resource, MemberError> {
        let text = |field: &'static str| {
            let text = object[field].as_str().filter(|text| !text.is_empty());
            text.ok_or(MemberError::Incomplete(field))
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        if object["metadata"]["name"]
            .as_str()
            .is_none_or(str::is_empty)
        {
            return Err(MemberError::Incomplete("metadata.name"));
        }
        self.kind(api_version, kind).await
    }

    /// A kind as the cluster serves it.
    ///
    /// # Errors
    /// When the cluster does not serve it.
    pub async fn kind(&mut self, api_version: &str, kind: &str) -> Result<Resource, MemberError> {
        let found = |served: &[Resource]| served.iter().find(|served| served.kind == kind).cloned();
        let known = self.by_version.get(api_version);
        if let Some(known) = known.and_then(|known| found(known)) {
            return Ok(known);
        }
        let served = self.cluster.served_by(api_version).await?;
        let resource = found(&served);
        self.by_version.insert(api_version.to_owned(), served);
        resource.ok_or_else(|| MemberError::Unserved {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
    }
}
