//! Which images are found in objects, and where.

use portolan_object::{Gvk, Object, Origin, images, pod_templates, visit_pod_templates_mut};
use portolan_yaml::{Dialect, Node, parse_one};

fn read(yaml: &str) -> Node {
    parse_one(yaml, Dialect::Helm).expect("YAML")
}

fn gvk(node: &Node) -> Gvk {
    let text = |key| {
        node.get(key)
            .and_then(Node::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Gvk::from_api_version(&text("apiVersion"), text("kind"))
}

/// Compares with `ROLE IMAGE PATH:LINE`, one a line.
fn check(yaml: &str, expected: &[&str]) {
    let node = read(yaml);
    let found: Vec<String> = images(&gvk(&node), &node)
        .iter()
        .map(|image| {
            format!(
                "{:?} {} {}:{}",
                image.role, image.reference, image.path, image.at.line
            )
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_pod_names_images_in_its_containers_and_volumes() {
    check(
        "\
apiVersion: v1
kind: Pod
spec:
  initContainers: [{name: a, image: init:1}]
  containers:
    - name: b
      image: main:1
    - name: filled-in-by-somebody
      image: ''
  ephemeralContainers: [{name: c, image: debug:1}]
  volumes:
    - name: v
      image: {reference: 'models:1', pullPolicy: Always}
",
        &[
            "InitContainer init:1 spec.initContainers[0].image:4",
            "Container main:1 spec.containers[0].image:7",
            "EphemeralContainer debug:1 spec.ephemeralContainers[0].image:10",
            "Volume models:1 spec.volumes[0].image.reference:13",
        ],
    );
}

#[test]
fn a_cron_job_keeps_its_pod_template_two_levels_down() {
    check(
        "
apiVersion: batch/v1
kind: CronJob
spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: report:1}]}}}}}
",
        &["Container report:1 spec.jobTemplate.spec.template.spec.containers[0].image:4"],
    );
}

/// Only its pod template counts in a built-in kind: an `image` elsewhere is somebody's data.
#[test]
fn a_built_in_kind_without_pods_names_no_image() {
    check(
        "{apiVersion: v1, kind: ConfigMap, data: {image: 'nginx:1'}}",
        &[],
    );
}

#[test]
fn custom_kinds_are_searched_by_the_names_of_their_fields() {
    check(
        "
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
spec:
  image: quay.io/prometheus/prometheus:v3.5.0
  thanos: {image: 'quay.io/thanos/thanos:v0.39.2'}
  containers: [{name: extra, image: ghcr.io/example/extra:1}]
",
        &[
            "Custom quay.io/prometheus/prometheus:v3.5.0 spec.image:5",
            "Custom quay.io/thanos/thanos:v0.39.2 spec.thanos.image:6",
            "Container ghcr.io/example/extra:1 spec.containers[0].image:7",
        ],
    );
    check(
        "
apiVersion: postgresql.cnpg.io/v1
kind: Cluster
spec: {imageName: 'ghcr.io/cloudnative-pg/postgresql:17.5'}
",
        &["Custom ghcr.io/cloudnative-pg/postgresql:17.5 spec.imageName:4"],
    );
    check(
        "
apiVersion: kubevirt.io/v1
kind: VirtualMachine
spec:
  dataVolumeTemplates: [{spec: {source: {registry: {url: 'docker://quay.io/disks/data:1'}}}}]
  template: {spec: {volumes: [{name: root, containerDisk: {image: 'quay.io/disks/fedora:42'}}]}}
",
        &[
            "Custom quay.io/disks/data:1 spec.dataVolumeTemplates[0].spec.source.registry.url:5",
            "Volume quay.io/disks/fedora:42 spec.template.spec.volumes[0].containerDisk.image:6",
        ],
    );
}

