//! Does what a decision asks for, in order. Everything can be done twice.

mod configuration;
mod maintain;
mod slots;
mod traffic;

use portolan_cluster::{ClusterError, EventType};
use portolan_rollout::{Effect, Observed, Status};

use crate::context::LookError;
use crate::kinds;
use crate::observe::{Look, now};
use crate::point::Point;

/// What is to be done, and what it was decided by.
pub(crate) struct Doing<'a> {
    pub(crate) look: &'a Look<'a>,
    pub(crate) status: &'a Status,
    pub(crate) seen: &'a Observed,
}

/// When to look again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Again {
    pub(crate) seconds: Option<u64>,
}

impl Doing<'_> {
    /// Does everything. The finalizer is written with the version of the rollout that the status was written to.
    pub(crate) async fn all(&self, effects: &[Effect]) -> Result<Again, LookError> {
        let mut again = Again::default();
        let is_deleted = self.seen.deletion.is_some();
        if !is_deleted {
            self.put_ground().await?;
        }
        let mut news = Vec::new();
        for effect in effects {
            match effect {
                Effect::Tell(record) => news.push(record.clone()),
                Effect::LookAgain { seconds } => again.seconds = Some(*seconds),
                other => self
                    .one(other)
                    .await
                    .or_else(|error| self.let_pass(error))?,
            }
        }
        self.look.tell_all(news);
        if !is_deleted {
            self.maintain(effects).await?;
        }
        Ok(again)
    }

    async fn one(&self, effect: &Effect) -> Result<(), LookError> {
        match effect {
            Effect::AddFinalizer => self.add_finalizer().await,
            Effect::RemoveFinalizer => self.remove_finalizer().await,
            Effect::WriteTraffic(_) => self.write_routes().await,
            Effect::ReturnService => self.return_service().await,
            Effect::ReturnRoutes => self.join_users_routes().await,
            Effect::PointApex { slot } => self.point_apex(*slot).await,
            Effect::SaveRevision { revision } => self.save_revision(revision).await,
            Effect::CopyConfig { revision, config } => self.copy_config(revision, config).await,
            Effect::DeleteRevision { revision } => self.delete_revision(revision).await,
            Effect::ApplySlot {
                slot,
                revision,
                replicas,
            } => self.apply_slot(*slot, revision, *replicas).await,
            Effect::ScaleSlot { slot, replicas } => self.scale_slot(*slot, *replicas).await,
            Effect::ReplacePod { pod } => self.replace_pod(pod).await,
            Effect::HoldWorkload => self.hold_workload().await,
            Effect::ReleaseWorkload { replicas } => self.scale_workload(*replicas).await,
            Effect::AskGate {
                key,
                webhook,
                question,
            } => {
                self.look.ask_gate(key, webhook, question);
                self.look.ctx.wrote(Point::GateAsked).await;
                Ok(())
            }
            Effect::ReportNewerStatus { .. } | Effect::Tell(_) | Effect::LookAgain { .. } => Ok(()),
        }
    }

    /// A rollout that is being deleted is not kept by what cannot be done any more: routes whose kind is gone, or a
    /// webhook that refuses every change of them. A version that is outdated is read again and keeps nothing either.
    fn let_pass(&self, error: LookError) -> Result<(), LookError> {
        let is_overdue = self
            .seen
            .deletion
            .is_some_and(|deletion| deletion.is_overdue(now()));
        let is_outdated = matches!(&error, LookError::Cluster(ClusterError::Outdated { .. }));
        if !is_overdue || is_outdated {
            return Err(error);
        }
        tracing::warn!(namespace = %self.look.namespace(), name = %self.look.name(), %error, "a rollout is deleted all the same");
        Ok(())
    }

    async fn hold_workload(&self) -> Result<(), LookError> {
        let Some(reference) = &self.look.spec.workload_ref else {
            return Ok(());
        };
        let note = format!(
            "Deployment {} is held at zero replicas: its pods run in the slots",
            reference.name
        );
        self.look
            .tell(EventType::Normal, "WorkloadHeld", note)
            .await;
        self.scale_workload(0).await
    }

    async fn scale_workload(&self, replicas: u32) -> Result<(), LookError> {
        let Some(reference) = &self.look.spec.workload_ref else {
            return Ok(());
        };
        let place = (self.look.namespace(), reference.name.as_str());
        let cluster = &self.look.ctx.cluster;
        let kind = kinds::deployments();
        cluster
            .scale(&kind, place, replicas, crate::context::MANAGER)
            .await?;
        self.look.ctx.wrote(Point::Workload).await;
        Ok(())
    }

    async fn replace_pod(&self, pod: &str) -> Result<(), LookError> {
        let (ctx, namespace) = (self.look.ctx, self.look.namespace());
        let found = ctx.caches.pods.get(namespace, pod);
        if let Some(uid) = found.and_then(|pod| pod.metadata.uid.clone()) {
            ctx.cluster
                .delete(&kinds::pods(), (namespace, pod), &uid)
                .await?;
            ctx.wrote(Point::PodReplaced).await;
        }
        Ok(())
    }
}
