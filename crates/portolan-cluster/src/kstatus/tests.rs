//! How far objects of each kind are, state by state.

use serde_json::json;

use super::*;
use Stage::{Current, Failed, InProgress, Terminating};

fn check(name: &str, object: &Value, expected: Stage) {
    let status = kstatus(object);
    assert_eq!(status.stage, expected, "{name}: {}", status.message);
    assert_eq!(status.message.is_empty(), expected == Current, "{name}");
}

/// An object of a kind with this spec and status.
fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status})
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "as the controller says"})
}

fn conditions(conditions: &[Value]) -> Value {
    json!({"conditions": conditions})
}

#[test]
fn every_kind_obeys_the_generic_rules_first() {
    let deleted = json!({"kind": "A", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    check("deleted", &deleted, Terminating);
    let any = |status: &Value| object("example.org/v1", "A", &json!({}), status);
    check("no status", &json!({"kind": "A"}), Current);
    check(
        "old generation",
        &any(&json!({"observedGeneration": 1})),
        InProgress,
    );
    check(
        "generation",
        &any(&json!({"observedGeneration": 2})),
        Current,
    );
    for (kind, status, expected) in [
        ("Reconciling", "True", InProgress),
        ("Reconciling", "False", Current),
        ("Stalled", "True", Failed),
        ("Stalled", "False", Current),
        ("Ready", "True", Current),
        ("Ready", "False", InProgress),
        ("Ready", "Unknown", InProgress),
        ("Other", "False", Current),
    ] {
        let status = conditions(&[condition(kind, status, "")]);
        check(kind, &any(&status), expected);
    }
    // Fields of a wrong type are as good as absent.
    check("wrong types", &any(&json!({"conditions": "x"})), Current);
    check("not an object", &json!(7), Current);
}

#[test]
fn a_deployment_is_current_when_its_new_pods_are_available() {
    let done = [
        condition("Progressing", "True", "NewReplicaSetAvailable"),
        condition("Available", "True", ""),
    ];
    let status = |changed: Value| {
        let mut status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3,
            "availableReplicas": 3, "readyReplicas": 3, "conditions": done});
        for (key, value) in changed.as_object().unwrap() {
            status[key] = value.clone();
        }
        status
    };
    let spec = json!({"replicas": 3, "progressDeadlineSeconds": 600});
    let rows = [
        ("done", json!({}), Current),
        ("few", json!({"replicas": 2}), InProgress),
        ("old", json!({"updatedReplicas": 2}), InProgress),
        ("extra", json!({"replicas": 4}), InProgress),
        ("unavailable", json!({"availableReplicas": 2}), InProgress),
        ("not ready", json!({"readyReplicas": 2}), InProgress),
        (
            "too late",
            conditions(&[condition(
                "Progressing",
                "False",
                "ProgressDeadlineExceeded",
            )]),
            Failed,
        ),
        (
            "rolling",
            conditions(&[
                condition("Progressing", "True", "ReplicaSetUpdated"),
                done[1].clone(),
            ]),
            InProgress,
        ),
        ("not available", conditions(&done[..1]), InProgress),
    ];
    for (name, changed, expected) in rows {
        check(
            name,
            &object("apps/v1", "Deployment", &spec, &status(changed)),
            expected,
        );
    }
    let no_deadline = object(
        "apps/v1",
        "Deployment",
        &json!({"replicas": 3}),
        &status(conditions(&done[1..])),
    );
    check("without a deadline", &no_deadline, Current);
    let none = object("apps/v1", "Deployment", &json!({}), &json!({}));
    check("not seen yet", &none, InProgress);
}

#[test]
fn a_stateful_set_is_current_when_its_revision_has_rolled_out() {
    let status = |ready: i64, current: i64, updated: i64, revision: &str| {
        json!({"replicas": 3, "readyReplicas": ready, "currentReplicas": current, "updatedReplicas": updated,
            "currentRevision": "a", "updateRevision": revision})
    };
    let plain = json!({"replicas": 3});
    let partition = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
    let on_delete = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
    for (name, spec, status, expected) in [
        ("done", &plain, status(3, 3, 3, "a"), Current),
        ("not ready", &plain, status(2, 3, 3, "a"), InProgress),
        ("other revision", &plain, status(3, 3, 3, "b"), InProgress),
        ("fewer current", &plain, status(3, 2, 1, "b"), InProgress),
        ("partition done", &partition, status(3, 1, 2, "b"), Current),
        ("partition", &partition, status(3, 2, 1, "b"), InProgress),
        ("on delete", &on_delete, status(0, 0, 0, "b"), Current),
    ] {
        check(
            name,
            &object("apps/v1", "StatefulSet", spec, &status),
            expected,
        );
    }
}

#[test]
fn other_kinds_have_their_own_rules() {
    let rows = [
        ("apps/v1", "DaemonSet", json!({}), json!({}), InProgress),
        (
            "apps/v1",
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 0}),
            Current,
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 1, "numberReady": 2}),
            InProgress,
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 1}),
            json!({"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}),
            Current,
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 1}),
            json!({"replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}),
            InProgress,
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 0}),
            conditions(&[condition("ReplicaFailure", "True", "")]),
            InProgress,
        ),
        ("batch/v1", "Job", json!({}), json!({}), InProgress),
        (
            "batch/v1",
            "Job",
            json!({}),
            json!({"startTime": "2026-01-01T00:00:00Z"}),
            Current,
        ),
        (
            "batch/v1",
            "Job",
            json!({}),
            conditions(&[condition("Complete", "True", "")]),
            Current,
        ),
        (
            "batch/v1",
            "Job",
            json!({}),
            conditions(&[condition("Failed", "True", "")]),
            Failed,
        ),
        (
            "batch/v1",
            "Job",
            json!({}),
            conditions(&[condition("Suspended", "True", "")]),
            Current,
        ),
        ("batch/v1", "CronJob", json!({}), json!({}), Current),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Pending"}),
            InProgress,
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Running"}),
            InProgress,
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Running", "conditions": [condition("Ready", "True", "")]}),
            Current,
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Running", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
            Failed,
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Succeeded"}),
            Current,
        ),
        ("v1", "Pod", json!({}), json!({"phase": "Failed"}), Failed),
        ("v1", "Pod", json!({}), json!({}), InProgress),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Bound"}),
            Current,
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Pending"}),
            InProgress,
        ),
        (
            "v1",
            "Service",
            json!({"type": "LoadBalancer"}),
            json!({}),
            InProgress,
        ),
        (
            "v1",
            "Service",
            json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}),
            json!({}),
            Current,
        ),
        ("v1", "Service", json!({}), json!({}), Current),
        ("v1", "Secret", json!({}), json!({}), Current),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({}),
            Current,
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            json!({}),
            InProgress,
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            conditions(&[condition("Established", "True", "")]),
            Current,
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            conditions(&[condition("Established", "False", "Installing")]),
            InProgress,
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            conditions(&[condition("NamesAccepted", "False", "")]),
            Failed,
        ),
        // A kind of the same name in another group has no rule.
        (
            "example.org/v1",
            "Deployment",
            json!({}),
            json!({}),
            Current,
        ),
    ];
    for (number, (api_version, kind, spec, status, expected)) in rows.into_iter().enumerate() {
        let name = format!("row {number}, {kind}");
        check(&name, &object(api_version, kind, &spec, &status), expected);
    }
}
