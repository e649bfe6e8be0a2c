//! One look at a rollout: see, decide, write the decision down, then do it.
//!
//! The status is written first and under its version, so that a decision is made once, whoever makes it. What is to be
//! done follows from the status and what is there, so that a process that dies in between loses nothing.

use std::sync::Arc;
use std::time::Duration;

use portolan_budget::RetryPolicy;
use portolan_cluster::kube::core::DynamicObject;
use portolan_cluster::{ClusterError, EventType};
use portolan_rollout::{Phase, Status, Time, step};
use serde_json::{Value, json};

use crate::context::{Context, LookError, MANAGER};
use crate::effects::Doing;
use crate::kinds;
use crate::memory::lock;
use crate::observe::{Look, now};
use crate::point::Point;
use crate::queue::Key;
use crate::rollout::{FINALIZER, KnownStatus, Rollout};

/// While something is wrong, it is looked again after this long at the latest.
const PROBLEM_PAUSE: u64 = 5;

/// The pauses after looks that failed.
const PAUSES: RetryPolicy = RetryPolicy::new(Duration::from_secs(2), Duration::from_mins(2));

/// The same for a rollout that is being deleted, which nothing keeps for more than a minute.
const PAUSES_IN_DELETION: RetryPolicy =
    RetryPolicy::new(Duration::from_secs(2), Duration::from_secs(5));

/// Looks at a rollout once. Returns when it is to be looked at again, even if nothing happens.
pub(crate) async fn reconcile(ctx: &Arc<Context>, key: &Key) -> Option<Duration> {
    let Some(rollout) = newest(ctx, key) else {
        forget(ctx, key);
        return None;
    };
    let memo = ctx.memory.of(key);
    let looked = if rollout.is_too_deep {
        tell_too_deep(ctx, &rollout).await
    } else {
        look(ctx, &rollout).await
    };
    let mut memo = lock(&memo);
    match looked {
        Ok(again) => {
            memo.failures = 0;
            again
        }
        // Somebody else wrote first; the watch brings it.
        Err(LookError::Cluster(ClusterError::Outdated { .. })) => Some(Duration::from_millis(200)),
        Err(error) => {
            memo.failures = memo.failures.saturating_add(1);
            ctx.metrics.failed(&error);
            tracing::warn!(namespace = %key.namespace, name = %key.name, %error, "cannot look after a rollout");
            let pauses = match rollout.deleted_at {
                Some(_) => PAUSES_IN_DELETION,
                None => PAUSES,
            };
            Some(pauses.wait(memo.failures))
        }
    }
}

/// The rollout as it is, by the watch or by the last write, whichever is newer.
fn newest(ctx: &Context, key: &Key) -> Option<Rollout> {
    let watched = ctx.caches.rollouts.get(&key.namespace, &key.name)?;
    let watched = Rollout::of(&watched)?;
    let memo = ctx.memory.of(key);
    let mut memo = lock(&memo);
    match &memo.written {
        Some(written) if written.uid == watched.uid && written.is_newer_than(&watched) => {
            Some(written.clone())
        }
        _ => {
            memo.written = None;
            Some(watched)
        }
    }
}

fn forget(ctx: &Context, key: &Key) {
    let memo = ctx.memory.of(key);
    let interests = std::mem::take(&mut lock(&memo).interests);
    ctx.interests.replace(key, &interests, &[]);
    ctx.memory.forget(key);
}

async fn look(ctx: &Arc<Context>, rollout: &Rollout) -> Result<Option<Duration>, LookError> {
    let spec = match rollout.parse_spec() {
        Ok(spec) => spec,
        Err(why) => {
            let message = format!("the spec cannot be read: {why}");
            return report_or_let_go(ctx, rollout, "InvalidSpec", &message).await;
        }
    };
    let status = match rollout.parse_status() {
        KnownStatus::None => None,
        KnownStatus::Known(status) => Some(*status),
        KnownStatus::Newer(schema) => {
            let message = format!(
                "the status has schema {schema}, of a newer operator; run that one, or delete the status"
            );
            return report(ctx, rollout, "StatusTooNew", &message).await;
        }
        KnownStatus::Unreadable(why) => {
            let message = format!("the status cannot be read, so nothing is done: {why}");
            return report_or_let_go(ctx, rollout, "InvalidStatus", &message).await;
        }
    };
    let memo = ctx.memory.of(&rollout.key);
    let before = Look {
        ctx,
        shared: ctx,
        rollout,
        spec: &spec,
        status: status.as_ref(),
        memo: &memo,
    };
    let seen = before.observe().await?;
    let (next, effects) = step(&spec, status.as_ref(), &seen, now());
    let written = if status.as_ref() == Some(&next) {
        rollout.clone()
    } else {
        before.write_status(&next).await?
    };
    let after = Look {
        rollout: &written,
        status: Some(&next),
        ..before
    };
    after.announce(&next);
    let doing = Doing {
        look: &after,
        status: &next,
        seen: &seen,
    };
    let again = doing.all(&effects).await?;
    after.measure_next(&next);
    if next.phase == Phase::Stable {
        lock(&memo).contents.clear();
    }
    let has_problem = !seen.problems.is_empty();
    let again = again
        .seconds
        .into_iter()
        .chain(has_problem.then_some(PROBLEM_PAUSE));
    Ok(again.min().map(Duration::from_secs))
}

