//! Whether an object has reached the state that its spec asks for, by the rules of kstatus.
//!
//! ```text
//! deletionTimestamp, observedGeneration, Reconciling, Stalled ──▶ rule of its kind ──▶ Ready condition ──▶ current
//! ```
//!
//! One difference: a pod that cannot be scheduled stays in progress, because an autoscaler may add a node. kstatus
//! calls it failed after 15 s, but this function reads no clock.

use serde_json::Value;

/// How far an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It is what it asks for.
    Current,
    /// Something still works on it.
    InProgress,
    /// It will not become what it asks for without a change.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// How far an object is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How far it is.
    pub stage: Stage,
    /// What it waits for or what went wrong, in a few words; empty when it is current.
    pub message: String,
}

/// Says how far an object is, from the object alone.
pub fn kstatus(object: &Value) -> Status {
    let object = Fields(object);
    generic(&object)
        .or_else(|| by_kind(&object))
        .or_else(|| ready(&object))
        .unwrap_or_else(current)
}

fn current() -> Status {
    Status {
        stage: Stage::Current,
        message: String::new(),
    }
}

fn in_progress(message: impl Into<String>) -> Status {
    Status {
        stage: Stage::InProgress,
        message: message.into(),
    }
}

fn failed(message: impl Into<String>) -> Status {
    Status {
        stage: Stage::Failed,
        message: message.into(),
    }
}

/// What holds for objects of every kind.
fn generic(object: &Fields<'_>) -> Option<Status> {
    if object.at("/metadata/deletionTimestamp").is_some() {
        return Some(Status {
            stage: Stage::Terminating,
            message: "it is being deleted".to_owned(),
        });
    }
    let (wanted, seen) = ("/metadata/generation", "/status/observedGeneration");
    if object.at(seen).is_some() && object.number(seen, 0) != object.number(wanted, 0) {
        return Some(in_progress(
            "its controller has not seen the newest generation",
        ));
    }
    for condition in object.conditions().filter(Condition::is_true) {
        match condition.kind {
            "Reconciling" => return Some(in_progress(condition.message)),
            "Stalled" => return Some(failed(condition.message)),
            _ => {}
        }
    }
    None
}

