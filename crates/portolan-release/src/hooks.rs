//! Hooks: objects that are made at a point of a release's life, and waited for if they are Jobs or Pods.

use std::time::Duration;

use portolan_cluster::{Cluster, ClusterError, Member, Resource};
use portolan_engine::with_causes;
use portolan_helm::HookEvent;
use portolan_helm::storage::StoredHook;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::error::HelmReleaseError;
use crate::live::parse_objects;
use crate::lock::Held;
use crate::news::ReleaseNews;
use crate::objects::Objects;
use crate::record::now;
use crate::target::{MANAGER, ReleaseTarget, Tell};

/// How often a hook is looked at.
const LOOK: Duration = Duration::from_millis(200);

const ALREADY_THERE: &str = "exists already: with `helm.sh/hook-delete-policy: before-hook-creation` the old one is deleted first";

const BEFORE_CREATION: &str = "before-hook-creation";
const SUCCEEDED: &str = "hook-succeeded";
const FAILED: &str = "hook-failed";

/// A hook of a record, with its place in it.
struct PlannedHook {
    place: usize,
    hook: StoredHook,
    objects: Vec<Value>,
}

/// Runs the hooks of an event by weight, and notes in the record how each ended.
pub(crate) async fn run_hooks(
    target: &ReleaseTarget,
    held: &Held<'_>,
    event: HookEvent,
    tell: Tell<'_>,
) -> Result<(), HelmReleaseError> {
    let hooks = held
        .look(|record| planned(&record.json["hooks"], event))
        .await?;
    let mut objects = Objects::new(target, tell);
    let mut done: Vec<&PlannedHook> = Vec::new();
    for planned in &hooks {
        let name = format!("{} {}", planned.hook.kind, planned.hook.name);
        tell(ReleaseNews::Line(format!("{} hook {name}", event.name())));
        if planned.is_deleted(BEFORE_CREATION) {
            planned.remove(&mut objects).await?;
        }
        planned
            .note(
                held,
                json!({"started_at": now(), "completed_at": "", "phase": "Running"}),
            )
            .await?;
        let started = now();
        let ran = planned.run(target, &mut objects).await;
        let phase = if ran.is_ok() { "Succeeded" } else { "Failed" };
        let run = json!({"started_at": started, "completed_at": now(), "phase": phase});
        planned.note(held, run).await?;
        if let Err(why) = ran {
            if planned.is_deleted(FAILED) {
                planned.remove(&mut objects).await?;
            }
            remove_succeeded(&done, &mut objects).await?;
            return Err(HelmReleaseError::Hook {
                event: event.name(),
                object: name,
                why,
            });
        }
        done.push(planned);
    }
    remove_succeeded(&done, &mut objects).await
}

async fn remove_succeeded(
    done: &[&PlannedHook],
    objects: &mut Objects<'_>,
) -> Result<(), HelmReleaseError> {
    for planned in done
        .iter()
        .rev()
        .filter(|planned| planned.is_deleted(SUCCEEDED))
    {
        planned.remove(objects).await?;
    }
    Ok(())
}

/// The hooks of an event in the order in which they run: by weight, then by name.
fn planned(hooks: &Value, event: HookEvent) -> Result<Vec<PlannedHook>, HelmReleaseError> {
    let mut found = Vec::new();
    for (place, hook) in hooks.as_array().into_iter().flatten().enumerate() {
        // A hook that another Helm wrote may have fields that are not known here.
        let hook: StoredHook = serde_json::from_value(hook.clone()).map_err(|error| {
            HelmReleaseError::Manifest(hook["path"].to_string(), error.to_string())
        })?;
        if hook.events.iter().any(|name| name == event.name()) {
            let objects = parse_objects(&hook.manifest)
                .map_err(|message| HelmReleaseError::Manifest(hook.path.clone(), message))?;
            found.push(PlannedHook {
                place,
                hook,
                objects,
            });
        }
    }
    found.sort_by(|a, b| (a.hook.weight, &a.hook.name).cmp(&(b.hook.weight, &b.hook.name)));
    Ok(found)
}

impl PlannedHook {
    /// Whether it is deleted at this point; without a policy, before it is made again.
    fn is_deleted(&self, policy: &str) -> bool {
        match self.hook.delete_policies.as_slice() {
            [] => policy == BEFORE_CREATION,
            policies => policies.iter().any(|known| known == policy),
        }
    }

