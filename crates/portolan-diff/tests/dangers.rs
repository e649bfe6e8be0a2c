//! Each danger with the smallest change that shows it, and changes that are none.

mod sides;

use portolan_diff::{Options, RULES, diff};

use sides::{compared, dangers, kustomization};

fn object(api_version: &str, kind: &str, rest: &str) -> String {
    format!(
        "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: x, namespace: n}}, {rest}}}"
    )
}

/// A change from one body to another gives these rules.
fn check(api_version: &str, kind: &str, old: &str, new: &str, expected: &[&str]) {
    let found = dangers(
        &object(api_version, kind, old),
        &object(api_version, kind, new),
    );
    let ids: Vec<&str> = found
        .iter()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(ids, expected, "{kind}: {old} → {new}: {found:#?}");
}

#[test]
fn fields_that_cannot_be_changed_are_errors() {
    let refused = ["immutable-field"];
    check(
        "apps/v1",
        "Deployment",
        "spec: {selector: {matchLabels: {a: b}}}",
        "spec: {selector: {matchLabels: {a: c}}}",
        &refused,
    );
    check(
        "apps/v1",
        "StatefulSet",
        "spec: {serviceName: a}",
        "spec: {serviceName: b}",
        &refused,
    );
    check(
        "apps/v1",
        "StatefulSet",
        "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: a}}]}",
        "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: b}}]}",
        &refused,
    );
    check(
        "batch/v1",
        "Job",
        "spec: {template: {spec: {restartPolicy: Never}}}",
        "spec: {template: {spec: {restartPolicy: OnFailure}}}",
        &refused,
    );
    check(
        "v1",
        "PersistentVolumeClaim",
        "spec: {storageClassName: a}",
        "spec: {storageClassName: b}",
        &refused,
    );
    check(
        "v1",
        "Service",
        "spec: {clusterIP: 10.0.0.1}",
        "spec: {clusterIP: 10.0.0.2}",
        &refused,
    );
    check(
        "storage.k8s.io/v1",
        "StorageClass",
        "provisioner: a",
        "provisioner: b",
        &refused,
    );
    check(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "roleRef: {kind: Role, name: a}",
        "roleRef: {kind: Role, name: b}",
        &refused,
    );
    check(
        "v1",
        "ConfigMap",
        "immutable: true, data: {a: b}",
        "immutable: true, data: {a: c}",
        &refused,
    );
    check(
        "v1",
        "Secret",
        "type: Opaque",
        "type: kubernetes.io/tls",
        &refused,
    );
}

#[test]
fn fields_that_can_be_changed_are_not() {
    check(
        "apps/v1",
        "Deployment",
        "spec: {replicas: 1}",
        "spec: {replicas: 2}",
        &[],
    );
    check(
        "apps/v1",
        "StatefulSet",
        "spec: {replicas: 1, template: {a: 1}}",
        "spec: {replicas: 2, template: {a: 2}}",
        &[],
    );
    check(
        "v1",
        "PersistentVolumeClaim",
        "spec: {resources: {requests: {storage: 1Gi}}}",
        "spec: {resources: {requests: {storage: 2Gi}}}",
        &[],
    );
    check(
        "batch/v1",
        "CronJob",
        "spec: {schedule: a}",
        "spec: {schedule: b}",
        &[],
    );
    check(
        "v1",
        "Service",
        "spec: {type: ExternalName}",
        "spec: {type: ClusterIP, clusterIP: 10.0.0.1}",
        &[],
    );
}

#[test]
fn a_volume_cannot_shrink() {
    check(
        "v1",
        "PersistentVolumeClaim",
        "spec: {resources: {requests: {storage: 2Gi}}}",
        "spec: {resources: {requests: {storage: 1500Mi}}}",
        &["storage-shrunk"],
    );
}

#[test]
fn deleted_volumes_namespaces_and_definitions_are_errors() {
    let other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}";
    let gone =
        |api_version: &str, kind: &str| dangers(&object(api_version, kind, "spec: {}"), other);
    assert!(gone("v1", "PersistentVolumeClaim")[0].starts_with("error volume-deleted"));
    assert!(gone("v1", "Namespace")[0].starts_with("error namespace-deleted"));
    assert!(
        gone("apiextensions.k8s.io/v1", "CustomResourceDefinition")[0]
            .starts_with("error crd-deleted")
    );
    assert!(gone("apps/v1", "StatefulSet")[0].starts_with("warning stateful-deleted"));
    assert_eq!(gone("v1", "ConfigMap"), [""; 0]);
    let kept = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}}";
    assert!(dangers(kept, other)[0].starts_with("note orphaned"));
}

