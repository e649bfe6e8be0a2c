//! What an object was before: who changed it, when, and which fields.

use portolan_store::Revision;
use serde_json::{Value, json};

use crate::error::{ApiError, RefusalReason};
use crate::keys::ObjectKey;
use crate::objects::{Objects, differences};
use crate::page;
use crate::record::StoredKind;

/// The most changes that are told.
const MAX_CHANGES: usize = 50;

/// The last changes of an object, newest first, as far as the store remembers. Values of secrets are not part of it.
pub(crate) async fn history(
    objects: &Objects,
    key: &ObjectKey,
    now: StoredKind,
) -> Result<Value, ApiError> {
    let mut changes = Vec::new();
    let (mut newer, mut is_complete) = (now, false);
    while changes.len() < MAX_CHANGES {
        let before: Revision = newer.revision() - 1;
        let older = match page::get(
            &objects.store,
            &objects.incarnation,
            key,
            Some(before.max(1)),
        )
        .await
        {
            Ok(older) => older,
            Err(error) if error.reason == RefusalReason::Expired => break,
            Err(error) => return Err(error),
        };
        let mut fields = Vec::new();
        if let Some(older) = &older {
            differences(
                &older.object.to_json(),
                &newer.object.to_json(),
                "",
                &mut fields,
            );
            fields.retain(|path| path != "metadata.resourceVersion");
            if older.sealed != newer.sealed {
                fields.push("spec.values".to_owned());
            }
        }
        let is_of_spec = older
            .as_ref()
            .is_none_or(|older| older.spec_revision != newer.spec_revision);
        changes.push(json!({
            "resourceVersion": newer.object.metadata.resource_version,
            "by": is_of_spec.then_some(&newer.written_by),
            "at": is_of_spec.then_some(&newer.written_at),
            "commit": newer.object.metadata.source.as_ref().map(|source| source.commit().to_owned()),
            "change": if older.is_none() { "created" } else { "changed" },
            "fields": fields,
        }));
        let Some(older) = older else {
            is_complete = true;
            break;
        };
        newer = older;
    }
    Ok(json!({
        "apiVersion": portolan_kinds::VERSION, "kind": "History", "items": changes, "complete": is_complete,
    }))
}
