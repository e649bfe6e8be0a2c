//! Canaries of other tools, converted: the definition accepts every result.

use portolan_canary::{Conversion, convert, lint};
use portolan_object::{KubeVersion, Object, Origin};
use portolan_rollout::crd_yaml;
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, from_json, parse, parse_one, to_json};
use serde_json::{Value, json};

fn objects(yaml: &str) -> Vec<Value> {
    let documents = parse(yaml.to_owned(), Dialect::Kustomize).expect("YAML");
    let values = documents
        .iter()
        .map(|document| serde_json::from_str(&to_json(document).expect("JSON")).expect("JSON"));
    values.collect()
}

/// Converts one canary; the definition must accept the result.
fn converted(yaml: &str) -> Conversion {
    let mut all = convert(&objects(yaml));
    assert_eq!(all.len(), 1, "{all:?}");
    let conversion = all.remove(0);
    let node = from_json(&conversion.object.to_string()).expect("JSON");
    let object = Object::new(node, Origin::default()).expect("an object");
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 36));
    catalogue.define(&parse_one(crd_yaml(), Dialect::Helm).expect("YAML"));
    match catalogue.check(&object) {
        Verdict::Checked(violations) => assert!(
            violations.is_empty(),
            "{violations:?}\n{:#}",
            conversion.object
        ),
        other => unreachable!("the kind is defined: {other:?}"),
    }
    let errors = lint(&object, []);
    assert!(
        errors
            .iter()
            .all(|advice| advice.rule.id != "rollout/same-counts"),
        "{errors:?}"
    );
    conversion
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1'}]}
";

#[test]
fn a_canary_of_flagger_with_everything_it_refers_to() {
    let conversion = converted(&format!("{DEPLOYMENT}---
apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {{name: web, namespace: shop}}
spec:
  provider: istio
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  autoscalerRef: {{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: web}}
  progressDeadlineSeconds: 120
  service:
    port: 9898
    targetPort: http
    gateways: [istio-system/public]
    hosts: [web.example.com]
    retries: {{attempts: 3}}
    match: [{{uri: {{prefix: /}}}}]
  analysis:
    interval: 30s
    threshold: 5
    maxWeight: 50
    stepWeight: 10
    sessionAffinity: {{cookieName: sticky, maxAge: 3600}}
    metrics:
    - {{name: request-success-rate, thresholdRange: {{min: 99}}, interval: 1m}}
    - {{name: request-duration, thresholdRange: {{max: 500}}, interval: 30s}}
    - name: not-found
      templateRef: {{name: not-found}}
      templateVariables: {{code: '404'}}
      thresholdRange: {{max: 5}}
    webhooks:
    - {{name: ask, type: confirm-promotion, url: 'http://gate/'}}
    - {{name: load, type: rollout, url: 'http://flagger-loadtester.test/', metadata: {{cmd: hey}}}}
---
apiVersion: flagger.app/v1beta1
kind: MetricTemplate
metadata: {{name: not-found, namespace: shop}}
spec:
  provider: {{type: prometheus, address: 'http://prometheus:9090'}}
  query: 'sum(rate(istio_requests_total{{destination_workload=\"{{{{ target }}}}\",code=\"{{{{ variables.code }}}}\"}}[{{{{ interval }}}}])) + {{{{ unknown }}}}'
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web, namespace: shop}}
spec: {{minReplicas: 2, maxReplicas: 6, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}}}
"));
    let spec = &conversion.object["spec"];
    assert_eq!(conversion.from, "Canary shop/web");
    assert_eq!(spec["strategy"]["weights"], json!([10, 20, 30, 40, 50]));
    assert_eq!(spec["strategy"]["stepInterval"], "30s");
    assert_eq!(spec["strategy"]["progressDeadline"], "120s");
    assert_eq!(
        spec["strategy"]["stickySessions"],
        json!({"cookieName": "sticky", "maxAge": "3600s"})
    );
    assert_eq!(spec["service"]["hosts"], json!(["web.example.com"]));
    assert_eq!(
        spec["autoscaling"],
        json!({"minReplicas": 2, "maxReplicas": 6})
    );
    assert_eq!(spec["replicas"], Value::Null);
    assert_eq!(spec["template"]["spec"]["containers"][0]["image"], "web:1");
    assert_eq!(
        spec["gates"],
        json!([{"before": "promote", "webhook": {"url": "http://gate/"}}])
    );
    let metrics = &spec["analysis"]["metrics"];
    assert_eq!(
        metrics[0],
        json!({"name": "errors", "builtin": "istio-requests", "slo": 0.01})
    );
    assert_eq!(metrics[1]["over"], "500ms");
    assert_eq!(
        metrics[2]["query"],
        "sum(rate(istio_requests_total{destination_workload=\"$(slot)\",code=\"404\"}[30s])) + {{ unknown }}"
    );
    let notes = conversion.notes.join("\n");
    for told in [
        "spec.analysis.threshold",
        "spec.service.match",
        "webhook `load`",
        "the variable `unknown`",
        "delete the HorizontalPodAutoscaler `web`",
    ] {
        assert!(notes.contains(told), "{told} in:\n{notes}");
    }
}

