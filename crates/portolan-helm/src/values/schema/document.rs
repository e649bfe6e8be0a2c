//! A parsed schema document: texts are borrowed, objects are short lists of fields.
//!
//! Most objects of a schema have three fields or fewer; a map would need several times the memory.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'d> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'d, str>),
    Array(Vec<Self>),
    Object(Fields<'d>),
}

/// The fields of an object in the order of the text; of two with the same name the last counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields<'d>(Vec<(Cow<'d, str>, Json<'d>)>);

/// Reads a document. How deep it may nest is `serde_json`'s own limit.
pub(super) fn read(bytes: &[u8]) -> Result<Json<'_>, String> {
    // Text that is known to be UTF-8 as a whole is not looked at again string by string.
    let read = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    read.map_err(|error| error.to_string())
}

// === impl Json ===

impl Json<'_> {
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// A field, where the value is an object that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.get(key),
            _ => None,
        }
    }

    /// What a JSON pointer leads to.
    pub(super) fn pointer(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut parts = pointer.strip_prefix('/')?.split('/');
        parts.try_fold(self, |at, part| {
            let name = part.replace("~1", "/").replace("~0", "~");
            match at {
                Self::Object(fields) => fields.get(&name),
                Self::Array(items) => items.get(name.parse::<usize>().ok()?),
                _ => None,
            }
        })
    }

    /// The same value with everything owned.
    pub(super) fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => number.clone().into(),
            Self::String(text) => text.as_ref().into(),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_value()))
                .collect(),
        }
    }
}

// === impl Fields ===

impl<'d> Fields<'d> {
    pub(super) fn get(&self, key: &str) -> Option<&Json<'d>> {
        let mut fields = self.0.iter().rev();
        fields.find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json<'d>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }
}

// === impl Deserialize ===

struct JsonVisitor;

/// A text that is borrowed where it has no escapes.
struct Name<'d>(Cow<'d, str>);

struct NameVisitor;

impl<'d> Deserialize<'d> for Json<'d> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

impl<'d> Visitor<'d> for JsonVisitor {
    type Value = Json<'d>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'d>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'d>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'d>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'d>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'d>, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'d>, E> {
        Ok(Json::String(text.to_owned().into()))
    }

    fn visit_borrowed_str<E>(self, text: &'d str) -> Result<Json<'d>, E> {
        Ok(Json::String(text.into()))
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut items: A) -> Result<Json<'d>, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            read.push(item);
        }
        Ok(Json::Array(read))
    }

    fn visit_map<A: MapAccess<'d>>(self, mut fields: A) -> Result<Json<'d>, A::Error> {
        let mut read = Vec::new();
        while let Some((Name(name), value)) = fields.next_entry()? {
            read.push((name, value));
        }
        Ok(Json::Object(Fields(read)))
    }
}

impl<'d> Deserialize<'d> for Name<'d> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'d> Visitor<'d> for NameVisitor {
    type Value = Name<'d>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Name<'d>, E> {
        Ok(Name(text.to_owned().into()))
    }

    fn visit_borrowed_str<E>(self, text: &'d str) -> Result<Name<'d>, E> {
        Ok(Name(text.into()))
    }
}
