//! Reads the `openAPIV3Schema` of a CRD.
//!
//! The schema is *structural*: fields and types are declared once, outside `allOf`, `anyOf`, `oneOf` and `not`; these
//! contain only further checks. So they are read with every unknown field allowed.

use std::borrow::Cow;

use portolan_yaml::{List, Map, Node};

use crate::check::{Bound, Check, Format};
use crate::pattern::{Allowance, Pattern};
use crate::schema::{Field, Record, Scalar, Schema, Shape, Unique};

/// Where a schema stands, which decides what it says about fields it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the main line: unknown fields are refused.
    Structure,
    /// Inside a combination: they are of no interest.
    Condition,
}

/// What a schema shares with those around it.
#[derive(Debug, Clone, Copy)]
struct Around<'a> {
    place: Place,
    patterns: &'a Allowance,
}

/// The schema that a definition's node describes; reads what it understands and takes the rest as allowed.
pub(crate) fn read(node: &Node) -> Schema {
    let around = Around {
        place: Place::Structure,
        patterns: &Allowance::default(),
    };
    schema(node, around)
}

fn schema(node: &Node, around: Around<'_>) -> Schema {
    Schema {
        shape: shape(node, around),
        checks: checks(node, around),
        has_default: node
            .get("default")
            .is_some_and(|default| !default.is_null()),
    }
}

fn shape(node: &Node, around: Around<'_>) -> Shape {
    if flag(node, "x-kubernetes-int-or-string") {
        return Shape::Scalar(Scalar::IntOrString);
    }
    match text(node, "type") {
        Some("string") => Shape::Scalar(string(node)),
        Some("boolean") => Shape::Scalar(Scalar::Bool),
        Some("integer") => Shape::Scalar(match text(node, "format") {
            Some("int32") => Scalar::Int32,
            _ => Scalar::Int64,
        }),
        Some("number") => Shape::Scalar(Scalar::Number),
        Some("array") => list(node, around),
        Some("object") => object(node, around),
        // A condition names no types: what it says of fields and items tells what it is about.
        _ if node.get("properties").is_some() || node.get("required").is_some() => {
            object(node, around)
        }
        _ if node.get("items").is_some() => list(node, around),
        _ => Shape::Any,
    }
}

fn string(node: &Node) -> Scalar {
    match text(node, "format") {
        Some("byte") => Scalar::Bytes,
        Some("date-time") => Scalar::Time,
        _ => Scalar::String,
    }
}

fn list(node: &Node, around: Around<'_>) -> Shape {
    let item = node
        .get("items")
        .map_or(Schema::of(Shape::Any), |item| schema(item, around));
    let unique = match text(node, "x-kubernetes-list-type") {
        Some("set") => Unique::Values,
        Some("map") => Unique::Keys(texts(node, "x-kubernetes-list-map-keys")),
        _ => Unique::No,
    };
    Shape::List {
        item: Box::new(item),
        unique,
    }
}

fn object(node: &Node, around: Around<'_>) -> Shape {
    let properties = node.get("properties").and_then(Node::as_map);
    let free = node.get("additionalProperties");
    if let (None, Some(values)) = (properties, free.filter(|values| values.as_map().is_some())) {
        return Shape::Map(Box::new(schema(values, around)));
    }
    let open = around.place == Place::Condition
        || flag(node, "x-kubernetes-preserve-unknown-fields")
        || properties.is_none()
        || free.is_some_and(|free| free.as_bool() != Some(false));
    let mut record = fields(node, properties, around);
    record.open = open;
    Shape::Record(record)
}

fn fields(node: &Node, properties: Option<&Map>, around: Around<'_>) -> Record {
    let required = texts(node, "required");
    let mut fields: Vec<Field> = properties
        .into_iter()
        .flat_map(Map::iter)
        .map(|entry| Field {
            name: Cow::Owned(entry.key.as_str().to_owned()),
            required: required.iter().any(|name| name == entry.key.as_str()),
            schema: schema(&entry.value, around),
        })
        .collect();
    if flag(node, "x-kubernetes-embedded-resource") {
        fields.extend(common_fields());
    }
    let mut record = Record::new(fields);
    record
        .fields
        .dedup_by(|later, first| later.name == first.name);
    record.required = required
        .into_iter()
        .filter(|name| record.field(name).is_none())
        .collect();
    record
}

/// The fields that every object has.
pub(crate) fn common_fields() -> [Field; 3] {
    ["apiVersion", "kind", "metadata"].map(|name| Field {
        name: Cow::Borrowed(name),
        required: false,
        schema: Schema::of(Shape::Any),
    })
}

fn checks(node: &Node, around: Around<'_>) -> Vec<Check> {
    let Some(map) = node.as_map() else {
        return Vec::new();
    };
    map.iter()
        .filter_map(|entry| check(node, entry.key.as_str(), &entry.value, around))
        .collect()
}

fn check(node: &Node, keyword: &str, value: &Node, around: Around<'_>) -> Option<Check> {
    let condition = Around {
        place: Place::Condition,
        ..around
    };
    let conditions = |list: &List| list.iter().map(|node| schema(node, condition)).collect();
    let size = || value.as_i64().and_then(|size| usize::try_from(size).ok());
    let bound = |exclusive| {
        Some(Bound {
            limit: value.as_f64()?,
            exclusive: flag(node, exclusive),
        })
    };
    Some(match keyword {
        "enum" => Check::Enum(value.as_list()?.iter().cloned().collect()),
        "pattern" => Check::Pattern(Pattern::new(value.as_str()?, around.patterns.clone())),
        "format" => Check::Format(Format::named(value.as_str()?)?),
        "minLength" => Check::MinLength(size()?),
        "maxLength" => Check::MaxLength(size()?),
        "minItems" => Check::MinItems(size()?),
        "maxItems" => Check::MaxItems(size()?),
        "minProperties" => Check::MinProperties(size()?),
        "maxProperties" => Check::MaxProperties(size()?),
        "minimum" => Check::Minimum(bound("exclusiveMinimum")?),
        "maximum" => Check::Maximum(bound("exclusiveMaximum")?),
        "multipleOf" => Check::MultipleOf(value.as_f64().filter(|factor| *factor > 0.0)?),
        "allOf" => Check::AllOf(conditions(value.as_list()?)),
        "anyOf" => Check::AnyOf(conditions(value.as_list()?)),
        "oneOf" => Check::OneOf(conditions(value.as_list()?)),
        "not" => Check::Not(Box::new(schema(value, condition))),
        _ => return None,
    })
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.get(key)?.as_str()
}

fn texts(node: &Node, key: &str) -> Vec<String> {
    let list = node.get(key).and_then(Node::as_list);
    let items = list.into_iter().flat_map(List::iter);
    items.filter_map(Node::as_str).map(str::to_owned).collect()
}

fn flag(node: &Node, key: &str) -> bool {
    node.get(key).and_then(Node::as_bool) == Some(true)
}