#[test]
fn a_kustomization_that_does_not_prune_leaves_its_objects() {
    let root = |prune: bool| {
        format!(
            "{{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {{name: apps, namespace: flux-system}}, spec: {{prune: {prune}}}}}"
        )
    };
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}}";
    let other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}";
    for (prune, expected) in [(true, "volume-deleted"), (false, "orphaned")] {
        let side = |text: &str| {
            vec![
                kustomization("root", &root(prune)),
                kustomization("apps", text),
            ]
        };
        let report = diff(&side(claim), &side(other), &Options::default());
        assert_eq!(report.dangers[0].rule.id, expected);
    }
}

#[test]
fn what_a_kustomization_takes_with_it_is_counted() {
    let report = sides::pull_request_report();
    let found: Vec<String> = report
        .dangers
        .iter()
        .map(|danger| format!("{} {}", danger.rule.id, danger.message()))
        .collect();
    assert!(
        found.contains(&"prune prune deletes 2 objects".to_owned()),
        "{found:#?}"
    );
    assert!(
        found.iter().any(|line| line.starts_with("volume-deleted")),
        "{found:#?}"
    );
}

#[test]
fn selectors_and_labels_that_lose_their_pods_are_told() {
    let world = |selector: &str, label: &str| {
        format!("
{{apiVersion: v1, kind: Service, metadata: {{name: web}}, spec: {{selector: {{app: {selector}}}}}}}
---
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{template: {{metadata: {{labels: {{app: {label}}}}}}}}}}}
")
    };
    let ids = |old: &str, new: &str| -> Vec<&'static str> {
        compared(old, new)
            .dangers
            .iter()
            .map(|danger| danger.rule.id)
            .collect()
    };
    assert_eq!(
        ids(&world("a", "a"), &world("b", "a")),
        ["no-pods", "selector-changed"]
    );
    assert_eq!(ids(&world("a", "a"), &world("a", "b")), ["no-pods"]);
    assert_eq!(
        ids(&world("a", "a"), &world("b", "b")),
        ["selector-changed"]
    );
}

#[test]
fn no_replicas_are_told() {
    check(
        "apps/v1",
        "Deployment",
        "spec: {replicas: 3}",
        "spec: {replicas: 0}",
        &["scaled-to-zero"],
    );
    check(
        "apps/v1",
        "Deployment",
        "spec: {replicas: 0}",
        "spec: {replicas: 3}",
        &[],
    );
}

#[test]
fn roles_that_allow_more_are_told() {
    let api = "rbac.authorization.k8s.io/v1";
    let role = |groups: &str, resources: &str, verbs: &str| {
        format!("rules: [{{apiGroups: [{groups}], resources: [{resources}], verbs: [{verbs}]}}]")
    };
    check(
        api,
        "Role",
        &role("''", "pods", "get"),
        &role("''", "pods", "get, delete"),
        &["rbac-widened"],
    );
    check(
        api,
        "Role",
        &role("''", "pods", "get, delete"),
        &role("''", "pods", "get"),
        &[],
    );
    check(
        api,
        "ClusterRole",
        &role("''", "pods", "get"),
        &role("'*'", "'*'", "'*'"),
        &["rbac-everything"],
    );
    check(
        api,
        "Role",
        &role("''", "pods", "get"),
        &role("''", "'pods', 'secrets'", "get"),
        &["rbac-everything"],
    );
    check(
        api,
        "ClusterRole",
        &role("'*'", "'*'", "'*'"),
        &role("''", "secrets", "get"),
        &[],
    );
    let binding = |subjects: &str| {
        format!("roleRef: {{kind: ClusterRole, name: view}}, subjects: [{subjects}]")
    };
    check(
        api,
        "ClusterRoleBinding",
        &binding("{kind: Group, name: a}"),
        &binding("{kind: Group, name: a}, {kind: Group, name: b}"),
        &["rbac-widened"],
    );
}

