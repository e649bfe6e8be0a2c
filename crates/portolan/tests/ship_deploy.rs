//! `portolan ship render`, `deploy` and `delete`: on a real API server with controllers.

mod portolan;

use std::fs;

use portolan::Answer;
use portolan::project::Project;
use portolan_testbed::cluster::{Cluster as TestCluster, Kubelet, KubeletSetup, PodFault};
use serde_json::Value;

const DEPLOY: &str = "  deploy:\n  - {name: config, namespace: NS, manifests: {paths: [deploy/config]}}\n  - {name: app, needs: [config], namespace: NS, kustomize: {path: deploy/app}, wait: {timeout: 60s}}\n";

/// A Deployment with the image of an artifact and one that is none.
fn deployment(name: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: 1\n  progressDeadlineSeconds: 2\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: app, image: '{image}'}}\n      - {{name: side, image: 'registry.example/side:1'}}\n"
    )
}

fn project(namespace: &str) -> Project {
    let artifacts = "  - {name: web, image: registry.example/shop/web, oci: {context: web}}\n  - {name: tool, image: registry.example/shop/tool, oci: {context: web, labels: {a: b}}}\n";
    let project = Project::new(&format!("{artifacts}{}", DEPLOY.replace("NS", namespace)));
    project.write(
        "deploy/config/all.yaml",
        &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{a: b}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"),
    );
    project.write(
        "deploy/config/more.yml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
    );
    project.write("deploy/app/kustomization.yaml", "resources: [web.yaml]\n");
    project.write(
        "deploy/app/web.yaml",
        &deployment("web", "registry.example/shop/web:latest"),
    );
    project
}