#[test]
fn tests_by_header_and_blue_green_of_flagger_keep_their_kind() {
    let canary = |analysis: &str| {
        converted(&format!(
            "
apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {{name: web}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  service: {{port: 80}}
  analysis: {analysis}
"
        ))
    };
    let by_header =
        canary("{interval: 1m, iterations: 10, match: [{headers: {x-canary: {exact: insider}}}]}");
    let strategy = &by_header.object["spec"]["strategy"];
    assert_eq!(strategy["type"], "abTest");
    assert_eq!(strategy["stepInterval"], "10m");
    assert_eq!(
        strategy["match"][0]["headers"]["x-canary"]["exact"],
        "insider"
    );
    assert_eq!(by_header.object["spec"]["workloadRef"]["name"], "web");
    let blue_green = canary("{interval: 1m, iterations: 3, mirror: true, mirrorWeight: 20}");
    assert_eq!(blue_green.object["spec"]["strategy"]["type"], "blueGreen");
    assert_eq!(blue_green.object["spec"]["strategy"]["mirror"], 20);
    let all_steps = canary("{stepWeight: 1, maxWeight: 100}");
    let weights = all_steps.object["spec"]["strategy"]["weights"]
        .as_array()
        .map(Vec::len);
    assert!(weights.is_some_and(|weights| weights <= 50), "{weights:?}");
}

#[test]
fn a_rollout_of_argo_with_steps_and_templates() {
    let conversion = converted(
        "
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1'}]}
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      trafficRouting: {istio: {virtualService: {name: web, routes: [primary]}}}
      steps:
      - setWeight: 5
      - pause: {duration: 10m}
      - setCanaryScale: {replicas: 3}
      - setWeight: 50
      - pause: {}
      - experiment: {duration: 1h}
      - setWeight: 100
      analysis:
        templates: [{templateName: success}]
        args: [{name: service, value: web-canary}]
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: success, namespace: shop}
spec:
  args: [{name: service}]
  metrics:
  - name: success
    successCondition: result[0] >= 0.95
    failureLimit: 2
    provider: {prometheus: {query: 'sum(x{s=\"{{args.service}}\"})'}}
  - name: job
    provider: {job: {spec: {}}}
---
apiVersion: v1
kind: Service
metadata: {name: web-stable, namespace: shop}
spec: {ports: [{name: http, port: 8080, targetPort: 9898}]}
",
    );
    let spec = &conversion.object["spec"];
    assert_eq!(
        spec["strategy"]["steps"],
        json!([{"weight": 5, "for": "10m"}, {"weight": 50, "replicas": 3, "pause": "manual"}])
    );
    assert_eq!(
        spec["service"],
        json!({"port": 8080, "targetPort": 9898, "portName": "http"})
    );
    assert_eq!(
        spec["virtualServiceRef"],
        json!({"name": "web", "routes": ["primary"]})
    );
    assert_eq!(
        spec["analysis"]["metrics"],
        json!([{"name": "success", "query": "sum(x{s=\"web-canary\"})", "min": 0.95, "consecutive": 3}])
    );
    let notes = conversion.notes.join("\n");
    for told in [
        "`experiment` step",
        "metric `job`: provider `job`",
        "must call `web`",
        "`failureLimit`",
    ] {
        assert!(notes.contains(told), "{told} in:\n{notes}");
    }
}

#[test]
fn a_blue_green_rollout_of_argo() {
    let conversion = converted("
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy: {blueGreen: {activeService: web, autoPromotionEnabled: false, scaleDownDelaySeconds: 90}}
");
    let spec = &conversion.object["spec"];
    assert_eq!(
        spec["strategy"],
        json!({"type": "blueGreen", "rollbackWindow": "90s"})
    );
    assert_eq!(spec["workloadRef"]["name"], "web");
}
