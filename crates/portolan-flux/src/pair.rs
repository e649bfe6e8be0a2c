//! Two trees of one cluster, rendered as far as they differ.
//!
//! ```text
//! walk both, sparing what is the same ──▶ releases made of the same are left out ──▶ charts ──▶ releases with other digests
//!      ▲                                      ▲                                                    are rendered │
//!      └──── those that turn out to matter ───┴──── are taken in again ◀────────────────────────────────────────┘
//! ```
//!
//! A Kustomization that both sides build of the same files is not built where nothing it gives can matter; one that is
//! built by both is built once. A release that is made of the same on both sides gives the same, so neither its chart is
//! loaded nor is it rendered – unless what it prints may lead on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::join;
use portolan_engine::{Failure, Unit};

use crate::api::NamespacedName;
use crate::cluster::Cluster;
use crate::demand::Demand;
use crate::drawing::Drawing;
use crate::likeness::Likeness;
use crate::release_unit::ChartUnit;
use crate::render::{Choice, Renderer, Rendering, Settled};
use crate::sparing::Sparing;

/// How often releases that were left out are taken in again; twice is as often as it can matter in real repositories.
const MAX_ROUNDS: usize = 8;

/// Both sides of a comparison.
///
/// A Kustomization whose `built` is the same allocation on both sides ([`Arc::ptr_eq`]) or that has no unit on either, and
/// a release whose `digest` is equal, did not change. The releases of a Kustomization without a unit are not known;
/// others that did not change have no `objects` unless something else needed them.
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
        let sparing = Sparing::between(&before, &after, &demand);
        let mut sides = Sides {
            before: Renderer::new(&cx, &before, &demand),
            after: Renderer::new(&cx, &after, &demand),
            sparing: sparing.map(Arc::new),
            taken_in: BTreeSet::new(),
        };
        sides.begin();
        sides.walk().await?;
        let mut rounds = 0..MAX_ROUNDS;
        let is_settled = loop {
            let settled = sides.settle().await?;
            if !sides.take_in(settled) {
                break true;
            }
            sides.walk().await?;
            if rounds.next().is_none() {
                break false;
            }
        };
        if !is_settled || sides.lack_data() {
            sides.settle_whole().await?;
        }
        Ok(Pair {
            before: sides.before.into_rendering(),
            after: sides.after.into_rendering(),
        })
    })
}

/// Both sides being rendered.
struct Sides<'a> {
    before: Renderer<'a>,
    after: Renderer<'a>,
    /// Which Kustomizations need not be built; nothing when all are.
    sparing: Option<Arc<Sparing>>,
    /// Releases that were left out and turned out to matter.
    taken_in: BTreeSet<NamespacedName>,
}

impl<'a> Sides<'a> {
    fn begin(&mut self) {
        if let Some(sparing) = &self.sparing {
            self.before.walker.spare(sparing);
            self.after.walker.spare(sparing);
        }
    }

    /// Walks both until nothing more has to be built, and leaves out what is found to be the same.
    async fn walk(&mut self) -> Result<(), Failure> {
        loop {
            // One after the other: the second finds nearly everything made, and neither waits for the other's units.
            self.after.walker.run().await?;
            self.before.walker.run().await?;
            if !self.draw_in_affected() {
                return self.leave_out_equal().await;
            }
        }
    }

    /// Has spared Kustomizations built that may differ; says whether there are any.
    fn draw_in_affected(&mut self) -> bool {
        let affected = self.drawing().map(|drawing| drawing.affected());
        self.want(affected)
    }

    /// Has spared Kustomizations built whose releases may define kinds of some groups; says whether there are any.
    fn draw_in_defining(&mut self, groups: &BTreeSet<String>) -> bool {
        let defining = self.drawing().map(|drawing| drawing.defining(groups));
        self.want(defining)
    }

    fn drawing(&self) -> Option<Drawing<'_, 'a>> {
        Some(Drawing {
            sparing: self.sparing.as_deref()?,
            before: &self.before.walker,
            after: &self.after.walker,
        })
    }

    fn want(&mut self, wanted: Option<BTreeSet<NamespacedName>>) -> bool {
        let wanted = wanted.unwrap_or_default();
        for id in &wanted {
            self.before.walker.want(id);
            self.after.walker.want(id);
        }
        !wanted.is_empty()
    }

    /// Has every Kustomization built on both sides; says whether that is news.
    fn spare_nothing(&mut self) -> bool {
        let is_news = self.sparing.take().is_some();
        if is_news {
            self.before.walker.want_everything();
            self.after.walker.want_everything();
        }
        is_news
    }

