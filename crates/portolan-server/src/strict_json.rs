//! JSON in which no key stands twice: two readers could otherwise understand two different things.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// Parses JSON.
///
/// # Errors
/// When the text is no JSON, or an object has a key twice.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Why a text is refused that is JSON but for a key that stands there twice. Everything else that may be wrong with it
/// is told better by who reads it.
pub(crate) fn repeated_key(text: &str) -> Option<String> {
    let error = parse(text).err()?;
    (error.classify() == Category::Data).then(|| error.to_string())
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(Self)?;
            if map.contains_key(&key) {
                let message = format!("`{key}` stands there twice");
                return Err(serde::de::Error::custom(message));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_there_twice_is_refused() {
        assert_eq!(
            parse(r#"{"a": [1, -2, 0.5, null, true, "x"]}"#).expect("JSON")["a"][1],
            -2
        );
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"b": [{"a": 1, "\u0061": 2}]}"#,
            "{} {}",
            "{",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(repeated_key(r#"{"a": {"b": 1, "b": 2}}"#).is_some());
        for text in [r#"{"a": 1}"#, "{a: 1, a: 2}", "{", "kind: Node"] {
            assert_eq!(repeated_key(text), None, "{text}");
        }
    }
}
