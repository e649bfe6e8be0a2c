//! Compiles a schema document for checking: every reachable subschema, with references resolved to places in a table.
//!
//! A place is a document and a JSON pointer in it; newly found places wait in the table until they are compiled.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::functions::GoRegex;

use super::super::document::{Fields, Json, read};
use super::super::elsewhere::{Elsewhere, SchemaSource, compile_with};
use super::super::subschema::{Id, Needs, Rest};
use super::document::{Document, Resource, escaped, join, not_fetched};
use super::draft::Draft;
use super::failure::quoted;
use super::meta;
use crate::values::json;
use crate::values::strvals::from_json;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    nodes: Vec<Node>,
    pub(super) root: Id,
}

/// One subschema.
#[derive(Debug)]
pub(super) struct Node {
    /// Address and pointer, as messages about circles name them.
    pub(super) document: Arc<str>,
    pub(super) pointer: String,
    pub(super) draft: Draft,
    /// The schema with a name that it lies in.
    pub(super) resource: Id,
    /// The resource's anchors that `$dynamicRef` looks for.
    pub(super) dynamic_anchors: Vec<(String, Id)>,
    /// A boolean schema.
    pub(super) pass: Option<bool>,
    pub(super) reference: Option<Id>,
    pub(super) recursive_reference: Option<Id>,
    pub(super) recursive_anchor: bool,
    pub(super) dynamic_reference: Option<DynamicReference>,
    pub(super) dynamic_anchor: Option<String>,
    pub(super) types: Vec<&'static str>,
    pub(super) allowed: Option<Vec<Constant>>,
    pub(super) constant: Option<Constant>,
    pub(super) format: Option<String>,
    pub(super) not: Option<Id>,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) condition: Option<Condition>,
    pub(super) number: NumberRules,
    pub(super) text: TextRules,
    pub(super) list: ListRules,
    pub(super) object: ObjectRules,
}

/// `$dynamicRef`: what it leads to at first, and the anchor it looks for.
#[derive(Debug)]
pub(super) struct DynamicReference {
    pub(super) target: Id,
    pub(super) anchor: Option<String>,
}

/// A value that the schema spells out.
#[derive(Debug)]
pub(super) struct Constant {
    /// As JSON, keys sorted.
    pub(super) json: String,
    /// As messages show it; lists and objects are not shown.
    pub(super) shown: Option<String>,
}

/// `if`, `then` and `else`.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) test: Id,
    pub(super) then: Option<Id>,
    pub(super) otherwise: Option<Id>,
}

#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: Option<f64>,
    pub(super) exclusive_maximum: Option<f64>,
    pub(super) multiple_of: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    pub(super) pattern: Option<GoRegex>,
}

#[derive(Debug, Default)]
pub(super) struct ListRules {
    pub(super) min_items: Option<usize>,
    pub(super) max_items: Option<usize>,
    pub(super) unique_items: bool,
    /// The first items, one schema each.
    pub(super) leading: Vec<Id>,
    /// All others.
    pub(super) rest: Option<Rest>,
    pub(super) contains: Option<Contains>,
    pub(super) unevaluated: Option<Id>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) schema: Id,
    pub(super) min: Option<usize>,
    pub(super) max: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) min_properties: Option<usize>,
    pub(super) max_properties: Option<usize>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) pattern_properties: Vec<(GoRegex, Id)>,
    pub(super) additional: Option<Rest>,
    pub(super) names: Option<Id>,
    /// `dependencies`, `dependentSchemas` and `dependentRequired`.
    pub(super) needs: Vec<(String, Needs)>,
    pub(super) unevaluated: Option<Id>,
}

/// Whether `format` is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Formats {
    /// As the draft says: up to draft 7.
    ByDraft,
    /// Always, as in schemas of schemas.
    Always,
}

