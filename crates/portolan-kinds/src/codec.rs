//! Canonical JSON to protobuf and back, by the schema of a message.
//!
//! The same JSON always gives the same bytes: fields by number, maps by key. Nothing that was not there is written, so
//! a value and its absence are different.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};
use serde_json::{Map, Number, Value};

use crate::schema::{FieldSchema, FieldShape, MessageSchema, message};

/// How deep messages may nest; deeper ones are damaged or hostile.
const MAX_DEPTH: usize = 64;

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They are cut off or no protobuf.
    #[error("the bytes are no message: {0}")]
    Damaged(String),
    /// They nest too deeply.
    #[error("the message nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// They hold a number that stands for no word, or a text that is no UTF-8.
    #[error("field `{0}` holds a value that is not known here")]
    Unknown(String),
}

/// The bytes of a message. Parts of the JSON that do not fit the schema are left out; reading refuses them before.
pub fn encode(schema: &MessageSchema, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_message(schema, value, &mut out);
    out
}

fn encode_message(schema: &MessageSchema, value: &Value, out: &mut Vec<u8>) {
    for field in &schema.fields {
        if let Some(value) = value.get(&field.name) {
            encode_field(field.number, &field.shape, value, out);
        }
    }
}

fn encode_field(number: u32, shape: &FieldShape, value: &Value, out: &mut Vec<u8>) {
    match (shape, value) {
        (FieldShape::List(item), Value::Array(items)) => encode_items(number, item, items, out),
        (FieldShape::Map(shape), Value::Object(map)) => {
            for (key, value) in map {
                let mut entry = Vec::new();
                encode_bytes(1, key.as_bytes(), &mut entry);
                encode_field(2, shape, value, &mut entry);
                encode_bytes(number, &entry, out);
            }
        }
        (FieldShape::Flag, Value::Bool(flag)) => encode_number(number, u64::from(*flag), out),
        (FieldShape::Count, value) => {
            if let Some(count) = value.as_u64() {
                encode_number(number, count, out);
            }
        }
        (FieldShape::Text, Value::String(text)) => encode_bytes(number, text.as_bytes(), out),
        (FieldShape::Word(words), Value::String(text)) => {
            if let Some((_, word)) = words.iter().find(|(word, _)| word == text) {
                encode_number(number, u64::from(word.unsigned_abs()), out);
            }
        }
        (FieldShape::Message(name), value) => {
            if let Some(schema) = message(name) {
                encode_bytes(number, &encode(schema, value), out);
            }
        }
        (FieldShape::Free, value) => encode_bytes(number, &encode_free(value), out),
        _ => {}
    }
}

/// Numbers of a list stand in one packed field, everything else in a field each.
fn encode_items(number: u32, shape: &FieldShape, items: &[Value], out: &mut Vec<u8>) {
    for item in items {
        encode_field(number, shape, item, out);
    }
}

fn encode_number(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

fn encode_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.put_slice(bytes);
}

/// A free value: the message `Value` of `value.proto`.
fn encode_free(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Null => encode_number(1, 1, &mut out),
        Value::Bool(flag) => encode_number(2, u64::from(*flag), &mut out),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => encode_number(3, zigzag(whole), &mut out),
            None => {
                encode_key(4, WireType::SixtyFourBit, &mut out);
                out.put_f64_le(number.as_f64().unwrap_or_default());
            }
        },
        Value::String(text) => encode_bytes(5, text.as_bytes(), &mut out),
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                encode_bytes(1, &encode_free(item), &mut list);
            }
            encode_bytes(6, &list, &mut out);
        }
        Value::Object(map) => {
            let mut entries = Vec::new();
            for (key, value) in map {
                let mut entry = Vec::new();
                encode_bytes(1, key.as_bytes(), &mut entry);
                encode_bytes(2, &encode_free(value), &mut entry);
                encode_bytes(1, &entry, &mut entries);
            }
            encode_bytes(7, &entries, &mut out);
        }
    }
    out
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The JSON of a message. Fields that the schema does not have were written by a newer program and are left out.
///
/// # Errors
/// When the bytes are damaged, or hold what cannot be told in JSON.
pub fn decode(schema: &MessageSchema, bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_message(schema, bytes, 0)
}

