//! One side of a comparison: the objects of a rendered repository, grouped by what renders them.

use std::sync::Arc;

use portolan_object::{Object, Owner};

/// The objects of one owner.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Who renders them.
    pub owner: Owner,
    /// The objects. Two sides that share them are known to be equal there.
    pub objects: Arc<Vec<Object>>,
}
