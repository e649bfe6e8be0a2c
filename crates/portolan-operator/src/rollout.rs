//! A rollout as it is stored in the cluster.

use std::collections::BTreeMap;

use portolan_cluster::kube::core::DynamicObject;
use portolan_cluster::{ObjectVersion, Regarding, TOO_DEEP};
use portolan_rollout::objects::App;
use portolan_rollout::{API_VERSION, KIND, SCHEMA, Spec, Status, Time};
use serde_json::Value;

use crate::queue::Key;

/// The finalizer that makes a deletion wait until traffic is home.
pub(crate) const FINALIZER: &str = "portolan.dev/traffic";

/// A rollout as it is stored in the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Rollout {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    /// Since when it is being deleted.
    pub(crate) deleted_at: Option<Time>,
    pub(crate) spec: Value,
    pub(crate) status: Option<Value>,
    /// Whether its content is not known, because it is nested deeper than anything is read.
    pub(crate) is_too_deep: bool,
}

/// What is known of a status.
pub(crate) enum KnownStatus {
    /// There is none.
    None,
    /// This one.
    Known(Box<Status>),
    /// A newer operator wrote it.
    Newer(u32),
    /// It cannot be read.
    Unreadable(String),
}

impl Rollout {
    pub(crate) fn of(object: &DynamicObject) -> Option<Self> {
        let metadata = &object.metadata;
        let deleted_at = metadata.deletion_timestamp.as_ref();
        Some(Self {
            key: Key {
                namespace: metadata.namespace.clone()?,
                name: metadata.name.clone()?,
            },
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            generation: metadata.generation.unwrap_or(0),
            annotations: metadata.annotations.clone().unwrap_or_default(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            deleted_at: deleted_at.map(|at| Time::from_unix(at.0.as_second())),
            spec: object.data.get("spec").cloned().unwrap_or(Value::Null),
            status: object.data.get("status").cloned(),
            is_too_deep: object.data.get(TOO_DEEP).is_some(),
        })
    }

    /// Whether this is a later state than the other.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        let number = |rollout: &Self| rollout.resource_version.parse::<u64>().ok();
        match (number(self), number(other)) {
            (Some(this), Some(other)) => this > other,
            _ => false,
        }
    }

    pub(crate) fn parse_spec(&self) -> Result<Spec, String> {
        serde_json::from_value(self.spec.clone()).map_err(|error| error.to_string())
    }

    pub(crate) fn parse_status(&self) -> KnownStatus {
        let Some(status) = self.status.as_ref().filter(|status| !status.is_null()) else {
            return KnownStatus::None;
        };
        match status.get("schema").and_then(Value::as_u64) {
            // Only conditions, which were written because the spec could not be read.
            None if status.get("phase").is_none() => KnownStatus::None,
            Some(schema) if schema > u64::from(SCHEMA) => {
                KnownStatus::Newer(u32::try_from(schema).unwrap_or(u32::MAX))
            }
            _ => match serde_json::from_value(status.clone()) {
                Ok(status) => KnownStatus::Known(Box::new(status)),
                Err(error) => KnownStatus::Unreadable(error.to_string()),
            },
        }
    }

    pub(crate) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }

    pub(crate) fn app<'a>(&'a self, spec: &'a Spec) -> App<'a> {
        App {
            name: &self.key.name,
            namespace: &self.key.namespace,
            uid: &self.uid,
            spec,
        }
    }

    pub(crate) fn version(&self) -> ObjectVersion<'_> {
        ObjectVersion {
            namespace: &self.key.namespace,
            name: &self.key.name,
            resource_version: &self.resource_version,
        }
    }

    pub(crate) fn regarding(&self) -> Regarding {
        Regarding {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
        }
    }
}