/// The rule of the object's kind; `None` for kinds without one.
fn by_kind(object: &Fields<'_>) -> Option<Status> {
    let group = object
        .text("/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    match (group, object.text("/kind")) {
        ("apps", "Deployment") => Some(deployment(object)),
        ("apps", "StatefulSet") => Some(stateful_set(object)),
        ("apps", "DaemonSet") => Some(daemon_set(object)),
        ("apps", "ReplicaSet") => Some(replica_set(object)),
        ("batch", "Job") => Some(job(object)),
        ("", "Pod") => Some(pod(object)),
        ("", "PersistentVolumeClaim") => Some(match object.text("/status/phase") {
            "Bound" => current(),
            _ => in_progress("the claim is not bound"),
        }),
        ("", "Service") => Some(service(object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(definition(object)),
        // These have nothing to wait for, whatever their conditions say.
        ("batch", "CronJob") | ("policy", "PodDisruptionBudget") | ("", "Secret" | "ConfigMap") => {
            Some(current())
        }
        _ => None,
    }
}

/// What the usual condition says; `None` without it.
fn ready(object: &Fields<'_>) -> Option<Status> {
    let condition = object.condition("Ready")?;
    Some(match condition.status {
        "True" => current(),
        _ => in_progress(condition.message),
    })
}

/// In progress when there are fewer than wanted of what `words` name, the first that is short.
fn short(wanted: i64, counts: &[(i64, &str)]) -> Option<Status> {
    let (count, word) = counts.iter().find(|(count, _)| *count < wanted)?;
    Some(in_progress(format!("{word}: {count} of {wanted}")))
}

/// In progress while there are more pods than wanted.
fn extra(count: i64, wanted: i64) -> Option<Status> {
    let more = count - wanted;
    (more > 0).then(|| in_progress(format!("pods to be terminated: {more}")))
}

fn deployment(object: &Fields<'_>) -> Status {
    // Without a deadline there is no condition to wait for.
    let no_deadline = i64::from(i32::MAX);
    let deadline = object.number("/spec/progressDeadlineSeconds", no_deadline);
    let mut complete = deadline == no_deadline;
    if let Some(progressing) = object.condition("Progressing") {
        if progressing.reason == "ProgressDeadlineExceeded" {
            return failed("the progress deadline was exceeded");
        }
        complete |= progressing.is_true() && progressing.reason == "NewReplicaSetAvailable";
    }
    let wanted = object.number("/spec/replicas", 1);
    let replicas = object.number("/status/replicas", 0);
    let updated = object.number("/status/updatedReplicas", 0);
    let available = object.number("/status/availableReplicas", 0);
    let ready = object.number("/status/readyReplicas", 0);
    let is_available = object.condition("Available");
    short(wanted, &[(replicas, "replicas"), (updated, "updated")])
        .or_else(|| extra(replicas, wanted))
        .or_else(|| short(updated, &[(available, "available")]))
        .or_else(|| short(wanted, &[(ready, "ready")]))
        .or_else(|| (!complete).then(|| in_progress("the new replica set is not available")))
        .or_else(|| {
            let is_available = is_available.is_some_and(|condition| condition.is_true());
            (!is_available).then(|| in_progress("the deployment is not available"))
        })
        .unwrap_or_else(current)
}

fn stateful_set(object: &Fields<'_>) -> Status {
    if object.text("/spec/updateStrategy/type") == "OnDelete" {
        return current();
    }
    let wanted = object.number("/spec/replicas", 1);
    let replicas = object.number("/status/replicas", 0);
    let ready = object.number("/status/readyReplicas", 0);
    let updated = object.number("/status/updatedReplicas", 0);
    let pods = short(wanted, &[(replicas, "replicas"), (ready, "ready")]);
    if let Some(status) = pods.or_else(|| extra(replicas, wanted)) {
        return status;
    }
    let partition = object.number("/spec/updateStrategy/rollingUpdate/partition", -1);
    if partition >= 0 {
        let above = (wanted - partition).max(0);
        return short(above, &[(updated, "updated")]).unwrap_or_else(current);
    }
    let current_replicas = object.number("/status/currentReplicas", 0);
    let revisions = ["/status/currentRevision", "/status/updateRevision"];
    short(wanted, &[(current_replicas, "current")])
        .or_else(|| {
            let [before, after] = revisions.map(|path| object.text(path));
            (before != after).then(|| in_progress("not all pods have the newest revision"))
        })
        .unwrap_or_else(current)
}

fn daemon_set(object: &Fields<'_>) -> Status {
    let wanted = object.number("/status/desiredNumberScheduled", -1);
    if object.at("/status/observedGeneration").is_none() || wanted < 0 {
        return in_progress("its controller has not seen it yet");
    }
    let count = |path: &str| object.number(path, 0);
    let counts = [
        (count("/status/currentNumberScheduled"), "scheduled"),
        (count("/status/updatedNumberScheduled"), "updated"),
        (count("/status/numberAvailable"), "available"),
        (count("/status/numberReady"), "ready"),
    ];
    short(wanted, &counts).unwrap_or_else(current)
}

fn replica_set(object: &Fields<'_>) -> Status {
    let failure = object.condition("ReplicaFailure");
    if let Some(failure) = failure.filter(Condition::is_true) {
        return in_progress(failure.message);
    }
    let wanted = object.number("/spec/replicas", 1);
    let count = |path: &str| object.number(path, 0);
    let counts = [
        (count("/status/fullyLabeledReplicas"), "labelled"),
        (count("/status/availableReplicas"), "available"),
        (count("/status/readyReplicas"), "ready"),
    ];
    short(wanted, &counts)
        .or_else(|| extra(count("/status/replicas"), wanted))
        .unwrap_or_else(current)
}

/// A Job that has begun is what it asks for; whether it ends well is for who waits for its end.
fn job(object: &Fields<'_>) -> Status {
    for condition in object.conditions().filter(Condition::is_true) {
        match condition.kind {
            "Complete" | "Suspended" => return current(),
            "Failed" => return failed(condition.message),
            _ => {}
        }
    }
    match object.text("/status/startTime") {
        "" => in_progress("the job has not started"),
        _ => current(),
    }
}

fn pod(object: &Fields<'_>) -> Status {
    let is_ready = object
        .condition("Ready")
        .is_some_and(|ready| ready.is_true());
    match object.text("/status/phase") {
        "Succeeded" => current(),
        "Running" if is_ready => current(),
        "Running" => match crashing(object) {
            Some(container) => failed(format!("the container `{container}` crashes")),
            None => in_progress("the pod is not ready"),
        },
        "Failed" => failed("the pod has failed"),
        "Pending" => in_progress("the pod is pending"),
        _ => in_progress("the phase of the pod is not known"),
    }
}

/// A container that is started again and again.
fn crashing<'a>(object: &Fields<'a>) -> Option<&'a str> {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let containers = lists.into_iter().flat_map(|path| object.list(path));
    let crashes =
        |container: &&Value| Fields(container).text("/state/waiting/reason") == "CrashLoopBackOff";
    containers
        .filter(crashes)
        .map(|container| Fields(container).text("/name"))
        .next()
}

fn service(object: &Fields<'_>) -> Status {
    let is_balanced = object.text("/spec/type") == "LoadBalancer";
    if is_balanced && object.text("/spec/clusterIP").is_empty() {
        return in_progress("the service has no cluster IP");
    }
    current()
}

fn definition(object: &Fields<'_>) -> Status {
    for condition in object.conditions() {
        match (condition.kind, condition.status) {
            ("NamesAccepted", "False") => return failed(condition.message),
            ("Established", "False") if condition.reason != "Installing" => {
                return failed(condition.message);
            }
            ("Established", "True") => return current(),
            _ => {}
        }
    }
    in_progress("the definition is not established")
}

// === Reading objects ===

/// An object whose fields may be absent or of a wrong type.
struct Fields<'a>(&'a Value);

/// A condition of an object.
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Condition<'_> {
    fn is_true(&self) -> bool {
        self.status == "True"
    }
}

impl<'a> Fields<'a> {
    /// A value by its JSON pointer.
    fn at(&self, path: &str) -> Option<&'a Value> {
        self.0.pointer(path).filter(|value| !value.is_null())
    }

    fn text(&self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, path: &str, absent: i64) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or(absent)
    }

    fn list(&self, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.at(path)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }

    fn conditions(&self) -> impl Iterator<Item = Condition<'a>> + use<'a> {
        self.list("/status/conditions").map(|condition| {
            let condition = Fields(condition);
            Condition {
                kind: condition.text("/type"),
                status: condition.text("/status"),
                reason: condition.text("/reason"),
                message: condition.text("/message"),
            }
        })
    }

    fn condition(&self, kind: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.kind == kind)
    }
}

#[cfg(test)]
mod tests;
