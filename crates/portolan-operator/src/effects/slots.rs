//! Deployments of slots and how many pods they have.

use portolan_rollout::objects::{autoscaler, deployment};
use portolan_rollout::{Revision, Slot};
use serde_json::Value;

use super::Doing;
use crate::apply::Wanted;
use crate::caches::as_json;
use crate::context::{LookError, MANAGER};
use crate::kinds;
use crate::point::Point;

impl Doing<'_> {
    pub(super) async fn apply_slot(
        &self,
        slot: Slot,
        revision: &Revision,
        replicas: u32,
    ) -> Result<(), LookError> {
        if self.is_autoscaled() {
            let was_empty = self.seen.slots.get(slot).replicas == 0;
            if self
                .put_deployment(slot, revision, None, Point::Slot)
                .await?
            {
                if was_empty || replicas == 0 {
                    self.set_pods(slot, replicas).await?;
                }
                self.put_autoscaler(slot, replicas).await?;
            }
            return Ok(());
        }
        self.put_deployment(slot, revision, Some(replicas), Point::Slot)
            .await?;
        Ok(())
    }

    /// Changes the number of pods of a slot, whatever it runs.
    pub(super) async fn scale_slot(&self, slot: Slot, replicas: u32) -> Result<(), LookError> {
        if !self.is_autoscaled() {
            let runs = self.seen.slots.get(slot).revision.clone();
            let Some(revision) = runs else {
                return Ok(());
            };
            let known = self.look.content(&revision, self.seen).await?;
            if known.is_none() {
                // What it runs is not known any more; the number can be changed all the same.
                return self.set_pods(slot, replicas).await;
            }
            self.put_deployment(slot, &revision, Some(replicas), Point::Scale)
                .await?;
            return Ok(());
        }
        if replicas == 0 {
            // An autoscaler would start pods again.
            self.delete_autoscaler(slot).await?;
            return self.set_pods(slot, 0).await;
        }
        if self.seen.slots.get(slot).replicas == 0 {
            self.set_pods(slot, replicas).await?;
        }
        self.put_autoscaler(slot, replicas).await
    }

    fn is_autoscaled(&self) -> bool {
        self.look.spec.autoscaling.is_some()
    }

    async fn set_pods(&self, slot: Slot, replicas: u32) -> Result<(), LookError> {
        let name = self.look.app().slot_name(slot);
        let place = (self.look.namespace(), name.as_str());
        let cluster = &self.look.ctx.cluster;
        let kind = kinds::deployments();
        cluster.scale(&kind, place, replicas, MANAGER).await?;
        self.look.ctx.wrote(Point::Scale).await;
        Ok(())
    }

    /// Applies the Deployment of a slot. Without a number, its pods are left to an autoscaler.
    pub(super) async fn put_deployment(
        &self,
        slot: Slot,
        revision: &Revision,
        replicas: Option<u32>,
        point: Point,
    ) -> Result<bool, LookError> {
        let content = self.look.content(revision, self.seen).await?;
        let Some(content) = content else {
            return Err(LookError::RevisionGone(revision.to_string()));
        };
        let app = self.look.app();
        let deployments = &self.look.ctx.caches.deployments;
        let there = deployments.get(self.look.namespace(), &app.slot_name(slot));
        let wanted = Wanted {
            resource: deployments.resource(),
            object: deployment(&app, slot, &content, replicas),
            point,
            there: there.map(|there| as_json(&there)),
        };
        self.look.put(wanted).await
    }

    pub(super) async fn put_autoscaler(&self, slot: Slot, floor: u32) -> Result<(), LookError> {
        let Some(object) = autoscaler(&self.look.app(), slot, floor) else {
            return Ok(());
        };
        let caches = &self.look.ctx.caches;
        let cache = if object["kind"] == "ScaledObject" {
            &caches.scaled_objects
        } else {
            &caches.pod_autoscalers
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let there = cache.get(self.look.namespace(), name);
        let wanted = Wanted {
            resource: cache.resource(),
            there: there.map(|there| as_json(&there)),
            object,
            point: Point::Autoscaler,
        };
        self.look.put(wanted).await?;
        Ok(())
    }

    async fn delete_autoscaler(&self, slot: Slot) -> Result<(), LookError> {
        let name = self.look.app().slot_name(slot);
        let (ctx, namespace) = (self.look.ctx, self.look.namespace());
        for cache in [&ctx.caches.pod_autoscalers, &ctx.caches.scaled_objects] {
            let found = cache.get(namespace, &name);
            let own = found.filter(|found| self.look.is_own(found));
            if let Some(uid) = own.and_then(|own| own.metadata.uid.clone()) {
                let place = (namespace, name.as_str());
                ctx.cluster.delete(cache.resource(), place, &uid).await?;
                ctx.wrote(Point::Autoscaler).await;
            }
        }
        Ok(())
    }

    /// The Deployment of a slot as it is watched.
    pub(super) fn deployment_there(&self, slot: Slot) -> Option<Value> {
        let name = self.look.app().slot_name(slot);
        let there = self
            .look
            .ctx
            .caches
            .deployments
            .get(self.look.namespace(), &name)?;
        Some(as_json(&there))
    }
}
