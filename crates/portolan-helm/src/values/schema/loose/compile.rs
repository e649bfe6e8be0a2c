//! Compiles a schema document for checking: every subschema is parsed once, references are resolved to places in a
//! table.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use portolan_gotmpl::functions::GoRegex;

use super::super::document::{Fields, Json, read};
use super::super::elsewhere::{Elsewhere, SchemaSource, compile_with};
use super::super::subschema::{Id, Needs, Rest};
use super::pool::{Named, Pool};
use crate::values::json;
use crate::values::strvals::from_json;

/// How deep a schema may nest.
pub(super) const MAX_DEPTH: usize = 200;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(super) nodes: Vec<Node>,
    pub(super) root: Id,
}

/// One subschema: what nearly all of them have, and the rest apart.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) reference: Option<Id>,
    pub(super) types: Vec<&'static str>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) items: Option<Items>,
    pub(super) required: Vec<String>,
    /// `enum`, as JSON texts.
    pub(super) allowed: Vec<String>,
    rare: Option<Box<Keywords>>,
}

/// The keywords that few subschemas have.
#[derive(Debug, Default)]
pub(super) struct Keywords {
    /// A boolean schema.
    pub(super) pass: Option<bool>,
    pub(super) pattern_properties: Vec<(GoRegex, Id)>,
    pub(super) additional_properties: Option<Rest>,
    pub(super) property_names: Option<Id>,
    pub(super) dependencies: BTreeMap<String, Needs>,
    pub(super) additional_items: Option<Rest>,
    pub(super) multiple_of: Option<f64>,
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<GoRegex>,
    pub(super) format: String,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) contains: Option<Id>,
    /// As JSON text.
    pub(super) constant: Option<String>,
    pub(super) one_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) all_of: Vec<Id>,
    pub(super) not: Option<Id>,
    pub(super) condition: Option<Id>,
    pub(super) then: Option<Id>,
    pub(super) otherwise: Option<Id>,
}

/// Schemas of a list's items.
#[derive(Debug)]
pub(super) enum Items {
    Each(Id),
    ByPlace(Vec<Id>),
}

/// Which rules a schema is read by; `Mixed` is everything that names no draft the library knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    Mixed,
}

impl Schema {
    /// Compiles a document and what it refers to.
    pub(crate) fn compile(bytes: &[u8], source: Option<&dyn SchemaSource>) -> Result<Self, String> {
        compile_with(source, |elsewhere| Self::compile_among(bytes, elsewhere))
    }

    fn compile_among(bytes: &[u8], elsewhere: &Elsewhere) -> Result<Self, String> {
        let document = read(bytes)?;
        let mut others = Vec::new();
        for (url, text) in elsewhere.texts() {
            others.push((url, read(text)?));
        }
        let mut pool = Pool::default();
        pool.add("", &document);
        for (url, other) in &others {
            pool.add(url, other);
        }
        let mut compiler = Compiler {
            pool: &pool,
            elsewhere,
            draft: Draft::of(&document),
            nodes: Vec::new(),
            references: HashMap::new(),
        };
        let root = compiler.schema(&document, 0)?;
        Ok(Self {
            nodes: compiler.nodes,
            root,
        })
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }
}

impl Draft {
    /// The draft that a document says it is of.
    pub(super) fn of(document: &Json<'_>) -> Self {
        let url = document.get("$schema").and_then(Json::as_str);
        match url.unwrap_or_default().trim_end_matches('#') {
            "http://json-schema.org/draft-04/schema" => Self::Four,
            "http://json-schema.org/draft-06/schema" => Self::Six,
            "http://json-schema.org/draft-07/schema" => Self::Seven,
            _ => Self::Mixed,
        }
    }
}

impl Node {
    /// The keywords that most subschemas lack.
    pub(super) fn rare(&self) -> &Keywords {
        static NONE: LazyLock<Keywords> = LazyLock::new(Keywords::default);
        self.rare.as_deref().unwrap_or(&NONE)
    }
}

/// Whether a schema has only what nearly all of them have: dozens of keywords need not be looked for.
fn is_simple(fields: &Fields<'_>) -> bool {
    fields.iter().all(|(key, _)| {
        matches!(
            key,
            "$schema"
                | "default"
                | "description"
                | "enum"
                | "examples"
                | "form"
                | "items"
                | "properties"
                | "required"
                | "title"
                | "type"
        )
    })
}

struct Compiler<'d> {
    pool: &'d Pool<'d>,
    elsewhere: &'d Elsewhere,
    /// The draft of the document that is being read.
    draft: Draft,
    nodes: Vec<Node>,
    /// By address in full.
    references: HashMap<String, Id>,
}

