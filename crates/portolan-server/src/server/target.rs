//! What a request is about.

use portolan_kinds::KindDefinition;

use crate::error::ApiError;
use crate::field_selector::ObjectFilter;
use crate::keys::ObjectKey;

/// What a request is about, as its path says it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) kind: &'static KindDefinition,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl Target {
    /// The key of the one object.
    pub(crate) fn key(&self) -> Result<ObjectKey, ApiError> {
        let name = self.name.as_deref();
        let name = name.ok_or_else(|| ApiError::bad_request("the path must name an object"))?;
        if self.kind.is_namespaced && self.namespace.is_none() {
            let message = format!("{} {name} needs a namespace", self.kind.name);
            return Err(ApiError::bad_request(message));
        }
        Ok(ObjectKey::new(self.kind, self.namespace.as_deref(), name))
    }

    /// The target as people name it.
    pub(crate) fn shown(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        match &self.namespace {
            Some(namespace) if self.kind.is_namespaced => {
                format!("{} {namespace}/{name}", self.kind.name)
            }
            _ => format!("{} {name}", self.kind.name),
        }
    }

    /// Reads the selectors of a request for this target.
    pub(crate) fn filter(&self, labels: &str, fields: &str) -> Result<ObjectFilter, ApiError> {
        ObjectFilter::read(self.kind, labels, fields)
    }
}
