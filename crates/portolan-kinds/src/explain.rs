//! Documentation of kinds and fields, for the command line.

use crate::definition::{KindDefinition, find_kind};
use crate::rule::FieldRule;
use crate::schema::{FieldShape, MessageSchema, message};

/// What a kind or a field is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindExplanation {
    /// The kind.
    pub kind: &'static str,
    /// The path, as in `spec.rules`; empty for the kind itself.
    pub path: String,
    /// What it holds, in a word or two.
    pub shape: String,
    /// What it is.
    pub doc: String,
    /// What it must be, in words.
    pub demands: Vec<String>,
    /// Its fields.
    pub fields: Vec<FieldExplanation>,
}

/// A field in a list of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldExplanation {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub shape: String,
    /// What it is.
    pub doc: String,
    /// What it must be, in words.
    pub demands: Vec<String>,
}

/// Explains a kind or one of its fields, as in `Repository.spec.ref`. `metadata` is explained for every kind.
///
/// # Errors
/// A sentence about the first part of the path that does not exist, and what to write instead.
pub fn explain(path: &str) -> Result<KindExplanation, (String, String)> {
    let mut parts = path.split('.');
    let name = parts.next().unwrap_or_default();
    let kind = find_kind(name).ok_or_else(|| {
        let known = crate::KINDS.map(|kind| kind.name);
        let message = format!("there is no kind `{name}`");
        (message, crate::read::advice(name, &known))
    })?;
    let steps: Vec<&str> = parts.collect();
    let Some((root, steps)) = steps.split_first() else {
        return Ok(explain_kind(kind));
    };
    let known = ["metadata", "spec", "status"];
    let schema = match *root {
        "metadata" => message("Metadata"),
        "spec" => message(kind.spec),
        "status" => kind.status.and_then(message),
        _ => None,
    };
    let schema = schema.ok_or_else(|| {
        let message = format!("{} has no field `{root}`", kind.name);
        (message, crate::read::advice(root, &known))
    })?;
    explain_below(kind, root, schema, steps)
}

fn explain_kind(kind: &'static KindDefinition) -> KindExplanation {
    let field = |name: &str, doc: &str, type_name: &str| FieldExplanation {
        name: name.to_owned(),
        shape: type_name.to_owned(),
        doc: doc.to_owned(),
        demands: Vec::new(),
    };
    let mut fields = vec![
        field(
            "metadata",
            "Name, labels and what the server adds.",
            "Metadata",
        ),
        field("spec", "What its author wishes for.", kind.spec),
    ];
    if let Some(status) = kind.status {
        fields.push(field("status", "What was observed.", status));
    }
    KindExplanation {
        kind: kind.name,
        path: String::new(),
        shape: if kind.is_namespaced {
            "namespaced kind"
        } else {
            "global kind"
        }
        .to_owned(),
        doc: message(kind.spec).map_or(String::new(), |spec| spec.doc.clone()),
        demands: Vec::new(),
        fields,
    }
}

fn explain_below(
    kind: &'static KindDefinition,
    root: &str,
    schema: &'static MessageSchema,
    steps: &[&str],
) -> Result<KindExplanation, (String, String)> {
    let rules = if root == "spec" { kind.rules } else { &[] };
    let mut explanation = KindExplanation {
        kind: kind.name,
        path: root.to_owned(),
        shape: "map".to_owned(),
        doc: schema.doc.clone(),
        demands: Vec::new(),
        fields: fields(schema, "", rules),
    };
    let (mut schema, mut prefix) = (Some(schema), String::new());
    for step in steps {
        let step = step.trim_end_matches("[]");
        let found = schema.and_then(|schema| schema.field(step));
        let field = found.ok_or_else(|| {
            let fields = schema.map_or(&[][..], |schema| &schema.fields);
            let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let message = format!("{}.{} has no field `{step}`", kind.name, explanation.path);
            (message, crate::read::advice(step, &known))
        })?;
        let at = format!("{prefix}{}", field.name);
        schema = message_of(&field.shape);
        prefix = format!("{at}{}", separator(&field.shape));
        explanation = KindExplanation {
            kind: kind.name,
            path: format!("{}.{}", explanation.path, field.name),
            shape: shape_name(&field.shape),
            doc: field.doc.clone(),
            demands: demands(rules, &at),
            fields: schema.map_or_else(Vec::new, |schema| fields(schema, &prefix, rules)),
        };
    }
    Ok(explanation)
}

fn fields(schema: &MessageSchema, prefix: &str, rules: &[FieldRule]) -> Vec<FieldExplanation> {
    let fields = schema.fields.iter();
    fields
        .map(|field| FieldExplanation {
            name: field.name.clone(),
            shape: shape_name(&field.shape),
            doc: field.doc.clone(),
            demands: demands(rules, &format!("{prefix}{}", field.name)),
        })
        .collect()
}

fn demands(rules: &[FieldRule], path: &str) -> Vec<String> {
    let own = rules.iter().filter(|rule| {
        let rest = rule.path.strip_prefix(path);
        rest.is_some_and(|rest| matches!(rest, "" | "[]" | ".*"))
    });
    own.filter_map(|rule| rule.demand.in_words()).collect()
}

fn message_of(shape: &FieldShape) -> Option<&'static MessageSchema> {
    match shape {
        FieldShape::Message(name) => message(name),
        FieldShape::List(item) | FieldShape::Map(item) => message_of(item),
        _ => None,
    }
}

fn separator(shape: &FieldShape) -> &'static str {
    match shape {
        FieldShape::List(_) => "[].",
        FieldShape::Map(_) => ".*.",
        _ => ".",
    }
}

fn shape_name(shape: &FieldShape) -> String {
    match shape {
        FieldShape::Flag => "true or false".to_owned(),
        FieldShape::Count => "whole number".to_owned(),
        FieldShape::Text => "text".to_owned(),
        FieldShape::Free => "any value".to_owned(),
        FieldShape::Message(_) => "map".to_owned(),
        FieldShape::List(item) => format!("list of {}", plural(item)),
        FieldShape::Map(item) => format!("map of {}", plural(item)),
        FieldShape::Word(words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            words.join(" | ")
        }
    }
}

fn plural(shape: &FieldShape) -> String {
    match shape {
        FieldShape::Flag => "booleans".to_owned(),
        FieldShape::Free => "any values".to_owned(),
        FieldShape::Word(_) => format!("words ({})", shape_name(shape)),
        FieldShape::List(_) | FieldShape::Map(_) => shape_name(shape),
        _ => format!("{}s", shape_name(shape)),
    }
}
