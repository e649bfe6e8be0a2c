//! Helm releases by `portolan ship deploy`, on a real API server, read and changed by the real helm 3 and helm 4.

mod portolan;

use std::fs;
use std::process::Command;

use portolan::Answer;
use portolan::project::Project;
use portolan_testbed::cluster::{
    Cluster as TestCluster, EXIT_CODE, Kubelet, KubeletSetup, eventually,
};
use portolan_testbed::has_program;
use serde_json::Value;

/// A release of the chart in `chart`, in a namespace that is made for it.
fn document(namespace: &str, more: &str) -> String {
    format!(
        "  - {{name: web, image: registry.example/shop/web, oci: {{context: web}}}}\n  deploy:\n  - {{name: shop, namespace: {namespace}, wait: {{timeout: 40s}}, helm: {{chart: chart, values: [values/dev.yaml], set: {{size: big}}, images: {{image: web}}, createNamespace: true{more}}}}}\n"
    )
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  size: {{ .Values.size }}\n  revision: \"{{ .Release.Revision }}\"\n  has: \"{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}\"\n  version: {{ .Capabilities.KubeVersion.Version | quote }}\n  extra: {{ .Values.extra | default \"none\" }}\n";

/// A password that is made once and found again afterwards.
const SECRET: &str = "{{- $old := lookup \"v1\" \"Secret\" .Release.Namespace \"password\" }}\napiVersion: v1\nkind: Secret\nmetadata: {name: password}\ndata:\n  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}\n";

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  progressDeadlineSeconds: 3\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: app, image: '{{ .Values.image }}'}]}\n";

/// A Job that ends with a code; `""` never ends.
fn hook(name: &str, events: &str, weight: i64, policy: &str, code: &str) -> String {
    let ends = match code {
        "" => String::new(),
        code => format!("annotations: {{{EXIT_CODE}: \"{code}\"}}"),
    };
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: \"{events}\", helm.sh/hook-weight: \"{weight}\", helm.sh/hook-delete-policy: \"{policy}\"}}\nspec:\n  backoffLimit: 0\n  template:\n    metadata: {{{ends}}}\n    spec: {{restartPolicy: Never, containers: [{{name: a, image: a}}]}}\n"
    )
}

/// A definition of a kind that only this chart has.
const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tries.helm.example}\nspec:\n  group: helm.example\n  scope: Namespaced\n  names: {kind: Try, plural: tries}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";

struct Bed {
    project: Project,
    kubeconfig: String,
    namespace: String,
    client: kube::Client,
    _kubelet: Kubelet,
}

impl Bed {
    /// A project with a chart, and a cluster; `None` where no cluster can be started.
    async fn start(namespace: &str, more: &str) -> Option<Self> {
        let test = TestCluster::shared().await?;
        let project = Project::new(&document(namespace, more));
        project.write(
            "chart/Chart.yaml",
            "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: \"7\"\n",
        );
        project.write("chart/values.yaml", "size: small\nimage: none\n");
        project.write("values/dev.yaml", "size: middle\nlevel: dev\n");
        project.write("chart/templates/config.yaml", CONFIG);
        project.write("chart/templates/secret.yaml", SECRET);
        project.write("chart/templates/deployment.yaml", DEPLOYMENT);
        project.write(
            "chart/templates/NOTES.txt",
            "Thank you for {{ .Release.Name }}.\n",
        );
        Some(Self {
            project,
            kubeconfig: test.kubeconfig_path().to_str().expect("UTF-8").to_owned(),
            namespace: namespace.to_owned(),
            client: test.client().await,
            _kubelet: Kubelet::start(
                test.client().await,
                Some(namespace),
                KubeletSetup::default(),
            ),
        })
    }

