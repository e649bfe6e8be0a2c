//! Schema documents during compilation: where each schema with its own `$id` begins, and its anchors.
//!
//! ```text
//! document ── resource `` (the whole) ── anchors
//!          └─ resource `/$defs/port` ($id: port.json) ── anchors
//! ```
//!
//! A reference is resolved relative to the resource that contains it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use url::Url;

use super::super::document::{Fields, Json};
use super::draft::{Draft, Within};

/// How deep schemas may lie in each other.
const MAX_DEPTH: usize = 200;

/// One document.
pub(super) struct Document<'d> {
    pub(super) url: String,
    pub(super) json: Rc<Json<'d>>,
    /// By JSON pointer; the whole document is always one.
    resources: BTreeMap<String, Resource>,
    /// The pointers of all schemas looked at.
    known: HashSet<String>,
}

/// A schema that has a name, or is a whole document.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) pointer: String,
    pub(super) url: String,
    pub(super) draft: Draft,
    /// Pointers by anchor.
    anchors: HashMap<String, String>,
    pub(super) dynamic_anchors: BTreeSet<String>,
}

/// What a schema is read as when it does not say.
#[derive(Clone, Copy)]
struct Context<'c> {
    base: &'c str,
    draft: Draft,
}

impl<'d> Document<'d> {
    pub(super) fn new(url: &str, json: Json<'d>) -> Result<Self, String> {
        let mut document = Self {
            url: url.to_owned(),
            json: Rc::new(json),
            resources: BTreeMap::new(),
            known: HashSet::new(),
        };
        let json = Rc::clone(&document.json);
        let context = Context {
            base: url,
            draft: Draft::LATEST,
        };
        document.collect(&json, "", context, 0)?;
        Ok(document)
    }

    /// The resource that a schema lies in.
    pub(super) fn resource(&self, pointer: &str) -> Option<&Resource> {
        let mut at = pointer;
        loop {
            if let Some(found) = self.resources.get(at) {
                return Some(found);
            }
            at = at.get(..at.rfind('/')?)?;
        }
    }

    /// The resource of an address.
    pub(super) fn resource_of(&self, url: &str) -> Option<&Resource> {
        if url == self.url {
            return self.resources.get("");
        }
        self.resources.values().find(|found| found.url == url)
    }

    /// Takes note of a schema that lies where no keyword puts one.
    pub(super) fn ensure(&mut self, pointer: &str) -> Result<(), String> {
        if self.known.contains(pointer) {
            return Ok(());
        }
        let Some(resource) = self.resource(pointer).cloned() else {
            return Ok(());
        };
        let json = Rc::clone(&self.json);
        let schema = self.find(&json, pointer)?;
        let context = Context {
            base: &resource.url,
            draft: resource.draft,
        };
        self.collect(schema, pointer, context, 0)
    }

