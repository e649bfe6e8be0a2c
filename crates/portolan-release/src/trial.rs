//! What an installation or upgrade would do, found out without changing anything: the chart is rendered with the live
//! cluster, and the cluster is asked to try each object.

use portolan_cluster::{Member, MemberError, ObjectSet, ObjectTrial, SetOptions};
use serde_json::Value;

use crate::deploy::{ChartInstall, Plan};
use crate::error::HelmReleaseError;
use crate::managed_fields::updates_to_apply;
use crate::objects::{KEPT_BY, Objects, Surplus, mark};
use crate::target::{MANAGER, ReleaseTarget, Tell};

/// What would become of a release.
#[derive(Debug)]
pub struct ReleaseTrial {
    /// The revision that it would get.
    pub revision: i64,
    /// Whether it would be installed, not upgraded.
    pub is_install: bool,
    /// How many hooks the chart has, of all events.
    pub hooks: usize,
    /// Its objects and the definitions that would be made.
    pub applied: Vec<(Member, Result<ObjectTrial, MemberError>)>,
    /// What it has now and would no longer have; with a reason, where that stays.
    pub surplus: Vec<(Member, Option<&'static str>)>,
}

impl ReleaseTarget {
    /// Says what [`ReleaseTarget::deploy`] would do.
    ///
    /// # Errors
    /// When the chart cannot be rendered, somebody works on the release, or objects belong to others.
    pub async fn try_deploy(
        &self,
        request: ChartInstall,
        tell: Tell<'_>,
    ) -> Result<ReleaseTrial, HelmReleaseError> {
        self.unless_cancelled(async {
            let history = self.records().heads().await?;
            if let Some(last) = history.last().filter(|head| head.is_pending()) {
                return Err(HelmReleaseError::Pending {
                    revision: last.revision,
                    status: last.status.clone(),
                    hint: "; whether somebody works on it is found out by a deployment only",
                });
            }
            let plan = self.plan(request, &history, tell).await?;
            self.try_plan(&plan, tell).await
        })
        .await
    }

    async fn try_plan(
        &self,
        plan: &Plan,
        tell: Tell<'_>,
    ) -> Result<ReleaseTrial, HelmReleaseError> {
        let mut objects = Objects::new(self, tell);
        let (mut fresh, mut updated) = (Vec::new(), Vec::new());
        for definition in &plan.definitions {
            // Helm leaves definitions alone that are there.
            if self.found(&mut objects, definition).await?.is_none() {
                fresh.push(definition.clone());
            }
        }
        for object in &plan.objects {
            let found = self.found(&mut objects, object).await?;
            let mut object = object.clone();
            mark(&mut object, self);
            let is_updated = found.is_some_and(|found| updates_to_apply(&found, MANAGER).is_some());
            if is_updated { &mut updated } else { &mut fresh }.push(object);
        }
        let mut applied = self.try_objects(fresh, self.force).await?;
        // Fields that Helm 3 wrote become those of the apply first; a trial can only take them over.
        applied.extend(self.try_objects(updated, true).await?);
        let mut surplus = Vec::new();
        for (resource, member) in objects.surplus(&plan.before, &plan.objects).await? {
            match objects.find_surplus(&resource, &member).await? {
                Some(Surplus::Deletable(_)) => surplus.push((member, None)),
                Some(Surplus::Kept) => surplus.push((member, Some(KEPT_BY))),
                None => {}
            }
        }
        Ok(ReleaseTrial {
            revision: plan.revision,
            is_install: plan.is_install,
            hooks: plan.json["hooks"].as_array().map_or(0, Vec::len),
            applied,
            surplus,
        })
    }

    async fn found(
        &self,
        objects: &mut Objects<'_>,
        object: &Value,
    ) -> Result<Option<Value>, HelmReleaseError> {
        let mut object = object.clone();
        let resource = match objects.place(&mut object).await {
            // Its definition comes with the release.
            Err(MemberError::Unserved { .. }) => return Ok(None),
            resource => resource?,
        };
        let member = Member::of(&object);
        let found = self
            .cluster
            .read(&resource, &member.namespace, &member.name);
        Ok(found.await?)
    }

    async fn try_objects(
        &self,
        objects: Vec<Value>,
        force: bool,
    ) -> Result<Vec<(Member, Result<ObjectTrial, MemberError>)>, HelmReleaseError> {
        let mut set = ObjectSet::new(&self.cluster, &self.namespace, &self.name, MANAGER);
        let options = SetOptions {
            force,
            deadline: self.timeout,
            replace: false,
            prune: None,
        };
        Ok(set.try_objects(objects, options).await?)
    }
}