#[test]
fn images_that_were_built_are_put_into_objects_and_nothing_else_changes() {
    let project = project("shop");
    let answer = project.run(&["ship", "render"]);
    assert_eq!(answer.code, 0, "{answer}");
    let (result, _) = project.build(&[]);
    let image = result["artifacts"][0]["image"].as_str().expect("an image");
    assert!(
        answer.stdout.contains(&format!("image: {image}\n")),
        "{answer}"
    );
    assert!(
        answer.stdout.contains("image: registry.example/side:1\n"),
        "{answer}"
    );
    assert!(
        answer
            .stderr
            .contains("note: no object names the image of `tool`"),
        "{answer}"
    );
    // Elsewhere, of the result alone.
    project.write("images.json", &result.to_string());
    fs::remove_dir_all(project.path(".portolan")).expect("removed");
    let elsewhere = project.run(&["ship", "render", "--images", "images.json"]);
    assert_eq!(elsewhere.stdout, answer.stdout, "{elsewhere}");
    assert!(!project.path(".portolan").exists(), "nothing is built");
    project.write("images.json", r#"{"kind": "BuildResult", "artifacts": []}"#);
    let missing = project.run(&["ship", "render", "--images", "images.json"]);
    assert_eq!(missing.code, 1, "{missing}");
    assert!(
        missing
            .stderr
            .contains("names the image of `web`, which was not built"),
        "{missing}"
    );
    project.write("deploy/app/web.yaml", "a: [\n");
    let broken = project.run(&["ship", "render"]);
    assert!(
        broken.code == 2 && broken.stderr.contains("cannot render the step `app`"),
        "{broken}"
    );
    let none = Project::new(portolan::project::WEB).run(&["ship", "render"]);
    assert!(
        none.code == 2 && none.stderr.contains("has no `spec.deploy`"),
        "{none}"
    );
}

/// Images go to another registry and objects are put there by name; `config` says which option it was.
#[test]
fn images_go_to_another_registry_and_objects_follow() {
    let project = project("shop");
    let to = ["--registry", "localhost:5000/me"];
    let built = project.run(&[&["ship", "build", "-o", "json", "-a", "web"], &to[..]].concat());
    assert_eq!(built.code, 0, "{built}");
    let image = json(&built)["artifacts"][0]["image"].clone();
    let image = image.as_str().expect("an image");
    assert!(image.starts_with("localhost:5000/me/shop/web:"), "{built}");
    assert_eq!(json(&built)["artifacts"].as_array().map(Vec::len), Some(1));
    let rendered = project.run(&[&["ship", "render"], &to[..]].concat());
    assert!(
        rendered.stdout.contains(&format!("image: {image}\n")),
        "{rendered}"
    );
    // The registry is no part of the image.
    let (plain, _) = project.build(&[]);
    assert_eq!(plain["artifacts"][0]["status"], "cached");
    assert_eq!(
        plain["artifacts"][0]["digest"],
        json(&built)["artifacts"][0]["digest"]
    );
    let config = project.run(&[&["ship", "config", "-n", "try"], &to[..]].concat());
    for line in [
        "image: \"localhost:5000/me/shop/web\" # --registry localhost:5000/me, portolan.yaml:6 `registry.example/shop/web`\n",
        "namespace: try # --namespace\n",
    ] {
        assert!(config.stdout.contains(line), "{line}\n{config}");
    }
    for (wrong, message) in [
        (["--registry", "NOT/Good"], "`--registry NOT/Good`"),
        (["--registry", "http://x"], "it has a scheme"),
        (["--registry", ""], "it is empty"),
        (["-a", "wbe"], "did you mean `web`?"),
    ] {
        let refused = project.run(&[&["ship", "build"], &wrong[..]].concat());
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.stderr.contains(message), "{refused}");
    }
    let refused = project.run(&["ship", "render", "-a", "tool"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused
            .stderr
            .contains("no deploy step names the image of `tool`"),
        "{refused}"
    );
    let refused = project.run(&["ship", "config", "-n", "Not_A_Name"]);
    assert_eq!(refused.code, 2, "{refused}");
}

/// A part of a project goes to another namespace, and nothing is deleted by it; commands run around a step.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_deployed_to_another_namespace_with_commands_around_it() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let namespace = "ship-part";
    let _kubelet = Kubelet::start(
        test.client().await,
        Some(namespace),
        KubeletSetup::default(),
    );
    let mut project = project("ship-elsewhere");
    project
        .env
        .push(("PORTOLAN_TEST_TOKEN", "very-secret-word".to_owned()));
    let text = fs::read_to_string(project.path("portolan.yaml")).expect("the document");
    let text = text.replace(
        "wait: {timeout: 60s}}",
        "wait: {timeout: 60s}, before: [{run: [sh, hook.sh, before], secrets: {TOKEN: {env: PORTOLAN_TEST_TOKEN}}}, {run: [sh, hook.sh, again], secrets: {TOKEN: {env: PORTOLAN_TEST_TOKEN}}}], after: [{run: [sh, hook.sh, after], set: {MORE: b}}]}",
    );
    project.write("portolan.yaml", &text);
    project.write(
        "hook.sh",
        "#!/bin/sh\necho \"$1 $PORTOLAN_STEP $PORTOLAN_NAMESPACE $PORTOLAN_IMAGE_WEB $MORE\" >> hooks.txt\n[ -z \"$PORTOLAN_SECRETS\" ] || cat $PORTOLAN_SECRETS/TOKEN\n",
    );
    let api: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(test.client().await);
    let object = serde_json::from_value(serde_json::json!({"metadata": {"name": namespace}}));
    api.create(
        &kube::api::PostParams::default(),
        &object.expect("a namespace"),
    )
    .await
    .expect("a namespace");
    let part = deploy(&project, &kubeconfig, &["-a", "web", "-n", namespace]);
    assert_eq!(part.code, 0, "{part}");
    assert_eq!(
        objects(&json(&part)),
        ["app: Deployment ship-part/web ready"]
    );
    let hooks = fs::read_to_string(project.path("hooks.txt")).expect("hooks");
    let image = json(&part)["artifacts"][0]["image"].clone();
    let image = image.as_str().expect("an image");
    assert_eq!(
        hooks,
        format!(
            "before app ship-part {image} \nagain app ship-part {image} \nafter app ship-part {image} b\n"
        )
    );
    let events = project.run(&["events"]);
    assert!(!events.stdout.contains("very-secret-word"), "{events}");
    // A command that fails fails the step, and nothing is applied.
    project.write("hook.sh", "#!/bin/sh\necho no database\nexit 3\n");
    project.write(
        "deploy/app/web.yaml",
        &deployment("other", "registry.example/shop/web:latest"),
    );
    let failed = deploy(&project, &kubeconfig, &["-a", "web", "-n", namespace]);
    assert_eq!(failed.code, 1, "{failed}");
    let error = json(&failed)["steps"][0]["error"].clone();
    let error = error.as_str().expect("an error");
    assert!(
        error.starts_with("before it: `sh` ended with 3") && error.contains("no database"),
        "{error}"
    );
    assert_eq!(objects(&json(&failed)), Vec::<String>::new());
}

