//! The documents of a schema, and every place in them that a reference can name.
//!
//! ```text
//! document ──▶ places: its address and the `$id` of every schema in it
//!          └─▶ references: what each `$ref` is in full, seen from the `$id` around it
//! ```

use std::collections::HashMap;

use url::Url;

use super::super::document::Json;
use super::compile::{Draft, MAX_DEPTH};

/// A document or a schema in it that has a name.
#[derive(Clone, Copy)]
pub(super) struct Named<'d> {
    pub(super) schema: &'d Json<'d>,
    pub(super) draft: Draft,
}

#[derive(Default)]
pub(super) struct Pool<'d> {
    named: HashMap<String, Named<'d>>,
    /// References in full, by where the text of the `$ref` lies in memory.
    references: HashMap<usize, String>,
}

impl<'d> Pool<'d> {
    /// Takes a document in; the chart's own has no address.
    pub(super) fn add(&mut self, address: &str, document: &'d Json<'d>) {
        let draft = Draft::of(document);
        self.collect(document, address, draft, 0);
        let named = Named {
            schema: document,
            draft,
        };
        self.named.insert(address.to_owned(), named);
    }

    /// A reference in full.
    pub(super) fn resolved<'r>(&'r self, reference: &'r Json<'_>) -> Option<&'r str> {
        let found = self.references.get(&place(reference));
        found.map(String::as_str).or(reference.as_str())
    }

    /// What has a name or an address.
    pub(super) fn named(&self, address: &str) -> Option<Named<'d>> {
        self.named.get(address).copied()
    }

    fn collect(&mut self, schema: &'d Json<'d>, base: &str, draft: Draft, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let fields = match schema {
            Json::Array(items) => {
                for item in items {
                    self.collect(item, base, draft, depth + 1);
                }
                return;
            }
            Json::Object(fields) => fields,
            _ => return,
        };
        let id = fields.get("id").or_else(|| fields.get("$id"));
        let base = &match id.and_then(Json::as_str).and_then(|id| join(base, id)) {
            Some(name) if self.named.contains_key(&name) => return,
            Some(name) => {
                self.named.insert(name.clone(), Named { schema, draft });
                name
            }
            None => base.to_owned(),
        };
        if let Some(reference @ Json::String(text)) = fields.get("$ref")
            && let Some(full) = join(base, text)
        {
            self.references.insert(place(reference), full);
        }
        for (key, value) in fields.iter() {
            match (key, value) {
                ("const" | "enum", _) => {}
                // What is in here are names, not keywords.
                ("properties" | "dependencies" | "patternProperties", Json::Object(named)) => {
                    for (_, value) in named.iter() {
                        self.collect(value, base, draft, depth + 1);
                    }
                }
                _ => self.collect(value, base, draft, depth + 1),
            }
        }
    }
}

fn place(json: &Json<'_>) -> usize {
    std::ptr::from_ref(json).addr()
}

/// An address seen from another, whose fragment does not count.
fn join(base: &str, reference: &str) -> Option<String> {
    let base = base.split('#').next().unwrap_or_default();
    let full = match Url::parse(base) {
        Ok(base) => String::from(base.join(reference).ok()?),
        Err(_) if reference.is_empty() || reference.starts_with('#') => {
            format!("{base}{reference}")
        }
        Err(_) if Url::parse(reference).is_ok() => reference.to_owned(),
        // Without an address to start from, every path starts at the root.
        Err(_) => format!("/{}", reference.trim_start_matches('/')),
    };
    Some(full.trim_end_matches('#').to_owned())
}
