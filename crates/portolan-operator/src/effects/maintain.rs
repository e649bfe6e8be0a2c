//! Objects that a decision does not ask for again because they are as decided, but for what somebody changed in them.

use portolan_rollout::objects::{alias_services, destination_rules, slot_service};
use portolan_rollout::{Effect, Phase, Slot};

use super::Doing;
use crate::apply::Wanted;
use crate::caches::as_json;
use crate::context::LookError;
use crate::observe::is_served;
use crate::point::Point;

impl Doing<'_> {
    /// What must be there before anything can be routed: Services of the slots, and policies for them.
    pub(super) async fn put_ground(&self) -> Result<(), LookError> {
        let is_begun = self.status.stable.is_some() && self.seen.problems.is_empty();
        let is_there = self.status.phase != Phase::Initializing || is_begun;
        if !is_there {
            return Ok(());
        }
        let app = self.look.app();
        for slot in Slot::BOTH {
            self.put_service(slot_service(&app, slot), Point::Service)
                .await?;
        }
        for alias in alias_services(&app, self.status.stable_slot()) {
            self.put_service(alias, Point::Service).await?;
        }
        let rules = &self.look.ctx.caches.destination_rules;
        if !is_served(rules) {
            return Ok(());
        }
        for object in destination_rules(&app) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let there = rules.get(self.look.namespace(), name);
            let wanted = Wanted {
                resource: rules.resource(),
                there: there.map(|there| as_json(&there)),
                object,
                point: Point::DestinationRule,
            };
            self.look.put(wanted).await?;
        }
        Ok(())
    }

    /// Puts back what somebody changed in routes, the application's own Service and Deployments, where a decision sees no
    /// difference.
    pub(super) async fn maintain(&self, effects: &[Effect]) -> Result<(), LookError> {
        let writes_routes = |effect: &Effect| matches!(effect, Effect::WriteTraffic(_));
        if !effects.iter().any(writes_routes) && self.seen.traffic.is_some() {
            self.write_routes().await?;
        }
        let points_apex = |effect: &Effect| matches!(effect, Effect::PointApex { .. });
        if let Some(slot) = self.seen.apex.filter(|_| !effects.iter().any(points_apex)) {
            self.point_apex(slot).await?;
        }
        if !self.seen.problems.is_empty() {
            return Ok(());
        }
        for slot in Slot::BOTH {
            self.maintain_slot(slot).await?;
        }
        Ok(())
    }

    async fn maintain_slot(&self, slot: Slot) -> Result<(), LookError> {
        let seen = self.seen.slots.get(slot);
        let Some(plan) = self.status.slots.get(slot) else {
            return Ok(());
        };
        let is_as_planned =
            seen.revision.as_ref() == Some(&plan.revision) && seen.replicas == plan.replicas;
        if !is_as_planned || self.is_unchanged(slot) {
            return Ok(());
        }
        let is_autoscaled = self.look.spec.autoscaling.is_some();
        let replicas = Some(plan.replicas).filter(|_| !is_autoscaled);
        if self
            .look
            .content(&plan.revision, self.seen)
            .await?
            .is_none()
        {
            // Nothing can be compared; the pods run on.
            return Ok(());
        }
        self.put_deployment(slot, &plan.revision, replicas, Point::Slot)
            .await?;
        if is_autoscaled && plan.replicas > 0 {
            self.put_autoscaler(slot, plan.replicas).await?;
        }
        Ok(())
    }

    /// Whether the Deployment of a slot is what was last applied, so that nothing has to be compared.
    fn is_unchanged(&self, slot: Slot) -> bool {
        let there = self.deployment_there(slot);
        there.is_some_and(|there| {
            self.look
                .is_as_applied(&there, self.look.rollout.generation)
        })
    }
}
