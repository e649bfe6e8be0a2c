//! An object as the message of the API.

use portolan_kinds::wire::Object;
use portolan_kinds::{KindObject, VERSION};

/// The types of messages in `Any`.
pub(crate) const TYPE_PREFIX: &str = "type.googleapis.com/portolan.v1alpha.";

/// An object as a message.
pub(crate) fn object_message(object: &KindObject) -> Object {
    let any = |name: &str, value: Vec<u8>| prost_types::Any {
        type_url: format!("{TYPE_PREFIX}{name}"),
        value,
    };
    let status = object.kind.status.filter(|_| !object.status.is_null());
    Object {
        api_version: VERSION.to_owned(),
        kind: object.kind.name.to_owned(),
        metadata: Some(object.metadata.clone()),
        spec: Some(any(object.kind.spec, object.spec_bytes())),
        status: status.map(|name| any(name, object.status_bytes())),
    }
}
