//! Two trees of one cluster, rendered only where they differ.
//!
//! ```text
//! walk both, skipping what is the same ──▶ releases with equal inputs are left out ──▶ charts ──▶ releases with other
//!      ▲                                      ▲                                        digests are rendered │
//!      └──── those that turn out to matter ───┴──── are taken in again ◀──────────────────────────────────┘
//! ```
//!
//! The docs of [`compare`](crate::compare) say why skipping work does not change the result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::join;
use portolan_engine::{Context, Failure, Unit, WaitError};

use crate::api::NamespacedName;
use crate::cluster::Cluster;
use crate::compare::equal_inputs::EqualInputs;
use crate::compare::not_rendered::NotRendered;
use crate::compare::skip_check::SkipCheck;
use crate::compare::skip_plan::SkipPlan;
use crate::demand::Demand;
use crate::release::quick_scan::QuickScan;
use crate::release::release_unit::ChartUnit;
use crate::render::{Choice, Renderer, Rendering, Settled, available};
use crate::walk::index::Index;

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
    /// What was not rendered, and whether its inputs differ.
    pub not_rendered: NotRendered,
}

/// Renders two trees of a cluster as far as they differ. Both must have been opened with one session.
pub fn pair_unit(
    before: Arc<Cluster>,
    after: Arc<Cluster>,
    demand: impl Into<Demand>,
) -> Unit<Pair> {
    unit(before, after, demand.into(), Skipping::Allowed)
}

/// Renders two trees of a cluster in full. It gives the same answer as [`pair_unit`] with all of the work.
pub fn unskipped_pair_unit(
    before: Arc<Cluster>,
    after: Arc<Cluster>,
    demand: impl Into<Demand>,
) -> Unit<Pair> {
    unit(before, after, demand.into(), Skipping::Off)
}

/// Whether work is skipped that cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipping {
    Allowed,
    Off,
}