impl<'d> Compiler<'d> {
    fn schema(&mut self, document: &Json<'_>, depth: usize) -> Result<Id, String> {
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.schema_at(id, document, depth)?;
        Ok(id)
    }

    fn schema_at(&mut self, id: Id, document: &Json<'_>, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("schema is nested too deep".to_owned());
        }
        let node = match document {
            Json::Bool(pass) if self.draft >= Draft::Six => Node {
                rare: Some(Box::new(Keywords {
                    pass: Some(*pass),
                    ..Keywords::default()
                })),
                ..Node::default()
            },
            Json::Object(fields) => self.node(fields, depth + 1)?,
            _ => return Err("Expected: valid schema, given: Invalid JSON".to_owned()),
        };
        self.nodes[id] = node;
        Ok(())
    }

    fn node(&mut self, fields: &Fields<'_>, depth: usize) -> Result<Node, String> {
        for (key, wanted) in [
            ("title", "string"),
            ("description", "string"),
            ("$ref", "string"),
        ] {
            if fields
                .get(key)
                .is_some_and(|value| value.as_str().is_none())
            {
                return Err(invalid_type(wanted, key));
            }
        }
        let pool = self.pool;
        if let Some(reference) = fields.get("$ref").and_then(|own| pool.resolved(own)) {
            return Ok(Node {
                reference: Some(self.reference(reference, depth)?),
                ..Node::default()
            });
        }
        let mut node = Node {
            types: types(fields)?,
            required: required(fields)?,
            allowed: allowed(fields)?,
            ..Node::default()
        };
        if !is_simple(fields) {
            node.rare = Some(Box::new(self.keywords(fields, depth)?));
        }
        self.properties(fields, &mut node, depth)?;
        self.items(fields, &mut node, depth)?;
        Ok(node)
    }

    fn keywords(&mut self, fields: &Fields<'_>, depth: usize) -> Result<Keywords, String> {
        let mut rare = Keywords {
            format: text(fields, "format")?,
            unique_items: flag(fields, "uniqueItems")?,
            min_length: count(fields, "minLength")?,
            max_length: count(fields, "maxLength")?,
            min_properties: count(fields, "minProperties")?,
            max_properties: count(fields, "maxProperties")?,
            min_items: count(fields, "minItems")?,
            max_items: count(fields, "maxItems")?,
            multiple_of: number(fields, "multipleOf")?,
            pattern: pattern(fields)?,
            one_of: self.list(fields, "oneOf", depth)?,
            any_of: self.list(fields, "anyOf", depth)?,
            all_of: self.list(fields, "allOf", depth)?,
            not: self.optional(fields, "not", depth)?,
            additional_properties: self.rest(fields, "additionalProperties", depth)?,
            additional_items: self.rest(fields, "additionalItems", depth)?,
            ..Keywords::default()
        };
        self.bounds(fields, &mut rare)?;
        self.objects(fields, &mut rare, depth)?;
        if self.draft >= Draft::Six {
            rare.contains = self.optional(fields, "contains", depth)?;
            rare.property_names = self.optional(fields, "propertyNames", depth)?;
            rare.constant = fields.get("const").map(json_text);
        }
        if self.draft >= Draft::Seven {
            rare.condition = self.optional(fields, "if", depth)?;
            rare.then = self.optional(fields, "then", depth)?;
            rare.otherwise = self.optional(fields, "else", depth)?;
        }
        Ok(rare)
    }

    /// Resolves a reference in full; the place is reserved first, so that circles close.
    fn reference(&mut self, reference: &str, depth: usize) -> Result<Id, String> {
        if let Some(id) = self.references.get(reference) {
            return Ok(*id);
        }
        let target = self.target(reference)?;
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.references.insert(reference.to_owned(), id);
        let outer = std::mem::replace(&mut self.draft, target.draft);
        let read = self.schema_at(id, target.schema, depth);
        self.draft = outer;
        read?;
        Ok(id)
    }

    /// What a reference leads to: a schema of that name, or a place in the document that has the address.
    fn target(&self, reference: &str) -> Result<Named<'d>, String> {
        if let Some(named) = self.pool.named(reference) {
            return Ok(named);
        }
        let (address, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let Some(document) = self.pool.named(address) else {
            return Err(self.not_here(reference, address));
        };
        let schema = document
            .schema
            .pointer(&pointer.replace("%25", "%").replace("%24", "$"))
            .ok_or_else(|| format!("Object has no key '{pointer}'"))?;
        Ok(Named { schema, ..document })
    }

    fn not_here(&self, reference: &str, address: &str) -> String {
        if address.starts_with('/') {
            return format!("Reference {reference} must be canonical");
        }
        if address.starts_with("http://") || address.starts_with("https://") {
            self.elsewhere.text(address);
        }
        format!("schema refers to {reference}, which is not fetched")
    }

    fn list(&mut self, fields: &Fields<'_>, key: &str, depth: usize) -> Result<Vec<Id>, String> {
        match fields.get(key) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => items.iter().map(|item| self.schema(item, depth)).collect(),
            Some(_) => Err(format!("{key} must be of an array")),
        }
    }

    fn optional(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        depth: usize,
    ) -> Result<Option<Id>, String> {
        match fields.get(key) {
            None => Ok(None),
            Some(value @ (Json::Object(_) | Json::Bool(_))) => self.schema(value, depth).map(Some),
            Some(_) => Err(format!("{key} must be of an object")),
        }
    }

    fn rest(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        depth: usize,
    ) -> Result<Option<Rest>, String> {
        match fields.get(key) {
            None => Ok(None),
            Some(Json::Bool(allowed)) => Ok(Some(Rest::Allowed(*allowed))),
            Some(value @ Json::Object(_)) => Ok(Some(Rest::Schema(self.schema(value, depth)?))),
            Some(_) => Err(invalid_type("boolean/valid schema", key)),
        }
    }

    /// `minimum` and its kin; draft 4 has booleans that make the bound exclusive.
    fn bounds(&self, fields: &Fields<'_>, node: &mut Keywords) -> Result<(), String> {
        if node.multiple_of.is_some_and(|number| number <= 0.0) {
            return Err("multipleOf must be strictly greater than 0".to_owned());
        }
        node.minimum = number(fields, "minimum")?;
        node.maximum = number(fields, "maximum")?;
        self.exclusive(
            fields,
            "exclusiveMinimum",
            &mut node.minimum,
            &mut node.exclusive_minimum,
        )?;
        self.exclusive(
            fields,
            "exclusiveMaximum",
            &mut node.maximum,
            &mut node.exclusive_maximum,
        )
    }

    fn exclusive(
        &self,
        fields: &Fields<'_>,
        key: &str,
        bound: &mut Option<f64>,
        exclusive: &mut Option<f64>,
    ) -> Result<(), String> {
        match fields.get(key) {
            None => Ok(()),
            Some(Json::Bool(is_exclusive)) if matches!(self.draft, Draft::Four | Draft::Mixed) => {
                if bound.is_none() {
                    return Err(format!("{key} cannot be used without its bound"));
                }
                if *is_exclusive {
                    *exclusive = bound.take();
                }
                Ok(())
            }
            Some(Json::Number(number)) if self.draft != Draft::Four => {
                *exclusive = number.as_f64();
                Ok(())
            }
            Some(_) => Err(invalid_type("boolean/number", key)),
        }
    }

    fn properties(
        &mut self,
        fields: &Fields<'_>,
        node: &mut Node,
        depth: usize,
    ) -> Result<(), String> {
        match fields.get("properties") {
            None => Ok(()),
            Some(Json::Object(properties)) => {
                for (name, value) in properties.iter() {
                    let id = self.schema(value, depth)?;
                    node.properties.insert(name.to_owned(), id);
                }
                Ok(())
            }
            Some(_) => Err("properties must be of type object".to_owned()),
        }
    }

    /// What objects need beside the properties that are named.
    fn objects(
        &mut self,
        fields: &Fields<'_>,
        node: &mut Keywords,
        depth: usize,
    ) -> Result<(), String> {
        match fields.get("patternProperties") {
            None => {}
            Some(Json::Object(properties)) => {
                for (pattern, value) in properties.iter() {
                    let regex = GoRegex::new(pattern)
                        .map_err(|_| format!("Invalid regex pattern '{pattern}'"))?;
                    let id = self.schema(value, depth)?;
                    node.pattern_properties.push((regex, id));
                }
            }
            Some(_) => return Err(invalid_type("valid schema", "patternProperties")),
        }
        match fields.get("dependencies") {
            None => Ok(()),
            Some(Json::Object(dependencies)) => {
                for (name, value) in dependencies.iter() {
                    let needs = self.needs(value, depth)?;
                    node.dependencies.insert(name.to_owned(), needs);
                }
                Ok(())
            }
            Some(_) => Err("dependencies must be of type object".to_owned()),
        }
    }

    fn needs(&mut self, value: &Json<'_>, depth: usize) -> Result<Needs, String> {
        let wrong = || "dependency must be of type schema or array of strings".to_owned();
        match value {
            Json::Array(names) => {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                let names: Option<Vec<_>> = names.collect();
                names.map(Needs::Properties).ok_or_else(wrong)
            }
            Json::Object(_) | Json::Bool(_) => Ok(Needs::Schema(self.schema(value, depth)?)),
            _ => Err(wrong()),
        }
    }

    fn items(&mut self, fields: &Fields<'_>, node: &mut Node, depth: usize) -> Result<(), String> {
        node.items = match fields.get("items") {
            None => None,
            Some(Json::Array(_)) => Some(Items::ByPlace(self.list(fields, "items", depth)?)),
            Some(value @ (Json::Object(_) | Json::Bool(_))) => {
                Some(Items::Each(self.schema(value, depth)?))
            }
            Some(_) => return Err(invalid_type("valid schema/array of schemas", "items")),
        };
        Ok(())
    }
}

