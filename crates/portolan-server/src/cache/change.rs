//! A change of one object, and what watches are told of it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::RwLock;
use portolan_kinds::{KindDefinition, KindObject};
use portolan_store::{Position, Revision};
use prost::Message as _;

use super::packed::PackedObject;
use crate::object_message::object_message;

/// A change of one object, made by one revision.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: Revision,
    pub(crate) kind: &'static KindDefinition,
    pub(crate) namespace: Option<Box<str>>,
    old: Option<Arc<PackedObject>>,
    /// `None` when it was deleted.
    new: Option<Arc<PackedObject>>,
    /// What was made of the bytes, once for all watches; `None` when many newer changes came.
    forms: RwLock<Option<Arc<ChangeForms>>>,
}

/// A change as watches need it; each form is made when the first one does.
#[derive(Debug, Default)]
struct ChangeForms {
    old: OnceLock<Option<Arc<KindObject>>>,
    new: OnceLock<Option<Arc<KindObject>>>,
    json: OnceLock<Bytes>,
    message: OnceLock<Bytes>,
}

/// Which side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

impl Change {
    pub(super) fn new(
        revision: Revision,
        kind: &'static KindDefinition,
        namespace: Option<&str>,
        old: Option<Arc<PackedObject>>,
        new: Option<Arc<PackedObject>>,
    ) -> Self {
        Self {
            revision,
            kind,
            namespace: namespace.map(Into::into),
            old,
            new,
            forms: RwLock::new(Some(Arc::default())),
        }
    }

    /// Whether the object exists on a side.
    pub(crate) fn exists(&self, side: Side) -> bool {
        self.packed(side).is_some()
    }

    /// The object on a side.
    pub(crate) fn object(&self, side: Side, incarnation: u64) -> Option<Arc<KindObject>> {
        let packed = self.packed(side)?;
        let forms = self.forms();
        let form = match side {
            Side::Before => &forms.old,
            Side::After => &forms.new,
        };
        form.get_or_init(|| packed.unpack(incarnation)).clone()
    }

    /// The JSON of the object: the new one, or the last one of a deleted object with the revision of its deletion.
    pub(crate) fn json(&self, incarnation: u64) -> Bytes {
        let made = || {
            let told = self.told(incarnation);
            told.map_or_else(Bytes::new, |object| object.to_json().to_string().into())
        };
        self.forms().json.get_or_init(made).clone()
    }

    /// The same object as the bytes of its message.
    pub(crate) fn message(&self, incarnation: u64) -> Bytes {
        let made = || {
            let told = self.told(incarnation);
            told.map_or_else(Bytes::new, |object| {
                object_message(&object).encode_to_vec().into()
            })
        };
        self.forms().message.get_or_init(made).clone()
    }

    /// Keeps the bytes only. A watch that comes so late makes what it needs by itself.
    pub(super) fn fold(&self) {
        *self.forms.write() = None;
    }

    /// The bytes that it keeps alive.
    pub(super) fn bytes(&self) -> usize {
        let sides = [&self.old, &self.new].into_iter().flatten();
        sides.map(|side| side.bytes()).sum()
    }

    fn packed(&self, side: Side) -> Option<&Arc<PackedObject>> {
        match side {
            Side::Before => self.old.as_ref(),
            Side::After => self.new.as_ref(),
        }
    }

    fn forms(&self) -> Arc<ChangeForms> {
        self.forms.read().clone().unwrap_or_default()
    }

    fn told(&self, incarnation: u64) -> Option<Arc<KindObject>> {
        if self.new.is_some() {
            return self.object(Side::After, incarnation);
        }
        let mut last = self.object(Side::Before, incarnation)?;
        let position = Position {
            incarnation,
            revision: self.revision,
        };
        Arc::make_mut(&mut last).metadata.resource_version = Some(position.to_string());
        Some(last)
    }
}