    fn arguments<'a>(&'a self, words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        [
            words,
            &["--kubeconfig", &self.kubeconfig, "--context", "test"],
            more,
        ]
        .concat()
    }

    fn deploy(&self) -> Answer {
        self.project
            .run(&self.arguments(&["ship", "deploy"], &["-o", "json"]))
    }

    fn deployed(&self) {
        let answer = self.deploy();
        assert_eq!(answer.code, 0, "{answer}");
    }

    /// What a helm prints; `helm` is version 3, `helm4` version 4.
    fn helm(&self, helm: &str, args: &[&str]) -> (bool, String) {
        let output = Command::new(helm)
            .args(args)
            .args(["--kubeconfig", &self.kubeconfig, "-n", &self.namespace])
            .env("HELM_CACHE_HOME", self.project.path("helm"))
            .output()
            .unwrap_or_else(|error| unreachable!("{helm}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout) + &text(&output.stderr),
        )
    }

    fn helm_json(&self, helm: &str, args: &[&str]) -> Value {
        let (good, text) = self.helm(helm, &[args, &["-o", "json"]].concat());
        assert!(good, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|_| unreachable!("{text}"))
    }

    /// Revision and status of each revision.
    fn history(&self, helm: &str) -> Vec<String> {
        let history = self.helm_json(helm, &["history", "shop"]);
        let revisions = history.as_array().expect("a list").iter();
        revisions
            .map(|revision| {
                format!(
                    "{} {}",
                    revision["revision"],
                    revision["status"].as_str().unwrap_or_default()
                )
            })
            .collect()
    }

    /// One object; `None` if it is not there.
    async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let namespace = &self.namespace;
        let path = match kind {
            "configmap" | "secret" => format!("/api/v1/namespaces/{namespace}/{kind}s/{name}"),
            "deployment" => format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
            "job" => format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}"),
            "widget" => {
                format!("/apis/helm-hooks.example/v1/namespaces/{namespace}/widgets/{name}")
            }
            _ => format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"),
        };
        let request = http::Request::get(path)
            .body(Vec::new())
            .expect("a request");
        self.client.request(request).await.ok()
    }

    /// One entry of the settings.
    async fn setting(&self, name: &str) -> Value {
        let config = self
            .get("configmap", "settings")
            .await
            .expect("a ConfigMap");
        config["data"][name].clone()
    }

    async fn password(&self) -> Value {
        let secret = self.get("secret", "password").await.expect("a Secret");
        secret["data"]["password"].clone()
    }
}

/// Whether both helms are installed; under `CI` they must be.
fn has_helms() -> bool {
    has_program("helm", "version") && has_program("helm4", "version")
}