impl Schema {
    /// Compiles a document that has been found to be a schema of its draft, and what it refers to.
    pub(crate) fn compile(bytes: &[u8], source: Option<&dyn SchemaSource>) -> Result<Self, String> {
        const URL: &str = "file:///values.schema.json";
        compile_with(source, |elsewhere| {
            let document = Document::new(URL, read(bytes)?)?;
            meta::check(&document)?;
            Self::of(document, Formats::ByDraft, elsewhere)
        })
    }

    pub(super) fn of<'d>(
        document: Document<'d>,
        formats: Formats,
        elsewhere: &'d Elsewhere,
    ) -> Result<Self, String> {
        let mut compiler = Compiler {
            documents: vec![document],
            places: Vec::new(),
            ids: HashMap::new(),
            formats,
            elsewhere,
        };
        let root = compiler.place(0, String::new());
        let mut nodes = Vec::new();
        while let Some(place) = compiler.places.get(nodes.len()).cloned() {
            nodes.push(compiler.node(&place)?);
        }
        Ok(Self { nodes, root })
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }
}

/// A document, by its index, and a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    document: usize,
    pointer: String,
}

struct Compiler<'d> {
    documents: Vec<Document<'d>>,
    /// The places of all nodes, those that are still to be made last.
    places: Vec<Place>,
    ids: HashMap<Place, Id>,
    formats: Formats,
    elsewhere: &'d Elsewhere,
}

impl<'d> Compiler<'d> {
    fn place(&mut self, document: usize, pointer: String) -> Id {
        let place = Place { document, pointer };
        let next = self.places.len();
        let id = *self.ids.entry(place.clone()).or_insert(next);
        if id == next {
            self.places.push(place);
        }
        id
    }

    fn node(&mut self, place: &Place) -> Result<Node, String> {
        let document = &mut self.documents[place.document];
        document.ensure(&place.pointer)?;
        let json = Rc::clone(&document.json);
        let schema = document.find(&json, &place.pointer)?;
        let url = Arc::from(document.url.as_str());
        let Some(resource) = document.resource(&place.pointer).cloned() else {
            return Err(format!("schema {:?} lies in no document", place.pointer));
        };
        let draft = resource.draft;
        let resource_id = self.place(place.document, resource.pointer.clone());
        let mut node = Node::new(url, place.pointer.clone(), draft, resource_id);
        if draft >= Draft::Of2020 && resource.pointer == place.pointer {
            node.dynamic_anchors = resource
                .dynamic()
                .map(|(anchor, at)| (anchor.to_owned(), self.place(place.document, at.to_owned())))
                .collect();
        }
        match schema {
            Json::Bool(pass) => node.pass = Some(*pass),
            Json::Object(fields) if fields.iter().next().is_none() => node.pass = Some(true),
            Json::Object(fields) => {
                let mut reader = Reader {
                    compiler: self,
                    place,
                    resource: &resource,
                    fields,
                };
                reader.fill(&mut node)?;
            }
            _ => {}
        }
        Ok(node)
    }

    /// The document of an address, and the pointer that a fragment leads to in it.
    fn outside(&mut self, url: &str, fragment: &str) -> Result<(usize, String), String> {
        let index = match self.documents.iter().position(|known| known.url == url) {
            Some(index) => index,
            None => {
                let document = self.brought(url)?;
                self.documents.push(document);
                self.documents.len() - 1
            }
        };
        let document = &self.documents[index];
        let resource = document.resource("");
        let resource = resource.ok_or_else(|| not_fetched(url))?;
        Ok((index, resource.resolve(fragment, url)?))
    }

    fn brought(&self, url: &str) -> Result<Document<'d>, String> {
        if url.starts_with("urn:") {
            return Document::new(url, Json::Bool(true));
        }
        if let Some(text) = meta::text(url) {
            return Document::new(url, read(text.as_bytes())?);
        }
        let text = if url.starts_with("http://") || url.starts_with("https://") {
            self.elsewhere.text(url)
        } else {
            None
        };
        let text = text.ok_or_else(|| not_fetched(url))?;
        let document = Document::new(url, read(text)?)?;
        meta::check(&document)?;
        Ok(document)
    }
}