#[test]
fn workflows_tasks_and_rollouts_name_images_in_their_steps() {
    check(
        "
apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
  templates:
    - container: {image: alpine:3.22}
    - script: {image: 'python:3.13'}
",
        &[
            "Custom alpine:3.22 spec.templates[0].container.image:6",
            "Custom python:3.13 spec.templates[1].script.image:7",
        ],
    );
    check(
        "
apiVersion: tekton.dev/v1
kind: Task
spec: {steps: [{name: build, image: golang:1.26}]}
",
        &["Custom golang:1.26 spec.steps[0].image:4"],
    );
    check(
        "
apiVersion: argoproj.io/v1alpha1
kind: Rollout
spec: {template: {spec: {containers: [{image: web:1}]}}}
",
        &["Container web:1 spec.template.spec.containers[0].image:4"],
    );
}

#[test]
fn repository_and_tag_make_one_image() {
    check(
        "
apiVersion: example.com/v1
kind: Widget
spec:
  image: {registry: ghcr.io/, repository: example/widget, tag: 1.5, pullPolicy: Always}
  sidecarImage: {repository: ghcr.io/example/sidecar, digest: ''}
  otherImage: {name: just-a-name}
",
        &[
            "Custom ghcr.io/example/widget:1.5 spec.image:5",
            "Custom ghcr.io/example/sidecar spec.sidecarImage:6",
        ],
    );
}

#[test]
fn grafanas_version_is_a_tag_or_a_whole_image() {
    let grafana = |version: &str| {
        format!(
            "{{apiVersion: grafana.integreatly.org/v1beta1, kind: Grafana, spec: {{version: '{version}'}}}}"
        )
    };
    check(
        &grafana("12.1.0"),
        &["Custom docker.io/grafana/grafana:12.1.0 spec.version:1"],
    );
    check(
        &grafana("quay.io/me/grafana:1"),
        &["Custom quay.io/me/grafana:1 spec.version:1"],
    );
}

#[test]
fn what_only_looks_like_an_image_is_left_out() {
    check(
        "
apiVersion: example.com/v1
kind: Page
spec:
  image: assets/logo.png
  heroImage: sunset
  coverImage: https://example.com/cover
  image2: nginx:1
  items: [{image: '{{ template }}'}, {image: '${VARIABLE}'}]
",
        &[],
    );
}

#[test]
fn kinds_that_describe_what_others_run_are_silent() {
    for (api_version, kind) in [
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
        ("image.toolkit.fluxcd.io/v1", "ImageRepository"),
        ("argoproj.io/v1alpha1", "Application"),
    ] {
        check(
            &format!("{{apiVersion: {api_version}, kind: {kind}, spec: {{image: 'nginx:1'}}}}"),
            &[],
        );
    }
}

#[test]
fn very_deep_trees_end_the_search_quietly() {
    let deep = (0..1000).fold(Node::string("nginx:1"), |node, _| {
        let mut map = Node::map();
        map.as_map_mut().expect("a map").insert("image", node);
        map
    });
    assert_eq!(images(&Gvk::new("example.com", "v1", "Deep"), &deep), []);
}

#[test]
fn pod_templates_are_found_and_changed_in_place() {
    let mut job = read(
        "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec: {tasks: [{template: {spec: {}}}, {template: {spec: {}}}, {template: null}]}
",
    );
    let kind = gvk(&job);
    let paths: Vec<String> = pod_templates(&kind, &job)
        .into_iter()
        .map(|found| found.path)
        .collect();
    assert_eq!(paths, ["spec.tasks[0].template", "spec.tasks[1].template"]);
    visit_pod_templates_mut(&kind, &mut job, |template| {
        template
            .as_map_mut()
            .expect("a map")
            .insert("seen", Node::bool(true));
    });
    assert!(
        pod_templates(&kind, &job)
            .iter()
            .all(|found| found.node.get("seen").is_some())
    );
    assert_eq!(
        Object::new(job, Origin::default())
            .expect("an object")
            .name(),
        "train"
    );
}
