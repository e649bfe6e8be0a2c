//! An object as it is in the store, and back.

use portolan_kinds::wire::{Metadata, SealedValues, StoredObject, StoredStatus};
use portolan_kinds::{KindDefinition, KindObject};
use portolan_store::{Incarnation, Position, Record, Revision, StoreError};
use prost::Message as _;

use crate::keys::{ObjectKey, Part};

/// The level of the schema that this program writes.
pub(crate) const LEVEL: u32 = 1;

/// An object with what only the server needs to know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredKind {
    pub(crate) object: KindObject,
    /// The revision of the last change of the spec.
    pub(crate) spec_revision: Revision,
    /// The revision at which the object was created.
    pub(crate) create_revision: Revision,
    /// The revision of the last change of the status; 0 without one.
    pub(crate) status_revision: Revision,
    pub(crate) applied_labels: Vec<String>,
    pub(crate) applied_annotations: Vec<String>,
    pub(crate) sealed: Option<SealedValues>,
    pub(crate) written_by: String,
    pub(crate) written_at: String,
    /// Whether a newer program wrote it; it can be read and not be written.
    pub(crate) is_newer: bool,
}

impl StoredKind {
    /// The revision of the last change of any part.
    pub(crate) fn revision(&self) -> Revision {
        self.spec_revision.max(self.status_revision)
    }

    /// Reads the records of one object, spec first; `None` if there is no spec.
    pub(crate) fn read(
        records: &[Record],
        incarnation: &Incarnation,
    ) -> Result<Option<Self>, StoreError> {
        let mut found: Option<Self> = None;
        for record in records {
            match ObjectKey::parse(&record.key) {
                Some((key, Part::Spec)) => found = Some(read_spec(&key, record)?),
                Some((_, Part::Status)) => {
                    if let Some(found) = &mut found {
                        read_status(found, record)?;
                    }
                }
                None => {}
            }
        }
        if let Some(found) = &mut found {
            found.set_version(incarnation);
        }
        Ok(found)
    }

    /// Sets the resource version from the revisions.
    pub(crate) fn set_version(&mut self, incarnation: &Incarnation) {
        let position = Position {
            incarnation: incarnation.number,
            revision: self.revision(),
        };
        self.object.metadata.resource_version = Some(position.to_string());
    }

    /// The value of the spec key.
    pub(crate) fn spec_value(&self) -> Vec<u8> {
        self.to_message().encode_to_vec()
    }

    /// Everything but the status.
    pub(crate) fn to_message(&self) -> StoredObject {
        StoredObject {
            level: LEVEL,
            metadata: Some(Metadata {
                resource_version: None,
                ..self.object.metadata.clone()
            }),
            spec: self.object.spec_bytes().into(),
            applied_labels: self.applied_labels.clone(),
            applied_annotations: self.applied_annotations.clone(),
            sealed: self.sealed.clone(),
            written_by: self.written_by.clone(),
            written_at: self.written_at.clone(),
        }
    }

    /// An object of what is stored in a record.
    pub(crate) fn from_message(
        kind: &'static KindDefinition,
        stored: StoredObject,
        record: &Record,
    ) -> Result<Self, StoreError> {
        let mut object = KindObject {
            kind,
            metadata: stored.metadata.unwrap_or_default(),
            spec: serde_json::Value::Null,
            status: serde_json::Value::Null,
        };
        object
            .set_spec_bytes(&stored.spec)
            .map_err(|error| damaged(record, &error.to_string()))?;
        Ok(Self {
            object,
            spec_revision: record.mod_revision,
            create_revision: record.create_revision,
            status_revision: 0,
            applied_labels: stored.applied_labels,
            applied_annotations: stored.applied_annotations,
            sealed: stored.sealed,
            written_by: stored.written_by,
            written_at: stored.written_at,
            is_newer: stored.level > LEVEL,
        })
    }

    /// The value of the status key; `None` without a status.
    pub(crate) fn status_value(&self) -> Option<Vec<u8>> {
        if self.object.status.is_null() {
            return None;
        }
        let stored = StoredStatus {
            level: LEVEL,
            status: self.object.status_bytes().into(),
        };
        Some(stored.encode_to_vec())
    }
}

fn read_spec(key: &ObjectKey, record: &Record) -> Result<StoredKind, StoreError> {
    let kind = key.kind().ok_or_else(|| damaged(record, "no kind"))?;
    let stored = StoredObject::decode(record.value.clone())
        .map_err(|error| damaged(record, &error.to_string()))?;
    StoredKind::from_message(kind, stored, record)
}

fn read_status(found: &mut StoredKind, record: &Record) -> Result<(), StoreError> {
    let stored = StoredStatus::decode(record.value.clone())
        .map_err(|error| damaged(record, &error.to_string()))?;
    found
        .object
        .set_status_bytes(&stored.status)
        .map_err(|error| damaged(record, &error.to_string()))?;
    found.status_revision = record.mod_revision;
    found.is_newer |= stored.level > LEVEL;
    Ok(())
}

/// The error for a record that cannot be read.
pub(crate) fn damaged(record: &Record, why: &str) -> StoreError {
    StoreError::Damaged {
        detail: format!("`{}`: {why}", record.key.escape_ascii()),
    }
}
