//! What is allowed and still not wise.

use portolan_canary::lint;
use portolan_object::{Object, Origin};
use portolan_yaml::{Dialect, parse};

fn advice(yaml: &str) -> Vec<(String, String)> {
    let documents = parse(yaml.to_owned(), Dialect::Kustomize).expect("YAML");
    let objects: Vec<Object> = documents
        .into_iter()
        .map(|node| Object::new(node, Origin::default()).expect("an object"))
        .collect();
    let all = objects.iter().flat_map(|object| lint(object, &objects));
    all.map(|advice| (advice.rule.id.to_owned(), advice.field))
        .collect()
}

const WEB: &str = "
apiVersion: portolan.dev/v1alpha1
kind: IstioCanaryDeployment
metadata: {name: web, namespace: shop}
";

#[test]
fn a_plain_rollout_is_fine() {
    assert_eq!(
        advice(&format!(
            "{WEB}spec: {{replicas: 4, template: {{}}, service: {{port: 80}}}}"
        )),
        []
    );
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {}";
    assert_eq!(advice(other), []);
}

#[test]
fn each_unwise_field_is_named() {
    let found = advice(&format!(
        "{WEB}
spec:
  replicas: 1
  template: {{}}
  service: {{port: 80}}
  strategy: {{steps: [{{weight: 5, for: 1s}}, {{weight: 50, pause: manual}}]}}
  analysis:
    interval: 5s
    onInconclusive: promoteUnlessWorse
    metrics:
    - {{name: own, bad: 'a{{s=\"$(slot)\"}}', total: b}}
    - {{name: slow, builtin: istio-latency, over: 300ms}}
    - {{name: exact, builtin: istio-latency, over: 2500ms}}
"
    ));
    let expected = [
        ("rollout/short-interval", "spec.analysis.interval"),
        ("rollout/short-step", "spec.strategy.steps[0].for"),
        ("rollout/same-counts", "spec.analysis.metrics[0].total"),
        ("rollout/bucket-edge", "spec.analysis.metrics[1].over"),
        ("rollout/unproven", "spec.analysis.onInconclusive"),
        ("rollout/one-pod", "spec.replicas"),
    ];
    let expected = expected.map(|(rule, field)| (rule.to_owned(), field.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn two_scalers_of_the_same_pods_are_found() {
    let scaler = |kind: &str, name: &str| {
        format!(
            "---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: x, namespace: shop}}
spec: {{maxReplicas: 5, scaleTargetRef: {{kind: {kind}, name: {name}}}}}
"
        )
    };
    let with = |spec: &str, kind: &str, name: &str| {
        advice(&format!(
            "{WEB}spec: {{template: {{}}, service: {{port: 80}}, {spec}}}\n{}",
            scaler(kind, name)
        ))
    };
    let own = "autoscaling: {minReplicas: 2, maxReplicas: 5}";
    assert_eq!(with(own, "IstioCanaryDeployment", "web").len(), 1);
    assert_eq!(with("replicas: 2", "IstioCanaryDeployment", "web"), []);
    assert_eq!(
        with("replicas: 2", "Deployment", "web-b")[0].0,
        "rollout/two-scalers"
    );
    assert_eq!(with("replicas: 2", "Deployment", "api"), []);
}