/// A context that nobody named is not deployed to.
#[test]
fn a_context_must_be_named_or_be_one_of_this_machine() {
    let project = project("shop");
    let kubeconfig = |context: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {context}\nclusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:1\"}}}}]\ncontexts: [{{name: {context}, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{}}}}]\n"
        )
    };
    project.write("production", &kubeconfig("production"));
    let refused = project.run(&["ship", "deploy", "--kubeconfig", "production"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused
            .stderr
            .contains("the current context `production` is named by nobody"),
        "{refused}"
    );
    assert!(
        refused
            .stderr
            .contains("hint: `--context production` deploys there"),
        "{refused}"
    );
    assert!(!project.path(".portolan").exists(), "nothing was begun");
    project.write("local", &kubeconfig("kind-shop"));
    let local = project.run(&["ship", "deploy", "--kubeconfig", "local"]);
    assert!(!local.stderr.contains("named by nobody"), "{local}");
    let text = fs::read_to_string(project.path("portolan.yaml")).expect("a document");
    project.write(
        "portolan.yaml",
        &text.replace("{name: config,", "{name: config, context: staging,"),
    );
    let other = project.run(&[
        "ship",
        "deploy",
        "--kubeconfig",
        "production",
        "--context",
        "production",
    ]);
    assert!(
        other
            .stderr
            .contains("the step `config` is meant for the context `staging`"),
        "{other}"
    );
}

