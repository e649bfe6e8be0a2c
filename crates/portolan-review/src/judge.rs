//! Whether a rendered repository would work: whether it builds, and whether a cluster would accept what it builds.
//!
//! ```text
//! RenderedRepository ──▶ build problems ┐
//!         └──▶ objects ──check──▶ findings ──▶ Verdicts
//! ```

mod judged_for;
#[cfg(feature = "rollout")]
mod rollouts;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};

use portolan_check::{MISSING_REFERENCE, Settings, Subject, check, lower_follow_ons};
use portolan_flux::api::NamespacedName;
use portolan_flux::{Cluster, Emitter, Rendering, Selection};
use portolan_object::{NoMatch, ObjectId, Owner, Rule};
use portolan_schema::Catalogue;

pub use judged_for::{JudgedFor, heading};
pub use verdicts::{TestCase, Verdicts};

use crate::inventory::{self, PlacedObject};
use crate::rendered::unrendered;
use crate::selectable::selectable;
use crate::settings_file::SettingsFile;
use crate::{RenderedRepository, ReviewError};

/// Which findings the repository's settings want of [`judge`].
pub fn finding_settings(rendered: &RenderedRepository) -> Result<Settings, ReviewError> {
    SettingsFile::read(rendered.files())?.findings(&rules())
}

/// Leaves what is selected; refuses a selection that nothing fits.
pub fn select(
    verdicts: &mut Verdicts,
    selection: &Selection,
    rendered: &RenderedRepository,
) -> Result<(), NoMatch> {
    let objects = inventory::objects(rendered);
    let there = selectable(rendered, &objects);
    selection.check(&there).map_err(|error| {
        let advice = rendered.advice_on_missing_objects();
        error.with_more(advice.filter(|_| selection.may_name_objects()))
    })?;
    let is_owner_meant =
        |owner: &Emitter| selection.selects_owner(&there.kinds, owner.owner_kind(), owner.id());
    let is_meant = |placed: &&PlacedObject<'_>| {
        let is_owner_meant = is_owner_meant(&placed.owner);
        selection.selects_object(&there.kinds, is_owner_meant, &placed.id, placed.object)
    };
    let meant = objects.iter().filter(is_meant);
    let meant = meant.map(|placed| (placed.owner.owner(&placed.cluster.name), placed.id.clone()));
    let meant: BTreeSet<(Owner, ObjectId)> = meant.collect();
    verdicts.retain(|owner, object| match object {
        Some(id) => meant.contains(&(owner.clone(), id.clone())),
        None => {
            let id = NamespacedName::new(owner.namespace.clone(), owner.name.clone());
            selection.selects_owner(&there.kinds, owner.kind, &id)
        }
    });
    Ok(())
}

/// Everything checked, cluster by cluster.
pub fn judge(rendered: &RenderedRepository, settings: &Settings) -> Verdicts {
    let not_covered = rendered.not_covered.iter();
    let mut verdicts = Verdicts {
        found: not_covered
            .filter(|finding| settings.wants_finding(finding))
            .cloned()
            .collect(),
        ..Verdicts::default()
    };
    let objects = inventory::objects(rendered);
    for (cluster, rendering) in &rendered.clusters {
        verdicts.add_builds(rendered, cluster, rendering, settings);
        let placed: Vec<&PlacedObject<'_>> = objects
            .iter()
            .filter(|placed| std::ptr::eq(placed.cluster, cluster.as_ref()))
            .collect();
        let catalogue = catalogue(cluster, &placed);
        let unrendered = unrendered(&cluster.name, rendering);
        for subjects in by_target(&placed, rendering) {
            let files = rendered.files();
            let mut findings = check(&subjects, &catalogue, settings, &unrendered, files);
            #[cfg(feature = "rollout")]
            findings.extend(rollouts::findings(&subjects, settings, files));
            lower_follow_ons(&mut findings, &[&MISSING_REFERENCE], &unrendered);
            verdicts.found.extend(findings);
            verdicts.add_objects(&subjects);
        }
    }
    verdicts
}

/// The objects by the cluster that they are applied to: objects in two clusters neither collide nor refer to each other.
fn by_target<'a>(placed: &[&PlacedObject<'a>], rendering: &Rendering) -> Vec<Vec<Subject<'a>>> {
    let mut targets: BTreeMap<Option<String>, Vec<Subject<'a>>> = BTreeMap::new();
    let mut known: BTreeMap<&Emitter, Option<String>> = BTreeMap::new();
    let mut walked = rendering.walk.kustomizations.values();
    let lacks_variables = walked.any(|walked| !walked.missing.is_empty());
    for placed in placed {
        let target = known
            .entry(&placed.owner)
            .or_insert_with(|| rendering.remote_cluster(&placed.owner));
        targets
            .entry(target.clone())
            .or_default()
            .push(subject(placed, lacks_variables));
    }
    targets.into_values().collect()
}

fn subject<'a>(placed: &PlacedObject<'a>, lacks_variables: bool) -> Subject<'a> {
    Subject {
        lacks_variables,
        owner: placed.owner.owner(&placed.cluster.name),
        id: placed.id.clone(),
        object: placed.object,
    }
}

/// The types that the cluster would know: its Kubernetes, Flux, and everything that the repository defines.
fn catalogue(cluster: &Cluster, placed: &[&PlacedObject<'_>]) -> Catalogue {
    let mut catalogue = if cluster.kubernetes.is_chosen() {
        Catalogue::of(cluster.kubernetes.value.release())
    } else {
        Catalogue::assumed()
    };
    #[cfg(feature = "rollout")]
    for definition in portolan_canary::definitions() {
        catalogue.define(&definition);
    }
    for placed in placed {
        catalogue.define(placed.object.node());
    }
    catalogue
}

/// Every rule that a finding of [`judge`] may name, by id.
pub fn rules() -> Vec<&'static Rule> {
    let mut rules = [portolan_check::RULES, portolan_flux::RULES].concat();
    #[cfg(feature = "rollout")]
    rules.extend(portolan_canary::RULES);
    rules.sort_by_key(|rule| rule.id);
    rules
}
