//! The last good state of a watched repository: the objects of each owner, and the problems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_diff::Batch;
use portolan_flux::Emitter;
use portolan_object::{Finding, Object, Owner};
use portolan_yaml::Text;

use crate::RenderedRepository;

/// What was seen last.
#[derive(Default)]
pub(super) struct LastState {
    given: BTreeMap<Owner, Arc<Vec<Object>>>,
    /// The problems that were told, by their message.
    problems: BTreeSet<String>,
}

impl LastState {
    /// Whether nothing was seen yet.
    pub(super) fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Whether nothing was wrong.
    pub(super) fn is_fine(&self) -> bool {
        self.problems.is_empty()
    }

    /// The objects by owner.
    pub(super) fn batches(&self) -> Vec<Batch> {
        let given = self.given.iter();
        given
            .map(|(owner, objects)| Batch {
                owner: owner.clone(),
                objects: Arc::clone(objects),
            })
            .collect()
    }

    /// Takes in a render. An owner that fails keeps what it gave before, and while anything fails nothing is taken for
    /// removed: what emits it may be what is broken.
    pub(super) fn take(&mut self, rendered: &RenderedRepository) {
        let now = owners(rendered);
        if now.values().all(Option::is_some) {
            self.given.retain(|owner, _| now.contains_key(owner));
        }
        for (owner, objects) in now {
            if let Some(objects) = objects {
                self.given.insert(owner, objects);
            }
        }
    }

    /// Takes in what is wrong: which problems are new, and the messages of those that are no more.
    pub(super) fn take_problems(
        &mut self,
        rendered: &RenderedRepository,
    ) -> (Vec<Finding>, Vec<String>) {
        let mut problems = BTreeSet::new();
        let mut new = Vec::new();
        for (message, problem) in rendered.problems() {
            if !self.problems.contains(&message) {
                new.push(problem);
            }
            problems.insert(message);
        }
        let fixed = self.problems.difference(&problems).cloned().collect();
        self.problems = problems;
        (new, fixed)
    }
}

/// What every Kustomization and release gives; nothing where it fails.
fn owners(rendered: &RenderedRepository) -> BTreeMap<Owner, Option<Arc<Vec<Object>>>> {
    let several = rendered.clusters.len() > 1;
    let mut owners = BTreeMap::new();
    for (cluster, rendering) in &rendered.clusters {
        // A repository of one cluster does without its name.
        let name = if several {
            cluster.name.clone()
        } else {
            Text::default()
        };
        for (id, walked) in &rendering.walk.kustomizations {
            let objects = walked.built.as_ref();
            let objects = objects.map(|built| Arc::clone(&built.objects));
            owners.insert(Emitter::Kustomization(id.clone()).owner(&name), objects);
        }
        for (id, release) in &rendering.releases {
            let owner = Emitter::Release(id.clone()).owner(&name);
            owners.insert(owner, release.objects.clone());
        }
    }
    owners
}