#[tokio::test(flavor = "multi_thread")]
async fn both_helms_read_and_change_a_release_and_ship_goes_on_with_it() {
    if !has_helms() {
        return;
    }
    let Some(bed) = Bed::start("helm-both", "").await else {
        return;
    };
    bed.deployed();
    for helm in ["helm", "helm4"] {
        let list = bed.helm_json(helm, &["list"]);
        assert_eq!(
            (
                &list[0]["name"],
                &list[0]["status"],
                &list[0]["chart"],
                &list[0]["app_version"]
            ),
            (
                &"shop".into(),
                &"deployed".into(),
                &"shop-1.2.3".into(),
                &"7".into()
            ),
            "{list}"
        );
        assert_eq!(bed.history(helm), ["1 deployed"]);
        let values = bed.helm_json(helm, &["get", "values", "shop"]);
        let image = values["image"].as_str().expect("an image");
        assert!(
            image.starts_with("registry.example/shop/web:") && image.contains("@sha256:"),
            "{values}"
        );
        assert_eq!(
            (&values["size"], &values["level"]),
            (&"big".into(), &"dev".into())
        );
        let (_, manifest) = bed.helm(helm, &["get", "manifest", "shop"]);
        assert!(
            manifest.contains(&format!("image: '{image}'")),
            "{manifest}"
        );
        let (_, notes) = bed.helm(helm, &["get", "notes", "shop"]);
        assert!(notes.contains("Thank you for shop."), "{notes}");
    }
    let config = bed.get("configmap", "settings").await.expect("a ConfigMap");
    assert_eq!(
        (&config["data"]["size"], &config["data"]["has"]),
        (&"big".into(), &"true".into())
    );
    assert_eq!(
        config["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "Helm"
    );
    let password = bed.password().await;

    // An upgrade: an object is gone, another new, and what was looked up stays.
    fs::remove_file(bed.project.path("chart/templates/deployment.yaml")).expect("removed");
    bed.project.write(
        "chart/templates/config.yaml",
        &CONFIG.replace(
            "  extra: {{ .Values.extra | default \"none\" }}\n",
            "  added: by-ship\n",
        ),
    );
    bed.deployed();
    assert_eq!(bed.history("helm"), ["1 superseded", "2 deployed"]);
    assert_eq!(bed.history("helm4"), ["1 superseded", "2 deployed"]);
    assert!(bed.get("deployment", "web").await.is_none());
    assert_eq!(
        (bed.setting("extra").await, bed.setting("revision").await),
        (Value::Null, "2".into())
    );
    assert_eq!(bed.password().await, password);

    // Helm 3 rolls back, ship goes on; Helm 4 rolls back, ship goes on: with fields removed each time.
    for (helm, revision) in [("helm", 3), ("helm4", 5)] {
        let (good, text) = bed.helm(helm, &["rollback", "shop", "1"]);
        assert!(good, "{helm}: {text}");
        assert_eq!(
            (bed.setting("extra").await, bed.setting("added").await),
            ("none".into(), Value::Null),
            "{helm}"
        );
        assert!(bed.get("deployment", "web").await.is_some());
        bed.deployed();
        assert_eq!(
            (bed.setting("extra").await, bed.setting("added").await),
            (Value::Null, "by-ship".into()),
            "{helm}"
        );
        assert_eq!(
            bed.history(helm).last().expect("a revision"),
            &format!("{} deployed", revision + 1)
        );
        assert!(bed.get("deployment", "web").await.is_none(), "{helm}");
    }
    // Both upgrade what ship deployed, and ship what they deployed.
    let chart = bed.project.path("chart");
    let chart = chart.to_str().expect("UTF-8");
    for helm in ["helm", "helm4"] {
        let (good, text) = bed.helm(helm, &["upgrade", "shop", chart, "--set", "size=theirs"]);
        assert!(good, "{helm}: {text}");
        assert_eq!(bed.setting("size").await, "theirs", "{helm}");
        bed.deployed();
        assert_eq!(bed.setting("size").await, "big", "{helm}");
    }
    bed.deployed();
    assert_eq!(bed.history("helm").len(), 10, "historyMax");
    let (good, text) = bed.helm("helm4", &["uninstall", "shop"]);
    assert!(good, "{text}");
    assert!(bed.get("configmap", "settings").await.is_none());
    // What helm installed, ship upgrades and deletes.
    let (good, text) = bed.helm("helm", &["install", "shop", chart]);
    assert!(good, "{text}");
    bed.deployed();
    let deleted = bed.project.run(&bed.arguments(&["ship", "delete"], &[]));
    assert_eq!(deleted.code, 0, "{deleted}");
    assert!(
        deleted
            .stdout
            .contains("deleted  ConfigMap helm-both/settings"),
        "{deleted}"
    );
    assert_eq!(
        bed.helm_json("helm", &["list", "-a"]),
        Value::Array(Vec::new())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_installs_have_different_random_values() {
    let mut passwords = Vec::new();
    for namespace in ["helm-random-a", "helm-random-b"] {
        let Some(bed) = Bed::start(namespace, "").await else {
            return;
        };
        bed.deployed();
        passwords.push(bed.password().await);
    }
    assert_ne!(passwords[0], passwords[1]);
}

/// Hooks run by weight and are deleted as their policies say; definitions are made by an installation only.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_by_weight_and_definitions_are_installed_once() {
    let Some(bed) = Bed::start("helm-hooks", "").await else {
        return;
    };
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.helm-hooks.example}\nspec:\n  group: helm-hooks.example\n  scope: Namespaced\n  names: {plural: widgets, kind: Widget, singular: widget}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n";
    bed.project.write("chart/crds/widgets.yaml", definition);
    bed.project.write("chart/templates/widget.yaml", "{{ if .Capabilities.APIVersions.Has \"helm-hooks.example/v1/Widget\" }}\napiVersion: helm-hooks.example/v1\nkind: Widget\nmetadata: {name: one}\n{{ end }}\n");
    bed.project.write(
        "chart/templates/second.yaml",
        &hook(
            "second",
            "pre-install,pre-upgrade",
            5,
            "before-hook-creation",
            "0",
        ),
    );
    bed.project.write(
        "chart/templates/first.yaml",
        &hook("first", "pre-install", -5, "hook-succeeded", "0"),
    );
    bed.project.write(
        "chart/templates/gone.yaml",
        &hook("gone", "post-install", 0, "hook-succeeded,hook-failed", "0"),
    );
    bed.project.write(
        "chart/templates/bye.yaml",
        &hook("bye", "pre-delete", 0, "", "0"),
    );
    bed.deployed();
    assert!(
        bed.get("widget", "one").await.is_some(),
        "the chart sees its own definition"
    );
    let second = bed
        .get("job", "second")
        .await
        .expect("it stays until it is made again");
    assert!(bed.get("job", "first").await.is_none() && bed.get("job", "gone").await.is_none());
    bed.project.write(
        "chart/crds/more.yaml",
        &definition
            .replace("widgets", "gadgets")
            .replace("idget", "adget"),
    );
    bed.deployed();
    let again = bed.get("job", "second").await.expect("made again");
    assert_ne!(second["metadata"]["uid"], again["metadata"]["uid"]);
    assert!(bed.get("crd", "gadgets.helm-hooks.example").await.is_none());
    let run = bed.project.run(&["events"]);
    let order = ["pre-upgrade hook Job second", "Widget helm-hooks/one"]
        .map(|line| run.stdout.find(line).expect("a line"));
    assert!(order[0] < order[1], "{run}");
    // A hook that fails fails the step and is recorded as failed, with what was deployed before still deployed.
    bed.project.write(
        "chart/templates/second.yaml",
        &hook("second", "pre-upgrade", 5, "before-hook-creation", "3"),
    );
    let failed = bed.deploy();
    assert_eq!(failed.code, 1, "{failed}");
    assert!(
        failed
            .stdout
            .contains("the pre-upgrade hook Job second failed"),
        "{failed}"
    );
    if has_helms() {
        for helm in ["helm", "helm4"] {
            assert_eq!(
                bed.history(helm),
                ["1 superseded", "2 deployed", "3 failed"],
                "{helm}"
            );
        }
    }
    let deleted = bed.project.run(&bed.arguments(&["ship", "delete"], &[]));
    assert_eq!(deleted.code, 0, "{deleted}");
    assert!(
        bed.get("job", "bye").await.is_some(),
        "hooks are no objects of the release"
    );
    assert!(bed.get("configmap", "settings").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upgrade_is_rolled_back_and_a_failed_installation_uninstalled() {
    let Some(bed) = Bed::start("helm-back", ", onFailure: rollback").await else {
        return;
    };
    bed.project.write(
        "chart/templates/check.yaml",
        &hook(
            "check",
            "post-install,post-upgrade",
            0,
            "before-hook-creation",
            "1",
        ),
    );
    let failed = bed.deploy();
    assert_eq!(failed.code, 1, "{failed}");
    assert!(
        failed.stdout.contains(
            "failed: Job has reached the specified backoff limit; the release was uninstalled"
        ),
        "{failed}"
    );
    assert!(bed.get("configmap", "settings").await.is_none());
    fs::remove_file(bed.project.path("chart/templates/check.yaml")).expect("removed");
    bed.deployed();
    bed.project.write(
        "chart/templates/check.yaml",
        &hook(
            "check",
            "post-install,post-upgrade",
            0,
            "before-hook-creation",
            "1",
        ),
    );
    bed.project.write(
        "chart/templates/new.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n",
    );
    let failed = bed.deploy();
    assert_eq!(failed.code, 1, "{failed}");
    assert!(
        failed.stdout.contains("; revision 1 is deployed again"),
        "{failed}"
    );
    assert!(
        bed.get("configmap", "new").await.is_none(),
        "what the failed upgrade made is gone"
    );
    if has_helms() {
        assert_eq!(
            bed.history("helm"),
            ["1 superseded", "2 failed", "3 deployed"]
        );
        let (_, text) = bed.helm("helm4", &["history", "shop"]);
        assert!(text.contains("Rollback to 1"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_installed_is_refused_before_anything_is_applied() {
    let Some(bed) = Bed::start("helm-refused", "").await else {
        return;
    };
    bed.deployed();
    // Somebody else's object.
    let foreign = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\n";
    let theirs = r#"{"metadata": {"name": "theirs"}}"#;
    let request = http::Request::post("/api/v1/namespaces/helm-refused/configmaps")
        .header("content-type", "application/json")
        .body(theirs.as_bytes().to_vec())
        .expect("a request");
    let _: Value = bed.client.request(request).await.expect("made");
    bed.project.write("chart/templates/a.yaml", foreign);
    bed.project.write(
        "chart/templates/config.yaml",
        &CONFIG.replace("revision:", "changed:"),
    );
    let refused = bed.deploy();
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stdout.contains("ConfigMap helm-refused/theirs exists and is not of this release: it has no `app.kubernetes.io/managed-by: Helm`"), "{refused}");
    fs::remove_file(bed.project.path("chart/templates/a.yaml")).expect("removed");
    // A record that no Secret holds: bytes that cannot be compressed.
    let mut noise = Vec::new();
    let mut state = 1_u64;
    while noise.len() < 2_200_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise.extend(format!("{state:016x}").into_bytes());
    }
    fs::write(bed.project.path("chart/noise.txt"), &noise).expect("written");
    let refused = bed.deploy();
    assert_eq!(refused.code, 1, "{refused}");
    assert!(
        refused.stdout.contains("more than a Secret holds (1 MiB)"),
        "{refused}"
    );
    assert!(
        bed.setting("changed").await.is_null(),
        "nothing was applied"
    );
    if has_helms() {
        assert_eq!(bed.history("helm"), ["1 deployed"]);
    }
}

/// The record of a process that was killed is taken over when it no longer changes; one of helm is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_was_killed_half_way_is_gone_on_with() {
    let Some(bed) = Bed::start("helm-killed", "").await else {
        return;
    };
    bed.deployed();
    let wait = hook("wait", "pre-upgrade", 0, "before-hook-creation", "");
    bed.project.write("chart/templates/wait.yaml", &wait);
    let arguments = bed.arguments(&["ship", "deploy"], &[]);
    let mut child = bed.project.command(&arguments).spawn().expect("started");
    eventually("the hook was made", || async {
        bed.get("job", "wait").await.is_some()
    })
    .await;
    // Meanwhile nobody else gets in.
    let other = bed.deploy();
    assert_eq!(other.code, 1, "{other}");
    assert!(
        other
            .stdout
            .contains("another operation is under way: revision 2 is `pending-upgrade`"),
        "{other}"
    );
    child.kill().expect("killed");
    child.wait().expect("ended");
    fs::remove_file(bed.project.path("chart/templates/wait.yaml")).expect("removed");
    if has_helms() {
        let (good, text) = bed.helm(
            "helm",
            &[
                "upgrade",
                "shop",
                bed.project.path("chart").to_str().expect("UTF-8"),
            ],
        );
        assert!(
            !good && text.contains("another operation"),
            "helm sees the lock: {text}"
        );
    }
    bed.deployed();
    if has_helms() {
        assert_eq!(
            bed.history("helm"),
            ["1 superseded", "2 failed", "3 deployed"]
        );
        assert_eq!(
            bed.history("helm4"),
            ["1 superseded", "2 failed", "3 deployed"]
        );
        // An operation of helm's own that was killed is for people to end.
        bed.project.write("chart/templates/wait.yaml", &wait);
        let chart = bed.project.path("chart");
        let mut helm = Command::new("helm")
            .args([
                "upgrade",
                "shop",
                chart.to_str().expect("UTF-8"),
                "--kubeconfig",
                &bed.kubeconfig,
                "-n",
                &bed.namespace,
            ])
            .spawn()
            .expect("started");
        eventually("helm has begun", || async {
            bed.history("helm").len() == 4
        })
        .await;
        helm.kill().expect("killed");
        helm.wait().expect("ended");
        let refused = bed.deploy();
        assert!(
            refused.stdout.contains("`helm rollback` ends it"),
            "{refused}"
        );
        let (good, text) = bed.helm("helm", &["rollback", "shop", "3"]);
        assert!(good, "{text}");
        fs::remove_file(bed.project.path("chart/templates/wait.yaml")).expect("removed");
        bed.deployed();
    }
}

#[test]
fn a_chart_is_rendered_without_a_cluster() {
    let project = Project::new(&document("shop", ""));
    project.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: shop\nversion: 1.2.3\n",
    );
    project.write("chart/templates/deployment.yaml", DEPLOYMENT);
    project.write("values/dev.yaml", "");
    let answer = project.run(&["ship", "render"]);
    assert_eq!(answer.code, 0, "{answer}");
    let (result, _) = project.build(&[]);
    let image = result["artifacts"][0]["image"].as_str().expect("an image");
    assert!(
        answer.stdout.contains(&format!("image: {image}\n")),
        "{answer}"
    );
    project.write(
        "portolan.yaml",
        &fs::read_to_string(project.path("portolan.yaml"))
            .expect("a document")
            .replace("image: web}", "image: wep}"),
    );
    let wrong = project.run(&["ship", "render"]);
    assert!(
        wrong.code == 2
            && wrong
                .stderr
                .contains("the step `shop` names the artifact `wep`, which is not there"),
        "{wrong}"
    );
}

/// What a dry run says of each object of the release, and its note.
fn tried(bed: &Bed) -> (i32, Vec<String>, String) {
    let arguments = bed.arguments(&["ship", "deploy"], &["--dry-run", "-o", "json"]);
    let answer = bed.project.run(&arguments);
    let value: Value =
        serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"));
    let step = &value["steps"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = step["objects"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<String> = objects
        .iter()
        .map(|object| format!("{} {}", text(&object["object"]), text(&object["status"])))
        .collect();
    lines.sort();
    (answer.code, lines, text(&step["note"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_release_tries_every_object_and_changes_nothing() {
    let Some(bed) = Bed::start("helm-try", "").await else {
        return;
    };
    let of_kind = "apiVersion: helm.example/v1\nkind: Try\nmetadata: {name: one}\n";
    bed.project.write("chart/crds/try.yaml", DEFINITION);
    bed.project.write("chart/templates/try.yaml", of_kind);
    bed.project.write(
        "chart/templates/hook.yaml",
        &hook(
            "before",
            "pre-install,pre-upgrade",
            0,
            "before-hook-creation",
            "0",
        ),
    );
    for _ in 0..2 {
        let (code, lines, note) = tried(&bed);
        assert_eq!(code, 0, "{lines:?}");
        assert_eq!(
            lines,
            [
                "ConfigMap helm-try/settings wouldCreate",
                "CustomResourceDefinition tries.helm.example wouldCreate",
                "Deployment helm-try/web wouldCreate",
                "Secret helm-try/password wouldCreate",
                // Whether the kind has namespaces is known when its definition is there.
                "Try one wouldCreate",
            ]
        );
        assert_eq!(
            note,
            "would install the release `shop` as revision 1; of its 1 hook none was tried"
        );
    }
    bed.deployed();
    let (code, lines, note) = tried(&bed);
    assert_eq!(code, 0, "{lines:?}");
    assert_eq!(
        lines,
        [
            // It names the revision.
            "ConfigMap helm-try/settings wouldChange",
            "Deployment helm-try/web unchanged",
            "Secret helm-try/password unchanged",
            "Try helm-try/one unchanged",
        ]
    );
    assert!(
        note.starts_with("would upgrade the release `shop` as revision 2"),
        "{note}"
    );

    fs::remove_file(bed.project.path("chart/templates/try.yaml")).expect("removed");
    bed.project.write("web/index.html", "another page");
    let (code, lines, _) = tried(&bed);
    assert_eq!(code, 0, "{lines:?}");
    assert!(
        lines.contains(&"Try helm-try/one wouldDelete".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"Deployment helm-try/web wouldChange".to_owned()),
        "{lines:?}"
    );
    // What the cluster would refuse is told, and neither helm nor the next dry run sees a trace of the trials.
    let refused = CONFIG.replace("name: settings", "name: Not_A_Name");
    bed.project.write("chart/templates/config.yaml", &refused);
    let (code, lines, _) = tried(&bed);
    assert_eq!(code, 1, "{lines:?}");
    assert!(
        lines.contains(&"ConfigMap helm-try/Not_A_Name failed".to_owned()),
        "{lines:?}"
    );
    let (is_good, history) = bed.helm("helm", &["history", "shop", "-o", "json"]);
    assert!(is_good, "{history}");
    assert_eq!(history.matches("\"revision\"").count(), 1, "{history}");
}
