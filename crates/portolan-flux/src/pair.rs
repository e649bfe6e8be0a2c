//! Two trees of one cluster, rendered as far as they differ.
//!
//! Both are walked; what they share is built once. A release with equal digests on both sides gives equal objects, so it
//! is not rendered on either.

use std::sync::Arc;

use portolan_engine::Unit;

use crate::cluster::Cluster;
use crate::demand::Demand;
use crate::render::{Choice, Renderer, Rendering};

/// Both sides of a comparison.
///
/// A Kustomization whose `built` is the same allocation on both sides ([`Arc::ptr_eq`]), and a release whose `digest` is
/// equal, did not change; such a release has no `objects` unless something else needed them.
#[derive(Debug)]
pub struct Pair {
    /// The side that was.
    pub before: Rendering,
    /// The side that is to be.
    pub after: Rendering,
}

/// Renders two trees of a cluster as far as they differ. Both must have been opened with one session.
pub fn pair_unit(before: Arc<Cluster>, after: Arc<Cluster>, demand: impl Into<Demand>) -> Unit {
    let demand = demand.into();
    Unit::io(move |cx| async move {
        let mut left = Renderer::new(&cx, &before, &demand);
        let mut right = Renderer::new(&cx, &after, &demand);
        let (one, other) = futures_util::join!(
            left.settle(&Choice::Followed),
            right.settle(&Choice::Followed)
        );
        one?;
        other?;
        let (were, are) = (left.digests(), right.digests());
        left.settle(&Choice::Unlike(&are)).await?;
        right.settle(&Choice::Unlike(&were)).await?;
        Ok(Pair {
            before: left.into_rendering(),
            after: right.into_rendering(),
        })
    })
}