fn decode_message(
    schema: &MessageSchema,
    mut bytes: &[u8],
    depth: usize,
) -> Result<Value, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::TooDeep);
    }
    let mut map = Map::new();
    while bytes.has_remaining() {
        let (number, wire) = decode_key(&mut bytes).map_err(damaged)?;
        match schema.fields.iter().find(|field| field.number == number) {
            None => {
                skip_field(wire, number, &mut bytes, DecodeContext::default()).map_err(damaged)?;
            }
            Some(field) => decode_field(field, wire, &mut bytes, &mut map, depth)?,
        }
    }
    Ok(Value::Object(map))
}

fn decode_field(
    field: &FieldSchema,
    wire: WireType,
    bytes: &mut &[u8],
    map: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), DecodeError> {
    match &field.shape {
        FieldShape::List(item) => {
            let list = map
                .entry(&field.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = list else {
                return Err(DecodeError::Unknown(field.name.clone()));
            };
            // Others may pack numbers, as the specification recommends.
            if wire == WireType::LengthDelimited
                && matches!(
                    **item,
                    FieldShape::Flag | FieldShape::Count | FieldShape::Word(_)
                )
            {
                let mut packed = take(bytes)?;
                while packed.has_remaining() {
                    items.push(decode_one(
                        field,
                        item,
                        WireType::Varint,
                        &mut packed,
                        depth,
                    )?);
                }
            } else {
                items.push(decode_one(field, item, wire, bytes, depth)?);
            }
        }
        FieldShape::Map(shape) => {
            let entries = map
                .entry(&field.name)
                .or_insert_with(|| Value::Object(Map::new()));
            let (key, value) = decode_entry(field, shape, take(bytes)?, depth)?;
            if let Value::Object(entries) = entries {
                entries.insert(key, value);
            }
        }
        shape => {
            let value = decode_one(field, shape, wire, bytes, depth)?;
            map.insert(field.name.clone(), value);
        }
    }
    Ok(())
}

fn decode_entry(
    field: &FieldSchema,
    shape: &FieldShape,
    mut bytes: &[u8],
    depth: usize,
) -> Result<(String, Value), DecodeError> {
    let (mut key, mut value) = (String::new(), None);
    while bytes.has_remaining() {
        let (number, wire) = decode_key(&mut bytes).map_err(damaged)?;
        match number {
            1 => key = text(field, take_checked(wire, &mut bytes)?)?,
            2 => value = Some(decode_one(field, shape, wire, &mut bytes, depth + 1)?),
            _ => skip_field(wire, number, &mut bytes, DecodeContext::default()).map_err(damaged)?,
        }
    }
    Ok((key, value.unwrap_or_else(|| absent(shape))))
}

/// What protobuf means when an entry's value is left out.
fn absent(shape: &FieldShape) -> Value {
    match shape {
        FieldShape::Flag => Value::Bool(false),
        FieldShape::Count => Value::from(0),
        FieldShape::Text | FieldShape::Word(_) => Value::from(""),
        _ => Value::Null,
    }
}

fn decode_one(
    field: &FieldSchema,
    shape: &FieldShape,
    wire: WireType,
    bytes: &mut &[u8],
    depth: usize,
) -> Result<Value, DecodeError> {
    let unknown = || DecodeError::Unknown(field.name.clone());
    let is_number = matches!(
        shape,
        FieldShape::Flag | FieldShape::Count | FieldShape::Word(_)
    );
    if is_number {
        if wire != WireType::Varint {
            return Err(unknown());
        }
        let number = decode_varint(bytes).map_err(damaged)?;
        return match shape {
            FieldShape::Flag => Ok(Value::Bool(number != 0)),
            FieldShape::Count => u32::try_from(number)
                .map(Value::from)
                .map_err(|_| unknown()),
            FieldShape::Word(words) => {
                let word = words
                    .iter()
                    .find(|(_, one)| u64::from(one.unsigned_abs()) == number);
                let word = word.ok_or_else(unknown)?;
                Ok(Value::from(word.0.as_str()))
            }
            _ => Err(unknown()),
        };
    }
    let inner = take_checked(wire, bytes)?;
    match shape {
        FieldShape::Text => text(field, inner).map(Value::String),
        FieldShape::Message(name) => {
            let schema = message(name).ok_or_else(unknown)?;
            decode_message(schema, inner, depth + 1)
        }
        FieldShape::Free => decode_free(field, inner, depth + 1),
        _ => Err(unknown()),
    }
}

fn decode_free(field: &FieldSchema, mut bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::TooDeep);
    }
    let unknown = || DecodeError::Unknown(field.name.clone());
    let mut value = Value::Null;
    while bytes.has_remaining() {
        let (number, wire) = decode_key(&mut bytes).map_err(damaged)?;
        value = match (number, wire) {
            (1, WireType::Varint) => decode_varint(&mut bytes)
                .map(|_| Value::Null)
                .map_err(damaged)?,
            (2, WireType::Varint) => Value::Bool(decode_varint(&mut bytes).map_err(damaged)? != 0),
            (3, WireType::Varint) => {
                Value::from(unzigzag(decode_varint(&mut bytes).map_err(damaged)?))
            }
            (4, WireType::SixtyFourBit) => {
                let number = bytes.try_get_f64_le();
                let number = number.map_err(|_| DecodeError::Damaged("cut off".to_owned()))?;
                Value::Number(Number::from_f64(number).ok_or_else(unknown)?)
            }
            (5, WireType::LengthDelimited) => Value::String(text(field, take(&mut bytes)?)?),
            (6, WireType::LengthDelimited) => decode_list(field, take(&mut bytes)?, depth)?,
            (7, WireType::LengthDelimited) => decode_map(field, take(&mut bytes)?, depth)?,
            _ => return Err(unknown()),
        };
    }
    Ok(value)
}