/// Reads the keywords of one subschema.
struct Reader<'r, 'd> {
    compiler: &'r mut Compiler<'d>,
    place: &'r Place,
    resource: &'r Resource,
    fields: &'r Fields<'d>,
}

impl Reader<'_, '_> {
    fn fill(&mut self, node: &mut Node) -> Result<(), String> {
        node.reference = self.reference("$ref")?;
        if node.reference.is_some() && node.draft.reference_stands_alone() {
            return Ok(());
        }
        self.combinations(node);
        self.numbers(node);
        self.texts(node)?;
        self.lists(node);
        self.objects(node)?;
        node.types = types(self.fields);
        node.allowed = self
            .list("enum")
            .map(|values| values.iter().map(Constant::of).collect());
        let is_checked = self.compiler.formats == Formats::Always || node.draft < Draft::Of2019;
        node.format = self
            .text("format")
            .filter(|_| is_checked)
            .map(str::to_owned);
        if node.draft >= Draft::Six {
            node.constant = self.fields.get("const").map(Constant::of);
        }
        self.references(node)
    }

    fn references(&mut self, node: &mut Node) -> Result<(), String> {
        if node.draft >= Draft::Of2019 {
            node.recursive_reference = self.reference("$recursiveRef")?;
            node.recursive_anchor = self.flag("$recursiveAnchor");
        }
        if node.draft >= Draft::Of2020 {
            let anchor = self
                .text("$dynamicRef")
                .and_then(|text| text.split_once('#'));
            let anchor = anchor.map(|(_, anchor)| unescaped(anchor));
            let anchor = anchor.filter(|anchor| !anchor.is_empty() && !anchor.starts_with('/'));
            let target = self.reference("$dynamicRef")?;
            node.dynamic_reference = target.map(|target| DynamicReference { target, anchor });
            node.dynamic_anchor = self.text("$dynamicAnchor").map(str::to_owned);
        }
        Ok(())
    }

    fn combinations(&mut self, node: &mut Node) {
        node.all_of = self.schemas("allOf");
        node.any_of = self.schemas("anyOf");
        node.one_of = self.schemas("oneOf");
        node.not = self.schema("not");
        if node.draft >= Draft::Seven
            && let Some(test) = self.schema("if")
        {
            let known = match self.fields.get("if") {
                Some(Json::Bool(known)) => Some(*known),
                _ => None,
            };
            node.condition = Some(Condition {
                test,
                then: (known != Some(false))
                    .then(|| self.schema("then"))
                    .flatten(),
                otherwise: (known != Some(true)).then(|| self.schema("else")).flatten(),
            });
        }
    }

    fn numbers(&mut self, node: &mut Node) {
        let mut rules = NumberRules {
            minimum: self.number("minimum"),
            maximum: self.number("maximum"),
            exclusive_minimum: self.number("exclusiveMinimum"),
            exclusive_maximum: self.number("exclusiveMaximum"),
            multiple_of: self.number("multipleOf"),
        };
        // Draft 4 says by a flag that the bound itself is out.
        if self.flag("exclusiveMinimum") {
            rules.exclusive_minimum = rules.minimum.take();
        }
        if self.flag("exclusiveMaximum") {
            rules.exclusive_maximum = rules.maximum.take();
        }
        node.number = rules;
    }

    fn texts(&mut self, node: &mut Node) -> Result<(), String> {
        node.text = TextRules {
            min_length: self.count("minLength"),
            max_length: self.count("maxLength"),
            pattern: match self.text("pattern") {
                Some(pattern) => Some(self.regex(pattern, "pattern")?),
                None => None,
            },
        };
        Ok(())
    }

