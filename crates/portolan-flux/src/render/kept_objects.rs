//! Which objects of a release are kept after it was handed out: those that others may want to know of.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_object::{Object, Producer, producer_kinds};

use super::Renderer;
use crate::release::loaded_chart::DEFINITION;
use crate::release::looked_up::LookedUp;
use crate::walk::index::{DataId, data_id};

/// Says which objects others may want to know of.
#[derive(Debug)]
pub(crate) struct KeptObjects {
    /// The data that variables and values come from.
    pub(crate) referenced: BTreeSet<DataId>,
    /// What charts may look up.
    looked_up: LookedUp,
    /// What controllers make that the built-in table does not know.
    producers: Arc<[Producer]>,
    /// Whether some chart asks which kinds the cluster serves.
    definitions: bool,
}

impl Renderer<'_> {
    /// What others may want to know of, as far as it is known now.
    pub(super) fn kept_objects(&self) -> KeptObjects {
        KeptObjects {
            referenced: self.referenced_data(),
            looked_up: self.looked_up.clone(),
            producers: self.walker.walk.index.added_producers(),
            definitions: self.asks_for_kinds,
        }
    }
}

impl KeptObjects {
    /// Whether others may want to know of an object.
    pub(crate) fn includes(&self, object: &Object) -> bool {
        object.gvk().group.ends_with("fluxcd.io")
            || self.looked_up.includes(object.kind())
            || (self.definitions && object.kind() == DEFINITION)
            || data_id(object).is_some_and(|id| self.referenced.contains(&id))
            || self.is_producer(object)
    }

    /// Whether an object may make others in the cluster.
    fn is_producer(&self, object: &Object) -> bool {
        let is = |(group, kind): (&str, &str)| object.gvk().is(group, kind);
        let mut added = self.producers.iter();
        producer_kinds().any(is) || added.any(|producer| is(producer.group_and_kind()))
    }
}
