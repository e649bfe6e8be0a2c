//! An object in memory as the bytes of the store: a fraction of what its decoded form takes.

use std::sync::Arc;

use portolan_kinds::wire::{DynamicValues, StoredObject, StoredStatus};
use portolan_kinds::{DecodeError, KindDefinition, KindObject};
use portolan_store::{Position, Record, Revision};
use prost::Message as _;
use sha2::{Digest, Sha256};

use crate::record::StoredKind;

/// What stands for the uuid of an object: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ShortUuid(u128);

impl ShortUuid {
    /// Reads a uuid. Texts that are none, which no server makes, are told apart by their digest.
    pub(crate) fn new(uuid: &str) -> Self {
        let digits: String = uuid.chars().filter(|letter| *letter != '-').collect();
        match u128::from_str_radix(&digits, 16) {
            Ok(number) if digits.len() == 32 => Self(number),
            _ => {
                let mut first = [0; 16];
                first.copy_from_slice(&Sha256::digest(uuid.as_bytes())[..16]);
                Self(u128::from_be_bytes(first))
            }
        }
    }
}

/// An object as the bytes of the store, with what is asked of all objects beside them.
#[derive(Debug)]
pub(crate) struct PackedObject {
    pub(super) kind: &'static KindDefinition,
    spec: PackedPart,
    status: Option<PackedPart>,
    pub(super) uuid: ShortUuid,
    /// The key that the values of a Secret are sealed with.
    pub(super) sealed_with: Option<Box<str>>,
    /// The objects that it is deleted with.
    pub(super) owners: Box<[ShortUuid]>,
    /// Whether it comes from Git.
    pub(super) has_source: bool,
    /// Whether it is a Variable whose values a step makes.
    pub(super) is_produced: bool,
    /// The decoded form, of kinds that the server itself looks at all the time.
    decoded: Option<Arc<KindObject>>,
}

#[derive(Debug, Clone)]
struct PackedPart {
    value: Box<[u8]>,
    revision: Revision,
}

impl PackedPart {
    fn new(record: &Record) -> Self {
        Self {
            value: record.value.as_ref().into(),
            revision: record.mod_revision,
        }
    }
}

/// What becomes of the status of an object.
#[derive(Clone, Copy)]
pub(super) enum StatusChange<'a> {
    Kept,
    Set(&'a Record),
    Removed,
}

impl<'a> StatusChange<'a> {
    /// The record of the status, if it is a new one.
    pub(super) fn record(self) -> Option<&'a Record> {
        match self {
            Self::Set(status) => Some(status),
            Self::Kept | Self::Removed => None,
        }
    }
}

impl PackedObject {
    /// Packs the records of an object.
    pub(super) fn new(
        kind: &'static KindDefinition,
        spec: &Record,
        status: Option<&Record>,
    ) -> Result<Self, DecodeError> {
        let (spec, status) = (PackedPart::new(spec), status.map(PackedPart::new));
        Self::of_parts(kind, spec, status)
    }

    /// The object with other records; without a spec it keeps the one that it has.
    pub(super) fn with(
        &self,
        spec: Option<&Record>,
        status: StatusChange<'_>,
    ) -> Result<Self, DecodeError> {
        let spec = spec.map_or_else(|| self.spec.clone(), PackedPart::new);
        let status = match status {
            StatusChange::Kept => self.status.clone(),
            StatusChange::Set(status) => Some(PackedPart::new(status)),
            StatusChange::Removed => None,
        };
        Self::of_parts(self.kind, spec, status)
    }

    /// Packs an event, which shares its record with others.
    pub(super) fn of_event(event: &StoredKind) -> Result<Self, DecodeError> {
        let spec = PackedPart {
            value: event.spec_value().into(),
            revision: event.revision(),
        };
        Self::of_parts(event.object.kind, spec, None)
    }

    fn of_parts(
        kind: &'static KindDefinition,
        spec: PackedPart,
        status: Option<PackedPart>,
    ) -> Result<Self, DecodeError> {
        let stored = read_stored(&spec.value)?;
        let metadata = stored.metadata.unwrap_or_default();
        let owners = metadata.owners.iter();
        Ok(Self {
            kind,
            spec,
            status,
            uuid: ShortUuid::new(metadata.uuid()),
            sealed_with: stored.sealed.map(|sealed| sealed.key_id.into()),
            owners: owners.map(|owner| ShortUuid::new(owner.uuid())).collect(),
            has_source: metadata.source.is_some(),
            is_produced: is_produced(kind, &stored.spec),
            decoded: None,
        })
    }

