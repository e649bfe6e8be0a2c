//! Many events as the value of one record, and back.

use portolan_kinds::find_kind;
use portolan_kinds::wire::StoredEvents;
use portolan_store::{Incarnation, Record, StoreError};
use prost::Message as _;

use crate::record::{StoredKind, damaged};

/// The value of a record of events.
pub(super) fn pack<'e>(events: impl Iterator<Item = &'e StoredKind>) -> Vec<u8> {
    let events = events.map(StoredKind::to_message).collect();
    StoredEvents { events }.encode_to_vec()
}

/// The events of a record, in the order in which they came.
pub(crate) fn unpack(
    record: &Record,
    incarnation: &Incarnation,
) -> Result<Vec<StoredKind>, StoreError> {
    let kind = find_kind("Event").ok_or_else(|| damaged(record, "no kind"))?;
    let stored = StoredEvents::decode(record.value.clone())
        .map_err(|error| damaged(record, &error.to_string()))?;
    let events = stored.events.into_iter().map(|event| {
        let mut event = StoredKind::from_message(kind, event, record)?;
        event.set_version(incarnation);
        Ok(event)
    });
    events.collect()
}
