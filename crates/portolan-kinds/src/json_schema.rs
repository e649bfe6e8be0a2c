//! JSON schemas of kinds, for the `OpenAPI` document of the server.

use serde_json::{Map, Value, json};

use crate::definition::KindDefinition;
use crate::object::VERSION;
use crate::rule::{FieldDemand, FieldRule};
use crate::schema::{FieldShape, MessageSchema, message};

/// The schema of objects of a kind. `#/components/schemas/Metadata` must hold [`metadata_schema`].
pub fn definition_schema(kind: &KindDefinition) -> Value {
    let mut properties = json!({
        "apiVersion": {"type": "string", "enum": [VERSION]},
        "kind": {"type": "string", "enum": [kind.name]},
        "metadata": {"$ref": "#/components/schemas/Metadata"},
    });
    if let Some(spec) = message(kind.spec) {
        properties["spec"] = message_schema(spec, "", kind.rules);
    }
    if let Some(status) = kind.status.and_then(message) {
        properties["status"] = message_schema(status, "", &[]);
    }
    let doc = message(kind.spec).map_or("", |spec| spec.doc.as_str());
    json!({
        "type": "object", "description": doc, "additionalProperties": false, "properties": properties,
        "required": ["apiVersion", "kind", "metadata"],
    })
}

/// The schema of the metadata of all objects.
pub fn metadata_schema() -> Value {
    let mut schema =
        message("Metadata").map_or_else(|| json!({}), |one| message_schema(one, "", &[]));
    schema["required"] = json!(["name"]);
    schema
}

fn message_schema(schema: &MessageSchema, prefix: &str, rules: &[FieldRule]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in &schema.fields {
        let path = format!("{prefix}{}", field.name);
        let mut property = shape_schema(&field.shape, &path, rules);
        property["description"] = field.doc.as_str().into();
        for rule in rules.iter().filter(|rule| rule.path == path) {
            match rule.demand {
                FieldDemand::Required => required.push(field.name.clone()),
                demand => add_demand(&mut property, demand),
            }
        }
        properties.insert(field.name.clone(), property);
    }
    let mut object = json!({
        "type": "object", "description": schema.doc, "additionalProperties": false, "properties": properties,
    });
    if !required.is_empty() {
        object["required"] = required.into();
    }
    object
}

fn add_demand(property: &mut Value, demand: FieldDemand) {
    match demand {
        FieldDemand::Default(value) => property["default"] = value.to_json(),
        FieldDemand::OneOf(words) => property["enum"] = words.into(),
        FieldDemand::Between(least, most) => {
            property["minimum"] = least.into();
            property["maximum"] = most.into();
        }
        FieldDemand::Length(most) => property["maxLength"] = most.into(),
        FieldDemand::Items(most) => {
            let key = if property["type"] == "array" {
                "maxItems"
            } else {
                "maxProperties"
            };
            property[key] = most.into();
        }
        FieldDemand::Required
        | FieldDemand::Name(_)
        | FieldDemand::Span(..)
        | FieldDemand::LabelSelector => {}
    }
}

fn shape_schema(shape: &FieldShape, path: &str, rules: &[FieldRule]) -> Value {
    match shape {
        FieldShape::Flag => json!({"type": "boolean"}),
        FieldShape::Count => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        FieldShape::Text => json!({"type": "string"}),
        FieldShape::Free => json!({}),
        FieldShape::Word(words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            json!({"type": "string", "enum": words})
        }
        FieldShape::Message(name) => match message(name) {
            Some(schema) => message_schema(schema, &format!("{path}."), rules),
            None => json!({"type": "object"}),
        },
        FieldShape::List(item) => {
            let mut items = shape_schema(item, &format!("{path}[]"), rules);
            let below = format!("{path}[]");
            for rule in rules.iter().filter(|rule| rule.path == below) {
                add_demand(&mut items, rule.demand);
            }
            json!({"type": "array", "items": items})
        }
        FieldShape::Map(item) => {
            let values = shape_schema(item, &format!("{path}.*"), rules);
            json!({"type": "object", "additionalProperties": values})
        }
    }
}