fn decode_list(field: &FieldSchema, mut bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let mut items = Vec::new();
    while bytes.has_remaining() {
        let (_, wire) = decode_key(&mut bytes).map_err(damaged)?;
        items.push(decode_free(
            field,
            take_checked(wire, &mut bytes)?,
            depth + 1,
        )?);
    }
    Ok(Value::Array(items))
}

fn decode_map(field: &FieldSchema, mut bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let mut map = Map::new();
    while bytes.has_remaining() {
        let (_, wire) = decode_key(&mut bytes).map_err(damaged)?;
        let entry = take_checked(wire, &mut bytes)?;
        let (key, value) = decode_entry(field, &FieldShape::Free, entry, depth + 1)?;
        map.insert(key, value);
    }
    Ok(Value::Object(map))
}

fn text(field: &FieldSchema, bytes: &[u8]) -> Result<String, DecodeError> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|_| DecodeError::Unknown(field.name.clone()))
}

fn take_checked<'b>(wire: WireType, bytes: &mut &'b [u8]) -> Result<&'b [u8], DecodeError> {
    if wire != WireType::LengthDelimited {
        return Err(DecodeError::Damaged("a field of another type".to_owned()));
    }
    take(bytes)
}

/// The bytes of a length-delimited field.
fn take<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], DecodeError> {
    let length = decode_varint(bytes).map_err(damaged)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= bytes.len());
    let Some(length) = length else {
        return Err(DecodeError::Damaged("cut off".to_owned()));
    };
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    Ok(taken)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn damaged(error: prost::DecodeError) -> DecodeError {
    DecodeError::Damaged(error.to_string())
}
