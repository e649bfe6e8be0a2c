//! Applies one object, in spite of webhooks that start late and of fields that cannot be changed.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::prune::is_dangerous;
use super::{Member, MemberError, ObjectSet, SetOptions, TriedObject};
use crate::discovery::Resource;
use crate::error::ClusterError;
use crate::write::ApplyOptions;

/// The pause before a webhook is tried again.
const WEBHOOK_PAUSE: Duration = Duration::from_secs(1);

/// How often an object that is being deleted is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl ObjectSet<'_> {
    /// Applies an object. If fields of it differ that cannot be changed, a finished Job is deleted and made anew, and
    /// so is any other object if the options say so and nothing is lost with it.
    pub(super) async fn apply_or_replace(
        &self,
        resource: &Resource,
        object: &Value,
        options: SetOptions,
        deadline: Instant,
    ) -> Result<Value, MemberError> {
        let applied = self.apply_when_asked(resource, object, options, deadline);
        let fields = match applied.await {
            Err(ClusterError::Immutable { fields, .. }) => fields,
            applied => return Ok(applied?),
        };
        let member = Member::of(object);
        let place = (member.namespace.as_str(), member.name.as_str());
        if let Some(found) = self.cluster.read(resource, place.0, place.1).await? {
            Self::replacement(resource, &found, fields, options)?;
            self.remove(resource, place, &Member::of(&found).uid, deadline)
                .await?;
        }
        let applied = self.apply_when_asked(resource, object, options, deadline);
        Ok(applied.await?)
    }

    /// Whether an object with fields that cannot be changed may be made anew.
    pub(super) fn replacement(
        resource: &Resource,
        found: &Value,
        fields: Vec<String>,
        options: SetOptions,
    ) -> Result<TriedObject, MemberError> {
        let is_job = resource.kind == "Job" && resource.api_version.starts_with("batch/");
        let is_finished = is_job && is_finished(found);
        if !is_finished && (!options.replace || is_dangerous(&resource.kind)) {
            return Err(MemberError::Immutable {
                fields,
                is_running_job: is_job,
            });
        }
        Ok(TriedObject::Replaced(fields))
    }

    /// Applies an object, again and again while a webhook that must be asked about it does not answer.
    async fn apply_when_asked(
        &self,
        resource: &Resource,
        object: &Value,
        options: SetOptions,
        deadline: Instant,
    ) -> Result<Value, ClusterError> {
        let apply = ApplyOptions {
            manager: &self.manager,
            force: options.force,
            dry_run: false,
        };
        loop {
            match self.cluster.apply(resource, object, apply).await {
                Err(error)
                    if error.is_webhook_failure() && Instant::now() + WEBHOOK_PAUSE < deadline =>
                {
                    sleep(WEBHOOK_PAUSE).await;
                }
                applied => return applied,
            }
        }
    }

    /// Deletes an object and waits until it is gone.
    async fn remove(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        uid: &str,
        deadline: Instant,
    ) -> Result<(), MemberError> {
        self.cluster
            .delete(resource, (namespace, name), uid)
            .await?;
        loop {
            let found = self.cluster.read(resource, namespace, name).await?;
            if found.is_none_or(|found| Member::of(&found).uid != uid) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(MemberError::NotGone);
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

/// Whether a Job has ended, well or not.
fn is_finished(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| {
        let kind = condition["type"].as_str();
        matches!(kind, Some("Complete" | "Failed")) && condition["status"] == "True"
    })
}
