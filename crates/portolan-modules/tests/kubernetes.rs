//! `render` and `apply`: objects from overlays, charts and Flux repositories, and a real API server that they go to.

#![expect(
    clippy::unwrap_used,
    reason = "a test may end where something unexpected happens"
)]

mod bed;

use bed::{Bed, action, diffs, faults, shown};
use portolan_modules::{Ahead, PlannedOutcome, View};
use portolan_testbed::cluster::Cluster as TestCluster;
use serde_json::{Value, json};

const OVERLAY: &[(&str, &[u8])] = &[
    ("deploy/base/kustomization.yaml", b"resources: [web.yaml]\n"),
    (
        "deploy/base/web.yaml",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {token: hunter2hunter2}\n",
    ),
    (
        "deploy/prod/kustomization.yaml",
        b"namePrefix: prod-\nresources: [../base]\n",
    ),
    (
        "deploy/chart/Chart.yaml",
        b"apiVersion: v2\nname: web\nversion: 1.0.0\n",
    ),
    ("deploy/chart/values.yaml", b"color: red\n"),
    (
        "deploy/chart/templates/web.yaml",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {color: {{ .Values.color }}, place: {{ .Release.Namespace }}}\n",
    ),
    (
        "deploy/cluster/apps.yaml",
        b"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec:\n  interval: 1m\n  path: ./prod\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n",
    ),
];

#[test]
fn an_overlay_becomes_a_file_and_its_secrets_are_not_shown() {
    let bed = Bed::with_files(OVERLAY);
    let step =
        json!({"source": "deploy", "kustomize": "prod", "path": "/etc/web.yaml", "mode": "0600"});
    let (plan, _) = bed.converge("render", &step).unwrap();
    let text = bed.read("/etc/web.yaml");
    assert!(
        text.contains("name: prod-web") && text.contains("hunter2hunter2"),
        "{text}"
    );
    assert!(
        diffs(&plan).contains("+  name: prod-web"),
        "{}",
        diffs(&plan)
    );
    assert!(!diffs(&plan).contains("hunter2"), "{}", diffs(&plan));
    bed.write(
        "/etc/web.yaml",
        &text.replace("hunter2hunter2", "correcthorse"),
    );
    let (plan, _) = bed.converge("render", &step).unwrap();
    assert_eq!(diffs(&plan), "values of Secrets differ\n");
    bed.write("/etc/web.yaml", "no objects");
    let (plan, _) = bed.converge("render", &step).unwrap();
    assert_eq!(diffs(&plan), "the file had something else than objects\n");
}

#[test]
fn a_chart_is_rendered_with_values_of_the_step() {
    let bed = Bed::with_files(OVERLAY);
    let step = json!({
        "source": "deploy", "chart": "chart", "path": "/etc/web.yaml", "release": "shop",
        "namespace": "prod", "values": {"color": "blue"},
    });
    bed.converge("render", &step).unwrap();
    let text = bed.read("/etc/web.yaml");
    assert!(
        text.contains("name: shop") && text.contains("color: blue") && text.contains("place: prod"),
        "{text}"
    );
}

#[test]
fn a_flux_repository_is_rendered_without_the_objects_of_flux() {
    let bed = Bed::with_files(OVERLAY);
    let step = json!({"source": "deploy", "flux": "cluster", "path": "/etc/web.yaml"});
    bed.converge("render", &step).unwrap();
    let text = bed.read("/etc/web.yaml");
    assert!(
        text.contains("name: prod-web") && !text.contains("toolkit.fluxcd.io"),
        "{text}"
    );
    let missing =
        json!({"source": "deploy", "flux": "cluster", "only": ["none"], "path": "/etc/x"});
    let told = shown(&bed.plan("render", &missing).unwrap_err());
    assert!(
        told.contains("no Kustomization or HelmRelease `none`"),
        "{told}"
    );
}

#[test]
fn files_of_the_node_are_rendered_and_links_lead_nowhere() {
    let bed = Bed::with_files(&[]);
    std::fs::create_dir_all(bed.path("/srv/deploy")).unwrap();
    bed.write("/srv/deploy/kustomization.yaml", "resources: [web.yaml]\n");
    std::os::unix::fs::symlink(
        bed.outside().join("sentinel"),
        bed.path("/srv/deploy/web.yaml"),
    )
    .unwrap();
    let step = json!({"source": "/srv/deploy", "kustomize": ".", "path": "/etc/web.yaml"});
    let told = shown(&bed.plan("render", &step).unwrap_err());
    assert!(told.contains("web.yaml"), "{told}");
    std::fs::remove_file(bed.path("/srv/deploy/web.yaml")).unwrap();
    bed.write(
        "/srv/deploy/web.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n",
    );
    bed.converge("render", &step).unwrap();
    let mut ahead = Ahead::default();
    let file = json!({"path": "/srv/deploy/more.yaml", "content": "x"});
    ahead.add(&bed.plan("file", &file).unwrap().predictions);
    let view = View {
        host: &bed.host,
        ahead,
    };
    let plan = action("render", &step).plan(&view).unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unknown { .. }),
        "{plan:?}"
    );
    assert!(
        faults(
            "render",
            &json!({"source": "a", "kustomize": "../b", "path": "/x"})
        )
        .contains("without `..`")
    );
    assert!(faults("render", &json!({"source": "a", "path": "/x"})).contains("needs one of"));
    let both = json!({"source": "a", "kustomize": "b", "values": {}, "path": "/x"});
    assert!(faults("render", &both).contains("is for `chart`"));
}

