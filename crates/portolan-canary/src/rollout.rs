//! An `IstioCanaryDeployment` as read from a cluster.

use std::collections::BTreeMap;
use std::fmt;

use portolan_rollout::{Analysis, SCHEMA, Spec, Status, Tokens};
use portolan_yaml::Node;
use serde_json::Value;

/// An object with its status.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The generation of its spec.
    pub generation: i64,
    /// When it was made, as the cluster writes it.
    pub created: String,
    /// The commands in its annotations.
    pub tokens: Tokens,
    /// What it asks for.
    pub spec: Spec,
    /// What the operator knows; `None` if no operator has seen it.
    pub status: Option<Status>,
}

/// Why an object cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutError(String);

impl std::error::Error for RolloutError {}

impl fmt::Display for RolloutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Rollout {
    /// The analysis of the running canary, which was fixed when it started, or else that of the spec.
    pub fn analysis(&self) -> &Analysis {
        let canary = self
            .status
            .as_ref()
            .and_then(|status| status.canary.as_deref());
        canary.map_or(&self.spec.analysis, |canary| &canary.plan.analysis)
    }

    /// Reads an object.
    pub fn read(object: &Value) -> Result<Self, RolloutError> {
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let refused = |what: &str, why: &dyn fmt::Display| {
            RolloutError(format!(
                "cannot understand the {what} of `{namespace}/{name}`: {why}"
            ))
        };
        let spec = serde_json::from_value(object["spec"].clone())
            .map_err(|error| refused("spec", &error))?;
        let status = &object["status"];
        let schema = status["schema"].as_u64().unwrap_or(0);
        if schema > u64::from(SCHEMA) {
            return Err(refused(
                "status",
                &format!(
                    "it is of version {schema}, and this is portolan for version {SCHEMA}; a newer operator wrote it"
                ),
            ));
        }
        let has_status = status.get("phase").is_some();
        let status = has_status
            .then(|| serde_json::from_value(status.clone()))
            .transpose()
            .map_err(|error| refused("status", &error))?;
        let texts = |field: &str| -> BTreeMap<String, String> {
            let map = object["metadata"][field].as_object();
            let texts = map.into_iter().flatten();
            texts
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect()
        };
        Ok(Self {
            labels: texts("labels"),
            tokens: Tokens::from_annotations(&texts("annotations")),
            generation: object["metadata"]["generation"].as_i64().unwrap_or(0),
            created: text("creationTimestamp"),
            spec,
            status,
            namespace,
            name,
        })
    }
}

/// Returns the spec of an object; an error if it is none of the kind.
pub(crate) fn spec_of(object: &Node) -> Result<Spec, RolloutError> {
    let spec = object.get("spec").cloned().unwrap_or_else(Node::null);
    let json = portolan_yaml::to_json(&spec).map_err(|error| RolloutError(error.to_string()))?;
    serde_json::from_str(&json).map_err(|error| RolloutError(error.to_string()))
}