/// Tells once that a rollout cannot be read. Its status cannot be either, so nothing is written into it.
async fn tell_too_deep(
    ctx: &Arc<Context>,
    rollout: &Rollout,
) -> Result<Option<Duration>, LookError> {
    if rollout.deleted_at.is_some() {
        return report_or_let_go(ctx, rollout, "InvalidSpec", "").await;
    }
    let is_new = lock(&ctx.memory.of(&rollout.key)).failures == 0;
    if is_new {
        let news = portolan_cluster::News {
            event_type: EventType::Warning,
            reason: "InvalidSpec".to_owned(),
            action: "Reconcile".to_owned(),
            note: "it is nested too deep to be read; write less of it inside of one another"
                .to_owned(),
        };
        ctx.events.tell(&rollout.regarding(), &news).await?;
    }
    Err(LookError::TooDeep)
}

impl Look<'_> {
    async fn write_status(&self, status: &Status) -> Result<Rollout, LookError> {
        let value = serde_json::to_value(status).unwrap_or_default();
        let cluster = &self.ctx.cluster;
        let version = self.rollout.version();
        let written = cluster
            .replace_status(&kinds::rollouts(), &version, &value, MANAGER)
            .await?;
        self.ctx.wrote(Point::Status).await;
        Ok(self
            .remember_written(&written)
            .unwrap_or_else(|| self.rollout.clone()))
    }

    /// Remembers the rollout as a write left it, until the watch brings it.
    pub(crate) fn remember_written(&self, written: &Value) -> Option<Rollout> {
        let object: DynamicObject = serde_json::from_value(written.clone()).ok()?;
        let rollout = Rollout::of(&object)?;
        lock(self.memo).written = Some(rollout.clone());
        Some(rollout)
    }

    /// Starts the next measurement, if its time has come.
    fn measure_next(&self, status: &Status) {
        let is_judged =
            status.phase.is_stepping() || matches!(status.phase, Phase::Promoting | Phase::Soaking);
        if is_judged && self.rollout.deleted_at.is_none() {
            self.start_measuring(status, now());
        }
    }
}

/// Tells why a rollout cannot be looked after. One that is being deleted is let go instead: where its requests go cannot
/// be said any more, and nothing would ever take its finalizer away.
async fn report_or_let_go(
    ctx: &Arc<Context>,
    rollout: &Rollout,
    reason: &str,
    message: &str,
) -> Result<Option<Duration>, LookError> {
    if rollout.deleted_at.is_none() {
        return report(ctx, rollout, reason, message).await;
    }
    if !rollout.has_finalizer() {
        return Ok(None);
    }
    let mut finalizers = rollout.finalizers.clone();
    finalizers.retain(|name| name != FINALIZER);
    let cluster = &ctx.cluster;
    cluster
        .replace_finalizers(&kinds::rollouts(), &rollout.version(), &finalizers, MANAGER)
        .await?;
    ctx.wrote(Point::FinalizerRemoved).await;
    Ok(None)
}

/// Tells something about a rollout that cannot be looked after, in conditions and nowhere else in its status.
async fn report(
    ctx: &Arc<Context>,
    rollout: &Rollout,
    reason: &str,
    message: &str,
) -> Result<Option<Duration>, LookError> {
    let status = rollout.status.clone().filter(Value::is_object);
    let mut status = status.unwrap_or_else(|| json!({}));
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let is_told = |condition: &Value| {
        condition["type"] == "Stalled"
            && condition["reason"] == reason
            && condition["message"] == message
    };
    if conditions.iter().any(is_told) {
        return Ok(None);
    }
    let at: Time = now();
    conditions.retain(|condition| condition["type"] != "Ready" && condition["type"] != "Stalled");
    for (kind, word) in [("Ready", "False"), ("Stalled", "True")] {
        conditions.push(json!({
            "type": kind,
            "status": word,
            "observedGeneration": rollout.generation,
            "lastTransitionTime": at,
            "reason": reason,
            "message": message,
        }));
    }
    status["conditions"] = conditions.into();
    let cluster = &ctx.cluster;
    cluster
        .replace_status(&kinds::rollouts(), &rollout.version(), &status, MANAGER)
        .await?;
    ctx.wrote(Point::Status).await;
    let news = portolan_cluster::News {
        event_type: EventType::Warning,
        reason: reason.to_owned(),
        action: "Reconcile".to_owned(),
        note: message.to_owned(),
    };
    ctx.events.tell(&rollout.regarding(), &news).await?;
    Ok(None)
}
