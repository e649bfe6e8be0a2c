//! `portolan test` on the example repository and on planted mistakes.

mod portolan;

use portolan::portolan_in;
use portolan::repository::{HARBOR, kustomization, repository};

/// Runs `portolan test` on a repository whose one Kustomization brings a file.
fn test_of(manifest: &str, args: &[&str]) -> portolan::Answer {
    let apps = kustomization("apps", "./apps").replace("spec: {", "spec: {interval: 10m, ");
    let directory = repository(&[
        ("clusters/test/apps.yaml", &apps),
        ("apps/app.yaml", manifest),
    ]);
    let mut all = vec!["test", "--path", "clusters/test"];
    all.extend(args);
    let directory = directory.path().to_str().expect("a path in UTF-8");
    portolan_in(directory, &all)
}

#[test]
fn the_example_repository_is_valid() {
    insta::assert_snapshot!(portolan_in(HARBOR, &["test"]));
}

#[test]
fn a_mistyped_field_is_found_at_its_line() {
    let service = "\
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: apps
spec:
  selecter:
    app: web
  ports:
  - port: 'eighty'
";
    insta::assert_snapshot!(test_of(service, &[]));
}

#[test]
fn a_removed_api_is_told_with_what_replaces_it() {
    let budget = "\
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: web, namespace: apps}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
";
    let answer = test_of(budget, &["--kube-version", "1.25.0"]);
    assert!(answer.stdout.contains("api/removed"), "{answer}");
    assert!(answer.stdout.contains("1.25 on; use policy/v1"), "{answer}");
    assert_eq!(answer.code, 1);
    let answer = test_of(budget, &["--kube-version", "1.24.0"]);
    assert!(!answer.stdout.contains("api/removed"), "{answer}");
}

#[test]
fn a_finding_can_be_excused_on_the_object() {
    let service = "\
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: apps
  annotations: {portolan.dev/ignore: 'schema/*'}
spec: {selecter: {app: web}}
";
    insta::assert_snapshot!(test_of(service, &[]));
}

#[test]
fn a_rule_of_the_repositorys_own_definition_is_evaluated() {
    let both = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lights.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Light, plural: lights}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {low: {type: integer}, high: {type: integer}}
            x-kubernetes-validations:
            - {rule: self.low <= self.high, message: low is above high}
---
apiVersion: example.com/v1
kind: Light
metadata: {name: pier, namespace: apps}
spec:
  low: 9
  high: 3
";
    insta::assert_snapshot!(test_of(both, &["-o", "json"]));
}

#[test]
fn secrets_are_not_shown_with_their_findings() {
    let secret = "\
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: apps}
data:
  token: planted-value-not-base64!
stringDate: {password: planted-value}
";
    for format in ["table", "json", "junit", "sarif", "github"] {
        let answer = test_of(secret, &["-o", format]).to_string();
        assert!(answer.contains("exit 1"), "{format}: {answer}");
        assert!(!answer.contains("planted-value"), "{format}: {answer}");
    }
}

#[test]
fn every_format_names_the_place() {
    let claim = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: apps}
spec:
  resources: {requests: {storage: much}}
";
    insta::assert_snapshot!("junit", test_of(claim, &["-o", "junit"]));
    insta::assert_snapshot!("sarif", test_of(claim, &["-o", "sarif"]));
    insta::assert_snapshot!("github", test_of(claim, &["-o", "github"]));
}

#[test]
fn a_rule_is_explained() {
    insta::assert_snapshot!(
        "all_rules",
        portolan_in(HARBOR, &["test", "--explain", "all"])
    );
    insta::assert_snapshot!(
        "one_rule",
        portolan_in(HARBOR, &["test", "--explain", "schema/unknown-field"])
    );
    insta::assert_snapshot!(
        "no_rule",
        portolan_in(HARBOR, &["test", "--explain", "schema/unknwon-field"])
    );
}

/// A Secret that an `ExternalSecret` makes has values that nobody knows here: they are nobody's mistake.
#[test]
fn values_that_only_the_cluster_knows_are_not_judged() {
    let apps = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec:\n  interval: 1h\n  path: ./apps\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n";
    let secret = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: vars, namespace: flux-system}\nspec: {target: {name: vars}}\n";
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: \"${NAME}-x\", namespace: d}\nspec:\n  ports:\n  - port: ${PORT}\n    protocol: ${PROTOCOL}\n";
    let dir = repository(&[
        ("cluster/apps.yaml", apps),
        ("cluster/secret.yaml", secret),
        ("apps/service.yaml", service),
    ]);
    let answer = portolan_in(
        dir.path().to_str().unwrap(),
        &["test", "--repo", ".", "--path", "cluster", "-o", "json"],
    );
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let errors = report["findings"].as_array().unwrap().iter();
    let errors: Vec<_> = errors
        .filter(|finding| finding["level"] == "error")
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(answer.code, 0, "{answer}");
}

/// Runs `portolan test` on a release of a chart in the repository that reads `image.tag` and `replicas`.
fn test_of_values(annotations: &str, args: &[&str]) -> portolan::Answer {
    let apps = kustomization("apps", "./apps").replace("spec: {", "spec: {interval: 10m, ");
    let release = format!(
        "\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: web, namespace: apps{annotations}}}
spec:
  interval: 1h
  chart: {{spec: {{chart: ./charts/web, sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}
  valuesFrom:
  - {{kind: ConfigMap, name: values}}
  - {{kind: ConfigMap, name: made}}
  values:
    image:
      tag: v1
      tga: v2
    replicas: 1
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: values, namespace: apps}}
data:
  values.yaml: |
    # why
    replica: 2
"
    );
    let directory = repository(&[
        ("clusters/test/apps.yaml", &apps),
        ("apps/app.yaml", &release),
        (
            "apps/kustomization.yaml",
            "resources: [app.yaml]\nconfigMapGenerator:\n- {name: made, namespace: apps, files: [values.yaml], options: {disableNameSuffixHash: true}}\n",
        ),
        ("apps/values.yaml", "unknown:\n  key: 1\nimage: {tag: v0}\n"),
        (
            "charts/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        ("charts/web/values.yaml", "image: {tag: v0}\n"),
        (
            "charts/web/templates/web.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {tag: '{{ .Values.image.tag }}', replicas: '{{ .Values.replicas }}'}\n",
        ),
    ]);
    let mut all = vec!["test", "--path", "clusters/test"];
    all.extend(args);
    let directory = directory.path().to_str().expect("a path in UTF-8");
    portolan_in(directory, &all)
}

#[test]
fn a_value_that_the_chart_never_reads_is_told_at_its_line() {
    insta::assert_snapshot!(test_of_values("", &[]));
    assert_eq!(test_of_values("", &["--fail-on", "warning"]).code, 1);
}

#[test]
fn an_unread_value_can_be_excused_on_the_release() {
    let answer = test_of_values(", annotations: {portolan.dev/ignore: values/unread}", &[]);
    assert!(!answer.stdout.contains("values/unread"), "{answer}");
    assert_eq!(answer.code, 0, "{answer}");
}