    fn lists(&mut self, node: &mut Node) {
        let mut rules = ListRules {
            min_items: self.count("minItems"),
            max_items: self.count("maxItems"),
            unique_items: self.flag("uniqueItems"),
            ..ListRules::default()
        };
        if node.draft >= Draft::Of2020 {
            rules.leading = self.schemas("prefixItems");
            rules.rest = self.schema("items").map(Rest::Schema);
        } else if matches!(self.fields.get("items"), Some(Json::Array(_))) {
            rules.leading = self.schemas("items");
            rules.rest = self.rest("additionalItems");
        } else {
            rules.rest = self.schema("items").map(Rest::Schema);
        }
        if node.draft >= Draft::Six
            && let Some(schema) = self.schema("contains")
        {
            let since_2019 = node.draft >= Draft::Of2019;
            rules.contains = Some(Contains {
                schema,
                min: self.count("minContains").filter(|_| since_2019),
                max: self.count("maxContains").filter(|_| since_2019),
            });
        }
        if node.draft >= Draft::Of2019 {
            rules.unevaluated = self.schema("unevaluatedItems");
        }
        node.list = rules;
    }

    fn objects(&mut self, node: &mut Node) -> Result<(), String> {
        let mut rules = ObjectRules {
            min_properties: self.count("minProperties"),
            max_properties: self.count("maxProperties"),
            required: self.list("required").map(texts).unwrap_or_default(),
            properties: self.schema_map("properties").into_iter().collect(),
            additional: self.rest("additionalProperties"),
            ..ObjectRules::default()
        };
        for (pattern, schema) in self.schema_map("patternProperties") {
            let regex = self.regex(&pattern, "patternProperties")?;
            rules.pattern_properties.push((regex, schema));
        }
        if node.draft >= Draft::Six {
            rules.names = self.schema("propertyNames");
        }
        if let Some(Json::Object(needs)) = self.fields.get("dependencies") {
            for (name, needed) in needs.iter() {
                let needed = match needed {
                    Json::Array(names) => Needs::Properties(texts(names)),
                    _ => Needs::Schema(self.below(&["dependencies", name])),
                };
                rules.needs.push((name.to_owned(), needed));
            }
        }
        if node.draft >= Draft::Of2019 {
            rules.unevaluated = self.schema("unevaluatedProperties");
            let schemas = self.schema_map("dependentSchemas").into_iter();
            let schemas = schemas.map(|(name, id)| (name, Needs::Schema(id)));
            rules.needs.extend(schemas);
            rules.needs.extend(self.dependent_required());
        }
        node.object = rules;
        Ok(())
    }

    fn dependent_required(&self) -> Vec<(String, Needs)> {
        let Some(Json::Object(fields)) = self.fields.get("dependentRequired") else {
            return Vec::new();
        };
        let lists = fields.iter().filter_map(|(name, value)| match value {
            Json::Array(names) => Some((name.to_owned(), Needs::Properties(texts(names)))),
            _ => None,
        });
        lists.collect()
    }

    // Keywords that lead to other schemas.

    fn below(&mut self, names: &[&str]) -> Id {
        let mut pointer = self.place.pointer.clone();
        for name in names {
            pointer.push('/');
            pointer.push_str(&escaped(name));
        }
        self.compiler.place(self.place.document, pointer)
    }

    fn schema(&mut self, keyword: &str) -> Option<Id> {
        self.fields.get(keyword)?;
        Some(self.below(&[keyword]))
    }

    fn schemas(&mut self, keyword: &str) -> Vec<Id> {
        let count = self.list(keyword).map_or(0, <[_]>::len);
        let below = |index: usize| self.below(&[keyword, &index.to_string()]);
        (0..count).map(below).collect()
    }

    fn schema_map(&mut self, keyword: &str) -> Vec<(String, Id)> {
        let Some(Json::Object(fields)) = self.fields.get(keyword) else {
            return Vec::new();
        };
        let below = |(name, _): (&str, _)| (name.to_owned(), self.below(&[keyword, name]));
        fields.iter().map(below).collect()
    }