fn invalid_type(expected: &str, given: &str) -> String {
    format!("Invalid type. Expected: {expected}, given: {given}")
}

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "number", "null", "object", "string",
];

fn types(fields: &Fields<'_>) -> Result<Vec<&'static str>, String> {
    let names = match fields.get("type") {
        None => return Ok(Vec::new()),
        Some(name @ Json::String(_)) => std::slice::from_ref(name),
        Some(Json::Array(names)) => names,
        Some(_) => return Err(invalid_type("string/array of strings", "type")),
    };
    let names: Option<Vec<_>> = names.iter().map(Json::as_str).collect();
    let names = names.ok_or_else(|| invalid_type("string/array of strings", "type"))?;
    let mut types = Vec::with_capacity(names.len());
    for name in names {
        let Some(known) = TYPES.into_iter().find(|known| *known == name) else {
            return Err(format!(
                "has a primitive type that is NOT VALID -- given: /{name}/ Expected valid values are:{TYPES:?}"
            ));
        };
        if types.contains(&known) {
            return Err(format!("{name} type is duplicated"));
        }
        types.push(known);
    }
    Ok(types)
}

fn text(fields: &Fields<'_>, key: &str) -> Result<String, String> {
    match fields.get(key) {
        None => Ok(String::new()),
        Some(Json::String(text)) => Ok(text.to_string()),
        Some(_) => Err(format!("{key} must be of type string")),
    }
}

fn flag(fields: &Fields<'_>, key: &str) -> Result<bool, String> {
    match fields.get(key) {
        None => Ok(false),
        Some(Json::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("{key} must be of a boolean")),
    }
}

fn number(fields: &Fields<'_>, key: &str) -> Result<Option<f64>, String> {
    match fields.get(key) {
        None => Ok(None),
        Some(Json::Number(number)) => Ok(number.as_f64()),
        Some(_) => Err(format!("{key} must be of a number")),
    }
}

fn count(fields: &Fields<'_>, key: &str) -> Result<Option<u64>, String> {
    match number(fields, key).ok().flatten() {
        _ if !fields.contains_key(key) => Ok(None),
        Some(number) if number.fract() == 0.0 && number >= 0.0 => Ok(Some(number as u64)),
        Some(number) if number < 0.0 => Err(format!("{key} must be greater than or equal to 0")),
        _ => Err(format!("{key} must be of an integer")),
    }
}

fn pattern(fields: &Fields<'_>) -> Result<Option<GoRegex>, String> {
    match fields.get("pattern") {
        None => Ok(None),
        Some(Json::String(pattern)) => GoRegex::new(pattern)
            .map(Some)
            .map_err(|_| "pattern must be a valid regex".to_owned()),
        Some(_) => Err("pattern must be of a string".to_owned()),
    }
}

fn required(fields: &Fields<'_>) -> Result<Vec<String>, String> {
    let names = match fields.get("required") {
        None => return Ok(Vec::new()),
        Some(Json::Array(names)) => names,
        Some(_) => return Err("required must be of an array".to_owned()),
    };
    let mut required = Vec::new();
    for name in names {
        let Json::String(name) = name else {
            return Err("required items must be string".to_owned());
        };
        if required.iter().any(|earlier| earlier == name) {
            return Err("required items must be unique".to_owned());
        }
        required.push(name.to_string());
    }
    Ok(required)
}

fn allowed(fields: &Fields<'_>) -> Result<Vec<String>, String> {
    let values = match fields.get("enum") {
        None => return Ok(Vec::new()),
        Some(Json::Array(values)) => values,
        Some(_) => return Err("enum must be of an array".to_owned()),
    };
    let mut allowed = Vec::new();
    for value in values {
        let text = json_text(value);
        if allowed.contains(&text) {
            return Err("enum items must be unique".to_owned());
        }
        allowed.push(text);
    }
    Ok(allowed)
}

fn json_text(value: &Json<'_>) -> String {
    json::text(&from_json(&value.to_value()).thaw())
}