    /// Definitions stay: with one, all objects of its kind would go.
    async fn remove(&self, objects: &mut Objects<'_>) -> Result<(), HelmReleaseError> {
        for object in self
            .objects
            .iter()
            .filter(|object| object["kind"] != "CustomResourceDefinition")
        {
            objects.remove(object).await?;
        }
        Ok(())
    }

    async fn note(&self, held: &Held<'_>, run: Value) -> Result<(), HelmReleaseError> {
        held.change(|record| record.json["hooks"][self.place]["last_run"] = run)
            .await
    }

    /// Makes its objects and waits for them; says in words what went wrong.
    async fn run(&self, target: &ReleaseTarget, objects: &mut Objects<'_>) -> Result<(), String> {
        let deadline = Instant::now() + target.timeout;
        for object in &self.objects {
            let mut object = object.clone();
            let resource = objects
                .place(&mut object)
                .await
                .map_err(|error| with_causes(&error))?;
            let member = Member::of(&object);
            let made = target.cluster.create(&resource, &object, MANAGER).await;
            made.map_err(|error| match error {
                ClusterError::Exists { .. } => ALREADY_THERE.to_owned(),
                error => format!("cannot be made: {}", with_causes(&error)),
            })?;
            await_end(&target.cluster, &resource, &member, deadline).await?;
        }
        Ok(())
    }
}

/// Waits for the end of a Job or Pod.
async fn await_end(
    cluster: &Cluster,
    resource: &Resource,
    member: &Member,
    deadline: Instant,
) -> Result<(), String> {
    if !["Job", "Pod"].contains(&member.kind.as_str()) {
        return Ok(());
    }
    loop {
        let found = cluster
            .read(resource, &member.namespace, &member.name)
            .await;
        let found = found.map_err(|error: ClusterError| with_causes(&error))?;
        match found.as_ref().map(end) {
            None => return Err("was deleted before it ended".to_owned()),
            Some(HookEnd::Succeeded) => return Ok(()),
            Some(HookEnd::Failed(why)) => return Err(format!("failed{why}")),
            Some(HookEnd::Open) if Instant::now() >= deadline => {
                return Err("did not end in time".to_owned());
            }
            Some(HookEnd::Open) => sleep(LOOK).await,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum HookEnd {
    Open,
    Succeeded,
    Failed(String),
}

/// How a Job or Pod ended.
fn end(object: &Value) -> HookEnd {
    let status = &object["status"];
    if object["kind"] == "Pod" {
        return match status["phase"].as_str() {
            Some("Succeeded") => HookEnd::Succeeded,
            Some("Failed") => HookEnd::Failed(because(&status["message"])),
            _ => HookEnd::Open,
        };
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["status"] == "True") {
        match condition["type"].as_str() {
            Some("Complete") => return HookEnd::Succeeded,
            Some("Failed") => return HookEnd::Failed(because(&condition["message"])),
            _ => {}
        }
    }
    HookEnd::Open
}

fn because(message: &Value) -> String {
    match message.as_str() {
        Some(message) if !message.is_empty() => format!(": {message}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_run_by_weight_and_then_by_name() {
        let hook = |name: &str, weight: i64, event: &str| json!({"name": name, "kind": "Job", "weight": weight, "events": [event], "manifest": "kind: Job", "output_log_policies": ["x"]});
        let hooks = json!([
            hook("c", 1, "pre-install"),
            hook("b", 0, "pre-install"),
            hook("a", 0, "pre-install"),
            hook("z", -5, "pre-install"),
            hook("no", -9, "post-install"),
        ]);
        let planned = planned(&hooks, HookEvent::PreInstall).unwrap();
        let names: Vec<_> = planned
            .iter()
            .map(|planned| (planned.place, planned.hook.name.as_str()))
            .collect();
        assert_eq!(names, [(3, "z"), (2, "a"), (1, "b"), (0, "c")]);
    }

    #[test]
    fn a_job_ends_by_its_conditions_and_a_pod_by_its_phase() {
        let job = |kind: &str| json!({"kind": "Job", "status": {"conditions": [{"type": kind, "status": "True", "message": "no"}]}});
        assert_eq!(end(&job("Complete")), HookEnd::Succeeded);
        assert_eq!(end(&job("Failed")), HookEnd::Failed(": no".to_owned()));
        assert_eq!(end(&job("Suspended")), HookEnd::Open);
        assert_eq!(
            end(&json!({"kind": "Pod", "status": {"phase": "Running"}})),
            HookEnd::Open
        );
        assert_eq!(
            end(&json!({"kind": "Pod", "status": {"phase": "Failed"}})),
            HookEnd::Failed(String::new())
        );
    }
}