    fn rest(&mut self, keyword: &str) -> Option<Rest> {
        match self.fields.get(keyword)? {
            Json::Bool(allowed) => Some(Rest::Allowed(*allowed)),
            _ => Some(Rest::Schema(self.below(&[keyword]))),
        }
    }

    fn reference(&mut self, keyword: &str) -> Result<Option<Id>, String> {
        let Some(reference) = self.text(keyword) else {
            return Ok(None);
        };
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = unescaped(fragment);
        let url = join(&self.resource.url, address)
            .ok_or_else(|| format!("error in parsing {reference:?}"))?;
        let document = &self.compiler.documents[self.place.document];
        let (document, pointer) = match document.resource_of(&url) {
            Some(inside) => (
                self.place.document,
                inside.resolve(&fragment, &document.url)?,
            ),
            None => self.compiler.outside(&url, &fragment)?,
        };
        Ok(Some(self.compiler.place(document, pointer)))
    }

    // Keywords that hold plain values; one of another type counts for nothing.

    fn text(&self, keyword: &str) -> Option<&str> {
        self.fields.get(keyword)?.as_str()
    }

    fn flag(&self, keyword: &str) -> bool {
        matches!(self.fields.get(keyword), Some(Json::Bool(true)))
    }

    fn number(&self, keyword: &str) -> Option<f64> {
        match self.fields.get(keyword)? {
            Json::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    fn count(&self, keyword: &str) -> Option<usize> {
        let number = self.number(keyword)?;
        (number.fract() == 0.0).then_some(number as usize)
    }

    fn list(&self, keyword: &str) -> Option<&[Json<'_>]> {
        match self.fields.get(keyword)? {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    fn regex(&self, pattern: &str, keyword: &str) -> Result<GoRegex, String> {
        GoRegex::new(pattern).map_err(|error| {
            let document = &self.compiler.documents[self.place.document];
            let at = format!("{}#{}/{keyword}", document.url, self.place.pointer);
            format!("invalid regex {pattern:?} at {at:?}: {error}")
        })
    }
}

impl Node {
    fn new(document: Arc<str>, pointer: String, draft: Draft, resource: Id) -> Self {
        Self {
            document,
            pointer,
            draft,
            resource,
            dynamic_anchors: Vec::new(),
            pass: None,
            reference: None,
            recursive_reference: None,
            recursive_anchor: false,
            dynamic_reference: None,
            dynamic_anchor: None,
            types: Vec::new(),
            allowed: None,
            constant: None,
            format: None,
            not: None,
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            condition: None,
            number: NumberRules::default(),
            text: TextRules::default(),
            list: ListRules::default(),
            object: ObjectRules::default(),
        }
    }
}

impl Constant {
    fn of(value: &Json<'_>) -> Self {
        let shown = match value {
            Json::Null => Some("<nil>".to_owned()),
            Json::Bool(value) => Some(value.to_string()),
            Json::Number(number) => Some(number.to_string()),
            Json::String(text) => Some(quoted(text)),
            Json::Array(_) | Json::Object(_) => None,
        };
        Self {
            json: json::text(&from_json(&value.to_value()).thaw()),
            shown,
        }
    }
}

/// The types a value may be of, in the order that messages name them in.
fn types(fields: &Fields<'_>) -> Vec<&'static str> {
    let named = match fields.get("type") {
        Some(Json::String(name)) => vec![name.as_ref()],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let known = [
        "null", "boolean", "number", "integer", "string", "array", "object",
    ];
    known
        .into_iter()
        .filter(|name| named.contains(name))
        .collect()
}

fn texts(items: &[Json<'_>]) -> Vec<String> {
    let texts = items.iter().filter_map(Json::as_str);
    texts.map(str::to_owned).collect()
}

/// A fragment without its percent signs.
fn unescaped(fragment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
