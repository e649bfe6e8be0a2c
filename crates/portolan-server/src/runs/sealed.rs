//! What is secret in a run: values of inputs and of variables, encrypted in the store until the run ends.

use std::collections::BTreeMap;

use portolan_kinds::KindObject;
use portolan_kinds::wire::SealedValues;
use portolan_store::{Span, StoreError};
use prost::Message as _;
use serde_json::{Map, Value};

use super::keys;
use super::record::RecordWrite;
use crate::error::ApiError;
use crate::objects::{Objects, key_of};

/// Bytes of the values of one record, unless one node alone has more.
const MAX_PART_BYTES: usize = 128 << 10;

/// Secret variables by the uuids of their nodes.
pub(super) type SecretVariables = BTreeMap<String, Map<String, Value>>;

/// What is secret in a run.
#[derive(Default)]
pub(super) struct RunSecrets {
    pub(super) inputs: Map<String, Value>,
    pub(super) variables: SecretVariables,
}

impl RunSecrets {
    /// The records of a run, encrypted.
    pub(super) fn writes(
        &self,
        objects: &Objects,
        run: &KindObject,
    ) -> Result<Vec<RecordWrite>, ApiError> {
        let uuid = run.metadata.uuid();
        let mut writes = Vec::new();
        if !self.inputs.is_empty() {
            let value = seal(objects, &self.inputs, &bound_to(run))?;
            let key = keys::secrets(uuid);
            writes.push(RecordWrite { key, value });
        }
        for (number, part) in parts_of(&self.variables).into_iter().enumerate() {
            let key = keys::secret_variables(uuid, number);
            let value = seal(objects, &part, &bound_to_part(run, &key))?;
            writes.push(RecordWrite { key, value });
        }
        Ok(writes)
    }

    /// Reads what is secret in a run.
    pub(super) async fn read(objects: &Objects, run: &KindObject) -> Result<Self, ApiError> {
        let uuid = run.metadata.uuid();
        let store = &objects.store;
        let inputs = match store.get(keys::secrets(uuid)).await? {
            Some(record) => open(objects, &record.value, &bound_to(run))?,
            None => Map::new(),
        };
        let mut sealed = Vec::new();
        let span = Span::prefix(keys::all_secret_variables(uuid));
        store
            .scan(&span, None, |record| {
                sealed.push((record.key, record.value));
                Ok(())
            })
            .await?;
        let mut variables = SecretVariables::new();
        for (key, value) in sealed {
            let key = String::from_utf8_lossy(&key);
            for (node, values) in open(objects, &value, &bound_to_part(run, &key))? {
                if let Value::Object(values) = values {
                    variables.insert(node, values);
                }
            }
        }
        Ok(Self { inputs, variables })
    }

    /// Forgets what was secret in a run.
    pub(super) async fn remove(objects: &Objects, uuid: &str) -> Result<(), StoreError> {
        let store = &objects.store;
        let mut found = Vec::new();
        if let Some(record) = store.get(keys::secrets(uuid)).await? {
            found.push((record.key, record.mod_revision));
        }
        let span = Span::prefix(keys::all_secret_variables(uuid));
        store
            .scan(&span, None, |record| {
                found.push((record.key, record.mod_revision));
                Ok(())
            })
            .await?;
        for (key, revision) in found {
            let remove = portolan_store::Transaction::remove(key, revision);
            store.commit(remove).await?;
        }
        Ok(())
    }
}

/// Cuts the variables of nodes into parts that fit into records.
fn parts_of(variables: &SecretVariables) -> Vec<Map<String, Value>> {
    let mut parts: Vec<Map<String, Value>> = Vec::new();
    let mut bytes = usize::MAX;
    for (node, values) in variables {
        let values = Value::Object(values.clone());
        let length = values.to_string().len();
        if bytes.saturating_add(length) > MAX_PART_BYTES {
            parts.push(Map::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(last) = parts.last_mut() {
            last.insert(node.clone(), values);
        }
    }
    parts
}

fn seal(
    objects: &Objects,
    values: &Map<String, Value>,
    bound_to: &str,
) -> Result<Vec<u8>, ApiError> {
    let sealed = objects.sealer.as_ref().ok_or_else(no_key)?;
    let sealed = sealed.seal(values, bound_to);
    let sealed = sealed.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(sealed.encode_to_vec())
}

fn open(objects: &Objects, value: &[u8], bound_to: &str) -> Result<Map<String, Value>, ApiError> {
    let sealed = SealedValues::decode(value);
    let sealed = sealed.map_err(|error| ApiError::internal(error.to_string()))?;
    let sealer = objects.sealer.as_ref().ok_or_else(no_key)?;
    let opened = sealer.open(&sealed, bound_to);
    opened.map_err(|error| ApiError::internal(error.to_string()))
}

fn no_key() -> ApiError {
    ApiError::unavailable("this server has no key for secrets")
}

/// What secrets of a run are bound to.
fn bound_to(run: &KindObject) -> String {
    format!("{:?}/{}", key_of(run), run.metadata.uuid())
}

/// What a part of the variables of a run is bound to.
fn bound_to_part(run: &KindObject, key: &str) -> String {
    format!("{}/{key}", bound_to(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_cut_into_parts_that_fit() {
        let large = Map::from_iter([("a".to_owned(), Value::from("x".repeat(MAX_PART_BYTES / 2)))]);
        let nodes = ["n1", "n2", "n3"].map(|node| (node.to_owned(), large.clone()));
        let parts = parts_of(&SecretVariables::from(nodes));
        assert_eq!(parts.iter().map(Map::len).collect::<Vec<_>>(), [1, 1, 1]);
        let small = Map::from_iter([("a".to_owned(), Value::from(1))]);
        let nodes = ["n1", "n2"].map(|node| (node.to_owned(), small.clone()));
        assert_eq!(parts_of(&SecretVariables::from(nodes)).len(), 1);
        assert!(parts_of(&SecretVariables::new()).is_empty());
    }
}
