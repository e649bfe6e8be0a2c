//! `portolan get` on the example repository and on broken ones.

mod portolan;

use portolan::portolan_in;
use portolan::repository::{HARBOR, kustomization, repository};

/// Runs `portolan get` on the example's production cluster.
fn get(args: &[&str]) -> portolan::Answer {
    let mut all = vec!["get"];
    all.extend(args);
    all.extend(["--path", "clusters/production"]);
    portolan_in(HARBOR, &all)
}

#[test]
fn kustomizations_are_listed_with_their_path_source_and_state() {
    insta::assert_snapshot!(get(&["ks"]), @r"
    exit 0
    --- stdout
    NAMESPACE     NAME             PATH                          SOURCE                      SUSPENDED   READY   STATUS
    flux-system   apps             ./apps/production             GitRepository/flux-system   False       True    7 objects
    flux-system   flux-system      ./clusters/production         GitRepository/flux-system   False       True    5 objects
    flux-system   infrastructure   ./infrastructure/production   GitRepository/flux-system   False       True    4 objects
    ");
}

#[test]
fn every_cluster_of_a_repository_has_its_rows() {
    insta::assert_snapshot!(portolan_in(HARBOR, &["get", "helmreleases", "-o", "wide"]), @r"
    exit 0
    --- stdout
    CLUSTER      NAMESPACE   NAME     CHART    VERSION   SOURCE                                  SUSPENDED   READY   STATUS      RELEASE         EMITTED BY                       DEPENDS ON   DECLARED IN
    production   beacon      beacon   beacon   0.3.1     GitRepository/flux-system/flux-system   False       True    4 objects   beacon/beacon   Kustomization flux-system/apps                apps/base/beacon/helmrelease.yaml:1
    staging      beacon      beacon   beacon   0.3.1     GitRepository/flux-system/flux-system   False       True    4 objects   beacon/beacon   Kustomization flux-system/apps                apps/base/beacon/helmrelease.yaml:1
    ");
}

#[test]
fn a_namespace_that_is_asked_for_needs_no_column() {
    insta::assert_snapshot!(get(&["ks", "apps", "-n", "flux-system"]), @r"
    exit 0
    --- stdout
    NAME   PATH                SOURCE                      SUSPENDED   READY   STATUS
    apps   ./apps/production   GitRepository/flux-system   False       True    7 objects
    ");
}

#[test]
fn sources_name_who_uses_them() {
    insta::assert_snapshot!(get(&["sources"]), @r"
    exit 0
    --- stdout
    NAMESPACE     KIND            NAME          URL                                                REVISION   USED BY
    flux-system   GitRepository   flux-system   https://git.example/harbor.git (this repository)   main       Kustomization flux-system/apps, Kustomization flux-system/flux-system and 2 more
    ");
}

#[test]
fn images_name_the_objects_that_run_them() {
    insta::assert_snapshot!(get(&["images"]), @r"
    exit 0
    --- stdout
    IMAGE                           USED BY
    registry.example/beacon:1.8.0   Deployment/beacon/beacon
    registry.example/quay:2.3.0     Deployment/quay/quay
    ");
}

/// The field names are a promise to scripts.
#[test]
fn images_as_json_are_records_for_scripts() {
    insta::assert_snapshot!(get(&["images", "quay", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "apiVersion": "portolan.dev/v1alpha1",
      "items": [
        {
          "cluster": "production",
          "image": "registry.example/quay:2.3.0",
          "usedBy": [
            {
              "apiVersion": "apps/v1",
              "kind": "Deployment",
              "name": "quay",
              "namespace": "quay",
              "owner": "Kustomization flux-system/apps",
              "path": "spec.template.spec.containers[0].image"
            }
          ]
        }
      ],
      "kind": "ImageList"
    }
    "#);
}

#[test]
fn kustomizations_as_yaml_are_records_for_scripts() {
    insta::assert_snapshot!(get(&["ks", "apps", "-o", "yaml"]), @r#"
    exit 0
    --- stdout
    apiVersion: portolan.dev/v1alpha1
    items:
    - cluster: production
      declaredIn: clusters/production/apps.yaml:1
      dependsOn:
      - infrastructure
      name: apps
      namespace: flux-system
      objects: 7
      path: ./apps/production
      prune: true
      ready: true
      source: GitRepository/flux-system
      status: 7 objects
      suspended: false
    kind: KustomizationList
    "#);
}

#[test]
fn charts_name_the_releases_made_of_them() {
    insta::assert_snapshot!(get(&["charts"]), @r"
    exit 0
    --- stdout
    CHART    VERSION   SOURCE                                  USED BY
    beacon   0.3.1     GitRepository/flux-system/flux-system   HelmRelease beacon/beacon
    ");
}

#[test]
fn objects_are_chosen_by_label_and_named_as_kubectl_does() {
    let answer = get(&[
        "objects",
        "-l",
        "app.kubernetes.io/name=beacon",
        "-o",
        "name",
    ]);
    insta::assert_snapshot!(answer, @r"
    exit 0
    --- stdout
    configmap/beacon-light
    service/beacon
    deployment.apps/beacon
    ingress.networking.k8s.io/beacon
    ");
}

#[test]
fn objects_as_yaml_are_the_objects_themselves() {
    insta::assert_snapshot!(get(&["objects", "Namespace/quay", "-o", "yaml"]), @r"
    exit 0
    --- stdout
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      labels:
        harbor.example/region: north
      name: quay
    ");
}

#[test]
fn the_tree_shows_what_emits_what() {
    insta::assert_snapshot!(get(&["objects", "--tree"]), @r"
    exit 0
    --- stdout
    ✓ flux-system/flux-system                    clusters/production                                2 Kustomizations, 2 objects
    ├── ✓ apps                                   apps/production             needs infrastructure   1 release, 6 objects
    │   ├── ✓ HelmRelease beacon/beacon          chart beacon 0.3.1                                 4 objects
    │   │   ├── ConfigMap beacon/beacon-light
    │   │   ├── Service beacon/beacon
    │   │   ├── Deployment beacon/beacon
    │   │   └── Ingress beacon/beacon
    │   ├── Deployment quay/quay
    │   ├── Service quay/quay
    │   ├── Ingress quay/quay
    │   ├── ConfigMap quay/quay-log-d559mth242
    │   ├── ConfigMap beacon/beacon-values
    │   └── PodDisruptionBudget quay/quay
    ├── ✓ infrastructure                         infrastructure/production                          4 objects
    │   ├── Namespace quay
    │   ├── Namespace beacon
    │   ├── ResourceQuota quay/berths
    │   └── PriorityClass pilot
    ├── GitRepository flux-system/flux-system
    └── ConfigMap flux-system/cluster-settings
    ");
}

#[test]
fn a_named_branch_of_the_tree_stands_alone() {
    insta::assert_snapshot!(get(&["hr", "apps", "--tree"]), @r"
    exit 0
    --- stdout
    ✓ apps                            apps/production      needs infrastructure   1 release, 6 objects
    └── ✓ HelmRelease beacon/beacon   chart beacon 0.3.1                          4 objects
    ");
}

#[test]
fn graphs_are_written_for_graphviz_and_mermaid() {
    insta::assert_snapshot!(get(&["hr", "--graph", "dot"]), @r#"
    exit 0
    --- stdout
    digraph portolan {
      rankdir=LR;
      node [shape=box, style=rounded, fontname="sans-serif"];
      n0 [label="flux-system/flux-system\nclusters/production"];
      n1 [label="apps\napps/production"];
      n2 [label="infrastructure\ninfrastructure/production"];
      n3 [label="HelmRelease beacon/beacon\nchart beacon 0.3.1"];
      n0 -> n1;
      n0 -> n2;
      n1 -> n3;
      n1 -> n2 [style=dashed, label=needs, constraint=false];
    }
    "#);
    insta::assert_snapshot!(get(&["hr", "--graph", "mermaid"]), @r#"
    exit 0
    --- stdout
    flowchart LR
      n0["flux-system/flux-system"]
      n1["apps"]
      n2["infrastructure"]
      n3(["HelmRelease beacon/beacon"])
      n0 --> n1
      n0 --> n2
      n1 --> n3
      n1 -. needs .-> n2
    "#);
}

#[test]
fn the_picture_has_a_box_for_each_node_and_a_line_for_each_edge() {
    let answer = get(&["sources", "--graph", "svg"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.starts_with("<svg xmlns="), "{answer}");
    assert_eq!(answer.stdout.matches("<rect ").count(), 5);
    assert_eq!(answer.stdout.matches("<path class=\"reads\"").count(), 4);
    assert_eq!(answer.stdout.matches("<path class=\"needs\"").count(), 1);
    assert!(answer.stdout.contains(">HelmRelease beacon/beacon</text>"));
}

#[test]
fn images_do_not_grow_on_trees() {
    insta::assert_snapshot!(get(&["images", "--tree"]), @r"
    exit 2
    --- stderr
    error: this list cannot be shown as a tree
    hint: `--tree` shows `ks`, `hr` and `objects`
    ");
}

#[test]
fn a_name_that_is_not_there_suggests_the_nearest() {
    insta::assert_snapshot!(get(&["hr", "becon"]), @r"
    exit 2
    --- stderr
    error: no HelmRelease named `becon`
    hint: there is only `beacon` in beacon
    ");
}

#[test]
fn a_namespace_with_nothing_in_it_is_answered_with_the_nearest() {
    insta::assert_snapshot!(get(&["hr", "-n", "nowhere"]), @r"
    exit 2
    --- stderr
    error: no HelmRelease is in the namespace `nowhere`
    hint: did you mean `beacon`?
    ");
}

#[test]
fn a_namespace_without_anything_of_the_kind_is_answered_with_the_nearest_that_has_some() {
    insta::assert_snapshot!(get(&["hr", "-n", "quay"]), @r"
    exit 2
    --- stderr
    error: no HelmRelease is in the namespace `quay`
    hint: did you mean `beacon`? `portolan get objects -n quay` lists what else lies there
    ");
    insta::assert_snapshot!(get(&["ks", "-n", "quay", "-o", "json"]), @r"
    exit 2
    --- stderr
    error: no Kustomization is in the namespace `quay`
    hint: did you mean `flux-system`? `portolan get objects -n quay` lists what else lies there
    ");
}

#[test]
fn nothing_found_is_said_on_stderr_and_is_no_fault() {
    let repository = repository(&[("cluster/apps.yaml", &kustomization("apps", "./cluster"))]);
    let directory = repository.path().to_str().expect("a path in UTF-8");
    let get = |args: &[&str]| portolan_in(directory, &[&["get", "hr"], args].concat());
    insta::assert_snapshot!(get(&[]), @r"
    exit 0
    --- stderr
    nothing found
    ");
    insta::assert_snapshot!(get(&["-o", "json"]).stdout, @r#"
    {
      "apiVersion": "portolan.dev/v1alpha1",
      "items": [],
      "kind": "HelmReleaseList"
    }
    "#);
}

#[test]
fn a_kustomization_that_fails_is_not_ready_and_says_why() {
    let dir = repository(&[
        ("cluster/bad.yaml", &kustomization("bad", "./nowhere")),
        ("cluster/good.yaml", &kustomization("good", "./good")),
        (
            "good/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: d}\n",
        ),
    ]);
    let answer = portolan_in(
        dir.path().to_str().unwrap(),
        &["get", "ks", "--path", "cluster", "--repo", "."],
    );
    insta::assert_snapshot!(answer, @r"
    exit 1
    --- stdout
    NAMESPACE     NAME          PATH        SOURCE                      SUSPENDED   READY   STATUS
    flux-system   bad           ./nowhere   GitRepository/flux-system   False       False   kustomization path `nowhere` does not exist in the source
    flux-system   flux-system   ./cluster   GitRepository/flux-system   False       True    2 objects
    flux-system   good          ./good      GitRepository/flux-system   False       True    1 object

    --- stderr
    error: Kustomization flux-system/bad: kustomization path `nowhere` does not exist in the source
      ╭▸ cluster/bad.yaml:4:14
      │
    4 │ spec: {path: ./nowhere, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
      ╰╴             ━
    hint: paths begin at the top of GitRepository flux-system/flux-system
    ");
}

#[test]
fn secrets_are_hidden_in_every_form() {
    let dir = repository(&[(
        "cluster/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\nstringData: {key: planted}\ndata: {raw: cGxhbnRlZA==}\n",
    )]);
    let path = dir.path().to_str().unwrap();
    let base = ["get", "objects", "--path", "cluster", "--repo", "."];
    for form in [
        ["-o", "table"],
        ["-o", "wide"],
        ["-o", "yaml"],
        ["-o", "json"],
        ["-o", "name"],
        ["--graph", "svg"],
        ["--graph", "dot"],
        ["--graph", "mermaid"],
    ] {
        let answer = portolan_in(path, &[&base[..], &form[..]].concat());
        assert_eq!(answer.code, 0, "{answer}");
        let all = answer.to_string();
        assert!(
            !all.contains("planted") && !all.contains("cGxhbnRlZA"),
            "{all}"
        );
    }
    let shown = portolan_in(
        path,
        &[&base[..], &["-o", "yaml", "--show-secrets"]].concat(),
    );
    assert!(shown.stdout.contains("planted"), "{shown}");
}
