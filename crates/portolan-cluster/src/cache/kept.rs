//! An object as a cache keeps it.
//!
//! As a tree of values an object takes about five times the memory of its text. Most objects are read only when they
//! change, so the text is enough; what is read in every look at other objects is kept as a tree.

use std::sync::Arc;

use kube::core::DynamicObject;

/// One object of a cache, and what the cache itself needs to know of it.
pub(super) struct Kept {
    pub(super) name: Box<str>,
    pub(super) version: Box<str>,
    form: Form,
}

enum Form {
    Tree(Arc<DynamicObject>),
    Text(Box<[u8]>),
}

impl Kept {
    /// Keeps an object as text, or as a tree where that is asked for.
    pub(super) fn new(object: &Arc<DynamicObject>, as_tree: bool) -> Self {
        let metadata = &object.metadata;
        let text = |value: &Option<String>| Box::from(value.as_deref().unwrap_or_default());
        let form = match serde_json::to_vec(&**object) {
            Ok(json) if !as_tree => Form::Text(json.into_boxed_slice()),
            _ => Form::Tree(Arc::clone(object)),
        };
        Self {
            name: text(&metadata.name),
            version: text(&metadata.resource_version),
            form,
        }
    }

    /// The object. There is always one, for its text was made from an object that had been read from JSON.
    pub(super) fn object(&self) -> Option<Arc<DynamicObject>> {
        match &self.form {
            Form::Tree(object) => Some(Arc::clone(object)),
            Form::Text(json) => serde_json::from_slice(json).map(Arc::new).ok(),
        }
    }
}
