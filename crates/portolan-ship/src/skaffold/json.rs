//! Messages as JSON in the way of grpc-gateway: names as in the `.proto` file, every field whether set or not.
//!
//! The JSON of prost-reflect leaves out messages that are not set, where the gateway writes `null`.

use prost::Message;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value,
};
use serde_json::{Map, Value as Json, json};

/// A message as JSON; `null` if it is not of that type.
pub(super) fn to_json(message: &impl Message, kind: &MessageDescriptor) -> Json {
    let bytes = message.encode_to_vec();
    let message = DynamicMessage::decode(kind.clone(), bytes.as_slice());
    message.map_or(Json::Null, |message| message_json(&message))
}

fn message_json(message: &DynamicMessage) -> Json {
    if message.descriptor().full_name() == "google.protobuf.Timestamp" {
        let time = message.transcode_to::<prost_types::Timestamp>();
        return time.map_or(Json::Null, |time| json!(time.to_string()));
    }
    let mut fields = Map::new();
    for field in message.descriptor().fields() {
        let is_set = message.has_field(&field);
        if field.containing_oneof().is_some() && !is_set {
            continue;
        }
        let value = if field.supports_presence() && !is_set {
            Json::Null
        } else {
            field_json(&message.get_field(&field), &field)
        };
        fields.insert(field.name().to_owned(), value);
    }
    Json::Object(fields)
}

fn field_json(value: &Value, field: &FieldDescriptor) -> Json {
    match value {
        Value::List(items) => items.iter().map(|item| value_json(item, field)).collect(),
        Value::Map(entries) => {
            let kind = field.kind();
            let item = kind
                .as_message()
                .map(MessageDescriptor::map_entry_value_field);
            let entries = entries.iter().map(|(key, value)| {
                let value = item
                    .as_ref()
                    .map_or(Json::Null, |item| value_json(value, item));
                (key_text(key), value)
            });
            Json::Object(entries.collect())
        }
        single => value_json(single, field),
    }
}

fn value_json(value: &Value, field: &FieldDescriptor) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::I32(value) => json!(value),
        Value::U32(value) => json!(value),
        // JSON numbers do not hold all of them.
        Value::I64(value) => json!(value.to_string()),
        Value::U64(value) => json!(value.to_string()),
        Value::F32(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::String(value) => json!(value),
        Value::EnumNumber(number) => match field.kind() {
            Kind::Enum(kind) => kind
                .get_value(*number)
                .map_or_else(|| json!(number), |value| json!(value.name())),
            _ => json!(number),
        },
        Value::Message(message) => message_json(message),
        // No message here has any.
        Value::Bytes(_) | Value::List(_) | Value::Map(_) => Json::Null,
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}
