//! The two revisions of a rollout, as the labels of metrics name them.

use portolan_canary::Rollout;
use portolan_prometheus::{ArmLabels, Arms};
use portolan_rollout::Slot;

/// The two revisions by slots; by their names too if they run now.
pub(super) fn arms(rollout: &Rollout, new: Option<Slot>, is_now: bool) -> Arms {
    let status = rollout.status.as_ref();
    let stable = status.map_or(Slot::A, portolan_rollout::Status::stable_slot);
    let new = new.unwrap_or_else(|| stable.other());
    let labels = |slot: Slot| {
        let plan = status.and_then(|status| status.slots.get(slot).as_ref());
        let revision = plan
            .filter(|_| is_now)
            .map(|plan| plan.revision.as_str().to_owned());
        ArmLabels {
            slot: format!("{}-{slot}", rollout.name),
            revision: revision.unwrap_or_default(),
            ..ArmLabels::default()
        }
    };
    Arms {
        namespace: rollout.namespace.clone(),
        name: rollout.name.clone(),
        canary: labels(new),
        stable: labels(new.other()),
        ..Arms::default()
    }
}
