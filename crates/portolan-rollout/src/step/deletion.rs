//! The object is being deleted: traffic goes home before pods go.

use super::Pass;
use crate::effect::Effect;
use crate::observed::Deletion;
use crate::status::Status;
use crate::traffic::Traffic;

impl Pass<'_> {
    /// Sends all requests to the stable slot, gives a referred Deployment its pods and its Service back and makes routes of the user say
    /// what they said before; then lets the object go. What the object made is then deleted by Kubernetes.
    pub(super) fn send_traffic_home(mut self, deletion: Deletion) -> (Status, Vec<Effect>) {
        let mut effects = Vec::new();
        if !self.observed.has_finalizer {
            return (self.status, effects);
        }
        let home = self
            .status
            .stable
            .as_ref()
            .map(|stable| Traffic::only(stable.slot));
        let is_ready = |traffic: &Traffic| {
            crate::slot::Slot::BOTH
                .into_iter()
                .all(|slot| !traffic.reaches(slot) || self.observed.slots.get(slot).endpoints > 0)
        };
        let home = home.filter(is_ready);
        let is_home = home.is_none_or(|home| self.observed.traffic.is_none_or(|now| now == home));
        if let Some(home) = home.filter(|_| !is_home) {
            self.status.traffic = Some(home);
            self.status.weight = 0;
            effects.push(Effect::WriteTraffic(home));
        }
        let is_released = self.release_workload(&mut effects);
        if deletion.is_overdue(self.now) || (is_home && is_released) {
            if self.spec.workload_ref.is_some() {
                effects.push(Effect::ReturnService);
            }
            if self.spec.virtual_service_ref.is_some() {
                effects.push(Effect::ReturnRoutes);
            }
            effects.push(Effect::RemoveFinalizer);
        } else {
            effects.push(Effect::LookAgain { seconds: 1 });
        }
        (self.status, effects)
    }

    /// Returns whether the referred Deployment has its pods again.
    fn release_workload(&self, effects: &mut Vec<Effect>) -> bool {
        let (Some(workload), Some(replicas)) =
            (&self.observed.workload, self.status.workload_replicas)
        else {
            return true;
        };
        if workload.replicas < replicas {
            effects.push(Effect::ReleaseWorkload { replicas });
        }
        workload.ready >= replicas
    }
}