    /// Keeps the decoded form from now on.
    pub(super) fn keep_decoded(&mut self, incarnation: u64) {
        self.decoded = self.unpack(incarnation);
    }

    /// Whether the decoded form is kept.
    pub(super) fn is_decoded(&self) -> bool {
        self.decoded.is_some()
    }

    /// The object. `None` if the bytes are none of its kind, which is told in the log.
    pub(super) fn unpack(&self, incarnation: u64) -> Option<Arc<KindObject>> {
        if let Some(decoded) = &self.decoded {
            return Some(Arc::clone(decoded));
        }
        match self.decode(incarnation) {
            Ok(object) => Some(Arc::new(object)),
            Err(error) => {
                let kind = self.kind.name;
                tracing::error!(%error, kind, "an object cannot be read");
                None
            }
        }
    }

    fn decode(&self, incarnation: u64) -> Result<KindObject, DecodeError> {
        let stored = read_stored(&self.spec.value)?;
        let mut object = KindObject {
            kind: self.kind,
            metadata: stored.metadata.unwrap_or_default(),
            spec: serde_json::Value::Null,
            status: serde_json::Value::Null,
        };
        object.set_spec_bytes(&stored.spec)?;
        if let Some(status) = &self.status {
            let stored = StoredStatus::decode(&*status.value).map_err(|error| damaged(&error))?;
            object.set_status_bytes(&stored.status)?;
        }
        let position = Position {
            incarnation,
            revision: self.revision(),
        };
        object.metadata.resource_version = Some(position.to_string());
        Ok(object)
    }

    fn revision(&self) -> Revision {
        let status = self.status.as_ref().map_or(0, |status| status.revision);
        self.spec.revision.max(status)
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let status = self.status.as_ref().map_or(0, |status| status.value.len());
        self.spec.value.len() + status
    }
}

/// Whether a step makes the values of the object; other kinds than Variables have no such values. Whoever decodes a damaged
/// spec is told of it.
fn is_produced(kind: &KindDefinition, spec: &[u8]) -> bool {
    if kind.name != "Variable" {
        return false;
    }
    let spec = ProducedSpec::decode(spec).unwrap_or_default();
    spec.dynamic
        .is_some_and(|dynamic| dynamic.task_book.is_some())
}

/// What of the spec of a Variable says whether a step makes its values; the values themselves are passed over.
#[derive(Clone, PartialEq, prost::Message)]
struct ProducedSpec {
    #[prost(message, optional, tag = "3")]
    dynamic: Option<DynamicValues>,
}

fn read_stored(bytes: &[u8]) -> Result<StoredObject, DecodeError> {
    StoredObject::decode(bytes).map_err(|error| damaged(&error))
}

fn damaged(error: &prost::DecodeError) -> DecodeError {
    DecodeError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_with_values_of_a_step_are_told_from_others() {
        let is_made = |spec: serde_json::Value| {
            let kind = portolan_kinds::find_kind("Variable").expect("a kind");
            let object = KindObject::new(kind, "region", Some("default"), spec);
            is_produced(kind, &object.spec_bytes())
        };
        let made = serde_json::json!({"dynamic": {"taskBook": "facts", "step": "read"}});
        assert!(is_made(made));
        let computed = serde_json::json!({"dynamic": {"expressions": {"a": "1 + 1"}}});
        assert!(!is_made(computed));
        assert!(!is_made(serde_json::json!({"values": {"a": "b"}})));
    }

    #[test]
    fn uuids_are_told_apart_however_they_are_written() {
        let one = ShortUuid::new("0b5e7cf1-23f4-4d0a-8a35-2f1d9d1f9a10");
        assert_eq!(one, ShortUuid::new("0b5e7cf1-23f4-4d0a-8a35-2f1d9d1f9a10"));
        assert_ne!(one, ShortUuid::new("0b5e7cf1-23f4-4d0a-8a35-2f1d9d1f9a11"));
        assert_ne!(ShortUuid::new("no uuid"), ShortUuid::new("none either"));
        assert_ne!(ShortUuid::new("1"), ShortUuid::new("01"));
    }
}
