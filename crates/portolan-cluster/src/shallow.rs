//! Objects that are read no deeper than anybody needs.
//!
//! Whoever may write an object with a field that takes anything may nest that without end. A reader that gives up on one
//! such object gives up on the list or the watch that brings it, and so on all others. Here what lies too deep is skipped,
//! and the object says so.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::core::{ApiResource, DynamicObject, DynamicResourceScope, ObjectMeta, TypeMeta};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Objects inside of one another beyond this are skipped. A pod template needs about fifteen, JSON of others' readers
/// ends at 128.
const DEEPEST: usize = 100;

/// The field that an object has in place of its content when that is nested too deep.
pub const TOO_DEEP: &str = "nestedTooDeep";

/// An object whose content is there as far as it could be read. Who manages which field is left out.
#[derive(Debug, Clone)]
pub(crate) struct ShallowObject(pub(crate) DynamicObject);

impl Resource for ShallowObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(dt)
    }

    fn group(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(dt)
    }

    fn version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(dt)
    }

    fn api_version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(dt)
    }

    fn plural(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

impl<'de> serde::Deserialize<'de> for ShallowObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut is_cut = false;
        let seed = Shallow {
            depth: 0,
            is_cut: &mut is_cut,
        };
        let Value::Object(mut fields) = seed.deserialize(deserializer)? else {
            return Err(D::Error::custom("not an object"));
        };
        let metadata = fields.remove("metadata").unwrap_or_default();
        let metadata: Option<ObjectMeta> =
            serde_json::from_value(metadata).map_err(D::Error::custom)?;
        let mut text = |field: &str| Some(fields.remove(field)?.as_str()?.to_owned());
        let types = text("apiVersion").zip(text("kind"));
        if is_cut {
            fields = Map::from_iter([(TOO_DEEP.to_owned(), true.into())]);
        }
        Ok(Self(DynamicObject {
            types: types.map(|(api_version, kind)| TypeMeta { api_version, kind }),
            metadata: metadata.unwrap_or_default(),
            data: Value::Object(fields),
        }))
    }
}

/// Reads a value at some depth.
struct Shallow<'a> {
    depth: usize,
    is_cut: &'a mut bool,
}

impl Shallow<'_> {
    fn below(&mut self) -> Shallow<'_> {
        Shallow {
            depth: self.depth + 1,
            is_cut: self.is_cut,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Shallow<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth < DEEPEST {
            return deserializer.deserialize_any(self);
        }
        *self.is_cut = true;
        // Skipping does not go deeper itself, however deep what is skipped is.
        <IgnoredAny as serde::Deserialize>::deserialize(deserializer)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for Shallow<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
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
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below())? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            // As deep as the object itself, of no use to anybody who watches, and often the larger part.
            if self.depth == 1 && name == "managedFields" {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = fields.next_value_seed(self.below())?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(content: &str) -> String {
        format!(
            r#"{{"metadata": {{"name": "a", "managedFields": {}}}, "spec": {content}, "n": [1, -2, 1.5, null]}}"#,
            nested(9_000)
        )
    }

    fn nested(depth: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
    }

    fn read(text: &str) -> DynamicObject {
        let read: ShallowObject = serde_json::from_str(text).expect("an object");
        read.0
    }

    #[test]
    fn an_object_is_read_as_it_is() {
        let found = read(&object(&nested(90)));
        assert_eq!(found.metadata.name.as_deref(), Some("a"));
        assert_eq!(found.metadata.managed_fields, None);
        assert_eq!(found.data["n"], serde_json::json!([1, -2, 1.5, null]));
        let spec: Value = serde_json::from_str(&nested(90)).expect("JSON");
        assert_eq!(found.data["spec"], spec);
    }

    #[test]
    fn what_is_nested_without_end_is_said_to_be_and_costs_no_other_object() {
        let list = format!("[{},{}]", object(&nested(9_000)), object("1"));
        let list: Vec<ShallowObject> = serde_json::from_str(&list).expect("a list");
        assert_eq!(list[0].0.metadata.name.as_deref(), Some("a"));
        assert_eq!(list[0].0.data[TOO_DEEP], true);
        assert_eq!(list[1].0.data["spec"], 1);
    }
}
