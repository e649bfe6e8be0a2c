//! Whole configurations, and what becomes of them.

use super::*;
use crate::document::{DeploySource, Ship, TestSource};

const WHOLE: &str = r#"
apiVersion: skaffold/v4beta11
kind: Config
metadata: {name: shop}
build:
  artifacts:
  - image: r.example/shop/web
    context: web
    sync:
      manual:
      - {src: "static/**/*.html", dest: /srv}
      - {src: "static/css/**", dest: /srv/, strip: static/}
      - {src: app.conf, dest: /etc/app}
  - image: r.example/shop/api
test:
- image: r.example/shop/web
  custom: [{command: ./test.sh --all, timeoutSeconds: 60}]
manifests:
  rawYaml: ["k8s/*.yaml", crds/one.yaml]
  kustomize: {paths: [overlays/dev]}
deploy:
  kubectl: {defaultNamespace: shop}
  statusCheckDeadlineSeconds: 120
  tolerateFailuresUntilDeadline: true
  helm:
    releases:
    - name: db
      chartPath: charts/db
      namespace: data
      createNamespace: true
    - name: shop
      chartPath: charts/shop
      valuesFiles: [dev.yaml]
      setValues: {replicas: 2, "web.port": 80}
      artifactOverrides: {image: r.example/shop/api}
portForward:
- {resourceType: service, resourceName: web, namespace: shop, port: 80, localPort: 8080}
"#;

fn read(draft: &Draft) -> Ship {
    let none = |_: &str| None;
    match Ship::read(&draft.text, &none) {
        Ok(ship) => ship,
        Err(error) => panic!("{error:?}\n{}", draft.text),
    }
}

#[test]
fn what_is_deployed_tested_copied_and_forwarded_is_converted() {
    let draft = draft_of_skaffold(WHOLE).unwrap();
    assert!(draft.is_whole, "{:?}", draft.notes);
    let ship = read(&draft);
    let steps: Vec<&str> = ship.deploy.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["manifests", "kustomize", "db", "shop"]);
    for step in &ship.deploy {
        assert_eq!(step.timeout.as_secs(), 120);
        assert!(!step.fail_fast);
        let namespace = if step.name == "db" { "data" } else { "shop" };
        assert_eq!(step.namespace.as_deref(), Some(namespace));
    }
    let DeploySource::Manifests(paths) = &ship.deploy[0].source else {
        panic!("{:?}", ship.deploy[0]);
    };
    assert_eq!(paths, &["k8s", "crds/one.yaml"]);
    let DeploySource::Helm(helm) = &ship.deploy[3].source else {
        panic!("{:?}", ship.deploy[3]);
    };
    assert_eq!(
        (helm.chart.as_str(), helm.release.as_str()),
        ("charts/shop", "shop")
    );
    assert_eq!(
        (helm.set["replicas"].as_str(), helm.images["image"].as_str()),
        ("2", "api")
    );
    assert_eq!(ship.deploy[3].needs, ["db"]);
    let TestSource::Command(test) = &ship.tests[0].source else {
        panic!("{:?}", ship.tests[0]);
    };
    assert_eq!(test.run, ["sh", "-ec", "./test.sh --all"]);
    assert_eq!(test.timeout.as_secs(), 60);
    let copied: Vec<(&str, &str)> = ship
        .dev
        .sync
        .iter()
        .map(|rule| (rule.from.as_str(), rule.to.as_str()))
        .collect();
    assert_eq!(
        copied,
        [
            ("static/**/*.html", "/srv/static"),
            ("static/css/**", "/srv/css"),
            ("app.conf", "/etc/app"),
        ]
    );
    let forward = &ship.dev.forward[0];
    assert_eq!(
        (forward.resource.as_str(), forward.port, forward.local),
        ("service/web", 80, Some(8080))
    );
}

/// One line for each part that has no counterpart, and a document that can be read.
#[test]
fn what_has_no_counterpart_is_named() {
    let text = r#"
apiVersion: skaffold/v4beta11
kind: Config
build:
  artifacts:
  - image: web
    sync:
      infer: ["**"]
      manual: [{src: "a/**", dest: here}, {src: "b/{c,d}", dest: /e}, {src: "a/**", dest: /x, strip: b}]
test: [{image: other}, {image: web, structureTests: [./a.yaml]}]
manifests: {rawYaml: ["https://x.example/a.yaml", "*.yaml"], helm: {}}
deploy:
  helm:
    flags: {}
    releases:
    - {name: far, remoteChart: stable/x}
    - {name: near, chartPath: c, setValues: {a: "{{.IMAGE_TAG}}", b: 1}, artifactOverrides: {i: unknown}, wait: true}
portForward: [{resourceType: service, resourceName: web, port: http}]
profiles: [{name: dev}]
"#;
    let draft = draft_of_skaffold(text).unwrap();
    assert!(!draft.is_whole);
    for part in [
        "`build.artifacts[0].sync.infer`",
        "a rule of `build.artifacts[0].sync.manual` (line 9)",
        "`test[0]`",
        "`test[1].structureTests`",
        "`https://x.example/a.yaml` of `manifests.rawYaml`",
        "`*.yaml` of `manifests.rawYaml`",
        "`manifests.helm`",
        "`deploy.helm.flags`",
        "`deploy.helm.releases[0]` (line 16), which has no chart of the project,",
        "`deploy.helm.releases[1].setValues.a`",
        "`deploy.helm.releases[1].artifactOverrides.i`",
        "`deploy.helm.releases[1].wait`",
        "a rule of `portForward` (line 18)",
        "`profiles` (line 19)",
    ] {
        let is_named =
            |note: &&String| note.starts_with(part) && note.ends_with("is not converted");
        assert!(
            draft.notes.iter().any(|note| is_named(&note)),
            "{part}\n{:#?}",
            draft.notes
        );
    }
    let lost = draft.notes.iter().filter(|note| note.contains(".manual`"));
    assert_eq!(lost.count(), 3);
    assert_eq!(read(&draft).deploy.len(), 1);
}

#[test]
fn kubectl_without_manifests_deploys_what_skaffold_deploys_then() {
    let text = "apiVersion: skaffold/v4beta11\nkind: Config\nbuild: {artifacts: [{image: web}]}\ndeploy: {kubectl: {}}\n";
    let draft = draft_of_skaffold(text).unwrap();
    assert!(
        draft.is_whole && draft.notes[0].contains("k8s/*.yaml"),
        "{draft:?}"
    );
    let DeploySource::Manifests(paths) = &read(&draft).deploy[0].source else {
        panic!("{}", draft.text);
    };
    assert_eq!(paths, &["k8s"]);
}