fn deploy(project: &Project, kubeconfig: &str, args: &[&str]) -> Answer {
    let base = [
        "ship",
        "deploy",
        "--kubeconfig",
        kubeconfig,
        "--context",
        "test",
        "-o",
        "json",
    ];
    project.run(&[&base, args].concat())
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

/// Step, object and status of each object.
fn objects(value: &Value) -> Vec<String> {
    let steps = value["steps"].as_array().into_iter().flatten();
    let lines = steps.flat_map(|step| {
        let objects = step["objects"].as_array().cloned().unwrap_or_default();
        let name = step["name"].as_str().unwrap_or_default().to_owned();
        objects.into_iter().map(move |object| {
            let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            format!("{name}: {} {}", word("object"), word("status"))
        })
    });
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_applied_waited_for_pruned_and_deleted() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let kubelet = Kubelet::start(
        test.client().await,
        Some("ship-deploy"),
        KubeletSetup::default(),
    );
    let project = project("ship-deploy");
    let first = deploy(&project, &kubeconfig, &[]);
    assert_eq!(first.code, 0, "{first}");
    let value = json(&first);
    assert_eq!(value["kind"], "DeployResult");
    assert_eq!(
        objects(&value),
        [
            "config: Namespace ship-deploy ready",
            "config: ConfigMap ship-deploy/settings ready",
            "config: ConfigMap ship-deploy/more ready",
            "app: Deployment ship-deploy/web ready",
        ]
    );
    // What is no longer there is deleted, the namespace stays.
    fs::remove_file(project.path("deploy/config/more.yml")).expect("removed");
    let second = deploy(&project, &kubeconfig, &[]);
    assert_eq!(second.code, 0, "{second}");
    assert!(
        objects(&json(&second)).contains(&"config: ConfigMap ship-deploy/more pruned".to_owned()),
        "{second}"
    );
    // One that never becomes ready fails its step alone, with what it waits for.
    let (built, _) = project.build(&[]);
    let image = built["artifacts"][0]["image"].as_str().expect("an image");
    kubelet.fail_image_with("registry.example/side:2", PodFault::NeverReady);
    let text = deployment("web", image).replace("side:1", "side:2");
    project.write("deploy/app/web.yaml", &text);
    let third = deploy(&project, &kubeconfig, &[]);
    assert_eq!(third.code, 1, "{third}");
    let value = json(&third);
    assert_eq!(
        (&value["steps"][0]["status"], &value["steps"][1]["status"]),
        (&"deployed".into(), &"failed".into()),
        "{third}"
    );
    let error = value["steps"][1]["error"].as_str().expect("an error");
    assert!(
        error.contains("Deployment ship-deploy/web is not ready: "),
        "{error}"
    );
    // An object that the cluster refuses skips what needs it.
    project.write(
        "deploy/config/more.yml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n",
    );
    let fourth = deploy(&project, &kubeconfig, &[]);
    let value = json(&fourth);
    assert_eq!(
        (fourth.code, &value["steps"][1]["status"]),
        (1, &"skipped".into()),
        "{fourth}"
    );
    assert!(
        objects(&value).contains(&"config: ConfigMap ship-deploy/Not_A_Name failed".to_owned()),
        "{fourth}"
    );
    let deleted = project.run(&[
        "ship",
        "delete",
        "--kubeconfig",
        &kubeconfig,
        "--context",
        "test",
    ]);
    assert_eq!(deleted.code, 0, "{deleted}");
    assert!(
        deleted
            .stdout
            .contains("deleted  Deployment ship-deploy/web\n"),
        "{deleted}"
    );
    assert!(
        deleted
            .stdout
            .contains("kept     Namespace ship-deploy: its deletion could lose data\n"),
        "{deleted}"
    );
}

/// The cluster tries each object and keeps nothing; an image that is not built is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_would_be_done_and_changes_nothing() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let namespace = "ship-try";
    let _kubelet = Kubelet::start(
        test.client().await,
        Some(namespace),
        KubeletSetup::default(),
    );
    let project = project(namespace);
    let planned = project.run(&["ship", "build", "--dry-run", "-o", "json", "-a", "web"]);
    assert_eq!(planned.code, 0, "{planned}");
    let value = json(&planned);
    assert_eq!(value["kind"], "Plan");
    assert_eq!(value["artifacts"][0]["status"], "build");
    assert_eq!(
        value["artifacts"][0]["because"][0],
        "it was never built here"
    );
    let tried = deploy(&project, &kubeconfig, &["--dry-run"]);
    assert_eq!(tried.code, 0, "{tried}");
    assert_eq!(
        objects(&json(&tried)),
        [
            "config: Namespace ship-try wouldCreate",
            "config: ConfigMap ship-try/settings wouldCreate",
            "config: ConfigMap ship-try/more wouldCreate",
            "app: Deployment ship-try/web wouldCreate",
        ]
    );
    assert_eq!(json(&tried)["steps"][0]["status"], "planned");
    let (built, _) = project.build(&[]);
    assert_eq!(
        built["artifacts"][0]["status"], "built",
        "nothing was built before"
    );

    assert_eq!(deploy(&project, &kubeconfig, &[]).code, 0);
    let same = deploy(&project, &kubeconfig, &["--dry-run"]);
    let unchanged = objects(&json(&same));
    assert!(
        unchanged.iter().all(|line| line.ends_with(" unchanged")),
        "{same}"
    );
    fs::remove_file(project.path("deploy/config/more.yml")).expect("removed");
    project.write("web/index.html", "another page");
    let tried = deploy(&project, &kubeconfig, &["--dry-run"]);
    assert_eq!(tried.code, 0, "{tried}");
    let lines = objects(&json(&tried));
    assert!(
        lines.contains(&"config: ConfigMap ship-try/more wouldDelete".to_owned()),
        "{tried}"
    );
    assert!(
        lines.contains(&"app: Deployment ship-try/web wouldChange".to_owned()),
        "{tried}"
    );
    assert_eq!(
        json(&tried)["steps"][1]["objects"][0]["message"],
        "its image is unknown until `web` is built"
    );
    // What the cluster would refuse is told before anything is done.
    project.write(
        "deploy/config/more.yml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n",
    );
    let refused = deploy(&project, &kubeconfig, &["--dry-run"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert_eq!(json(&refused)["steps"][0]["status"], "failed", "{refused}");
    let place = ["--kubeconfig", &kubeconfig, "--context", "test"];
    let run = project.run(&[&["ship", "run", "--dry-run"], &place[..]].concat());
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("step config would fail"), "{run}");
    let delete = |args: &[&str]| project.run(&[&["ship", "delete"], args, &place[..]].concat());
    for _ in 0..2 {
        let tried = delete(&["--dry-run"]);
        assert_eq!(tried.code, 0, "{tried}");
        assert!(
            tried
                .stdout
                .contains("would be deleted Deployment ship-try/web\n"),
            "{tried}"
        );
    }
    let deleted = delete(&[]);
    assert!(
        deleted
            .stdout
            .contains("deleted  Deployment ship-try/web\n"),
        "{deleted}"
    );
}

/// Two who apply the same object undo each other's work.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_flux_deploys_is_refused_unless_it_is_adopted() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let step = |more: &str| {
        format!(
            "{}  - {{name: web, image: registry.example/shop/web, oci: {{context: web}}}}\n  deploy:\n  - {{name: app, namespace: default, manifests: {{paths: [all.yaml]}}{more}}}\n",
            portolan::project::HEAD
        )
    };
    let project = Project::new("");
    let config = |name: &str, labels: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{labels}}}\n")
    };
    let flux = config(
        "theirs",
        ", labels: {kustomize.toolkit.fluxcd.io/name: apps}",
    );
    project.write("all.yaml", &flux);
    project.write("portolan.yaml", &step(""));
    assert_eq!(deploy(&project, &kubeconfig, &[]).code, 0, "it is new");
    project.write(
        "all.yaml",
        &format!("{}---\n{}", config("ours", ""), config("theirs", "")),
    );
    let refused = deploy(&project, &kubeconfig, &[]);
    assert_eq!(refused.code, 1, "{refused}");
    let value = json(&refused);
    assert_eq!(
        value["steps"][0]["error"],
        "ConfigMap theirs is deployed by the Kustomization `apps`; `adopt: true` takes it over"
    );
    assert!(objects(&value).is_empty(), "nothing was applied: {refused}");
    project.write("portolan.yaml", &step(", adopt: true"));
    let adopted = deploy(&project, &kubeconfig, &[]);
    assert_eq!(adopted.code, 0, "{adopted}");
}