#[test]
fn pods_that_get_closer_to_their_node_are_told() {
    let pod = |spec: &str| format!("spec: {{template: {{spec: {{{spec}}}}}}}");
    check(
        "apps/v1",
        "DaemonSet",
        &pod(""),
        &pod("hostNetwork: true"),
        &["privileged"],
    );
    check(
        "apps/v1",
        "DaemonSet",
        &pod(""),
        &pod("volumes: [{name: v, hostPath: {path: /}}]"),
        &["privileged"],
    );
    check(
        "apps/v1",
        "DaemonSet",
        &pod("hostNetwork: true"),
        &pod("hostNetwork: true, a: b"),
        &[],
    );
}

#[test]
fn a_definition_that_drops_a_version_is_told() {
    let versions = |names: &str| {
        format!("spec: {{group: g, names: {{kind: K, plural: ks}}, versions: [{names}]}}")
    };
    let api = "apiextensions.k8s.io/v1";
    let (v1, beta) = ("{name: v1, served: true}", "{name: v1beta1, served: true}");
    check(
        api,
        "CustomResourceDefinition",
        &versions(&format!("{v1}, {beta}")),
        &versions(v1),
        &["crd-version-removed"],
    );
}

#[test]
fn configuration_that_nobody_reads_again_is_noted() {
    let world = |value: &str, name: &str| {
        format!("
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{A: {value}}}}}
---
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{template: {{spec: {{containers: [{{name: web, envFrom: [{{configMapRef: {{name: {name}}}}}]}}]}}}}}}}}
")
    };
    assert!(dangers(&world("old", "c"), &world("new", "c"))[0].starts_with("note stale-config"));
    assert_eq!(
        dangers(&world("old", "c-5bm2fd8m6g"), &world("new", "c-kt6m2h8bcd")),
        [""; 0]
    );
}

#[test]
fn an_object_that_changes_its_owner_is_told() {
    let claim =
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, labels: {l: OWNER}}}";
    let side = |owner: &'static str| vec![kustomization(owner, &claim.replace("OWNER", owner))];
    let report = diff(&side("a"), &side("b"), &Options::default());
    assert_eq!(report.changes.len(), 1);
    assert_eq!(
        (
            report.dangers[0].rule.id,
            report.dangers[0].severity.as_str()
        ),
        ("owner-moved", "warning")
    );
}

#[test]
fn an_api_version_that_is_not_served_is_told_when_its_object_changes_or_comes() {
    let options = || Options {
        unserved: Some(Box::new(|object| {
            let gone = object.gvk().api_version() == "policy/v1beta1";
            gone.then(|| "use policy/v1".to_owned())
        })),
        ..Options::default()
    };
    let side = |version: &str, rest: &str| {
        [kustomization(
            "apps",
            &object(version, "PodDisruptionBudget", rest),
        )]
    };
    let ids = |old: &[_], new: &[_]| {
        let report = diff(old, new, &options());
        let ids: Vec<&str> = report.dangers.iter().map(|danger| danger.rule.id).collect();
        ids
    };
    let (old, new) = (
        side("policy/v1beta1", "a: 1"),
        side("policy/v1beta1", "a: 2"),
    );
    assert_eq!(ids(&old, &new), ["removed-api"]);
    assert_eq!(ids(&[], &new), ["removed-api"]);
    assert_eq!(ids(&old, &old), [""; 0]);
    assert_eq!(ids(&old, &side("policy/v1", "a: 1")), [""; 0]);
}

#[test]
fn rules_have_distinct_names() {
    let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

/// A new pod template is tried out beside the old one; another number of pods is applied at once.
#[test]
fn canaries_that_a_change_would_start_are_named() {
    let rollout = |replicas: u32, image: &str| {
        let spec = format!(
            "spec: {{replicas: {replicas}, template: {{spec: {{containers: [{{name: a, image: '{image}'}}]}}}}}}"
        );
        object("portolan.dev/v1alpha1", "IstioCanaryDeployment", &spec)
    };
    let started = compared(&rollout(3, "web:1"), &rollout(3, "web:2"));
    assert_eq!(started.restarts.len(), 1);
    assert!(started.restarts[0].is_canary());
    let scaled = compared(&rollout(3, "web:1"), &rollout(5, "web:1"));
    assert_eq!(scaled.restarts.len(), 0);
}