fn unit(
    before: Arc<Cluster>,
    after: Arc<Cluster>,
    demand: Demand,
    skipping: Skipping,
) -> Unit<Pair> {
    Unit::io(move |cx| async move {
        let skip_plan = match skipping {
            Skipping::Allowed => SkipPlan::between(&before, &after, &demand),
            Skipping::Off => None,
        };
        let mut sides = Sides {
            before: Renderer::new(&cx, &before, &demand),
            after: Renderer::new(&cx, &after, &demand),
            skip_plan: skip_plan.map(Arc::new),
            taken_in: BTreeSet::new(),
        };
        let is_settled = skipping == Skipping::Allowed && sides.settle_differences().await?;
        if !is_settled || sides.lack_data() || sides.lack_objects() {
            sides.settle_whole().await?;
        }
        let not_rendered = NotRendered::between(&sides.before, &sides.after);
        Ok(Pair {
            not_rendered,
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
    skip_plan: Option<Arc<SkipPlan>>,
    /// Releases that were left out and turned out to matter.
    taken_in: BTreeSet<NamespacedName>,
}

impl<'a> Sides<'a> {
    /// Renders as far as the sides differ; says whether nothing more has to be taken in.
    async fn settle_differences(&mut self) -> Result<bool, Failure> {
        self.begin();
        self.walk().await?;
        for _ in 0..=MAX_ROUNDS {
            let settled = self.settle().await?;
            if !self.take_in(settled) {
                return Ok(true);
            }
            self.walk().await?;
        }
        Ok(false)
    }

    fn begin(&mut self) {
        if let Some(skip_plan) = &self.skip_plan {
            self.before.walker.skip_by(skip_plan);
            self.after.walker.skip_by(skip_plan);
        }
    }

    /// Walks both until nothing more has to be built, and leaves out what is found to be the same.
    async fn walk(&mut self) -> Result<(), Failure> {
        loop {
            // One after the other: the second finds nearly everything made, and neither waits for the other's units.
            self.after.walker.run().await?;
            self.before.walker.run().await?;
            if !self.build_affected() {
                return self.leave_out_equal().await;
            }
        }
    }

    /// Has skipped Kustomizations built that may differ; says whether there are any.
    fn build_affected(&mut self) -> bool {
        let affected = self.skip_check().map(|skip_check| skip_check.affected());
        self.want(affected)
    }

    /// Has skipped Kustomizations built whose releases may define kinds of some groups; says whether there are any.
    fn build_defining(&mut self, groups: &BTreeSet<String>) -> bool {
        let defining = self
            .skip_check()
            .map(|skip_check| skip_check.defining(groups));
        self.want(defining)
    }

    fn skip_check(&self) -> Option<SkipCheck<'_, 'a>> {
        Some(SkipCheck {
            skip_plan: self.skip_plan.as_deref()?,
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
    fn skip_nothing(&mut self) -> bool {
        let is_news = self.skip_plan.take().is_some();
        if is_news {
            self.before.walker.want_everything();
            self.after.walker.want_everything();
        }
        is_news
    }

    /// Skips releases whose inputs are equal on both sides and that lead to nothing else, of those not looked at yet.
    async fn leave_out_equal(&mut self) -> Result<(), Failure> {
        let mut by_chart = BTreeMap::new();
        for (id, unit) in self.newly_equal() {
            let releases = by_chart
                .entry(unit.key.clone())
                .or_insert((unit, Vec::new()));
            releases.1.push(id);
        }
        let cx = self.after.cx;
        let index = &self.after.walker.walk.index;
        let scans = by_chart.into_values().map(|(unit, releases)| async move {
            let scan = if unit.is_elsewhere() {
                scan_in_cache(cx, index, &unit).await?
            } else {
                cx.compute(move || unit.scan()).await
            };
            Ok::<_, WaitError>((scan, releases))
        });
        let taken = join_all(scans).await;
        let equal = EqualInputs::new(&self.after, &self.before);
        let mut left_out = BTreeMap::new();
        for taken in taken {
            let (scan, releases) = taken?;
            let leads_on = |id: &NamespacedName| {
                scan.may_emit_flux || (scan.is_unfetched && equal.leads_into_repository(id))
            };
            let harmless = releases.into_iter().filter(|id| !leads_on(id));
            left_out.extend(harmless.map(|id| (id, scan.clone())));
        }
        self.before.left_out.extend(left_out.clone());
        self.after.left_out.extend(left_out);
        Ok(())
    }

    /// The releases that are made of the same, of those that were not looked at yet, each with what loads its chart.
    fn newly_equal(&self) -> Vec<(NamespacedName, Arc<ChartUnit>)> {
        let mut equal = EqualInputs::new(&self.after, &self.before).releases();
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
        if self.build_affected() {
            return true;
        }
        let mattering: BTreeSet<NamespacedName> = if settled == Settled::LacksKinds {
            self.bringing_kinds()
        } else if self.before.own_kinds(&self.after) != self.after.own_kinds(&self.before) {
            if self.skip_nothing() {
                return true;
            }
            self.after.left_out.keys().cloned().collect()
        } else {
            let differing = self.before.differing_kinds(&self.after);
            let mut equal = EqualInputs::new(&self.after, &self.before);
            let left_out = self.after.left_out.iter();
            left_out
                .filter(|(id, scan)| {
                    scan.looked_up.includes_any(&differing) || equal.chart_of(id).is_none()
                })
                .map(|(id, _)| id.clone())
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
            Some(groups) => self.build_defining(groups),
            None => self.skip_nothing(),
        };
        if is_more {
            // Their releases are judged when they are known.
            return BTreeSet::new();
        }
        let mut equal = EqualInputs::new(&self.after, &self.before);
        let mut bringing = BTreeSet::new();
        for (id, scan) in &self.after.left_out {
            let mut may_define = |groups| {
                let unit = equal.chart_of(id);
                unit.is_none_or(|unit| unit.may_define(groups))
            };
            if scan.may_define_kinds && groups.as_ref().is_none_or(&mut may_define) {
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

    /// Whether something looks up objects that only a release could print which was not rendered.
    fn lack_objects(&self) -> bool {
        let is_partial = self.skip_plan.is_some() || !self.after.left_out.is_empty();
        is_partial
            && (self.after.lacks_objects(&self.before) || self.before.lacks_objects(&self.after))
    }

    /// Renders everything that is at hand. Charts that nobody asked for are not fetched for what they might print.
    async fn settle_whole(&mut self) -> Result<(), Failure> {
        self.skip_nothing();
        for side in [&mut self.before, &mut self.after] {
            side.left_out.retain(|_, scan| scan.is_unfetched);
        }
        let all = Choice::Wanted;
        let (one, other) = join!(self.before.settle(&all), self.after.settle(&all));
        one?;
        other?;
        Ok(())
    }
}

/// Looks at a chart that lies elsewhere, if the cache has it.
async fn scan_in_cache(
    cx: &Context,
    index: &Index,
    unit: &ChartUnit,
) -> Result<QuickScan, WaitError> {
    if !unit.is_at_hand(cx).await {
        return Ok(QuickScan::UNFETCHED);
    }
    let key = unit.add(cx, index);
    let chart = available(cx.output(&key).await)?;
    Ok(chart.map_or(QuickScan::UNFETCHED, |chart| chart.0.scan()))
}