/// An autoscaler sets the number of pods; a deployment that says another one would undo its work each time.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_left_to_an_autoscaler() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let _kubelet = Kubelet::start(
        test.client().await,
        Some("ship-hpa"),
        KubeletSetup::default(),
    );
    let project = Project::new(
        "  - {name: web, image: registry.example/shop/web, oci: {context: web}}\n  deploy:\n  - {name: app, namespace: ship-hpa, manifests: {paths: [all.yaml]}, wait: {timeout: 120s}}\n",
    );
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ship-hpa}\n";
    let autoscaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n";
    let deployment =
        deployment("web", "registry.example/shop/web").replace("replicas: 1", "replicas: 2");
    let write = |more: &str| project.write("all.yaml", &format!("{deployment}{namespace}{more}"));
    let replicas = async || {
        let api: kube::Api<k8s_openapi::api::apps::v1::Deployment> =
            kube::Api::namespaced(test.client().await, "ship-hpa");
        let web = api.get("web").await.expect("a Deployment");
        web.spec.and_then(|spec| spec.replicas)
    };
    write("");
    assert_eq!(deploy(&project, &kubeconfig, &[]).code, 0);
    assert_eq!(replicas().await, Some(2));
    // The number was ours: it stays what it is, and does not become the default.
    write(autoscaler);
    let second = deploy(&project, &kubeconfig, &[]);
    assert_eq!((second.code, replicas().await), (0, Some(2)), "{second}");
    // What the autoscaler sets from then on is not touched.
    let api: kube::Api<k8s_openapi::api::apps::v1::Deployment> =
        kube::Api::namespaced(test.client().await, "ship-hpa");
    let scale = kube::api::Patch::Merge(serde_json::json!({"spec": {"replicas": 4}}));
    api.patch_scale("web", &kube::api::PatchParams::default(), &scale)
        .await
        .expect("scaled");
    let third = deploy(&project, &kubeconfig, &[]);
    assert_eq!((third.code, replicas().await), (0, Some(4)), "{third}");
}

/// What a pod that crashes says is in the result, long before the deployment would give up; a changed selector is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_ends_the_wait_and_a_field_that_cannot_be_changed_is_named() {
    let Some(test) = TestCluster::shared().await else {
        return;
    };
    let kubeconfig = test.kubeconfig_path().to_str().expect("UTF-8").to_owned();
    let kubelet = Kubelet::start(
        test.client().await,
        Some("ship-crash"),
        KubeletSetup::default(),
    );
    kubelet.fail_image_with("registry.example/side:1", PodFault::CrashLoop);
    let head = |more: &str| {
        format!(
            "{}  - {{name: web, image: registry.example/shop/web, oci: {{context: web}}}}\n  deploy:\n  - {{name: app, namespace: ship-crash, manifests: {{paths: [all.yaml]}}, wait: {{timeout: 10m}}{more}}}\n",
            portolan::project::HEAD
        )
    };
    let project = Project::new("");
    project.write("portolan.yaml", &head(""));
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ship-crash}\n";
    let text = deployment("web", "registry.example/shop/web").replace(
        "progressDeadlineSeconds: 2",
        "progressDeadlineSeconds: 3600",
    );
    project.write("all.yaml", &format!("{text}{namespace}"));
    let crashed = deploy(&project, &kubeconfig, &[]);
    assert_eq!(crashed.code, 1, "{crashed}");
    let error = json(&crashed)["steps"][0]["error"].clone();
    let error = error.as_str().expect("an error");
    assert!(error.contains("is stuck: CrashLoopBackOff"), "{error}");
    kubelet.heal_image("registry.example/side:1");
    let other = text.replace("app: web", "app: other");
    project.write("all.yaml", &format!("{other}{namespace}"));
    let refused = deploy(&project, &kubeconfig, &[]);
    assert_eq!(refused.code, 1, "{refused}");
    assert_eq!(
        json(&refused)["steps"][0]["error"],
        "Deployment ship-crash/web: spec.selector cannot be changed; `immutable: replace` deletes the object and makes it anew"
    );
    project.write("portolan.yaml", &head(", immutable: replace"));
    let replaced = deploy(&project, &kubeconfig, &[]);
    assert_eq!(replaced.code, 0, "{replaced}");
}