/// A host whose kubeconfig leads to the test cluster.
async fn with_cluster(files: &[(&str, &[u8])]) -> Option<Bed> {
    let test = TestCluster::shared().await?;
    let bed = Bed::with_files(files);
    bed.write(
        "/etc/kubeconfig",
        &std::fs::read_to_string(test.kubeconfig_path()).unwrap(),
    );
    Some(bed)
}

fn step(namespace: &str, content: &Value) -> Value {
    json!({
        "content": content.to_string(), "kubeconfig": "/etc/kubeconfig", "name": "web",
        "namespace": namespace, "prune": true, "wait": "60s",
    })
}

fn list(objects: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": objects})
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}})
}

#[tokio::test]
async fn objects_are_applied_changed_and_pruned() {
    let Some(bed) = with_cluster(&[]).await else {
        return;
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "modules-apply"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "stringData": {"token": "hunter2hunter2"}});
    let first = list(&[
        namespace.clone(),
        secret.clone(),
        config_map("one", "1"),
        config_map("two", "2"),
    ]);
    // The namespace comes with the set, so the cluster cannot say more about the others than that they are new.
    let (plan, applied) = bed
        .converge("apply", &step("modules-apply", &first))
        .unwrap();
    assert_eq!(plan.changes().len(), 4, "{plan:?}");
    assert_eq!(applied.result["objects"], 4);
    assert!(!diffs(&plan).contains("hunter2"), "{}", diffs(&plan));
    let second = list(&[
        namespace,
        secret,
        config_map("one", "changed"),
        config_map("three", "3"),
    ]);
    let (plan, applied) = bed
        .converge("apply", &step("modules-apply", &second))
        .unwrap();
    let subjects: Vec<String> = plan
        .changes()
        .iter()
        .map(|change| change.subject.to_string())
        .collect();
    assert_eq!(subjects.len(), 3, "{subjects:?}");
    assert!(
        diffs(&plan).contains("-  a: \"1\"\n+  a: changed\n"),
        "{}",
        diffs(&plan)
    );
    assert!(
        diffs(&plan).contains("it is no longer in the set"),
        "{}",
        diffs(&plan)
    );
    assert_eq!(applied.result["pruned"], 1);
}

/// What the API server would refuse fails in the check, and nothing is applied.
#[tokio::test]
async fn what_the_cluster_refuses_fails_in_the_check() {
    let Some(bed) = with_cluster(&[]).await else {
        return;
    };
    let wrong =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "dota": {}});
    let told = shown(
        &bed.plan("apply", &step("default", &list(&[wrong])))
            .unwrap_err(),
    );
    assert!(told.contains("dota"), "{told}");
    let unknown =
        json!({"apiVersion": "nobody.example/v1", "kind": "Thing", "metadata": {"name": "x"}});
    let told = shown(
        &bed.plan("apply", &step("default", &list(&[unknown])))
            .unwrap_err(),
    );
    assert!(told.contains("does not serve `Thing`"), "{told}");
}

/// What one step renders, the next one applies; a check knows the text that is not written yet.
#[tokio::test]
async fn what_is_rendered_is_applied() {
    let Some(bed) = with_cluster(OVERLAY).await else {
        return;
    };
    let render = json!({"source": "deploy", "kustomize": "prod", "path": "/etc/web.yaml"});
    let apply = json!({
        "source": "/etc/web.yaml", "kubeconfig": "/etc/kubeconfig", "name": "rendered", "namespace": "default",
    });
    let mut ahead = Ahead::default();
    ahead.add(&bed.plan("render", &render).unwrap().predictions);
    let view = View {
        host: &bed.host,
        ahead,
    };
    let plan = action("apply", &apply).plan(&view).unwrap();
    assert_eq!(plan.changes().len(), 2, "{plan:?}");
    bed.converge("render", &render).unwrap();
    bed.converge("apply", &apply).unwrap();
}

#[test]
fn a_kubeconfig_must_be_there_and_no_link() {
    let bed = Bed::with_files(&[]);
    let step = step("default", &list(&[config_map("x", "1")]));
    assert!(shown(&bed.plan("apply", &step).unwrap_err()).contains("there is no such file"));
    std::os::unix::fs::symlink(bed.outside().join("sentinel"), bed.path("/etc/kubeconfig"))
        .unwrap();
    assert!(shown(&bed.plan("apply", &step).unwrap_err()).contains("it is a link"));
    assert!(
        faults(
            "apply",
            &json!({"content": "", "kubeconfig": "/x", "name": "A b"})
        )
        .contains("small letters")
    );
    assert!(faults("apply", &json!({"kubeconfig": "/x", "name": "a"})).contains("needs one of"));
}