    /// Leaves out releases that are made of the same and lead nowhere, of those that were not looked at yet.
    async fn leave_out_equal(&mut self) -> Result<(), Failure> {
        let mut by_chart = BTreeMap::new();
        for (id, unit) in self.newly_equal() {
            let releases = by_chart
                .entry(unit.key.clone())
                .or_insert((unit, Vec::new()));
            releases.1.push(id);
        }
        let cx = self.after.cx;
        let glances = by_chart.into_values().map(|(unit, releases)| async move {
            let glance = cx.compute(move || unit.glance()).await;
            (glance, releases)
        });
        let mut left_out = BTreeMap::new();
        for (glance, releases) in join_all(glances).await {
            if !glance.may_emit_flux {
                left_out.extend(releases.into_iter().map(|id| (id, glance)));
            }
        }
        self.before.left_out.extend(left_out.clone());
        self.after.left_out.extend(left_out);
        Ok(())
    }

    /// The releases that are made of the same, of those that were not looked at yet, each with what loads its chart.
    fn newly_equal(&self) -> Vec<(NamespacedName, Arc<ChartUnit>)> {
        let mut equal = Likeness::new(&self.after, &self.before).releases();
        equal.retain(|(id, _)| {
            let is_known = |side: &Renderer<'_>| side.releases.contains_key(id);
            !self.taken_in.contains(id) && !is_known(&self.before) && !is_known(&self.after)
        });
        equal
    }

    /// Renders, but for what is left out, what leads on and what differs.
    async fn settle(&mut self) -> Result<Settled, Failure> {
        let follow = Choice::Followed;
        let (one, other) = join!(self.before.settle(&follow), self.after.settle(&follow));
        if one? == Settled::LacksKinds || other? == Settled::LacksKinds {
            return Ok(Settled::LacksKinds);
        }
        let (were, are) = (self.before.digests(), self.after.digests());
        let one = self.before.settle(&Choice::Unlike(&are)).await?;
        let other = self.after.settle(&Choice::Unlike(&were)).await?;
        Ok(if one == Settled::Yes { other } else { one })
    }

    /// Takes releases in again that matter after all; says whether there are any.
    fn take_in(&mut self, settled: Settled) -> bool {
        if self.draw_in_affected() {
            return true;
        }
        let mattering: BTreeSet<NamespacedName> = if settled == Settled::LacksKinds {
            self.bringing_kinds()
        } else if self.before.own_kinds(&self.after) != self.after.own_kinds(&self.before) {
            if self.spare_nothing() {
                return true;
            }
            self.after.left_out.keys().cloned().collect()
        } else {
            let mut likeness = Likeness::new(&self.after, &self.before);
            let left_out = self.after.left_out.keys();
            left_out
                .filter(|id| likeness.chart_of(id).is_none())
                .cloned()
                .collect()
        };
        for side in [&mut self.before, &mut self.after] {
            side.left_out.retain(|id, _| !mattering.contains(id));
        }
        let is_news = !mattering.is_empty() || settled == Settled::LacksKinds;
        self.taken_in.extend(mattering);
        is_news
    }

    /// The releases that were left out and may define kinds that charts ask for.
    fn bringing_kinds(&mut self) -> BTreeSet<NamespacedName> {
        let (one, other) = (&self.before.asked_groups, &self.after.asked_groups);
        let groups = one.as_ref().zip(other.as_ref());
        let groups: Option<BTreeSet<String>> = groups.map(|(one, other)| one | other);
        let is_more = match &groups {
            Some(groups) => self.draw_in_defining(groups),
            None => self.spare_nothing(),
        };
        if is_more {
            // Their releases are judged when they are known.
            return BTreeSet::new();
        }
        let mut likeness = Likeness::new(&self.after, &self.before);
        let mut bringing = BTreeSet::new();
        for (id, glance) in &self.after.left_out {
            let mut may_define = |groups| {
                let unit = likeness.chart_of(id);
                unit.is_none_or(|unit| unit.may_define(groups))
            };
            if glance.may_define_kinds && groups.as_ref().is_none_or(&mut may_define) {
                bringing.insert(id.clone());
            }
        }
        for side in [&mut self.before, &mut self.after] {
            side.undefined_groups
                .extend(groups.iter().flatten().cloned());
        }
        bringing
    }

    /// Whether something that differs wants data that only a release could print which was not rendered.
    fn lack_data(&self) -> bool {
        self.after.lacks_data(&self.before) || self.before.lacks_data(&self.after)
    }

    /// Renders everything.
    async fn settle_whole(&mut self) -> Result<(), Failure> {
        self.spare_nothing();
        self.before.left_out.clear();
        self.after.left_out.clear();
        let all = Choice::Wanted;
        let (one, other) = join!(self.before.settle(&all), self.after.settle(&all));
        one?;
        other?;
        Ok(())
    }
}