    /// What a pointer leads to.
    pub(super) fn find<'j>(
        &self,
        json: &'j Json<'d>,
        pointer: &str,
    ) -> Result<&'j Json<'d>, String> {
        json.pointer(pointer)
            .ok_or_else(|| format!("json-pointer in \"{}#{pointer}\" not found", self.url))
    }

    fn collect(
        &mut self,
        schema: &Json<'d>,
        pointer: &str,
        context: Context<'_>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("schema nests deeper than {MAX_DEPTH} levels"));
        }
        if !self.known.insert(pointer.to_owned()) {
            return Ok(());
        }
        let Json::Object(fields) = schema else {
            if pointer.is_empty() {
                self.add(pointer, context.base.to_owned(), context.draft)?;
            }
            return Ok(());
        };
        let own = draft_of(fields, context.draft)?;
        let (id, draft) = match id_of(fields, own) {
            // Only a schema with a name of its own may be of another draft.
            None if !pointer.is_empty() => (id_of(fields, context.draft), context.draft),
            id => (id, own),
        };
        let base = match id {
            Some(id) => join(context.base, id)
                .ok_or_else(|| format!("error in parsing id at \"{}#{pointer}\"", self.url))?,
            None => context.base.to_owned(),
        };
        if id.is_some() || pointer.is_empty() {
            self.add(pointer, base.clone(), draft)?;
        }
        self.add_anchors(fields, pointer, &base)?;
        let context = Context { base: &base, draft };
        for (keyword, within) in draft.subschemas() {
            let Some(value) = fields.get(keyword) else {
                continue;
            };
            let at = format!("{pointer}/{}", escaped(keyword));
            match (within, value) {
                (Within::Itself, value) => self.collect(value, &at, context, depth + 1)?,
                (Within::Properties, Json::Object(fields)) => {
                    for (name, value) in fields.iter() {
                        let at = format!("{at}/{}", escaped(name));
                        self.collect(value, &at, context, depth + 1)?;
                    }
                }
                (Within::Items, Json::Array(items)) => {
                    for (index, value) in items.iter().enumerate() {
                        self.collect(value, &format!("{at}/{index}"), context, depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, pointer: &str, url: String, draft: Draft) -> Result<(), String> {
        let same = self.resources.values().find(|other| other.url == url);
        if let Some(other) = same.filter(|other| other.pointer != pointer) {
            return Err(format!(
                "duplicate id \"{url}\" in \"{}\" at \"{pointer}\" and \"{}\"",
                self.url, other.pointer
            ));
        }
        let resource = Resource {
            pointer: pointer.to_owned(),
            url,
            draft,
            anchors: HashMap::new(),
            dynamic_anchors: BTreeSet::new(),
        };
        self.resources.insert(pointer.to_owned(), resource);
        Ok(())
    }

    fn add_anchors(
        &mut self,
        fields: &Fields<'d>,
        pointer: &str,
        base: &str,
    ) -> Result<(), String> {
        let document = self.url.clone();
        let resource = self.resources.values_mut().find(|found| found.url == base);
        let Some(resource) = resource else {
            return Ok(());
        };
        let text = |keyword: &str| fields.get(keyword).and_then(Json::as_str);
        let mut anchors = Vec::new();
        if resource.draft < Draft::Of2019 {
            let id = text(resource.draft.id_keyword()).filter(|_| !fields.contains_key("$ref"));
            let fragment = id.and_then(|id| id.split_once('#')).map(|(_, after)| after);
            anchors.extend(fragment.filter(|text| !text.is_empty() && !text.starts_with('/')));
        } else {
            anchors.extend(text("$anchor"));
        }
        if resource.draft >= Draft::Of2020
            && let Some(anchor) = text("$dynamicAnchor")
        {
            anchors.push(anchor);
            resource.dynamic_anchors.insert(anchor.to_owned());
        }
        for anchor in anchors {
            let place = resource.anchors.entry(anchor.to_owned());
            let place = place.or_insert_with(|| pointer.to_owned());
            if place != pointer {
                return Err(format!(
                    "duplicate anchor \"{anchor}\" in \"{document}\" at \"{place}\" and \"{pointer}\""
                ));
            }
        }
        Ok(())
    }
}

impl Resource {
    /// The pointer that a fragment stands for.
    pub(super) fn resolve(&self, fragment: &str, document: &str) -> Result<String, String> {
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(format!("{}{fragment}", self.pointer));
        }
        self.anchors.get(fragment).cloned().ok_or_else(|| {
            format!(
                "anchor in \"{}#{fragment}\" not found in schema \"{document}\"",
                self.url
            )
        })
    }

    /// The pointers of the anchors that references may find from afar.
    pub(super) fn dynamic(&self) -> impl Iterator<Item = (&str, &str)> {
        let anchors = self.dynamic_anchors.iter();
        anchors.filter_map(|anchor| Some((anchor.as_str(), self.anchors.get(anchor)?.as_str())))
    }
}

/// The draft that a schema says it is of.
fn draft_of(fields: &Fields<'_>, otherwise: Draft) -> Result<Draft, String> {
    match fields.get("$schema").and_then(Json::as_str) {
        None => Ok(otherwise),
        Some(url) => match Draft::of_url(url) {
            Some(draft) => Ok(draft),
            None if url.starts_with("urn:") => Ok(otherwise),
            None => Err(not_fetched(url.split('#').next().unwrap_or(url))),
        },
    }
}

fn id_of<'f>(fields: &'f Fields<'_>, draft: Draft) -> Option<&'f str> {
    if draft.reference_stands_alone() && fields.contains_key("$ref") {
        return None;
    }
    let id = fields.get(draft.id_keyword())?.as_str()?;
    let id = id.split('#').next().unwrap_or(id);
    (!id.is_empty()).then_some(id)
}

/// An address seen from another; neither has a fragment.
pub(super) fn join(base: &str, reference: &str) -> Option<String> {
    let parsed = Url::parse(base).ok()?;
    if parsed.cannot_be_a_base() && Url::parse(reference).is_err() {
        return Some(base.to_owned());
    }
    parsed.join(reference).ok().map(String::from)
}

/// Where a schema refers to another that lies elsewhere.
pub(super) fn not_fetched(url: &str) -> String {
    format!("failing loading \"{url}\": schemas that lie elsewhere are not fetched")
}

/// A name as a part of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
