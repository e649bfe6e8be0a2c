//! Which objects are wanted: by labels, and by fields such as `status.phase=active`.

use portolan_kinds::{KindDefinition, KindObject, field_text};
use portolan_object::Selector;

use crate::error::ApiError;
use crate::node_access::NodeScope;

/// The longest selector that is read.
const MAX_BYTES: usize = 4096;

/// Labels and fields that objects must have.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectFilter {
    labels: Selector,
    fields: Vec<FieldMatch>,
    /// What concerns the node that asks.
    scope: Option<NodeScope>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldMatch {
    path: String,
    value: String,
    is_equal: bool,
}

impl ObjectFilter {
    /// Reads both selectors; empty ones select everything.
    pub(crate) fn read(
        kind: &KindDefinition,
        labels: &str,
        fields: &str,
    ) -> Result<Self, ApiError> {
        if labels.len() > MAX_BYTES || fields.len() > MAX_BYTES {
            let message = format!("a selector has at most {MAX_BYTES} bytes");
            return Err(ApiError::bad_request(message));
        }
        let labels = labels.parse().map_err(|error| {
            ApiError::bad_request(format!("`labelSelector` is no label selector: {error}"))
        })?;
        let terms = fields.split(',').filter(|term| !term.is_empty());
        let fields: Result<Vec<FieldMatch>, ApiError> =
            terms.map(|term| FieldMatch::read(kind, term)).collect();
        Ok(Self {
            labels,
            fields: fields?,
            scope: None,
        })
    }

    /// The same filter for a node, which sees only what concerns it.
    #[must_use]
    pub(crate) fn within(mut self, scope: Option<NodeScope>) -> Self {
        self.scope = scope;
        self
    }

    /// Whether every object is wanted, so that none has to be looked at.
    pub(crate) fn selects_all(&self) -> bool {
        self.scope.is_none() && self.fields.is_empty() && self.labels.is_everything()
    }

    /// Whether an object is wanted.
    pub(crate) fn matches(&self, object: &KindObject) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.sees(object))
            && self.labels.matches(|key| object.label(key))
            && self.fields.iter().all(|field| {
                let value = object.field(&field.path);
                let text = value.as_ref().map(field_text).unwrap_or_default();
                (text == field.value) == field.is_equal
            })
    }
}

impl FieldMatch {
    fn read(kind: &KindDefinition, term: &str) -> Result<Self, ApiError> {
        let (path, value, is_equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once('=') {
            (path, value.strip_prefix('=').unwrap_or(value), true)
        } else {
            let message = format!("`fieldSelector`: `{term}` is not of the form FIELD=VALUE");
            return Err(ApiError::bad_request(message));
        };
        let path = path.trim();
        if !kind.is_selectable(path) {
            let known = ["metadata.name", "metadata.namespace"];
            let known: Vec<&str> = known
                .into_iter()
                .chain(kind.selectable.iter().copied())
                .collect();
            let message = format!("{} cannot be selected by field `{path}`", kind.plural);
            return Err(ApiError::bad_request(message).hint(format!("by {}", known.join(", "))));
        }
        Ok(Self {
            path: path.to_owned(),
            value: value.trim().to_owned(),
            is_equal,
        })
    }
}
